"""Columns of a table as the file has them, and their conversion to numbers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, Mask
from sim.base.reading import BadRows
from sim.traces.table.amounts import have_units, memory_gib, numbers, spans_s
from sim.traces.table.columns import COLUMNS, Columns
from sim.traces.table.identity import repeated_rows
from sim.traces.table.plausible import check_days, check_digits, check_memory, check_runs
from sim.traces.table.priorities import check_words, priorities
from sim.traces.table.times import DAY_S, Instants, first_day, seconds_after, to_instants
from sim.traces.table.units import PARTS, Unit, Units, units_of
from sim.traces.table.zones import Offsets, check_zones, offsets_of, place


@dataclass(frozen=True, eq=False)
class RawTable:
    """Columns by their own names: texts, numbers, timestamps or durations, null where unknown.

    Attributes
    ----------
    columns : dict of str to Arrow array
        The valid rows.
    name_of : mapping of str to str
        The file's name of each column.
    is_dates : bool
        True if times are dates, False if they are numbers.
    bad : BadRows
        Bad rows; the columns of its `readable` are by their own names, too.
    hints : tuple of str
        Columns of the file that resemble a missing one.
    more : sequence of Arrow arrays
        Other columns of the valid rows, if rows are equal in those that are read: rows are repeated
        only if they are equal in these, too.
    replaced : mapping of str to int
        Number of values that mean others, by value.
    """

    columns: dict[str, pa.Array]
    name_of: Columns
    is_dates: bool
    bad: BadRows
    hints: tuple[str, ...]
    more: Sequence[pa.Array]
    replaced: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Log:
    """Rows of a table: times in s since `zero_s`, spans in s, memory in GiB; NaN if unknown.

    Attributes
    ----------
    columns : dict of str to (N,) float64 or Arrow array of strings
        The valid rows.
    later_s : dict of str to (N,) float64
        By column of times: what to add for the second of two equal local times; 0 for none.
    zero_s : float
        s since 1970 (or of the file's clock).
    without_zone : bool
        True if the times are dates that have no zone and got none.
    is_repeated : (N,) bool
        Rows that are equal to an earlier one.
    bad : list of (str, dict)
        Rule and columns of bad rows.
    """

    columns: dict[str, Any]
    later_s: dict[str, F8]
    zero_s: float
    without_zone: bool
    is_repeated: Mask
    bad: list[tuple[str, dict[str, Any]]]

    def __len__(self) -> int:
        return len(self.columns["submit_s"])


def to_log(
    path: str | os.PathLike[str],
    raw: RawTable,
    units: Units,
    zone: str | None,
    words: Mapping[str, float],
    noticed: dict[str, int],
) -> Log:
    """Convert a table, priorities by `words`; count words for unknown values in `noticed`.

    Raises
    ------
    InputError
        If times are implausible in their unit, or some have a time zone and others none, or if a
        priority is a word without a number.
    """
    by_column, offsets = units_of(raw.name_of, units), offsets_of(zone)
    times = _instants(raw.columns, by_column, raw.is_dates)
    if not raw.is_dates:
        check_digits(path, times, raw.name_of, by_column)
        check_days(path, times, raw.name_of, by_column)
    check_zones(path, times, raw.name_of, zone)
    placed = {column: place(instants, offsets) for column, instants in times.items()}
    day = first_day(*(column.instants for column in placed.values()))
    check_words(path, raw.columns.get("priority"), words)
    columns = _convert(raw.columns, by_column, words)
    for column, times_placed in placed.items():
        columns[column] = seconds_after(times_placed.instants, day)
    _count_words(raw.columns, columns, noticed)
    check_runs(path, columns, raw.name_of, by_column)
    if "mem" in columns and not have_units(raw.columns["mem"]).any():
        check_memory(path, columns, raw.name_of, by_column["mem"])
    return Log(
        columns=columns,
        later_s={column: times_placed.later_s for column, times_placed in placed.items()},
        zero_s=float(day * DAY_S),
        without_zone=zone is None and any(t.without_zone.any() for t in times.values()),
        is_repeated=repeated_rows(raw.columns, raw.more),
        bad=[
            (rule, _bad_columns(block, by_column, offsets, day, is_dates=raw.is_dates))
            for rule, block in raw.bad.readable
        ],
    )


def _instants(
    columns: Mapping[str, pa.Array], units: Mapping[str, Unit], is_dates: bool
) -> dict[str, Instants]:
    return {
        column: to_instants(array, units[column].name, is_dates=is_dates)
        for column, array in columns.items()
        if COLUMNS[column] == "time"
    }


def _convert(
    columns: Mapping[str, pa.Array],
    units: Mapping[str, Unit],
    words: Mapping[str, float] = MappingProxyType({}),
) -> dict[str, Any]:
    """Convert the columns that are no times; `words` has numbers of priorities."""
    result: dict[str, Any] = {}
    for column, array in columns.items():
        kind = COLUMNS[column]
        if kind == "span":
            result[column] = spans_s(array, units[column].name)
        elif kind == "memory":
            result[column] = memory_gib(array, units[column].name)
        elif kind == "amount":
            result[column] = numbers(array) * PARTS[units[column].name]
        elif kind == "count":
            result[column] = numbers(array)
        elif kind == "priority":
            result[column] = priorities(array, words)
        elif kind != "time":
            result[column] = array
    return result


def _bad_columns(
    block: Mapping[str, pa.Array],
    units: Mapping[str, Unit],
    offsets: Offsets,
    day: int,
    *,
    is_dates: bool,
) -> dict[str, Any]:
    times = _instants(block, units, is_dates)
    placed = {column: place(instants, offsets).instants for column, instants in times.items()}
    seconds = {column: seconds_after(instants, day) for column, instants in placed.items()}
    return {**_convert(block, units), **seconds}


def _count_words(
    raw: Mapping[str, pa.Array], columns: Mapping[str, Any], noticed: dict[str, int]
) -> None:
    """Count texts that mean no value, such as ``-``, by column."""
    for column, array in raw.items():
        values = columns[column]
        if pa.types.is_string(array.type) and isinstance(values, np.ndarray):
            words = np.isnan(values) & np.asarray(array.is_valid())
            if words.any():
                example = array[int(np.argmax(words))].as_py()
                noticed[f"{column} unknown: {example[:40]!r}"] = int(words.sum())
