"""Sync a local working folder with a remote results store.

``paths.results=s3://bucket/prefix`` has a working folder on this machine, in the user's cache.
Cells and leases are read and written in the store itself. Journals, sweeps and the records of
workloads are fetched when a command begins, and pushed as they are written. MLflow's database,
fetched traces and comparisons stay in the working folder.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from sim.base import files
from sweep.store import storage
from sweep.store.bucket import Bucket
from sweep.store.file_digests import Stamp, stamp

_SYNCED = ("journal/", "sweeps/", "cache/sources/", "cache/workloads/")
_EXCLUDED = (".lease/", ".tracked.json", "mlflow.lock")
_FETCHED = ".fetched.json"


_PUSHED: dict[Path, Stamp] = {}
"""Size and modification time of files that were pushed or fetched."""
_PUSHING = threading.Lock()
"""Held during a push: a file that was read earlier must not be put later."""


def push(results: Path, *paths: Path, waits: bool = True) -> None:
    """Push changed files, and those of folders, to the store; do nothing where results are local.

    While another thread pushes, this one `waits`, or leaves its files for later.
    """
    store = storage.for_results(results)
    if not isinstance(store, Bucket) or not _PUSHING.acquire(blocking=waits):
        return
    try:
        for file in (file for path in paths for file in _files(path)):
            name, version = file.relative_to(results).as_posix(), stamp(file)
            if _PUSHED.get(file) != version and not any(part in name for part in _EXCLUDED):
                store.put(name, file.read_bytes())
                _PUSHED[file] = version
    finally:
        _PUSHING.release()


def push_all(results: Path, *paths: Path) -> None:
    """Push these, and the records of sources and workloads."""
    push(results, *(results / "cache" / part for part in ("sources", "workloads")), *paths)


def _files(path: Path) -> Iterable[Path]:
    if path.is_file():
        return [path]
    below = [f for f in path.rglob("*") if f.is_file() and not f.name.startswith(".tmp-")]
    # the file that marks a sweep as complete comes last
    return sorted(below, key=lambda file: (file.name == "cells.parquet", file))


def fetch(results: Path) -> Path:
    """Fetch files that changed in the store since the last fetch; return the folder.

    Do nothing where results are local. A file that exists only locally was never pushed.
    """
    fetch_part(results, *_SYNCED)
    return results


def fetch_part(results: Path, *parts: str) -> None:
    """Fetch changed files of some parts."""
    store = storage.for_results(results)
    if not isinstance(store, Bucket):
        return
    recorded = files.read_json(results / _FETCHED)
    fetched = recorded if isinstance(recorded, dict) else {}
    listed = {name: entry for part in parts for name, entry in store.list(part).items()}
    versions = {name: " ".join(map(str, entry)) for name, entry in listed.items()}
    for name, version in versions.items():
        is_synced = ".." not in name.split("/") and not any(part in name for part in _EXCLUDED)
        if not is_synced:
            continue
        content = None if fetched.get(name) == version else store.get(name)
        if content is not None:
            files.write_bytes(results / name, content)
            _PUSHED[results / name] = stamp(results / name)
    if not versions.items() <= fetched.items():
        files.write_json(results / _FETCHED, fetched | versions)
