"""Which jobs are runs of one program (Table 1, conditions b and c of *recurring*)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sim.lineage.logs import Logs

I4 = NDArray[np.int32]

VARYING = (
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    r"\b[0-9]*[a-f]+[0-9]+[0-9a-f]{6,}\b|\b[0-9]+[a-f]+[0-9a-f]{6,}\b",
    r"[0-9]+",
)
"""What differs from run to run of one program: identifiers, digests, dates and counts."""

SIMILARITY = 0.8
"""Least Jaccard similarity of the words of two signatures that count as one program's."""

_WORD = re.compile(r"[\w#]+")


@dataclass(frozen=True, eq=False)
class Templates:
    """Programs, in order of their first run.

    Attributes
    ----------
    of_job : (N,) int32
        Template of each job.
    name : list of str
        Normalised name of each; numbered where programs of one name differ.
    """

    of_job: I4
    name: list[str]

    def __len__(self) -> int:
        """Return the number of templates."""
        return len(self.name)


def normalised(texts: pa.Array, varying: tuple[str, ...] = VARYING) -> pa.Array:
    """Return `texts` in lower case with all that is `varying` as ``#``."""
    out = pc.utf8_lower(texts.cast(pa.string()))
    for pattern in varying:
        out = pc.replace_substring_regex(out, pattern, "#")
    return out


def find_templates(
    logs: Logs, *, similarity: float = SIMILARITY, varying: tuple[str, ...] = VARYING
) -> Templates:
    """Group jobs whose normalised names are equal and whose signatures are approximately equal.

    Signatures are compared as sets of words. A signature belongs to the first group of its name
    whose first signature is similar enough; one that is opaque, a single word, only to its equal.

    Parameters
    ----------
    logs : Logs
        The jobs.
    similarity : float
        Least Jaccard similarity, 0 to 1.
    varying : tuple of str
        Regular expressions (RE2) of what is not part of a name.
    """
    name, names = _recoded(logs, "template_name", varying)
    signature, signatures = _recoded(logs, "signature", varying)
    pair = name.astype(np.int64) * max(len(signatures), 1) + signature
    distinct, first, of_job = np.unique(pair, return_index=True, return_inverse=True)
    in_order = np.argsort(first)  # by the first run
    group: dict[int, list[tuple[frozenset[str], int]]] = {}
    found: list[str] = []
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
            template[place] = len(found)
            leaders.append((words, len(found)))
            tail = f" ({len(leaders)})" if len(leaders) > 1 else ""
            found.append(names[code] + tail)
    return Templates(template[of_job], found)


def _recoded(logs: Logs, column: str, varying: tuple[str, ...]) -> tuple[I4, list[str]]:
    """Return normalised texts as codes and their spellings."""
    given = logs.jobs[column].chunk(0)
    texts = normalised(given.dictionary, varying).dictionary_encode()
    code = texts.indices.to_numpy()[given.indices.to_numpy()]
    return code.astype(np.int32), texts.dictionary.to_pylist()


def _jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return 1.0 if a == b else len(a & b) / len(a | b)
