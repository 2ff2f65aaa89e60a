"""Priorities of a table of jobs: numbers, or words to each of which the user gives a number."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.base.errors import InputError, unknown
from sim.traces.table.amounts import numbers
from sim.traces.table.columns import without
from sim.traces.table.forms import SECONDS

MAX_LISTED = 8
_NO_WORD = re.compile(SECONDS)


def check_words(
    path: str | os.PathLike[str], column: pa.Array | None, numbers_by_word: Mapping[str, float]
) -> None:
    """Check that each word of the column has a number, and that each that has one occurs.

    Raises
    ------
    InputError
        Otherwise; it names the words of the column.
    """
    n_jobs = _words(column)
    known = {word.casefold() for word in numbers_by_word}
    missing = [word for word in n_jobs if word.casefold() not in known]
    if missing:
        listed = [
            f"{word!r} ({n_jobs[word]:,} job{'s' * (n_jobs[word] != 1)})"
            for word in missing[:MAX_LISTED]
        ]
        more = f" and {len(missing) - MAX_LISTED} more" * (len(missing) > MAX_LISTED)
        options = " ".join(map(_option, missing[:2]))
        raise InputError(
            f"priorities are words: {', '.join(listed)}{more}; give each a number, the larger goes "
            f"first, such as {options}{without('priority')}",
            file=path,
            rule="priority without a number",
        )
    present = {word.casefold() for word in n_jobs}
    for word in numbers_by_word:
        if word.casefold() not in present:
            text = unknown("word in priorities, which no job has:", word, [*n_jobs])
            raise InputError(text, file=path, rule="unknown key")


def priorities(column: pa.Array, numbers_by_word: Mapping[str, float]) -> F8:
    """Return the priorities, (N,) float64: NaN for unknown ones, and for words without a number."""
    if not pa.types.is_string(column.type):
        return numbers(column)
    folded = {word.casefold(): float(number) for word, number in numbers_by_word.items()}
    coded = column.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    is_number = [_NO_WORD.match(text) is not None for text in texts]
    plain = [text if flag else None for text, flag in zip(texts, is_number, strict=True)]
    by_text = [folded.get(text.casefold(), np.nan) for text in texts]
    values = np.where(is_number, numbers(pa.array(plain, pa.string())), by_text)
    codes = coded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    result: F8 = np.append(values, np.nan)[codes]
    return result


def _words(column: pa.Array | None) -> dict[str, int]:
    """Count the jobs of each word, those of the most jobs first."""
    if column is None or not pa.types.is_string(column.type):
        return {}
    counted = column.drop_null().value_counts()
    pairs = zip(
        counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True
    )
    counts = [(word, n) for word, n in pairs if _NO_WORD.match(word) is None]
    return dict(sorted(counts, key=lambda pair: (-pair[1], pair[0])))


def _option(word: str) -> str:
    if word.isidentifier():
        return f"trace.priorities.{word}=N"
    return shlex.quote(f'trace.priorities={{"{word}": N}}')
