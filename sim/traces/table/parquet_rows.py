"""Read the columns of a table of jobs from Parquet."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base import parquet
from sim.base.arrays import Mask
from sim.base.errors import InputError
from sim.base.reading import BadRows, OnBadRow, no_job_left, open_text
from sim.traces.table.columns import COLUMNS, Columns, Finder, Kind, without
from sim.traces.table.forms import DATES, SECONDS, example_of, field_of
from sim.traces.table.identity import repeated_rows
from sim.traces.table.raw import RawTable
from sim.traces.table.replacing import Replace, replaced
from sim.traces.table.times import clock_of

MAGIC = b"PAR1"
_RULE = "wrong value"
_MOST = {"amount": 1e9, "count": 1e9, "memory": 1e18, "priority": 1e20, "span": 1e20, "time": 1e20}
_EXPECTED: dict[Kind, str] = {
    "time": "a number, a timestamp or a text like {}",
    "span": "a number, a duration or a text like {}",
    "amount": "a number of at least 0, or a text like {}",
    "count": "a whole number of at least 0, or a text like {}",
    "memory": "a number of at least 0, or a text like {}",
    "priority": "a number, or a text like {}",
    "text": "a text",
    "ids": "a text or a list of texts",
}
_SEPARATOR = ";"


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file is Parquet, by its first bytes, or a folder has such files."""
    if parquet_files(path):
        return True
    open_text(path).close()  # refuses folders, and files that are missing or empty
    with Path(path).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def parquet_files(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files of a folder that are parts of a table, in order of their names."""
    root = Path(path)
    return sorted(root.glob("[!.]*.parquet")) if root.is_dir() else []


def read_parquet(
    path: str | os.PathLike[str],
    find: Finder,
    on_bad_row: OnBadRow,
    replace: Replace = MappingProxyType({}),
) -> RawTable:
    """Read a Parquet file, or those of a folder; see `sim.traces.table.csv_rows.read_csv`."""
    table = _table(path)
    name_of, hints = find(table.column_names)
    columns = {column: _plain(path, column, table[name]) for column, name in name_of.items()}
    counts: dict[str, int] = {}
    columns = replaced(columns, replace, counts)
    is_dates = _is_dates(path, columns, name_of)
    bad, valid = BadRows(), np.ones(table.num_rows, dtype=bool)
    for column, array in columns.items():
        broken = _broken(column, array, is_dates=is_dates)
        if (broken & valid).any():
            row = int(np.argmax(broken & valid))
            _tell(path, column, name_of[column], array[row].as_py(), row, on_bad_row, bad)
        if broken.any():
            columns[column] = pc.if_else(pa.array(~broken), array, pa.scalar(None, array.type))
        valid &= ~broken
    if not valid.all():
        bad[_RULE] = int((~valid).sum())
        bad.readable.append((_RULE, {c: a.filter(pa.array(~valid)) for c, a in columns.items()}))
    if not valid.any():
        raise no_job_left(path, bad)
    rows = pa.array(valid)
    columns = {column: array.filter(rows) for column, array in columns.items()}
    more = []
    if repeated_rows(columns).any():
        read = set(name_of.values())
        unread = [c for name, c in zip(table.column_names, table.columns, strict=True)
                  if name not in read]  # fmt: skip
        flat = (_flat(values) for values in unread)
        more = [_joined(values).filter(rows) for values in flat if values is not None]
    return RawTable(columns, name_of, is_dates, bad, hints, more, counts)


def _table(path: str | os.PathLike[str]) -> pa.Table:
    """Return the rows of a file, or of all files of a folder, one after the other."""
    parts = []
    for file in parquet_files(path) or [Path(path)]:
        try:
            parts.append(parquet.read(file))
        except parquet.ERRORS as error:
            text = f"not a readable Parquet file: {error}"
            raise InputError(text, file=file, rule="not Parquet") from error
    if len(parts) == 1:  # whose columns may have one name
        return parts[0]
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except pa.ArrowException as error:
        text = f"the files of the folder have other columns than each other: {error}"
        raise InputError(text, file=path, rule="wrong type") from error


def _plain(path: str | os.PathLike[str], column: str, values: pa.ChunkedArray) -> pa.Array:
    """Return one array of whole or other numbers, timestamps, durations or strings."""
    kind, types = COLUMNS[column], pa.types
    is_list = types.is_list(values.type) or types.is_large_list(values.type)
    try:
        if types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if types.is_null(values.type):
            values = values.cast(pa.string() if kind in ("text", "ids") else pa.float64())
        if kind == "ids" and is_list:
            texts = _joined(values.cast(pa.list_(pa.string())))
            values = pa.chunked_array([pc.binary_join(texts, _SEPARATOR)])
        if types.is_date(values.type):
            values = values.cast(pa.timestamp("s"))
        if kind in ("text", "ids") or types.is_large_string(values.type):
            values = values.cast(pa.string())
        elif types.is_integer(values.type) and kind == "time":
            values = values.cast(pa.int64())
        elif any(
            is_number(values.type)
            for is_number in (types.is_integer, types.is_decimal, types.is_floating)
        ):
            values = values.cast(pa.float64(), safe=False)
        values.validate(full=True)  # texts are UTF-8
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        text = f"{column} can't be read as {_expected(kind)}: {error}{without(column)}"
        raise InputError(text, file=path, rule="wrong type") from error
    allowed = {
        "time": (types.is_floating, types.is_integer, types.is_timestamp, types.is_string),
        "span": (types.is_floating, types.is_duration, types.is_string),
        "text": (types.is_string,),
        "ids": (types.is_string,),
    }.get(kind, (types.is_floating, types.is_string))
    if not any(is_allowed(values.type) for is_allowed in allowed):
        text = f"{column} is of type {values.type}; it must be {_expected(kind)}{without(column)}"
        raise InputError(text, file=path, rule="wrong type")
    array = _joined(values)
    if types.is_floating(array.type):  # pandas writes NaN for unknown
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    return array


def _flat(values: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column in a type whose values Arrow compares; None for a nested one."""
    if isinstance(values.type, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in values.chunks]
        values = pa.chunked_array(chunks, values.type.storage_type)
    if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
        values = values.cast(pa.large_binary())
    return None if pa.types.is_nested(values.type) else values


def _joined(values: pa.ChunkedArray) -> pa.Array:
    joined = values.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)


