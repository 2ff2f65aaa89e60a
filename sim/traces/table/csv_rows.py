"""Read the columns of a table of jobs from CSV."""

from __future__ import annotations

import csv
import os
from typing import Any

from sim.base.reading import (
    BadRows,
    Field,
    Layout,
    OnBadRow,
    first_line,
    open_text,
    read_columns,
)
from sim.traces.table.columns import COLUMNS, Columns, Finder
from sim.traces.table.times import DATES, EITHER, SPANS, dates_s, kind_of, seconds, spans_s

_DELIMITERS = ",;\t|"
_FIELDS = {
    "time": EITHER, "span": SPANS, "count": Field("whole"),
    "number": Field("number", low=-1e15, high=1e15), "text": Field(),
}  # fmt: skip


def read_csv(
    path: str | os.PathLike[str], find: Finder, on_bad_row: OnBadRow, bad: BadRows
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the columns by their own names, and hints at unused ones.

    Times are float64 s, unknown ones NaN; texts are Arrow arrays, unknown ones null.
    """
    line = first_line(path).replace("\r", "")
    delimiter = max(_DELIMITERS, key=line.count)
    (header,) = csv.reader([line], delimiter=delimiter)
    names = tuple(name.strip() for name in header)
    name_of, unused = find([name for name in names if name])
    # Arrow needs distinct names
    names = tuple(n if n in name_of.values() else f"\x1f{i}" for i, n in enumerate(names))
    layout = Layout(names, delimiter=delimiter, skip_lines=1)
    fields = {name: _FIELDS[COLUMNS[column]] for column, name in name_of.items()}
    log, counts = _read(path, layout, fields, on_bad_row)
    times = {column: name for column, name in name_of.items() if COLUMNS[column] == "time"}
    kind, is_mixed = kind_of([log[name] for name in times.values()])
    if is_mixed:  # read again to name the line of the first value of the other kind
        strict = fields | dict.fromkeys(times.values(), kind)
        log, counts = _read(path, layout, strict, on_bad_row)
    bad.merge(counts)
    return _converted(log, name_of, kind), unused


def _read(
    path: str | os.PathLike[str], layout: Layout, fields: dict[str, Field], on_bad_row: OnBadRow
) -> tuple[dict[str, Any], BadRows]:
    counts = BadRows()
    with open_text(path) as stream:
        return read_columns(path, stream, layout, fields, on_bad_row, counts), counts


def _converted(log: dict[str, Any], name_of: Columns, kind: Field) -> dict[str, Any]:
    convert = {"time": dates_s if kind is DATES else seconds, "span": spans_s}
    return {
        column: convert[COLUMNS[column]](log[name]) if COLUMNS[column] in convert else log[name]
        for column, name in name_of.items()
    }
