"""Tables of events, from JSON, Parquet or CSV."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base import parquet
from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.base.reading import (
    BadLineError,
    BadRows,
    Field,
    Layout,
    OnBadRow,
    check_text,
    column_names,
    first_line,
    handle_bad_line,
    json_records,
    open_text,
    read_columns,
)
from sim.traces.table.parquet_rows import MAGIC

INSTANCES: Final = "instance_events"
COLLECTIONS: Final = "collection_events"
_NUMBERS: Mapping[str, tuple[str, ...]] = {
    INSTANCES: (
        "time", "type", "collection_type", "priority", "resource_request.cpus",
        "resource_request.memory",
    ),
    COLLECTIONS: (),
}  # fmt: skip
_TEXTS: Mapping[str, tuple[str, ...]] = {
    INSTANCES: ("collection_id", "instance_index"),
    COLLECTIONS: ("collection_id", "user", "start_after_collection_ids"),
}
_REQUIRED = ("time", "type", "collection_id", "instance_index")
_LARGEST = 2.0**63
_HINT = "BigQuery, or the bucket clusterdata_2019_a, as it has it"


@dataclass(frozen=True, eq=False)
class Events:
    """Columns of events: numbers, NaN where unknown, and texts, null where unknown.

    Of collections, ``after`` has the ids after which they start, separated by ``;``.
    """

    numbers: dict[str, F8]
    texts: dict[str, pa.Array]

    def __len__(self) -> int:
        return len(self.texts["collection_id"])


def read_events(
    path: str | os.PathLike[str], kind: str, on_bad_row: OnBadRow, bad: BadRows
) -> Events:
    """Read all files of a kind of events in a folder; a single file has instances.

    Raises
    ------
    InputError
        If there are no instances.
    """
    parts = [_read(file, kind, on_bad_row, bad) for file in _files(path, kind)]
    numbers = {name: np.concatenate([np.empty(0), *(p.numbers[name] for p in parts)])
               for name in _NUMBERS[kind]}  # fmt: skip
    texts = {
        name: pa.concat_arrays([pa.array([], pa.string()), *(p.texts[name] for p in parts)])
        for name in _TEXTS[kind]
    }
    if kind == COLLECTIONS:
        texts["after"] = texts.pop("start_after_collection_ids")
    return Events(numbers, texts)


def _files(path: str | os.PathLike[str], kind: str) -> list[Path]:
    root = Path(path)
    if not root.is_dir():
        return [root] if kind == INSTANCES else []
    files = sorted(f for f in root.rglob(f"{kind}*") if f.is_file())
    files += sorted(f for f in root.glob(f"{kind}/[!.]*") if f.is_file() and f not in files)
    if not files and kind == INSTANCES:
        text = f"the folder has no files {kind}*, as BigQuery and the bucket have them"
        raise InputError(text, file=root, rule="missing file")
    return files


def _read(file: Path, kind: str, on_bad_row: OnBadRow, bad: BadRows) -> Events:
    line = _begin(file)
    if line is None:
        return _from_parquet(file, kind)
    if line.lstrip().startswith(("{", "[")):
        return _from_json(file, kind, on_bad_row, bad)
    return _from_csv(file, kind, on_bad_row, bad)


def _begin(file: Path) -> str | None:
    """Return the first line of a text; None for Parquet."""
    with file.open("rb") if file.is_file() else open_text(file) as stream:
        if stream.read(len(MAGIC)) == MAGIC:
            return None
    return first_line(file)


def _from_json(file: Path, kind: str, on_bad_row: OnBadRow, bad: BadRows) -> Events:
    columns: dict[str, list[Any]] = {name: [] for name in (*_NUMBERS[kind], *_TEXTS[kind])}
    for line, record, _ in json_records(file, (), _HINT):
        with handle_bad_line(file, line, on_bad_row, bad):
            event = dict(_parsed(record, kind))
            for name, values in columns.items():
                values.append(event[name])
    return Events(
        {name: np.array(columns[name], np.float64) for name in _NUMBERS[kind]},
        {name: pa.array(columns[name], pa.string()) for name in _TEXTS[kind]},
    )


def _parsed(record: Any, kind: str) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an event; whole numbers may be texts, as BigQuery writes them."""
    if not isinstance(record, dict):
        raise BadLineError("wrong type", "an event must be an object")
    for name in _NUMBERS[kind]:
        value = _field(record, name)
        try:
            number = np.nan if value is None else float(value)
        except (TypeError, ValueError, OverflowError):
            raise BadLineError(
                "wrong type", f"{name} must be a number, not {value!r:.60}"
            ) from None
        if name in _REQUIRED and np.isnan(number):
            raise BadLineError("missing value", f"an event must have its {name}")
        if not (np.isnan(number) or 0 <= number <= _LARGEST or name == "priority"):
            raise BadLineError("number out of range", f"{name} is {number:g}")
        yield name, number
    for name in _TEXTS[kind]:
        value = _field(record, name)
        if isinstance(value, list):
            value = ";".join(str(item) for item in value)
        if isinstance(value, dict):
            raise BadLineError("wrong type", f"{name} must be a text or a number")
        if name in _REQUIRED and value in (None, ""):
            raise BadLineError("missing value", f"an event must have its {name}")
        yield name, None if value in (None, "") else check_text(name, str(value))


def _field(record: dict[str, Any], name: str) -> Any:
    outer, _, inner = name.partition(".")
    value = record.get(name, record.get(outer))
    return value.get(inner) if inner and isinstance(value, dict) else value


def _from_csv(file: Path, kind: str, on_bad_row: OnBadRow, bad: BadRows) -> Events:
    needed = [name for name in _REQUIRED if name in (*_NUMBERS[kind], *_TEXTS[kind])]
    names = column_names(file, ",", needed)
    fields = {
        name: Field("any" if name == "priority" else "number", name in _REQUIRED, high=_LARGEST)
        for name in _NUMBERS[kind]
        if name in names
    }
    fields |= {name: Field(required=name in _REQUIRED) for name in _TEXTS[kind] if name in names}
    with open_text(file) as stream:
        layout = Layout(names, skip_lines=1)
        log = read_columns(file, stream, layout, fields, on_bad_row, bad)
    bad.readable.clear()
    n = len(log["collection_id"])
    return Events(
        {name: log.get(name, np.full(n, np.nan)) for name in _NUMBERS[kind]},
        {name: log.get(name, pa.nulls(n, pa.string())) for name in _TEXTS[kind]},
    )


def _from_parquet(file: Path, kind: str) -> Events:
    try:
        table = parquet.read(file).flatten()  # resource_request.cpus
        n, names = table.num_rows, table.column_names
        missing = [x for x in _REQUIRED if x in (*_NUMBERS[kind], *_TEXTS[kind]) and x not in names]
        if missing:
            text = f"there is no column {' and no '.join(missing)}"
            raise InputError(text, file=file, rule="missing column")
        numbers = {
            name: table[name].cast(pa.float64(), safe=False).to_numpy()
            if name in names
            else np.full(n, np.nan)
            for name in _NUMBERS[kind]
        }
        texts = {
            name: _as_texts(table[name]) if name in names else pa.nulls(n, pa.string())
            for name in _TEXTS[kind]
        }
    except parquet.ERRORS as error:
        text = f"not a readable Parquet file of events: {error}"
        raise InputError(text, file=file, rule="not Parquet") from error
    return Events(numbers, texts)


def _as_texts(values: pa.ChunkedArray) -> pa.Array:
    array = values.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        lists = array.cast(pa.list_(pa.string()))
        return pc.binary_join(lists, ";")
    return array.cast(pa.string())
