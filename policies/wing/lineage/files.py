"""Schemas and readers of the two logs behind a lineage profile: operations on files, and jobs.

This is the one place where their columns are named. Files are Parquet or delimited text. Both logs
may have more columns than these; the extra ones are not read. Times are seconds from any zero that
the two logs share, or timestamps: of Parquet, or texts in ISO 8601 (UTC unless they state a zone).
These become seconds since 1970. Names may be whole numbers.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from policies.wing.lineage.times import EXAMPLE, FORM, seconds
from sim.base import parquet
from sim.base.arrays import F8
from sim.base.columns import numpy_dtype
from sim.base.errors import InputError, did_you_mean
from sim.base.reading import (
    BadRows,
    Field,
    Layout,
    OnBadRow,
    first_line,
    open_text,
    read_blocks,
)
from sim.workload.schema import CATEGORY, REQUIRED, Column

PathLike = str | os.PathLike[str]
Columns = tuple[Column, ...]
OPERATION_NAMES: Final = (
    "read", "write", "download", "append", "overwrite", "truncate", "failed_write",
)  # fmt: skip
"""Operations on a file: a job reads or changes it, or a person downloads it.

A write replaces the file, as far as the log tells; ``append`` adds to it and ``overwrite`` replaces
it for certain. After ``truncate`` it is empty. A ``failed_write`` is that of a run that failed.
"""
READ, WRITE, DOWNLOAD, APPEND, OVERWRITE, TRUNCATE, FAILED_WRITE = range(len(OPERATION_NAMES))
"""Codes of the operations in memory."""
OPERATION_ALIASES: Final = {"create": "overwrite", "drop": "truncate"}
"""Other names of operations; capital letters do not count."""
OUTCOMES: Final = ("done", "failed", "missing_input")
"""Outcomes of a job; ``missing_input`` is a failure because an input file did not exist."""
RUN_TIMES: Final = ("known", "censored", "no_start", "no_end")
"""Knowledge of a run time: it is ``censored`` if the job had not ended and was seen until a time;
without a start or an end the run time is unknown, and both are at the one time that is known."""
OPERATIONS: Final = (
    Column("time_s", pa.float64(), "s", "when it happened", REQUIRED),
    Column("job", CATEGORY, "jobs.job_id", "the job that did it; empty for a download", ""),
    Column("operation", CATEGORY, "/".join(OPERATION_NAMES), "the operation", REQUIRED),
    Column("file", CATEGORY, "name", "the file", REQUIRED),
    Column("n", pa.int32(), "count", "number of downloads at that time", 1),
)
"""Columns of the provenance log: one row per operation on a file."""
_COMPUTE = "resource-time used; default: requested × (finish_s − start_s)"
JOBS: Final = (
    Column("job_id", pa.string(), "name", "unique name of this run", REQUIRED),
    Column("template_name", CATEGORY, "name", "the program's name, as submitted", REQUIRED),
    Column("signature", CATEGORY, "text", "source code, or a signature of it", ""),
    Column("user", CATEGORY, "name", "the user who submitted it", ""),
    Column("queue", CATEGORY, "path", "its queue, parents first, parts separated by /", ""),
    Column("organisation", CATEGORY, "name", "its owner; default: the queue's first part", ""),
    Column("priority", pa.float64(), "number", "higher runs first, within a queue", 0.0),
    Column("submit_s", pa.float64(), "s", "when it was submitted", REQUIRED),
    Column("start_s", pa.float64(), "s", "when it started; default: submit_s", None, True),
    Column("finish_s", pa.float64(), "s", "when it ended, done or failed", REQUIRED),
    Column("requested", pa.float64(), "units", "resources held while it ran", 1.0),
    Column("compute_s", pa.float64(), "unit s", _COMPUTE, None, True),
    Column("outcome", CATEGORY, "/".join(OUTCOMES), "how it ended", "done"),
    Column("run_time", CATEGORY, "/".join(RUN_TIMES), "how far its run time is known", "known"),
)
"""Columns of the job log: one row per run of a program."""
TABLES: Final = {"operations": OPERATIONS, "jobs": JOBS}


def log_columns(name: str, extra: Sequence[str] = ()) -> Columns:
    """Return the columns of a log, plus the `extra` numeric columns that were requested.

    The extra columns must exist, but may be empty in some rows (NaN).
    """
    schema_names = {c.name for c in TABLES[name]}
    requested = (Column(m, pa.float64(), "number", "requested", np.nan) for m in extra)
    return (*TABLES[name], *(c for c in requested if c.name not in schema_names))


_LATEST_S: Final = 1e11
_PARQUET = b"PAR1"


def read_table(
    name: str,
    path: PathLike,
    on_bad_row: OnBadRow = "skip",
    bad: BadRows | None = None,
    extra: Sequence[str] = (),
) -> pa.Table:
    """Read a log: Parquet, or CSV with a header, maybe gzipped; the first bytes tell them apart."""
    counted = BadRows() if bad is None else bad
    columns = log_columns(name, extra)
    if is_parquet(path):
        return _read_parquet(columns, path, on_bad_row, counted)
    return _read_csv(columns, path, on_bad_row, counted)


def is_parquet(path: PathLike) -> bool:
    """Detect Parquet: a folder, or a file by its first bytes."""
    file = Path(path)
    if not file.is_file():
        return file.is_dir()
    with file.open("rb") as stream:
        return stream.read(len(_PARQUET)) == _PARQUET


def _read_csv(columns: Columns, path: PathLike, on_bad_row: OnBadRow, bad: BadRows) -> pa.Table:
    names = tuple(n.strip().strip('"') for n in first_line(path).split(","))
    _check_names(columns, names, path)
    layout = Layout(names, skip_lines=1)
    dates = _date_columns(columns, path, layout)
    fields = {c.name: _field(c, c.name in dates) for c in columns if c.name in names}
    blocks: dict[str, list[pa.Array]] = {name: [] for name in fields}
    with open_text(path) as stream:
        for block in read_blocks(path, stream, layout, fields, on_bad_row, bad):
            for name in dates:
                block[name] = _seconds(block[name], name, path)
            for c in columns:
                if c.name in fields:
                    blocks[c.name].append(_fill_defaults(c, pa.array(block[c.name])))
    types = {c.name: c.type for c in columns}
    read = pa.table({name: pa.chunked_array(blocks[name], types[name]) for name in fields})
    return _in_schema(columns, read.unify_dictionaries(), path)


def _date_columns(columns: Columns, path: PathLike, layout: Layout) -> list[str]:
    """Return the columns of times whose first value is a date, not a number of seconds."""
    times = [c.name for c in columns if c.name in layout.names and c.unit == "s"]
    texts = {name: Field("text") for name in times}
    with open_text(path) as stream:
        first = next(read_blocks(path, stream, layout, texts, "skip", BadRows()), {})
    is_date = re.compile(FORM).search
    dates = []
    for name, values in first.items():
        known = values.drop_null()
        if len(known) and is_date(known[0].as_py()):
            dates.append(name)
    return dates


def _seconds(texts: pa.Array, name: str, path: PathLike) -> F8:
    """Convert times as texts to seconds since 1970; null becomes NaN."""
    coded = texts.dictionary_encode()
    values = []
    for text in coded.dictionary.to_pylist():
        try:
            values.append(seconds(text)[0])
        except ValueError as error:
            message = f"{name} is {text!r}; it must be a time like {EXAMPLE}: {error}"
            raise InputError(message, file=path, rule="text of another form") from None
    codes = coded.indices.fill_null(len(values)).to_numpy()
    out: F8 = np.array([*values, np.nan])[codes]
    return out


def _field(column: Column, is_date: bool) -> Field:
    required = column.default is REQUIRED
    if is_date:
        return Field("text", required, form=FORM, example=EXAMPLE)
    if not _is_number(column):
        return Field("text", required)
    if pa.types.is_integer(column.type):
        return Field("whole", required)
    return Field("number", required, low=-np.inf)


def _read_parquet(columns: Columns, path: PathLike, on_bad_row: OnBadRow, bad: BadRows) -> pa.Table:
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    try:
        dataset = ds.dataset(path, format="parquet")
        names = dataset.schema.names
        _check_names(columns, tuple(names), path)
        selected = [c.name for c in columns if c.name in names]
        categories = [c.name for c in columns if c.type == CATEGORY]
        parquet.check_rows(path, dataset.count_rows(), [c.type for c in columns if c.name in names])
        source = pq.read_table(path, columns=selected, read_dictionary=categories)
    except parquet.ERRORS as error:
        raise InputError(f"can't be read as Parquet: {error}", file=path) from error
    return _in_schema(columns, _drop_bad_rows(columns, source, path, on_bad_row, bad), path)


def _in_schema(columns: Columns, source: pa.Table, path: PathLike) -> pa.Table:
    """Cast the columns to their types; fill missing columns with their defaults."""
    n, present = source.num_rows, source.column_names
    table = pa.table(
        {
            c.name: _cast(c, source[c.name], path) if c.name in present else _constant(c, n)
            for c in columns
        }
    )
    _check_units(columns, table, path)
    return table


def _check_units(columns: Columns, table: pa.Table, path: PathLike) -> None:
    """Refuse times of which most are in parts of a second: as seconds they are after 5138."""
    for name in (c.name for c in columns if c.unit == "s" and table.num_rows):
        is_late = pc.greater_equal(table[name], _LATEST_S)
        if (pc.mean(is_late).as_py() or 0.0) > 0.5:
            first = table[name].filter(is_late)[0].as_py()
            text = f"{name} has times like {first:.0f}: give seconds, or dates like {EXAMPLE}"
            raise InputError(text, file=path, rule="implausible unit")


def _drop_bad_rows(
    columns: Columns, source: pa.Table, path: PathLike, on_bad_row: OnBadRow, bad: BadRows
) -> pa.Table:
    """Drop rows that lack a required value or hold an infinite number; count them by rule."""
    for column in columns:
        if column.name not in source.column_names:
            continue
        values = source[column.name]
        ok = None
        if column.default is REQUIRED and values.null_count:
            ok, rule, trouble = pc.is_valid(values), "missing value", "is missing"
        elif pa.types.is_floating(values.type):
            is_valid = (
                pc.is_finite(values) if column.default is REQUIRED else pc.invert(pc.is_inf(values))
            )
            if not pc.all(is_valid).as_py():
                ok = pc.fill_null(is_valid, True)
                rule, trouble = "number out of range", "is not finite"
        if ok is None:
            continue
        n_bad = source.num_rows - (pc.sum(ok).as_py() or 0)
        if on_bad_row == "error" and n_bad:
            row = int(np.flatnonzero(~ok.to_numpy())[0])
            raise InputError(
                f"{column.name} {trouble}; fix the log, or skip such rows (on_bad_row=skip)",
                file=path,
                line=row + 1,
                rule=rule,
            )
        bad[rule] = bad.get(rule, 0) + n_bad
        source = source.filter(ok)
    return source


def _cast(column: Column, values: pa.ChunkedArray, path: PathLike) -> pa.ChunkedArray:
    try:
        if pa.types.is_timestamp(values.type) and _is_number(column):
            micros = values.cast(pa.timestamp("us", values.type.tz), safe=False)
            return pc.divide(micros.cast(pa.int64()).cast(pa.float64()), 1e6)
        if column.type == CATEGORY:
            if not pa.types.is_dictionary(values.type):
                values = values.dictionary_encode()
            return _fill_defaults(column, values.cast(CATEGORY).unify_dictionaries())
        return _fill_defaults(column, values.cast(column.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"column {column.name!r} must be {column.type} ({column.unit}): {error}",
            file=path,
            rule="wrong type",
        ) from error


def _fill_defaults(column: Column, values: Any) -> Any:
    """Fill nulls with the column's default, in the column's type."""
    if not _is_number(column):
        if values.null_count and column.default is not REQUIRED:
            kind = pa.string()
            values = pc.fill_null(values.cast(kind), pa.scalar(column.default, kind))
        if column.type == CATEGORY and not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        return values
    if pa.types.is_integer(column.type) and pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values).cast(column.type)
    default = np.nan if column.default is None else column.default
    if column.default is not REQUIRED and values.null_count:
        values = pc.fill_null(values, pa.scalar(default, column.type))
    if column.default not in (None, REQUIRED) and pa.types.is_floating(column.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(default, column.type), values)
    return values


def _constant(column: Column, n: int) -> pa.Array:
    if column.type == CATEGORY:
        return pa.DictionaryArray.from_arrays(np.zeros(n, np.int32), [column.default])
    value = np.nan if column.default is None else column.default
    return pa.array(np.full(n, value, numpy_dtype(column.type)))


def _is_number(column: Column) -> bool:
    return bool(pa.types.is_floating(column.type) or pa.types.is_integer(column.type))


def _check_names(columns: Columns, names: tuple[str, ...], path: PathLike) -> None:
    for column in columns:
        needed = column.default is REQUIRED or column.default is np.nan
        if needed and column.name not in names:
            raise InputError(
                f"there is no column {column.name!r} ({column.meaning}); "
                f"{did_you_mean(column.name, names)}columns: {', '.join(names) or '(none)'}",
                file=path,
                rule="missing column",
            )


def as_table(
    name: str, columns: Mapping[str, Any] | pa.Table, extra: Sequence[str] = ()
) -> pa.Table:
    """Convert columns in memory to the schema of the table called `name`."""
    source = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    schema = log_columns(name, extra)
    _check_names(schema, tuple(source.column_names), f"<{name}>")
    return _in_schema(
        schema, _drop_bad_rows(schema, source, f"<{name}>", "error", BadRows()), f"<{name}>"
    )
