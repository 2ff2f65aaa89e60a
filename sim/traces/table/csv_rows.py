"""Read the columns of a table of jobs from CSV."""

from __future__ import annotations

import bisect
import os
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from sim.base.errors import InputError
from sim.base.reading import (
    BadRows,
    Field,
    Layout,
    OnBadRow,
    first_line,
    open_text,
    read_columns,
)
from sim.base.reading.quotes import ends_in_quotes, split_fields
from sim.traces.table.columns import COLUMNS, Finder
from sim.traces.table.forms import DATES, SECONDS, field_of
from sim.traces.table.identity import repeated_rows
from sim.traces.table.json_file import refuse_json
from sim.traces.table.raw import RawTable
from sim.traces.table.replacing import Replace, replaced, texts_of
from sim.traces.table.times import clock_of

_DELIMITERS = ",;\t|"
_PIECE_BYTES = 1 << 20


def read_csv(
    path: str | os.PathLike[str],
    find: Finder,
    on_bad_row: OnBadRow,
    replace: Replace = MappingProxyType({}),
    header: Sequence[str] | None = None,
) -> RawTable:
    """Read a CSV file; which delimiter it has is detected from its first line.

    That names the columns, unless `header` does.

    Raises
    ------
    InputError
        If it is JSON, lacks columns, or, with ``on_bad_row="error"``, has a bad row.
    """
    line = first_line(path).replace("\r", "")
    refuse_json(path, line)
    delimiter = max(_DELIMITERS, key=line.count)
    names = [name.strip() for name in split_fields(line, delimiter)]
    has_header = header is None or names == list(header)
    names = list(header or names)
    name_of, hints = find([name for name in names if name])
    columns_read = set(name_of.values())
    unique = _distinct(names)
    layout = Layout(
        unique,
        delimiter=delimiter,
        skip_lines=int(has_header),
        lines=_LineNumbers(path, delimiter),
        # texts that nobody escaped: only in columns that are not read
        free_text=tuple(n for n in unique if n not in columns_read),
        multiline=True,
    )
    fields = {
        name: field_of(column, also=texts_of(replace, column)) for column, name in name_of.items()
    }
    log, bad = _read(path, layout, fields, on_bad_row)
    counts: dict[str, int] = {}
    columns = replaced(_by_column(log, name_of), replace, counts)
    times = [column for column in name_of if COLUMNS[column] == "time"]
    clocks = [clock_of(columns[column]) for column in times]
    has_dates = any(dates for _, dates in clocks)
    if has_dates and any(numbers for numbers, _ in clocks):
        # read again to name the line of the first value of the other kind
        has_dates = _first_is_date(times, name_of, log)
        form, example = (DATES, "2026-03-01 09:30:00") if has_dates else (SECONDS, "86400")
        strict = {
            name_of[column]: field_of(column, form, example, texts_of(replace, column))
            for column in times
        }
        log, bad = _read(path, layout, fields | strict, on_bad_row)
        fields |= strict
        counts = {}
        columns = replaced(_by_column(log, name_of), replace, counts)
    more: list[pa.Array] = []
    if repeated_rows(columns).any():
        more = _other_columns(path, layout, fields, on_bad_row, len(next(iter(columns.values()))))
    bad.readable = [(rule, _by_column(block, name_of)) for rule, block in bad.readable]
    return RawTable(columns, name_of, has_dates, bad, hints, more, counts)


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Return names for all columns, as Arrow needs them: distinct."""
    unique: dict[str, None] = {}
    times = Counter(names)
    for position, name in enumerate(names, 1):
        own = name if name and times[name] == 1 else f"column {position}"
        while own in unique or (own != name and own in times):
            own += "_"
        unique[own] = None
    return tuple(unique)


def _by_column(log: dict[str, Any], name_of: Any) -> dict[str, pa.Array]:
    return {column: log[name] for column, name in name_of.items()}


def _first_is_date(times: list[str], name_of: Any, log: dict[str, Any]) -> bool:
    """Tell whether the first known time of the first such column is a date."""
    for column in times:
        known = log[name_of[column]].drop_null()
        if len(known):
            return clock_of(known.slice(0, 1))[1]
    return False


def _read(
    path: str | os.PathLike[str], layout: Layout, fields: dict[str, Field], on_bad_row: OnBadRow
) -> tuple[dict[str, Any], BadRows]:
    counts = BadRows()
    with open_text(path) as stream:
        return read_columns(path, stream, layout, fields, on_bad_row, counts), counts


def _other_columns(
    path: str | os.PathLike[str],
    layout: Layout,
    fields: dict[str, Field],
    on_bad_row: OnBadRow,
    n_rows: int,
) -> list[pa.Array]:
    """Return the columns that are not read otherwise; none if not all of their rows are valid."""
    names = [name for name in layout.names if name not in fields]
    try:
        log, _ = _read(path, layout, fields | dict.fromkeys(names, Field()), on_bad_row)
    except InputError:
        return []
    return [log[name] for name in names if len(log[name]) == n_rows]


class _LineNumbers:
    """Line of the file at which a row begins, as values in quotes may hold line ends.

    The file is read for it only when an error is to be told.
    """

    def __init__(self, path: str | os.PathLike[str], delimiter: str) -> None:
        self._path = path
        self._delimiter = delimiter
        self._rows: array[int] | None = None
        self._skipped: array[int] = array("q")

    def __call__(self, row: int) -> int:
        if self._rows is None:
            self._rows = array("q")
            self._scan(self._rows)
        position = bisect.bisect_right(self._rows, row)
        return row + (self._skipped[position - 1] if position else 0)

    def _scan(self, rows: array[int]) -> None:
        """Record the rows from which on there are more line ends before than rows."""
        try:
            with open_text(self._path) as stream:
                row, skipped, inside = 1, 0, False
                for number, line in enumerate(_lines(stream), 1):
                    if not inside and number - row > skipped:
                        skipped = number - row
                        rows.append(row)
                        self._skipped.append(skipped)
                    inside = ends_in_quotes(line, self._delimiter, inside=inside)
                    row += not inside
        except (OSError, InputError):  # told where the rows are read
            return


def _lines(stream: Any) -> Iterator[str]:
    rest: list[bytes] = []  # not joined before its end comes: a line may be the whole file
    while piece := stream.read(_PIECE_BYTES):
        end, *lines = piece.split(b"\n")
        rest.append(end)
        for line in lines:
            yield b"".join(rest).decode(errors="replace")
            rest = [line]
    yield b"".join(rest).decode(errors="replace")