def _is_dates(path: str | os.PathLike[str], columns: dict[str, pa.Array], name_of: Columns) -> bool:
    """Tell whether times are dates; refuse dates in one column and numbers in another."""
    by_kind: dict[bool, str] = {}
    for column, array in columns.items():
        if COLUMNS[column] == "time" and array.null_count < len(array):
            if pa.types.is_string(array.type):
                first = array.drop_null().slice(0, 1)
                by_kind[clock_of(first)[1]] = column
            else:
                by_kind[pa.types.is_timestamp(array.type)] = column
    if len(by_kind) > 1:
        text = (
            f"{name_of[by_kind[True]]} has dates and {name_of[by_kind[False]]} numbers; give both "
            "in one of the two"
        )
        raise InputError(text, file=path, rule="wrong type")
    return True in by_kind


def _broken(column: str, array: pa.Array, *, is_dates: bool) -> Mask:
    """Mark the values that break the rules of their column."""
    kind = COLUMNS[column]
    if kind in ("text", "ids") or pa.types.is_temporal(array.type):
        return np.zeros(len(array), dtype=bool)
    if pa.types.is_string(array.type):
        form = field_of(column).form
        if kind == "time":
            form = DATES if is_dates else SECONDS
        return ~np.asarray(pc.match_substring_regex(array, form).fill_null(True), dtype=bool)
    numbers = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    known = ~np.isnan(numbers)
    broken: Mask = known & ~(np.abs(numbers) <= _MOST[kind])
    if kind in ("amount", "count", "memory"):
        broken |= known & (numbers < 0)
    if kind == "count":
        with np.errstate(invalid="ignore"):
            broken |= known & (numbers != np.rint(numbers))
    return broken


def _tell(
    path: str | os.PathLike[str],
    column: str,
    name: str,
    value: object,
    row: int,
    on_bad_row: OnBadRow,
    bad: BadRows,
) -> None:
    """Raise the error of a bad value, or keep it as an example."""
    explain = field_of(column).explain
    advice = explain(str(value)) if explain else ""
    text = (
        f"{name} is {str(value)[:40]!r}; it must be {_expected(COLUMNS[column])}, of one kind in "
        f"all columns{advice}"
    )
    if on_bad_row == "error":
        text = f"row {row + 1}: {text}; correct the file, or read it with on_bad_row=skip"
        raise InputError(text, file=path, rule=_RULE)
    bad.examples.setdefault(_RULE, f"row {row + 1}: {text}")


def _expected(kind: Kind) -> str:
    return _EXPECTED[kind].format(example_of(kind))
