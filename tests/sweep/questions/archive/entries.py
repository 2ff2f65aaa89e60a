"""Archives of sweeps to change: their entries in memory, written anew with checksums that agree."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sweep.store import checksums

Entries = dict[str, bytes]
Change = Callable[[Entries], None]

CELLS, SUMS, RECORD = "sweep/cells.parquet", f"sweep/{checksums.NAME}", "archive.json"


def read(file: Path) -> Entries:
    """Read the entries of an archive by name."""
    with zipfile.ZipFile(file) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(file: Path, entries: Mapping[str, bytes], *, is_sealed: bool = True) -> Path:
    """Write an archive; its checksums agree with its content if it `is_sealed`."""
    content = dict(entries)
    if is_sealed:
        seal(content)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(content.items()):
            archive.writestr(name, data)
    return file


def seal(entries: Entries) -> None:
    """Record the checksums of what is there now."""
    if SUMS in entries:
        named = {line.split("  ")[1] for line in entries[SUMS].decode().splitlines()}
        lines = [
            f"{hashlib.sha256(content).hexdigest()}  {name.removeprefix('sweep/')}\n"
            for name, content in sorted(entries.items())
            if name.startswith("sweep/") and name.removeprefix("sweep/") in named
        ]
        entries[SUMS] = "".join(lines).encode()
    record = load(entries, RECORD)
    record["entries"] = {
        name: hashlib.sha256(content).hexdigest()
        for name, content in sorted(entries.items())
        if name != RECORD
    }
    store(entries, RECORD, record)


def load(entries: Entries, name: str) -> Any:
    """Parse a JSON entry."""
    return json.loads(entries[name])


def store(entries: Entries, name: str, content: Any) -> None:
    """Replace a JSON entry."""
    entries[name] = json.dumps(content).encode()


def cells(entries: Entries, name: str = CELLS) -> pa.Table:
    """Read a Parquet entry."""
    return pq.read_table(io.BytesIO(entries[name]))


def set_cells(entries: Entries, table: pa.Table, name: str = CELLS) -> None:
    """Replace a Parquet entry."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", use_dictionary=False)
    entries[name] = sink.getvalue()


def set_column(entries: Entries, name: str, values: Any, file: str = CELLS) -> None:
    """Replace a column of a Parquet entry: by an array, or by values of the column's type."""
    table = cells(entries, file)
    position = table.column_names.index(name)
    if isinstance(values, list):
        with contextlib.suppress(pa.ArrowException, TypeError):
            values = pa.array(values, table.schema.field(name).type)
        values = values if isinstance(values, pa.Array) else pa.array(values)
    set_cells(entries, table.set_column(position, name, values), file)


def change_configs(entries: Entries, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the configuration of each cell."""
    texts = []
    for text in cells(entries)["config"].to_pylist():
        config = json.loads(text)
        change(config)
        texts.append(json.dumps(config, sort_keys=True, separators=(",", ":")))
    set_column(entries, "config", pa.array(texts))


def trace_record(text: str, name: str, content: bytes) -> dict[str, Any]:
    """Describe a trace of one file as ``archive.json`` does."""
    files = [[name, hashlib.sha256(content).hexdigest(), len(content)]]
    return {"text": text, "name": name, "is_folder": False, "files": files}
