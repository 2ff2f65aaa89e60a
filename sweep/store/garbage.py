"""Garbage collection: cached cells and copies of traces that no kept sweep reaches.

A sweep is kept until `sweep.store.removal` removes it. It reaches the cells of its table and those
that its journal notes, so that an interrupted sweep goes on where it ended. While a sweep runs
nothing is deleted; one that begins meanwhile waits (`wait_for_collection`).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sim.base import files
from sim.base.errors import InputError
from sweep.store import shards, storage, sweep_list
from sweep.store.bucket import Entry
from sweep.store.cache import Cache
from sweep.store.folder import SweepFolder
from sweep.store.index import Keys, as_keys
from sweep.store.journal import Journal
from sweep.store.lease import Lease
from sweep.store.shards import KEY_BYTES, MANIFESTS, Manifest
from sweep.store.storage import Storage

_LEASE = "cache/gc"
_CONVERTED = "cache/converted"
_POLL_S = 0.2


@dataclass(frozen=True)
class Garbage:
    """Part of a cache that no sweep reaches.

    Attributes
    ----------
    name : str
        File of manifests, or folder of a converted trace.
    time_s : float
        When it was written, s since 1970.
    n_cells : int
        Cells that no sweep reaches; 0 for a trace.
    n_bytes : int
        About what is freed.
    """

    name: str
    time_s: float
    n_cells: int
    n_bytes: int


def find(results: Path) -> list[Garbage]:
    """List what no kept sweep reaches, oldest first.

    Raises
    ------
    InputError
        If the cells of a sweep can't be told, as its table is damaged.
    """
    store = storage.for_results(results)
    written = store.list(MANIFESTS)
    reached = _reached_keys(results)
    items = []
    for name, manifests in _manifests(store):
        n_dead, dead_bytes = 0, 0.0
        for manifest in manifests:
            is_dead = ~np.isin(as_keys(manifest.keys), reached)
            n_dead += int(is_dead.sum())
            share = manifest.sizes[is_dead].sum() / max(1, manifest.sizes.sum())
            dead_bytes += manifest.n_bytes * (share if manifest.sizes.sum() else is_dead.mean())
        if n_dead:
            entry = written.get(MANIFESTS + name)
            items.append(Garbage(name, entry.time_s if entry else 0.0, n_dead, int(dead_bytes)))
    items += _unused_traces(results, store)
    return sorted(items, key=lambda item: (item.time_s, item.name))


def delete(results: Path, items: Iterable[Garbage]) -> int:
    """Delete garbage, one item after the other; return the number of items.

    Cells of the same shards that a sweep reaches are written to new ones first. What a sweep came
    to reach since `find` stays.

    Raises
    ------
    InputError
        If a sweep runs.
    """
    store, cache = storage.for_results(results), Cache(results)
    lease = Lease(store, _LEASE)
    lease.take()
    try:
        _refuse_while_running(store)
        reached, by_name = _reached_keys(results), dict(_manifests(store))
        traces = {item.name for item in _unused_traces(results, store)}
        n_deleted = 0
        for item in items:
            lease.confirm()
            if item.n_cells and item.name in by_name:
                n_deleted += cache.rewrite([by_name[item.name]], reached) is not None
            elif item.name in traces:
                n_deleted += 1
                _delete_folder(results, store, f"{_CONVERTED}/{item.name}")
        return n_deleted
    finally:
        lease.release()


def _refuse_while_running(store: Storage) -> None:
    names = {name.partition(".lease/")[0] for name in store.list("journal/") if ".lease/" in name}
    for name in sorted(names):
        lease = Lease(store, name)
        if lease.may_be_held() and lease.is_held_by_any():
            raise InputError(
                f"{name.rpartition('/')[2]} is running: nothing is deleted while a sweep runs",
                rule="running",
            )


def collections(results: Path) -> int:
    """Return a number that grows with every collection."""
    return Lease(storage.for_results(results), _LEASE).latest_token()


def wait_for_collection(results: Path, on_wait: Callable[[], None]) -> None:
    """Wait while cells are being deleted; the caller holds its sweep's lease."""
    lease = Lease(storage.for_results(results), _LEASE)
    if not (lease.may_be_held() and lease.is_held_by_any()):
        return
    on_wait()
    while lease.is_held_by_any():
        time.sleep(_POLL_S)


def _manifests(store: Storage) -> Iterator[tuple[str, list[Manifest]]]:
    for path in store.list(MANIFESTS):
        name = path.rpartition("/")[2]
        content = storage.read_or_none(store, path)
        manifests = [] if content is None else shards.read_manifests(name, content)
        if manifests:
            yield name, manifests


def _reached_keys(results: Path) -> Keys:
    """Return the keys of all cells that a kept sweep reaches."""
    keys = bytearray()
    for entry in sweep_list.sweeps(results):
        if entry.is_finished:
            column = SweepFolder.for_sweep(results, entry.sweep).cells(["key"])["key"]
            keys += bytes.fromhex("".join(column.to_pylist()))
        events = Journal(results, entry.sweep).events()
        keys += bytes.fromhex("".join(event["key"] for event in events if _is_key(event)))
    return np.unique(as_keys(bytes(keys)))


def _is_key(event: dict[str, Any]) -> bool:
    key = event.get("key")
    return isinstance(key, str) and len(key) == 2 * KEY_BYTES


def _unused_traces(results: Path, store: Storage) -> list[Garbage]:
    """List converted traces with a content that no finished sweep has had as input."""
    used = set()
    for entry in sweep_list.sweeps(results):
        if entry.is_finished:
            inputs = SweepFolder.for_sweep(results, entry.sweep).provenance().get("inputs", [])
            used |= {known.get("digest") for known in inputs}
    by_name: dict[str, list[Entry]] = {}
    for path, part in store.list(f"{_CONVERTED}/").items():
        name = path.removeprefix(f"{_CONVERTED}/").partition("/")[0]
        by_name.setdefault(name, []).append(part)
    items = []
    for name, parts in by_name.items():
        description = files.read_checked_json(results / "cache" / "workloads" / f"{name}.json")
        if description is None or description.get("digest") not in used:
            written_s = max(part.time_s for part in parts)
            items.append(Garbage(name, written_s, 0, sum(part.n_bytes for part in parts)))
    return items


def _delete_folder(results: Path, store: Storage, folder: str) -> None:
    for name in store.list(f"{folder}/"):
        store.delete(name)
    shutil.rmtree(results / folder, ignore_errors=True)
