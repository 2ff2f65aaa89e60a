"""Parse columns of Slurm's accounting into numbers: times, spans, counts, states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, I8, Mask

Log = dict[str, Any]
"""Columns of a log by the names of ``sacct``'s fields: Arrow strings, or NumPy numbers."""
UNKNOWN_TEXT = r"(?i:unknown|none|n/a|invalid)"
"""Texts that mean that a time is unknown; some programs of Slurm write them in small letters."""
DEPENDENCY_OPTION = r"(?:^|\s)(?:-d\s*|--dependency[ =])(?P<value>(?:after|singleton|expand)\S*)"
"""Option of sbatch, as ``SubmitLine`` has it."""
SUBMIT_OPTIONS = {
    "Dependency": DEPENDENCY_OPTION,
    "Throttle": r"(?:^|\s)(?:-a\s*|--array[ =])[\d,:-]+%(?P<value>\d{1,9})(?:\s|$)",
    "Begin": r"(?:^|\s)(?:-b\s*|--begin[ =])(?P<value>\S+)",
    "Licenses": r"(?:^|\s)(?:-L\s*|--licenses[ =])(?P<value>\S+)",
    "Held": r"(?:^|\s)(?P<value>-H|--hold)(?:\s|$)",
}
"""Options of sbatch that ``SubmitLine`` has, by the column that they become."""
NO_LIMIT_TEXT = r"(?i:unlimited|partition_limit|invalid)"


def n_records(log: Log) -> int:
    """Return the number of records of a log."""
    return len(log["JobID"])


def take(log: Log, rows: I8) -> Log:
    """Return some records of a log."""
    return {name: take_rows(column, rows) for name, column in log.items()}


def take_rows(column: Any, rows: I8) -> Any:
    """Return some rows of a column; the column itself, if that is all of them in order."""
    if are_all(rows, len(column)):
        return column
    return column[rows] if isinstance(column, np.ndarray) else column.take(pa.array(rows))


def are_all(rows: I8, n: int) -> bool:
    """Tell whether rows are all of `n`, in order."""
    return len(rows) == n and bool((rows == np.arange(n)).all())


def times_s(log: Log, name: str) -> F8:
    """Return a column of times, s since 1970 in the log's time zone; NaN if unknown."""
    if name not in log:
        return np.full(n_records(log), np.nan)
    column = log[name]
    time = pc.strptime(column, format="%Y-%m-%dT%H:%M:%S", unit="s", error_is_null=True)
    seconds: F8 = time.cast(pa.int64()).cast(pa.float64()).to_numpy(zero_copy_only=False)
    if time.null_count == column.null_count:
        return seconds
    # SLURM_TIME_FORMAT=%s prints seconds
    return np.where(np.isnan(seconds), numbers(log, name), seconds)


def local_times(log: Log) -> Mask:
    """Mark the records that started at a time of a clock that may be put back."""
    if "Start" not in log:
        return np.zeros(n_records(log), dtype=bool)
    return mask(pc.match_substring(log["Start"], "T"))


def limits_s(log: Log) -> F8:
    """Return the time limits, s; NaN for none. A limit of 0 is none, as of sbatch."""
    limit_s = numbers(log, "TimelimitRaw") * 60.0
    if "Timelimit" in log:
        given_s = by_value(log["Timelimit"], _spans)
        limit_s = np.where(np.isnan(limit_s), given_s, limit_s)
    return np.where(limit_s > 0, limit_s, np.nan)


def spans_s(log: Log, name: str) -> F8:
    """Return a column like ``[days-]hours:minutes:seconds``, s; NaN for any other text.

    With fewer parts it is ``days-hours:minutes``, ``minutes:seconds`` or minutes.
    """
    if name not in log:
        return np.full(n_records(log), np.nan)
    return _spans(log[name])


def _spans(column: pa.Array) -> F8:
    match = pc.extract_regex(column, r"^(?P<d>\d+-)?(?P<a>\d+)(?P<b>:\d+)?(?P<c>:\d+(?:\.\d+)?)?$")
    d, a, b, c = (
        floats(pc.utf8_trim(pc.struct_field(match, part), "-:")) for part in ("d", "a", "b", "c")
    )
    hours_first = ~np.isnan(d) | ~np.isnan(c)
    short = a * 60.0 + np.nan_to_num(b)
    long = a * 3600.0 + np.nan_to_num(b) * 60.0 + np.nan_to_num(c)
    return np.nan_to_num(d) * 86400.0 + np.where(hours_first, long, short)


