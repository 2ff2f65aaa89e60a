"""The cluster of a site as options, made once for each content of its folder."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sim.base import disk_cache
from sim.base.reading import OnBadRow
from sim.traces.sacct.options import Release, State
from sim.traces.slurm_site.site import read_site


def cluster_of(
    path: Path, *, begin_s: float, on_bad_row: OnBadRow, state: State, release: Release
) -> dict[str, Any]:
    """Return the cluster; its times count from `begin_s` after the first submission.

    Where jobs begin, and which columns they have, only the accounting tells, so that the whole site
    is read: a grid is built more often than its folder changes.
    """
    files = [file for file in sorted(path.rglob("*")) if file.is_file()]
    marks = tuple((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    cluster: dict[str, Any] = json.loads(
        _cached(path, marks, (begin_s, on_bad_row, state, release))
    )
    return cluster


@lru_cache(maxsize=8)
def _cached(
    path: Path, marks: tuple[Any, ...], options: tuple[float, OnBadRow, State, Release]
) -> bytes:
    begin_s, on_bad_row, state, release = options

    def compute(_: int) -> disk_cache.Arrays:
        site = read_site(path, on_bad_row=on_bad_row, state=state, release=release, begin_s=begin_s)
        return {"json": np.frombuffer(json.dumps(site.cluster).encode(), np.uint8)}

    names = [Path(name).relative_to(path).as_posix() for name, _, _ in marks]
    contents = [part for name in names for part in (name, _digest(path / name))]
    key = disk_cache.digest(*contents, *options)
    return disk_cache.get_or_compute(__name__, [key], compute)[0]["json"].tobytes()


def _digest(file: Path) -> bytes:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()
