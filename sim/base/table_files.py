"""Writing of tables: one Parquet file each, in a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from sim.base.errors import InputError
from sim.base.files import atomic_write


def write_tables(
    tables: Mapping[str, pa.Table], folder: str | os.PathLike[str]
) -> tuple[Path, list[Path]]:
    """Write one Parquet file per table; return the folder, created if needed, and the files."""
    import pyarrow.parquet as pq

    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"can't make the folder: {error}", file=target) from error
    paths = [target / f"{name}.parquet" for name in tables]
    for path, table in zip(paths, tables.values(), strict=True):
        with atomic_write(path) as file:
            pq.write_table(table, file, compression="zstd")
    return target, paths
