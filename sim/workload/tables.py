"""Normal form of tables as the schema prescribes: types, plain buffers, order of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import F8, I1, I8
from sim.base.columns import numpy_dtype
from sim.base.errors import InputError
from sim.workload.schema import (
    CATEGORY,
    DEFAULT_QUANTUM,
    DEMAND_PREFIX,
    LICENSE_PREFIX,
    OPTIONAL_COLUMNS,
    REQUEST_PREFIX,
    REQUIRED,
    SORT_KEYS,
    SPEED_PREFIX,
    Column,
    demand_column,
    licence_column,
    request_column,
    required_columns,
    speed_column,
)

TableLike: TypeAlias = pa.Table | Mapping[str, ArrayLike]


def normalise(name: str, table: TableLike) -> pa.Table:
    """Return `table` with the columns and types of the schema."""
    source = table if isinstance(table, pa.Table) else _from_mapping(name, table)
    repeated = [c for c in source.column_names if source.column_names.count(c) > 1]
    if repeated:
        raise InputError(f"{name} has two columns {repeated[0]!r}", rule="duplicate column")
    columns: dict[str, pa.Array] = {}
    for column in _columns_of(name, source):
        if column.name in source.column_names:
            columns[column.name] = _cast(name, column, source[column.name])
        elif column.default is REQUIRED:
            raise InputError(
                f"{name} has no column {column.name!r} ({column.meaning}); "
                f"it has {', '.join(source.column_names) or 'none'}",
                rule="missing column",
            )
        else:
            columns[column.name] = _constant(column, source.num_rows)
    for extra in sorted(set(source.column_names) - set(columns)):
        columns[extra] = plain(_one_chunk(source[extra]))
    return sort_rows(name, pa.table(columns))


def plain(array: pa.Array) -> pa.Array:
    """Return `array` with buffers that hold exactly its values.

    Slices, null masks without nulls and spare capacity are removed, so that a pickle has no
    superfluous byte; categories are numbered by first appearance, and unused ones are removed.
    """
    if pa.types.is_dictionary(array.type):
        return _plain_category(array)
    if len(array) == 0:
        return pa.array([], array.type)
    if array.null_count:
        return array.take(pa.array(np.arange(len(array)))) if array.offset else array
    if pa.types.is_string(array.type):
        return _plain_string(array)
    if pa.types.is_floating(array.type) or pa.types.is_integer(array.type):
        return pa.array(array.to_numpy(zero_copy_only=True), type=array.type)
    if pa.types.is_list(array.type):
        offsets = array.offsets.to_numpy()
        return pa.ListArray.from_arrays(pa.array(offsets - offsets[0]), plain(array.flatten()))
    return array


def _from_mapping(name: str, columns: Mapping[str, ArrayLike]) -> pa.Table:
    try:
        return pa.table({str(k): _as_array(v) for k, v in columns.items()})
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(f"{name}: {error}", rule="wrong type") from error


def _as_array(values: Any) -> Any:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if isinstance(values, np.ndarray):
        return pa.array(np.ascontiguousarray(values))
    return pa.array(values)


def _columns_of(name: str, source: pa.Table) -> list[Column]:
    columns = list(required_columns(name))
    if name == "stages":
        demands = sorted(c for c in source.column_names if c.startswith(DEMAND_PREFIX))
        if DEMAND_PREFIX in demands:
            raise InputError("stages: column 'demand_' names no resource", rule="wrong column")
        columns += [demand_column(c.removeprefix(DEMAND_PREFIX)) for c in demands]
    columns += [c for c in OPTIONAL_COLUMNS.get(name, ()) if c.name in source.column_names]
    if name == "stages":
        columns += [speed_column(c) for c in speed_classes(source)]
        columns += [request_column(c) for c in requested_resources(source)]
    if name == "jobs":
        columns += [licence_column(c) for c in licence_names(source)]
    return columns


def requested_resources(stages: pa.Table) -> tuple[str, ...]:
    """Return the resources for which ``stages`` has a column of requests, sorted."""
    columns = (c for c in stages.column_names if c.startswith(REQUEST_PREFIX))
    return tuple(sorted(c.removeprefix(REQUEST_PREFIX) for c in columns))


def speed_classes(stages: pa.Table) -> tuple[str, ...]:
    """Return the classes of machines for which ``stages`` has a column of speeds, sorted."""
    columns = (c for c in stages.column_names if c.startswith(SPEED_PREFIX))
    return tuple(sorted(c.removeprefix(SPEED_PREFIX) for c in columns if c != SPEED_PREFIX))


def licence_names(jobs: pa.Table) -> tuple[str, ...]:
    """Return the names of licences that ``jobs`` hold, sorted."""
    columns = (c for c in jobs.column_names if c.startswith(LICENSE_PREFIX))
    return tuple(sorted(c.removeprefix(LICENSE_PREFIX) for c in columns if c != LICENSE_PREFIX))


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        raise InputError("a column of strings is longer than 2 GiB", rule="too large")
    return whole


def _cast(table: str, column: Column, values: pa.ChunkedArray) -> pa.Array:
    if values.null_count and not column.nullable:
        row = int(np.flatnonzero(_one_chunk(values.is_null()).to_numpy(zero_copy_only=False))[0])
        raise InputError(
            f"{table} row {row}: {column.name} has no value; every row needs one",
            rule="missing value",
        )
    target = pa.string() if column.type == CATEGORY else column.type
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    numeric = pa.types.is_floating(target) or pa.types.is_integer(target)
    is_number = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)
    try:
        if numeric and not is_number:
            raise pa.ArrowInvalid(f"expected numbers, found {kind}")
        if column.type == CATEGORY and values.type == CATEGORY:
            return plain(_one_chunk(values))
        cast = _one_chunk(values.cast(target))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"{table}: column {column.name!r} must be {target} ({column.unit}): {error}",
            rule="wrong type",
        ) from error
    if column.nullable:  # NaN means null
        numbers = cast.to_numpy(zero_copy_only=False)
        if column.null is not None:
            numbers = np.where(numbers == column.null, np.nan, numbers)
        return pa.array(numbers, column.type, from_pandas=True)
    return plain(cast.dictionary_encode() if column.type == CATEGORY else cast)


def _constant(column: Column, n: int) -> pa.Array:
    if column.type == CATEGORY:
        codes = pa.array(np.zeros(n, np.int32))
        return pa.DictionaryArray.from_arrays(codes, pa.array([column.default][: min(n, 1)]))
    if column.default is None:  # pa.nulls would share one buffer between mask and values
        return pa.array(np.full(n, np.nan), column.type, from_pandas=True)
    if pa.types.is_string(column.type):
        return plain(pa.repeat(pa.scalar(column.default, column.type), n))
    return pa.array(np.full(n, column.default, numpy_dtype(column.type)))


def _plain_string(array: pa.Array) -> pa.Array:
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    if ends[0] != 0:
        data = data.slice(int(ends[0]), int(ends[-1] - ends[0]))
        ends = ends - ends[0]
    elif data is None or data.size > int(ends[-1]):
        data = pa.py_buffer(b"") if data is None else data.slice(0, int(ends[-1]))
    return pa.StringArray.from_buffers(len(array), pa.py_buffer(ends), data)


def _plain_category(array: pa.DictionaryArray) -> pa.Array:
    if array.null_count or array.dictionary.null_count:
        return array  # only extra columns get here
    if array.type != CATEGORY or array.dictionary.null_count:
        array = array.cast(array.type.value_type).dictionary_encode()
        if array.type != CATEGORY:
            return array
    codes = array.indices.to_numpy(zero_copy_only=True)
    n_names = len(array.dictionary)
    first = np.full(n_names, len(codes), np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    order = np.argsort(first, kind="stable")[: int((first < len(codes)).sum())]
    if len(order) == n_names and (order == np.arange(n_names)).all():
        return pa.DictionaryArray.from_arrays(pa.array(codes), plain(array.dictionary))
    new_code = np.zeros(n_names, np.int32)
    new_code[order] = np.arange(len(order))
    names = array.dictionary.take(pa.array(order))
    return pa.DictionaryArray.from_arrays(pa.array(new_code[codes]), plain(names))


def sort_rows(name: str, table: pa.Table) -> pa.Table:
    """Sort the rows of the table called `name` by its sort keys, if it has any."""
    if name not in SORT_KEYS or table.num_rows < 2:
        return table
    keys = [_sort_key(table, key) for key in SORT_KEYS[name]]
    if _is_sorted(keys):
        return table
    rows = pa.array(np.lexsort(keys[::-1]))
    return take_rows(table, rows)


def _sort_key(table: pa.Table, column: str) -> NDArray[Any]:
    if not table[column].null_count:
        return values(table, column)
    key = column_or_nan(table, column)
    return np.where(np.isnan(key), -np.inf, key)


def take_rows(table: pa.Table, rows: pa.Array | I8) -> pa.Table:
    """Return the named rows of `table`, each column plain."""
    rows = pa.array(rows)
    return pa.table({c: plain(_one_chunk(table[c]).take(rows)) for c in table.column_names})


def with_column(table: pa.Table, column: str, numbers: Any) -> pa.Table:
    """Return `table` with one column replaced or added."""
    if column not in table.column_names:
        return table.append_column(column, pa.array(numbers))
    return table.set_column(table.column_names.index(column), column, pa.array(numbers))


def _is_sorted(keys: list[NDArray[Any]]) -> bool:
    tied = np.ones(len(keys[0]) - 1, dtype=bool)
    for key in keys:
        if (tied & (key[1:] < key[:-1])).any():
            return False
        tied &= key[1:] == key[:-1]
    return True


def values(table: pa.Table, column: str) -> NDArray[Any]:
    """Return a numeric column as a read-only view; for a category, its codes."""
    array = table[column].chunk(0)
    if pa.types.is_dictionary(array.type):
        array = array.indices
    out: NDArray[Any] = array.to_numpy(zero_copy_only=True)
    return out


def column_or_nan(table: pa.Table, column: str) -> F8:
    """Return a numeric column, with NaN for null."""
    array: F8 = table[column].chunk(0).to_numpy(zero_copy_only=False)
    return array


def names(table: pa.Table, column: str) -> tuple[str, ...]:
    """Return the distinct strings of a category, in the order of their codes."""
    return tuple(table[column].chunk(0).dictionary.to_pylist())


def column_or_default(table: pa.Table, column: Column) -> NDArray[Any]:
    """Return an optional column: its values, or its default in every row."""
    if column.name in table.column_names:
        array: NDArray[Any] = table[column.name].chunk(0).to_numpy(zero_copy_only=False)
        return array.copy()
    return np.full(table.num_rows, column.default, dtype=numpy_dtype(column.type))


def codes(table: pa.Table, column: str, choices: tuple[str, ...]) -> I1:
    """Return a category as indices into `choices`."""
    lookup = np.array([choices.index(n) for n in names(table, column)], dtype=np.int8)
    return lookup[values(table, column)] if len(lookup) else np.zeros(table.num_rows, np.int8)


def split_duration(stages: pa.Table) -> tuple[pa.Table, F8]:
    """Split the column ``duration_s``, which replaces a table of tasks, from ``stages``."""
    if "duration_s" not in stages.column_names:
        raise InputError(
            "there is no table of tasks, and stages has no column 'duration_s' in its place",
            rule="missing table",
        )
    column = stages["duration_s"].chunk(0)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InputError(f"stages.duration_s must be numbers, not {column.type}", rule="wrong type")
    duration = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return stages.drop_columns(["duration_s"]), np.ascontiguousarray(duration)


def with_demand(stages: pa.Table) -> pa.Table:
    """Return ``stages`` with a demand of one cpu a task if it has no demand column."""
    if any(c.startswith(DEMAND_PREFIX) for c in stages.column_names):
        return stages
    return stages.append_column(DEMAND_PREFIX + "cpu", pa.array(np.ones(stages.num_rows)))


def resource_quanta(stages: pa.Table, meta: Mapping[str, Any] | None) -> dict[str, float]:
    """Return the quantum of each resource of ``stages``: from `meta`, or the default."""
    configured = dict((meta or {}).get("quantum", {}))
    demands = [c for c in stages.column_names if c.startswith(DEMAND_PREFIX)]
    resources = [c.removeprefix(DEMAND_PREFIX) for c in demands]
    return {r: float(configured.get(r, DEFAULT_QUANTUM)) for r in resources}
