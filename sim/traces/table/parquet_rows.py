"""Read the columns of a table of jobs from Parquet."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base import parquet
from sim.base.arrays import F8, Mask
from sim.base.errors import InputError
from sim.base.reading import (
    BadRows,
    Field,
    OnBadRow,
    count_rule,
    no_job_left,
    open_text,
)
from sim.traces.table.columns import COLUMNS, Finder, Kind
from sim.traces.table.times import DATES, EITHER, SPANS, dates_s, kind_of, seconds, spans_s

MAGIC = b"PAR1"
_MOST_S = 1e15
_MOST_CPUS = 2**31 - 1
_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_EXPECTED: dict[Kind, str] = {
    "time": f"a number of seconds, a timestamp or a text like {DATES.example}",
    "span": f"a number of seconds, a duration or a text like {SPANS.example}",
    "count": "a whole number of at least 0",
    "number": "a number",
    "text": "a text",
}


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file is Parquet, by its first bytes."""
    open_text(path).close()  # refuses folders, and files that are missing or empty
    with Path(path).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_parquet(
    path: str | os.PathLike[str], find: Finder, on_bad_row: OnBadRow, bad: BadRows
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the columns by their own names, and hints at unused ones; see `read_csv`."""
    try:
        table = parquet.read(path)
    except (pa.ArrowException, OSError) as error:
        text = f"not a readable Parquet file: {error}"
        raise InputError(text, file=path, rule="not Parquet") from error
    name_of, unused = find(table.column_names)
    raw = {column: _plain(path, column, table[name]) for column, name in name_of.items()}
    texts = [raw[c] for c in name_of if COLUMNS[c] == "time" and pa.types.is_string(raw[c].type)]
    form, _ = kind_of(texts) if texts else (EITHER, False)
    _check_clock(path, raw, is_dates=form is DATES)
    valid = np.ones(table.num_rows, dtype=bool)
    log: dict[str, Any] = {}
    for column, array in raw.items():
        log[column], broken = _convert(array, COLUMNS[column], form)
        broken &= valid
        if broken.any() and on_bad_row == "error":
            row = int(np.argmax(broken))
            text = (
                f"row {row + 1}: {name_of[column]} is {str(array[row].as_py())[:40]!r}; it must be "
                f"{_EXPECTED[COLUMNS[column]]}, of one kind in all columns; correct the file, or "
                "read it with on_bad_row=skip"
            )
            raise InputError(text, file=path, rule="wrong value")
        count_rule(bad, "wrong value", broken)
        valid &= ~broken
    if not valid.any():
        raise no_job_left(path, bad)
    rows = pa.array(valid)
    return {
        column: values[valid] if isinstance(values, np.ndarray) else values.filter(rows)
        for column, values in log.items()
    }, unused


def _plain(path: str | os.PathLike[str], column: str, values: pa.ChunkedArray) -> pa.Array:
    """Return one array of numbers, timestamps, durations or strings."""
    kind = COLUMNS[column]
    try:
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_null(values.type):
            values = values.cast(pa.string() if kind == "text" else pa.float64())
        if pa.types.is_date(values.type):
            values = values.cast(pa.timestamp("s"))
        if kind == "text" or pa.types.is_large_string(values.type):
            values = values.cast(pa.string())
        elif pa.types.is_integer(values.type) or pa.types.is_decimal(values.type):
            values = values.cast(pa.float64(), safe=False)
        elif pa.types.is_floating(values.type):
            values = values.cast(pa.float64())
        values.validate(full=True)  # texts are UTF-8
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        text = f"{column} can't be read as {_EXPECTED[kind]}: {error}"
        raise InputError(text, file=path, rule="wrong type") from error
    types = pa.types
    allowed = {
        "time": (types.is_floating, types.is_timestamp, types.is_string),
        "span": (types.is_floating, types.is_duration, types.is_string),
        "text": (types.is_string,),
    }.get(kind, (types.is_floating,))
    if not any(is_allowed(values.type) for is_allowed in allowed):
        text = f"{column} is of type {values.type}; it must be {_EXPECTED[kind]}"
        raise InputError(text, file=path, rule="wrong type")
    joined = values.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)


def _check_clock(path: str | os.PathLike[str], raw: dict[str, pa.Array], *, is_dates: bool) -> None:
    """Refuse dates in one column and seconds in another."""
    by_kind: dict[bool, str] = {}
    for column, array in raw.items():
        if COLUMNS[column] == "time" and array.null_count < len(array):
            is_text = pa.types.is_string(array.type)
            by_kind[is_dates if is_text else pa.types.is_timestamp(array.type)] = column
    if len(by_kind) > 1:
        text = (
            f"{by_kind[True]} has dates and {by_kind[False]} seconds; give both in one of the two"
        )
        raise InputError(text, file=path, rule="wrong type")


def _convert(array: pa.Array, kind: Kind, form: Field) -> tuple[Any, Mask]:
    """Return the values of a column, and mark the invalid ones."""
    valid = np.zeros(len(array), dtype=bool)
    if kind == "text":
        return array, valid
    if pa.types.is_string(array.type):
        field = SPANS if kind == "span" else form
        match = np.asarray(pc.match_substring_regex(array, field.form).fill_null(True), dtype=bool)
        array = pc.if_else(pa.array(match), array, pa.scalar(None, pa.string()))
        convert = spans_s if kind == "span" else dates_s if form is DATES else seconds
        return convert(array), ~match
    per_second = 1.0
    if not pa.types.is_floating(array.type):
        per_second = _PER_SECOND[array.type.unit]
        array = array.cast(pa.int64()).cast(pa.float64(), safe=False)
    numbers: F8 = array.to_numpy(zero_copy_only=False) / per_second
    known = ~np.isnan(numbers)
    broken = known & ~(np.abs(numbers) <= _MOST_S)
    if kind == "count":
        with np.errstate(invalid="ignore"):
            whole = (numbers == np.rint(numbers)) & (numbers >= 0) & (numbers <= _MOST_CPUS)
        broken |= known & ~whole
    return numbers, broken