def numbers(log: Log, name: str) -> F8:
    """Return a column of numbers; NaN if there is no number or no such column."""
    column = log.get(name)
    if column is None:
        return np.full(n_records(log), np.nan)
    if isinstance(column, np.ndarray):
        return column
    digits = pc.match_substring_regex(column, r"^\d+$")
    return floats(pc.if_else(digits, column, pa.scalar(None, pa.string())))


def by_value(column: pa.Array, parse: Callable[[pa.Array], F8]) -> F8:
    """Parse each distinct text of a column once; NaN for null."""
    coded = column.dictionary_encode()
    parsed: F8 = np.append(parse(coded.dictionary), np.nan)
    code: I8 = coded.indices.fill_null(len(parsed) - 1).to_numpy(zero_copy_only=False)
    return parsed[code]


def by_text(column: pa.Array, convert: Callable[[str], str]) -> pa.DictionaryArray:
    """Convert each distinct text of a column once; null is an empty text."""
    coded = column.fill_null("").dictionary_encode()
    texts = [convert(text) for text in coded.dictionary.to_pylist()]
    distinct = list(dict.fromkeys(texts))
    code = np.array([distinct.index(text) for text in texts], np.int32)
    codes_of_rows = code[coded.indices.to_numpy(zero_copy_only=False)] if texts else code
    return pa.DictionaryArray.from_arrays(pa.array(codes_of_rows, pa.int32()), distinct)


def floats(texts: pa.Array) -> F8:
    """Convert texts of numbers; NaN for empty and null ones."""
    nonempty = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    values: F8 = nonempty.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return values


def first_known(*columns: F8) -> F8:
    """Return the first positive number of each row; NaN if there is none."""
    known = columns[0].copy()
    known[~(known > 0)] = np.nan
    for column in columns[1:]:
        missing = np.isnan(known)
        known[missing] = np.where(column[missing] > 0, column[missing], np.nan)
    return known


def has_text(log: Log, name: str) -> Mask:
    """Mark the records that have a text in a column; none without the column."""
    if name not in log:
        return np.zeros(n_records(log), dtype=bool)
    return mask(pc.not_equal(log[name], ""))


def mask(match: pa.Array) -> Mask:
    """Return a NumPy mask of an Arrow one; null is false."""
    marked: Mask = match.fill_null(False).to_numpy(zero_copy_only=False).astype(bool)
    return marked


def codes(log: Log, *names: str) -> I8:
    """Return a number for each distinct row of some text columns; null counts as an empty text.

    Columns that the log lacks do not count.
    """
    number, n_numbers = np.zeros(n_records(log), np.int64), 1
    for name in names:
        if name not in log:
            continue
        column = log[name].fill_null("").dictionary_encode()
        n = len(column.dictionary)
        pair = number * n + column.indices.to_numpy(zero_copy_only=False)
        if n_numbers > 1 and n > 1:
            pair = np.unique(pair, return_inverse=True)[1]
        number, n_numbers = (pair if n > 1 else number), max(n_numbers, n)
    return number


def number_rows(*columns: F8 | I8) -> tuple[I8, I8]:
    """Return a number for each distinct row of columns of (N,), and the first row of each."""
    order = np.lexsort(columns)
    is_new = np.zeros(len(order), dtype=bool)
    is_new[:1] = True
    for column in columns:
        ordered = column[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(is_new) - 1
    return number, order[is_new]


class States:
    """States of the records, ``CANCELLED by 17`` as CANCELLED."""

    def __init__(self, log: Log) -> None:
        column = log.get("State", pa.nulls(n_records(log), pa.string()))
        coded = column.fill_null("").dictionary_encode()
        self._code: I8 = coded.indices.to_numpy(zero_copy_only=False)
        self._names = [
            text.upper().split(" ")[0].rstrip("+") for text in coded.dictionary.to_pylist()
        ]

    def among(self, *names: str) -> Mask:
        """Mark the records in one of the states; ``""`` is an unknown one."""
        is_among = np.array([name in names for name in self._names], dtype=bool)
        marked: Mask = is_among[self._code] if len(is_among) else np.zeros(0, dtype=bool)
        return marked
