"""Which jobs are runs of one program (Table 1, b and c of *recurring*), and quantiles by group."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I4, offsets
from sim.lineage.logs import Logs

VARYING = (
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    r"(?<![a-z0-9])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{8,}(?![a-z0-9])",
    r"[0-9]{4}[-_./][0-9]{1,2}(?:[-_./][0-9]{1,2})?(?:[t _-][0-9]{1,2}(?:[:.-][0-9]{2}){0,2}z?)?",
    r"[0-9]{6,}(?:[t_-][0-9]{2,6}z?)?",
)
"""What differs from run to run of one program: identifiers, digests, dates, long numbers.

Short numbers stay, as they may tell programs apart (``load_part_2``).
"""
SIMILARITY = 0.8
"""Least Jaccard similarity of the words of two signatures that count as one program's."""
_WORD = re.compile(r"[\w#]+")


@dataclass(frozen=True, eq=False)
class Templates:
    """Programs, in order of their first run."""

    of_job: I4  # template of each job
    name: list[str]  # normalised name of each; numbered where programs of one name differ

    def __len__(self) -> int:
        """Return the number of templates."""
        return len(self.name)


def normalised(texts: list[str], varying: tuple[str, ...] = VARYING) -> list[str]:
    """Return `texts` in lower case with all that is `varying` as ``#``."""
    if not varying:
        return [text.lower() for text in texts]
    pattern = re.compile("|".join(varying))
    return [pattern.sub("#", text.lower()) for text in texts]


def find_templates(
    logs: Logs, *, similarity: float = SIMILARITY, varying: tuple[str, ...] = VARYING
) -> Templates:
    """Group jobs whose normalised names are equal and whose signatures are approximately equal.

    Signatures are compared as sets of words, whatever they are: a source text is similar to one
    with another date in it, an opaque digest only to its equal. A signature belongs to the first
    group of its name whose first signature is similar enough.
    """
    name, names = _recoded(logs, "template_name", varying)
    signature, signatures = _recoded(logs, "signature", ())
    pair = name.astype(np.int64) * max(len(signatures), 1) + signature
    distinct, first, of_job = np.unique(pair, return_index=True, return_inverse=True)
    in_order = np.argsort(first)  # by the first run
    group: dict[int, list[tuple[frozenset[str], int]]] = {}
    known: list[str] = []
    template = np.empty(len(distinct), np.int32)
    for place in in_order.tolist():
        code, sign = divmod(int(distinct[place]), max(len(signatures), 1))
        words = frozenset(_WORD.findall(signatures[sign]))
        leaders = group.setdefault(code, [])
        for leader, number in leaders:
            if _jaccard(words, leader) >= similarity:
                template[place] = number
                break
        else:
            template[place] = len(known)
            leaders.append((words, len(known)))
            tail = f" ({len(leaders)})" if len(leaders) > 1 else ""
            known.append(names[code] + tail)
    return Templates(template[of_job], known)


def _recoded(logs: Logs, column: str, varying: tuple[str, ...]) -> tuple[I4, list[str]]:
    """Return normalised texts as codes and their spellings."""
    given = logs.jobs[column].chunk(0)
    texts = normalised(given.dictionary.to_pylist(), varying)
    spelled = list(dict.fromkeys(texts))
    number = {text: code for code, text in enumerate(spelled)}
    codes = np.array([number[text] for text in texts], np.int32)
    return codes[given.indices.to_numpy()], spelled


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return 1.0 if a == b else len(a & b) / len(a | b)


QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
"""What is kept of a distribution."""


def quantiles(values: F8, group: I4, n_groups: int, q: tuple[float, ...] = QUANTILES) -> F8:
    """Return quantiles of each group's values, interpolated; NaN values are left out."""
    known = ~np.isnan(values)
    values, group = values[known], group[known]
    order = np.lexsort((values, group))
    values = values[order]
    n = np.bincount(group, minlength=n_groups)
    first = offsets(n)[:-1]
    out = np.full((n_groups, len(q)), np.nan)
    some = np.flatnonzero(n)
    for column, share in enumerate(q):
        place = first[some] + share * (n[some] - 1)
        low = np.floor(place).astype(np.int64)
        high = np.minimum(low + 1, first[some] + n[some] - 1)
        part = place - low
        apart = np.zeros(len(some))
        np.subtract(values[high], values[low], out=apart, where=values[high] != values[low])
        rise = np.zeros(len(some))
        np.multiply(part, apart, out=rise, where=part > 0)
        out[some, column] = values[low] + rise
    return out


def medians(values: F8, group: I4, n_groups: int) -> F8:
    """Return the median of each group's values, (G,); NaN values are left out."""
    return quantiles(values, group, n_groups, (0.5,))[:, 0]
