"""Workloads that were read from a trace once, kept as Parquet: ``<results>/cache/converted``."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from sim.base.errors import InputError

if TYPE_CHECKING:
    from sim.workload.workload import Workload


def folder_for(results: Path, name: str) -> Path:
    """Return where a workload is kept."""
    return results / "cache" / "converted" / name


def keep(workload: Workload, folder: Path) -> None:
    """Keep a workload; where there is no room for it, it is read from its trace again."""
    with contextlib.suppress(OSError, InputError):
        workload.write(folder)


def find(folder: Path, digest: str) -> Workload | None:
    """Return the workload that is kept; None if it is not there, or not that of the digest."""
    from sim.workload.workload import Workload  # loads Arrow: planning may do without

    if not folder.is_dir():
        return None
    try:
        workload = Workload.read(folder)
    except Exception:  # whatever a damaged file does
        return None
    return workload if workload.digest == digest else None
