"""Results elsewhere, worked on in a folder here.

``paths.results=s3://bucket/prefix`` has a working folder on this machine, in the user's cache.
Cells, claims and leases are read and written in the store itself; journals, sweeps and what is
remembered of workloads are fetched when a command begins, and handed over as they are written.
MLflow's database, fetched traces and comparisons stay in the working folder.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from sim.base import files
from sweep.store import storage
from sweep.store.bucket import Bucket

_PARTS = ("journal/", "sweeps/", "cache/sources/", "cache/workloads/")
_NOT = (".lease/", ".tracked.json", "mlflow.lock")
_FETCHED = ".fetched.json"


_PUSHED: dict[Path, tuple[int, int]] = {}
"""Size and time of change of what was handed over, or fetched."""
_PUSHING = threading.Lock()
"""Held while files are handed over: what was read earlier must not be put later."""


def push(results: Path, *paths: Path, waits: bool = True) -> None:
    """Hand over files, and all files of folders, that changed; nothing where results are here.

    While another thread hands over files this one `waits`, or leaves its own for later.
    """
    there = storage.for_results(results)
    if not isinstance(there, Bucket) or not _PUSHING.acquire(blocking=waits):
        return
    try:
        for file in (file for path in paths for file in _files(path)):
            name, stamp = file.relative_to(results).as_posix(), _stamp(file)
            if _PUSHED.get(file) != stamp and not any(part in name for part in _NOT):
                there.put(name, file.read_bytes())
                _PUSHED[file] = stamp
    finally:
        _PUSHING.release()


def push_all(results: Path, *paths: Path) -> None:
    """Hand over these, and what is remembered of sources and workloads."""
    push(results, *(results / "cache" / part for part in ("sources", "workloads")), *paths)


def _stamp(file: Path) -> tuple[int, int]:
    about = file.stat()
    return about.st_size, about.st_mtime_ns


def _files(path: Path) -> Iterable[Path]:
    if path.is_file():
        return [path]
    found = sorted(each for each in path.rglob("*") if each.is_file())
    # what says that all is there comes last
    last = [each for each in found if each.name == "cells.parquet"]
    return [each for each in found if each not in last and not each.name.startswith(".tmp-")] + last


def fetch(results: Path) -> Path:
    """Bring what changed there since it was fetched; what is only here was never handed over.

    Nothing where the results are here. Returns the folder.
    """
    fetch_part(results, *_PARTS)
    return results


def fetch_part(results: Path, *parts: str) -> None:
    """Bring what changed in some parts."""
    there = storage.for_results(results)
    if not isinstance(there, Bucket):
        return
    kept = files.read_json(results / _FETCHED)
    known = kept if isinstance(kept, dict) else {}
    found = {name: stamp for part in parts for name, stamp in there.stamps(part).items()}
    for name, stamp in found.items():
        is_ours = ".." not in name.split("/") and not any(part in name for part in _NOT)
        if not is_ours:
            continue
        content = None if known.get(name) == stamp else there.get(name)
        if content is not None:
            files.write_bytes(results / name, content)
            _PUSHED[results / name] = _stamp(results / name)
    if not found.items() <= known.items():
        files.write_json(results / _FETCHED, known | found)
