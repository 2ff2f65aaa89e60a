"""Cache of results by content: an index of keys over shards of many cells."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.base.errors import InputError
from sweep.store import shard_writer, shards, storage
from sweep.store.cell import CellResult
from sweep.store.index import Index, Keys, Positions, as_keys
from sweep.store.shard_writer import MAX_BYTES, MAX_CELLS, PendingShard
from sweep.store.shards import MANIFESTS, Manifest, Row, Shard
from sweep.store.sources import SourceTables

_MAX_OPEN, _MAX_OPEN_BYTES = 16, 2**26
"""Limits of the shards that are held in memory once read: their number, their bytes together."""
SMALL_SHARD_CELLS, MIN_COMPACT_SHARDS = 1024, 32
"""Shards of fewer cells are small; at least so many small ones are compacted together."""
MAX_COMPACT_S = 30.0
"""About the longest that a sweep spends on compaction; the next one continues."""
ORPHAN_AGE_S = 86_400.0
"""Age from which a shard that no manifest names is garbage: none will name it any more."""
N_PUT_THREADS = 8
"""Concurrent puts to an object store."""


class Cache:
    """The results of cells, under ``<results>/cache``; see `sweep.store.shards`.

    Every writer of a cell writes the same content; several processes may do so at once.
    """

    def __init__(self, results: Path) -> None:
        self.results = results
        self.storage = storage.for_results(results)
        self.sources = SourceTables(results)
        self._is_local = isinstance(self.storage, storage.FolderStorage)
        self._loaded_index: Index | None = None
        self._open_shards: OrderedDict[str, tuple[Shard, int]] = OrderedDict()
        self._unpacked: OrderedDict[str, dict[str, F8]] = OrderedDict()
        self._intact: set[str] = set()

    def n_bytes(self, key: str) -> int:
        """Return the size of a cell's table before compression, bytes; 0 if there is none."""
        location = self._index.find(bytes.fromhex(key))
        if location is None:
            return 0
        number, row = location
        return int(self._index.manifests[number].sizes[row])

    def get(self, key: str) -> CellResult | None:
        """Read a cell; None if it is not cached, damaged, or from another version."""
        for _ in range(2):
            location = self._index.find(bytes.fromhex(key))
            if location is None:
                break
            manifest, row = self._index.manifests[location[0]], location[1]
            shard = self._shard(manifest)
            metrics = self._metrics(manifest, row)
            if shard is not None and metrics is not None:
                _, schema, jobs = shard.jobs(row)
                return CellResult(key, metrics, shards.read_jobs(schema, jobs))
            self._drop_and_reload(manifest)
        return None

    def jobs(self, key: str) -> pa.Table | None:
        """Read the jobs of a cell; None as `get` has it, or if it has none."""
        result = self.get(key)
        return None if result is None else result.jobs

    def metrics(self, key: str) -> dict[str, float] | None:
        """Read a cell's metrics alone; None if it is not cached or its shard is damaged."""
        for _ in range(2):
            location = self._index.find(bytes.fromhex(key))
            if location is None:
                break
            manifest = self._index.manifests[location[0]]
            metrics = self._metrics(manifest, location[1]) if self._is_intact(manifest) else None
            if metrics is not None:
                return metrics
            self._drop_and_reload(manifest)
        return None

    def config(self, key: str) -> dict[str, Any] | None:
        """Return the configuration that a cell was computed with; None if it is not cached."""
        location = self._index.find(bytes.fromhex(key))
        if location is None:
            return None
        shard = self._shard(self._index.manifests[location[0]])
        if shard is None:
            return None
        config: dict[str, Any] = json.loads(shard.config(location[1]))
        return config

    def are_cached(self, keys: Keys) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Flag the keys that are cached in an intact shard."""
        while True:
            numbers, _ = self._index.find_all(keys)
            needed = np.unique(numbers[numbers >= 0]).tolist()
            manifests = [self._index.manifests[number] for number in needed]
            damaged = [manifest for manifest in manifests if not self._is_intact(manifest)]
            if not damaged:
                break
            self._drop_and_reload(*damaged)
        return numbers >= 0

    def refresh(self, keys: Keys) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Reload the manifests, which others may have added to; flag the cached keys."""
        self._index.load(self.storage)
        return self.are_cached(keys)

    def columns(self, keys: Keys) -> dict[str, F8]:
        """Return the metrics of many keys by name; only names that one of the cells has.

        `shards.ABSENT` stands where a cell has none.
        """
        for _ in range(3):
            numbers, rows = self._index.find_all(keys)
            columns, missing = self._gather(numbers, rows)
            if not missing:
                break
            self._drop_and_reload(*missing)  # as after another process merged small shards
        return columns

    def _gather(self, numbers: Positions, rows: Positions) -> tuple[dict[str, F8], list[Manifest]]:
        """Gather the metrics of rows of manifests; return too the manifests that are gone."""
        columns: dict[str, F8] = {}
        missing = []
        order = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[order], np.arange(len(self._index.manifests) + 1))
        for number, manifest in enumerate(self._index.manifests):
            positions = order[ends[number] : ends[number + 1]]
            if not len(positions):
                continue
            values = self._values(manifest)
            if values is None:
                missing.append(manifest)
                continue
            for k, name in enumerate(manifest.names):
                column = values[k, rows[positions]]
                if shards.are_absent(column).all():  # a name of other cells of the shard
                    continue
                if name not in columns:
                    columns[name] = np.full(len(numbers), shards.ABSENT)
                columns[name][positions] = column
        return columns, missing

    def put(self, result: CellResult, config: Mapping[str, Any]) -> None:
        """Store a cell that did not fail, with its configuration for people to read."""
        for error in self.put_many([(result, config)]).values():
            raise error

    def put_many(
        self, results: Sequence[tuple[CellResult, Mapping[str, Any]]]
    ) -> dict[str, Exception]:
        """Store cells that did not fail, each with its configuration: in one shard, if they fit.

        All of them are stored when it returns, except those whose table no file can hold: their
        errors are returned by key.
        """
        rows, errors = shard_writer.to_rows(results)
        for written in shard_writer.write(rows, None):
            self.commit([written])
        return errors

    def commit(self, pending: Sequence[PendingShard]) -> list[Manifest]:
        """Put shards, then one manifest: from then on their cells are cached."""
        if not pending:
            return []
        index = self._index
        with ThreadPoolExecutor(1 if self._is_local else N_PUT_THREADS) as executor:
            puts = [
                (executor.submit(self._put, shard), shard) for shard in pending if shard.content
            ]
        for put, shard in puts:
            error = put.exception()
            if isinstance(error, InputError):
                self._put(shard)  # this thread may wait for the storage
            elif error is not None:
                raise error
        content = shards.join([shard.manifest for shard in pending])
        name = shards.digest_name(content)
        self.storage.put(MANIFESTS + name, content)
        manifests = shards.read_manifests(name, content)
        for manifest in manifests:
            self._intact.add(manifest.shard)
            index.add(manifest)
        return manifests

    def _put(self, shard: PendingShard) -> None:
        self.storage.put(shards.shard_path(shard.name), shard.content or b"")

    def configs(self) -> Iterator[dict[str, Any]]:
        """Yield the configurations of all cached cells, shard by shard."""
        for manifest in self._index.manifests:
            shard = self._shard(manifest)
            yield from map(json.loads, () if shard is None else shard.configs())

    def compact(self) -> int:
        """Merge small shards; return how many were deleted. Orphans are deleted first.

        A kill leaves the old shards, or old and new ones: of two copies of a cell either will do.
        """
        self.delete_orphans()
        by_file: dict[str, list[Manifest]] = {}
        for manifest in self._index.manifests:
            by_file.setdefault(manifest.name, []).append(manifest)
        small = [group for group in by_file.values() if _are_small(group)]
        n_deleted, begin_s = 0, time.monotonic()
        if sum(map(len, small)) < MIN_COMPACT_SHARDS:
            return 0
        while small and time.monotonic() - begin_s < MAX_COMPACT_S:
            group, n_cells, n_bytes = list[Sequence[Manifest]](), 0, 0
            while small and n_cells < MAX_CELLS and n_bytes < MAX_BYTES:
                group.append(small.pop())
                n_cells += _n_cells(group[-1])
                n_bytes += sum(manifest.n_bytes for manifest in group[-1])
            n_deleted += len(self.rewrite(group) or ())
        self._open_shards.clear()
        self._loaded_index = None
        return n_deleted

    def rewrite(
        self, group: Sequence[Sequence[Manifest]], reached: Keys | None = None
    ) -> set[str] | None:
        """Move the cells of a few manifests' files to new shards; return the deleted shards.

        With `reached`, only the cells of these keys; manifests have their keys then. A file stays
        that has a shard which can't be read now. None if none could be read.
        """
        rows: dict[bytes, Row] = {}
        old: list[Manifest] = []
        for parts in group:
            used = [m for m in parts if reached is None or np.isin(as_keys(m.keys), reached).any()]
            read = [(manifest, self._shard(manifest), self._values(manifest)) for manifest in used]
            if any(shard is None or values is None for _, shard, values in read):
                continue  # damaged, or unreadable for now
            old += parts
            for manifest, shard, values in read:
                assert shard is not None
                assert values is not None
                cells = shard.rows()
                keys = as_keys(b"".join(key for key, *_ in cells))
                is_used = np.ones(len(cells), bool) if reached is None else np.isin(keys, reached)
                for row in np.flatnonzero(is_used):
                    metrics = metrics_by_name(manifest.names, values[:, row])
                    rows[cells[row][0]] = Row(*cells[row], metrics)
        if not old:
            return None
        new = self.commit([*shard_writer.write([rows[key] for key in sorted(rows)], None)])
        # a shard rewritten before a kill may be made again: its name is the same
        files = {manifest.name for manifest in old} - {manifest.name for manifest in new}
        for name in sorted(files):
            self.storage.delete(MANIFESTS + name)
        self._index.drop(files)
        deleted = {m.shard for m in old} - {m.shard for m in self._index.manifests}
        for name in sorted(deleted):
            self.storage.delete(shards.shard_path(name))
        return deleted

    def delete_orphans(self, older_s: float = ORPHAN_AGE_S) -> int:
        """Delete shards that no manifest names and nobody is writing any more; return how many.

        Their writer was killed before it wrote the manifest, or while shards were merged. Their age
        is by the storage's own clock. If a manifest does come later, only its cells are lost.
        """
        written = self.storage.list(shards.SHARDS)
        named = {shards.shard_path(manifest.shard) for manifest in self._index.manifests}
        if written.keys() <= named:
            return 0
        now = f"{shards.SHARDS}now"
        self.storage.put(now, b"")
        listed = self.storage.list(shards.SHARDS)
        self.storage.delete(now)
        self._index.load(self.storage)
        manifests = {name.rpartition("/")[2] for name in self.storage.list(MANIFESTS)}
        if manifests != {manifest.name for manifest in self._index.manifests}:
            return 0  # one can't be read now: the shards that it names are not known
        named = {shards.shard_path(manifest.shard) for manifest in self._index.manifests}
        written_s = {name: listed[name].time_s for name in written if name in listed}
        old = [name for name, at_s in written_s.items() if listed[now].time_s - at_s > older_s]
        orphans = [name for name in old if name not in named]
        for name in orphans:
            self.storage.delete(name)
        return len(orphans)

    @property
    def _index(self) -> Index:
        if self._loaded_index is None:
            self._loaded_index = Index()
            self._loaded_index.load(self.storage)
        return self._loaded_index

    def _drop_and_reload(self, *manifests: Manifest) -> None:
        """Rebuild the index without these damaged or missing shards."""
        before = self._loaded_index
        self._loaded_index = Index()
        self._loaded_index.dropped = {manifest.shard for manifest in manifests}
        if before is not None:
            self._loaded_index.dropped |= before.dropped
        self._loaded_index.load(self.storage)

    def _is_intact(self, manifest: Manifest) -> bool:
        """Check a shard by its digest, once; one in an object store is checked when it is read."""
        if self._is_local and manifest.shard not in self._intact:
            content = storage.read_or_none(self.storage, shards.shard_path(manifest.shard))
            if content is None or shards.digest_name(content) != manifest.shard:
                return False
            self._intact.add(manifest.shard)
        return True

    def _shard(self, manifest: Manifest) -> Shard | None:
        if manifest.shard in self._open_shards:
            self._open_shards.move_to_end(manifest.shard)
            return self._open_shards[manifest.shard][0]
        content = storage.read_or_none(self.storage, shards.shard_path(manifest.shard))
        if content is None or shards.digest_name(content) != manifest.shard:
            return None
        shard = Shard(content)
        self._open_shards[manifest.shard] = (shard, len(content))
        while len(self._open_shards) > _MAX_OPEN or (
            len(self._open_shards) > 1
            and sum(n for _, n in self._open_shards.values()) > _MAX_OPEN_BYTES
        ):
            self._open_shards.popitem(last=False)
        return shard

    def _values(self, manifest: Manifest) -> F8 | None:
        """Return the metrics of a manifest's cells, one row per metric name."""
        if manifest.name not in self._unpacked:
            content = storage.read_or_none(self.storage, MANIFESTS + manifest.name)
            parsed = [] if content is None else shards.read_manifests(manifest.name, content)
            if not parsed:
                return None
            self._unpacked[manifest.name] = {entry.shard: entry.metrics() for entry in parsed}
            while len(self._unpacked) > 64:
                self._unpacked.popitem(last=False)
        self._unpacked.move_to_end(manifest.name)
        return self._unpacked[manifest.name][manifest.shard]

    def _metrics(self, manifest: Manifest, row: int) -> dict[str, float] | None:
        values = self._values(manifest)
        return None if values is None else metrics_by_name(manifest.names, values[:, row])


def metrics_by_name(names: Sequence[str], values: F8) -> dict[str, float]:
    """Return the metrics that a cell has, from its column of a manifest's values."""
    return {
        name: float(value)
        for name, value, is_absent in zip(names, values, shards.are_absent(values), strict=True)
        if not is_absent
    }


def _are_small(manifests: Sequence[Manifest]) -> bool:
    n_bytes, n = sum(manifest.n_bytes for manifest in manifests), len(manifests)
    return _n_cells(manifests) < SMALL_SHARD_CELLS * n and n_bytes < MAX_BYTES // 4 * n


def _n_cells(manifests: Sequence[Manifest]) -> int:
    return sum(map(len, manifests))
