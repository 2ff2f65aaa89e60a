"""Cache of workloads parsed from traces, as Parquet: ``<results>/cache/converted``."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from sim.base.errors import InputError

if TYPE_CHECKING:
    from sim.workload.workload import Workload


def folder_for(results: Path, name: str) -> Path:
    """Return the folder of a converted workload."""
    return results / "cache" / "converted" / name


def store(workload: Workload, folder: Path) -> None:
    """Store a workload; where there is no room for it, its trace is parsed again."""
    with contextlib.suppress(OSError, InputError):
        workload.write(folder)


def load(folder: Path, digest: str) -> Workload | None:
    """Load a stored workload; None if it is missing, damaged, or of another digest."""
    from sim.workload.workload import Workload  # loads Arrow: planning may do without

    if not folder.is_dir():
        return None
    try:
        workload = Workload.read(folder)
    except Exception:  # whatever a damaged file does
        return None
    return workload if workload.digest == digest else None
