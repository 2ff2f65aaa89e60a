"""Results by content: an index of keys over shards of many cells."""

from __future__ import annotations

import json
import math
import time
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError
from sweep.store import shard_writer, shards, storage
from sweep.store.cell import CellResult
from sweep.store.index import Index, Keys, Places
from sweep.store.shard_writer import MOST_BYTES, MOST_CELLS, PendingShard
from sweep.store.shards import MANIFESTS, Manifest, Row, Shard
from sweep.store.sources import KeptSources

_OPEN, _OPEN_BYTES = 16, 2**26
"""Shards that are kept in memory once they were read: so many, of so many bytes together."""
FEW_CELLS, MANY_SHARDS = 1024, 32
"""So many shards of so few cells are put together."""
COMPACT_S = 30.0
"""For about so long; another sweep goes on."""
ORPHAN_S = 86_400.0
"""A shard that no manifest names by then never will be."""
AT_ONCE = 8
"""Puts on their way to an object store."""


class Cache:
    """The results of cells, under ``<results>/cache``; see `sweep.store.shards`.

    Whoever writes a cell writes the same content; several processes may do so at once.
    """

    def __init__(self, results: Path) -> None:
        self.results = results
        self.place = storage.for_results(results)
        self.sources = KeptSources(results)
        self._is_here = isinstance(self.place, storage.Folder)
        self._made: Index | None = None
        self._open: OrderedDict[str, tuple[Shard, int]] = OrderedDict()
        self._unpacked: OrderedDict[str, dict[str, F8]] = OrderedDict()
        self._whole: set[str] = set()

    def n_bytes(self, key: str) -> int:
        """Size of a cell's table before compression; 0 if there is none."""
        found = self._index.find(bytes.fromhex(key))
        if found is None:
            return 0
        of, row = found
        return int(self._index.manifests[of].sizes[row])

    def get(self, key: str) -> CellResult | None:
        """Read a cell; None if it is not there, damaged, or from another version."""
        for _ in range(2):
            found = self._index.find(bytes.fromhex(key))
            if found is None:
                break
            manifest, row = self._index.manifests[found[0]], found[1]
            shard = self._shard(manifest)
            metrics = self._metrics(manifest, row)
            if shard is not None and metrics is not None:
                _, schema, jobs = shard.jobs(row)
                return CellResult(key, metrics, shards.read_jobs(schema, jobs))
            self._lost(manifest)
        return None

    def metrics(self, key: str) -> dict[str, float] | None:
        """Read a cell's metrics alone; None if it is not there or its shard is damaged."""
        for _ in range(2):
            found = self._index.find(bytes.fromhex(key))
            if found is None:
                break
            manifest = self._index.manifests[found[0]]
            metrics = self._metrics(manifest, found[1]) if self._is_whole(manifest) else None
            if metrics is not None:
                return metrics
            self._lost(manifest)
        return None

    def config(self, key: str) -> dict[str, Any] | None:
        """Return the configuration a cell was computed with; None if there is no such cell."""
        found = self._index.find(bytes.fromhex(key))
        if found is None:
            return None
        shard = self._shard(self._index.manifests[found[0]])
        if shard is None:
            return None
        config: dict[str, Any] = json.loads(shard.config(found[1]))
        return config

    def cached_keys(self, keys: Collection[str]) -> list[str]:
        """Return those of the keys that are kept, in their order."""
        there = self.are_cached(
            np.array([bytes.fromhex(key) for key in keys], f"S{shards.KEY_BYTES}")
        )
        return [key for key, is_there in zip(keys, there, strict=True) if is_there]

    def are_cached(self, keys: Keys) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Tell of each key whether it is kept, in a shard that is whole."""
        while True:
            of, _ = self._index.find_all(keys)
            needed = np.unique(of[of >= 0]).tolist()
            manifests = [self._index.manifests[number] for number in needed]
            bad = [manifest for manifest in manifests if not self._is_whole(manifest)]
            if not bad:
                break
            self._lost(*bad)
        return of >= 0

    def refresh(self, keys: Keys) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Tell of each key whether it is kept by now, by whomever."""
        self._index.load(self.place)
        return self.are_cached(keys)

    def columns(self, keys: Keys) -> dict[str, F8]:
        """Return the metrics of many keys by name, those names alone that one of the cells has.

        `shards.ABSENT` stands where a cell has none.
        """
        for _ in range(3):
            of, row = self._index.find_all(keys)
            columns, gone = self._gathered(of, row)
            if not gone:
                break
            self._lost(*gone)  # as where another process has put small shards together
        return columns

    def _gathered(self, of: Places, row: Places) -> tuple[dict[str, F8], list[Manifest]]:
        """Gather the metrics of rows of manifests; and say which of these are gone."""
        columns: dict[str, F8] = {}
        gone = []
        order = np.argsort(of, kind="stable")
        ends = np.searchsorted(of[order], np.arange(len(self._index.manifests) + 1))
        for number, manifest in enumerate(self._index.manifests):
            at = order[ends[number] : ends[number + 1]]
            if not len(at):
                continue
            values = self._values(manifest)
            if values is None:
                gone.append(manifest)
                continue
            for k, name in enumerate(manifest.names):
                numbers = values[k, row[at]]
                if shards.are_absent(numbers).all():  # a name of other cells of the shard
                    continue
                if name not in columns:
                    columns[name] = np.full(len(of), shards.ABSENT)
                columns[name][at] = numbers
        return columns, gone

    def put(self, result: CellResult, config: Mapping[str, Any]) -> None:
        """Keep a cell that did not fail, with its configuration for people to read."""
        for error in self.put_many([(result, config)]).values():
            raise error

    def put_many(
        self, results: Sequence[tuple[CellResult, Mapping[str, Any]]]
    ) -> dict[str, Exception]:
        """Keep cells that did not fail, each with its configuration: a shard, if it holds them.

        All of them are kept when it returns, but for those whose table no file can hold: their
        errors are returned by key.
        """
        rows, errors = shard_writer.to_rows(results)
        for written in shard_writer.write(rows, None):
            self.commit([written])
        return errors

    def commit(self, written: Sequence[PendingShard]) -> list[Manifest]:
        """Put what was handed over, then the manifest that makes all of it count."""
        if not written:
            return []
        index = self._index
        with ThreadPoolExecutor(1 if self._is_here else AT_ONCE) as putting:
            puts = [(putting.submit(self._put, shard), shard) for shard in written if shard.content]
        for put, shard in puts:
            error = put.exception()
            if isinstance(error, InputError):
                self._put(shard)  # this thread may wait for the store
            elif error is not None:
                raise error
        about = shards.join([shard.about for shard in written])
        name = shards.digest_name(about)
        self.place.put(MANIFESTS + name, about)
        manifests = shards.read_manifests(name, about)
        for manifest in manifests:
            self._whole.add(manifest.shard)
            index.add(manifest)
        return manifests

    def _put(self, written: PendingShard) -> None:
        self.place.put(shards.shard_path(written.name), written.content or b"")

    def configs(self) -> Iterator[dict[str, Any]]:
        """Return the configurations of all cells kept, shard by shard."""
        for manifest in self._index.manifests:
            shard = self._shard(manifest)
            yield from map(json.loads, () if shard is None else shard.configs())

    def compact(self) -> int:
        """Put small shards together; return how many went. Those of no manifest go first.

        What a kill leaves is the old shards, or both: of two copies of a cell either will do.
        """
        self.forget_orphans()
        by_file: dict[str, list[Manifest]] = {}
        for each in self._index.manifests:
            by_file.setdefault(each.name, []).append(each)
        small = [each for each in by_file.values() if _are_small(each)]
        n_went, begin_s = 0, time.monotonic()
        if sum(map(len, small)) < MANY_SHARDS:
            return 0
        while small and time.monotonic() - begin_s < COMPACT_S:
            some, n_cells, n_bytes = list[Sequence[Manifest]](), 0, 0
            while small and n_cells < MOST_CELLS and n_bytes < MOST_BYTES:
                some.append(small.pop())
                n_cells += _n_cells(some[-1])
                n_bytes += sum(each.n_bytes for each in some[-1])
            n_went += self._put_together(some)
        self._open.clear()
        self._made = None
        return n_went

    def _put_together(self, some: Sequence[Sequence[Manifest]]) -> int:
        """Put all shards of a few manifests' files together; return how many went."""
        rows: dict[bytes, Row] = {}
        taken: list[Manifest] = []
        for parts in some:
            read = [(each, self._shard(each), self._values(each)) for each in parts]
            if any(shard is None or values is None for _, shard, values in read):
                continue  # damaged, or it can't be read now
            taken += parts
            for each, shard, values in read:
                assert shard is not None
                assert values is not None
                for at, (key, config, schema, jobs) in enumerate(shard.rows()):
                    rows[key] = Row(key, config, schema, jobs, _row(each.names, values[:, at]))
        made = self.commit([*shard_writer.write([rows[key] for key in sorted(rows)], None)])
        # what was put together before a kill may be made again: by the same name
        files = {each.name for each in taken} - {each.name for each in made}
        for name in sorted(files):
            self.place.delete(MANIFESTS + name)
        needed = {each.shard for each in self._index.manifests if each.name not in files}
        old = {each.shard for each in taken} - needed
        for name in sorted(old):
            self.place.delete(shards.shard_path(name))
        return len(old)

    def forget_orphans(self, older_s: float = ORPHAN_S) -> int:
        """Delete shards that no manifest names and nobody is at any more; return how many.

        Their writer was killed before it wrote the manifest, or while shards were put together.
        They are as old by the clock of where they lie; whose manifest comes after all lost its
        cells alone.
        """
        there = self.place.list(shards.SHARDS)
        named = {shards.shard_path(each.shard) for each in self._index.manifests}
        if there.keys() <= named:
            return 0
        now = f"{shards.SHARDS}now"
        self.place.put(now, b"")
        times_s = self.place.times_s(shards.SHARDS)
        self.place.delete(now)
        self._index.load(self.place)
        manifests = {name.rpartition("/")[2] for name in self.place.list(MANIFESTS)}
        if manifests != {each.name for each in self._index.manifests}:
            return 0  # one can't be read now: nobody knows what it names
        named = {shards.shard_path(each.shard) for each in self._index.manifests}
        old = [name for name in there if times_s[now] - times_s.get(name, math.inf) > older_s]
        orphans = [name for name in old if name not in named]
        for name in orphans:
            self.place.delete(name)
        return len(orphans)

    @property
    def _index(self) -> Index:
        if self._made is None:
            self._made = Index()
            self._made.load(self.place)
        return self._made

    def _lost(self, *manifests: Manifest) -> None:
        """Look anew at what is there, but for these."""
        before = self._made
        self._made = Index()
        self._made.dropped = {each.shard for each in manifests}
        if before is not None:
            self._made.dropped |= before.dropped
        self._made.load(self.place)

    def _is_whole(self, manifest: Manifest) -> bool:
        """Tell whether a shard can be gone by; one elsewhere is looked at when it is read."""
        if self._is_here and manifest.shard not in self._whole:
            content = storage.read(self.place, shards.shard_path(manifest.shard))
            if content is None or shards.digest_name(content) != manifest.shard:
                return False
            self._whole.add(manifest.shard)
        return True

    def _shard(self, manifest: Manifest) -> Shard | None:
        if manifest.shard in self._open:
            self._open.move_to_end(manifest.shard)
            return self._open[manifest.shard][0]
        content = storage.read(self.place, shards.shard_path(manifest.shard))
        if content is None or shards.digest_name(content) != manifest.shard:
            return None
        shard = Shard(content)
        self._open[manifest.shard] = (shard, len(content))
        while len(self._open) > _OPEN or (
            len(self._open) > 1 and sum(n for _, n in self._open.values()) > _OPEN_BYTES
        ):
            self._open.popitem(last=False)
        return shard

    def _values(self, manifest: Manifest) -> F8 | None:
        """Return the metrics of a manifest's cells, a row a name."""
        if manifest.name not in self._unpacked:
            content = storage.read(self.place, MANIFESTS + manifest.name)
            found = [] if content is None else shards.read_manifests(manifest.name, content)
            if not found:
                return None
            self._unpacked[manifest.name] = {each.shard: each.metrics() for each in found}
            while len(self._unpacked) > 64:
                self._unpacked.popitem(last=False)
        self._unpacked.move_to_end(manifest.name)
        return self._unpacked[manifest.name][manifest.shard]

    def _metrics(self, manifest: Manifest, row: int) -> dict[str, float] | None:
        values = self._values(manifest)
        return None if values is None else _row(manifest.names, values[:, row])


def _row(names: Sequence[str], values: F8) -> dict[str, float]:
    return {
        name: float(value)
        for name, value, is_absent in zip(names, values, shards.are_absent(values), strict=True)
        if not is_absent
    }


def _are_small(manifests: Sequence[Manifest]) -> bool:
    n_bytes, n = sum(each.n_bytes for each in manifests), len(manifests)
    return _n_cells(manifests) < FEW_CELLS * n and n_bytes < MOST_BYTES // 4 * n


def _n_cells(manifests: Sequence[Manifest]) -> int:
    return sum(map(len, manifests))
