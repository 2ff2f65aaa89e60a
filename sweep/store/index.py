"""The index of a cache: which shard holds a key, from all manifests that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sweep.store import shards
from sweep.store.shards import KEY_BYTES, MANIFESTS, Manifest
from sweep.store.storage import Storage, read

Keys = np.ndarray[Any, np.dtype[np.bytes_]]
Places = np.ndarray[Any, np.dtype[np.int32]]
_HALF = KEY_BYTES // 2
_FEW, _MANY = 4096, 16_384


def as_keys(content: bytes | bytearray) -> Keys:
    """View keys that follow each other; of a bytearray they can be replaced."""
    return np.frombuffer(content, f"S{KEY_BYTES}")


class Index:
    """Keys over shards; what was added last is found first.

    Keys are kept sorted in one array, the first half of each: 128 bits of SHA-256 tell cells apart.
    The few that came since are in a dictionary beside it.
    """

    def __init__(self) -> None:
        self.manifests: list[Manifest] = []
        self._keys: Keys = _halves(b"")
        self._of: Places = np.empty(0, np.int32)
        self._row: Places = np.empty(0, np.int32)
        self._new: dict[bytes, tuple[int, int]] = {}
        self.dropped: set[str] = set()  # shards that are damaged or gone

    def load(self, place: Storage) -> None:
        """Take in the manifests that were not known before, and forget those that are gone."""
        there = place.list(MANIFESTS)
        names = {name.rpartition("/")[2]: name for name in there}
        known = {manifest.name for manifest in self.manifests}
        if known - names.keys():
            self._forget(known - names.keys())
        new = []
        for short, name in names.items():
            content = None if short in known else read(place, name)
            found = [] if content is None else shards.read_manifests(short, content)
            new += [each for each in found if each.shard not in self.dropped]
        self._merge(new)

    def add(self, manifest: Manifest) -> None:
        """Take in a manifest."""
        at = len(self.manifests)
        self.manifests.append(_slim(manifest))
        self.dropped.discard(manifest.shard)  # what was damaged is there anew
        keys = manifest.keys
        for row, begin in enumerate(range(0, len(keys), KEY_BYTES)):
            self._new[keys[begin : begin + _HALF]] = (at, row)
        if len(self._new) > min(max(_FEW, len(self._keys) // 8), _MANY):
            self._merge([])

    def find(self, key: bytes) -> tuple[int, int] | None:
        """Return the number of a key's manifest and its row there; None if it is not kept."""
        key = key[:_HALF]
        found = self._new.get(key)
        if found is not None:
            return found
        at = int(np.searchsorted(self._keys, np.bytes_(key)))
        if at < len(self._keys) and self._keys[at : at + 1].tobytes() == key:
            return int(self._of[at]), int(self._row[at])
        return None

    def find_all(self, keys: Keys) -> tuple[Places, Places]:
        """Return the same of many keys; −1 where one is not kept."""
        self._merge([])
        if not len(self._keys):
            return np.full(len(keys), -1, np.int32), np.full(len(keys), -1, np.int32)
        halves = _halves(keys)
        at = np.minimum(np.searchsorted(self._keys, halves), len(self._keys) - 1)
        there = self._keys[at] == halves
        return np.where(there, self._of[at], -1), np.where(there, self._row[at], -1)

    def _forget(self, names: set[str]) -> None:
        self._merge([])
        stay = [at for at, each in enumerate(self.manifests) if each.name not in names]
        number = np.full(len(self.manifests), -1, np.int32)
        number[stay] = np.arange(len(stay))
        self.manifests = [self.manifests[at] for at in stay]
        of = number[self._of]
        kept = of >= 0
        self._keys, self._of, self._row = self._keys[kept], of[kept], self._row[kept]

    def _merge(self, more: Sequence[Manifest]) -> None:
        if not more and not self._new:
            return
        keys, of, row = [self._keys], [self._of], [self._row]
        if self._new:
            keys.append(np.frombuffer(b"".join(self._new), self._keys.dtype))
            places = np.array(list(self._new.values()), np.int32)
            of.append(places[:, 0])
            row.append(places[:, 1])
            self._new = {}
        for manifest in more:
            keys.append(_halves(manifest.keys))
            of.append(np.full(len(manifest), len(self.manifests), np.int32))
            row.append(np.arange(len(manifest), dtype=np.int32))
            self.manifests.append(_slim(manifest))
        all_keys, all_of, all_row = np.concatenate(keys), np.concatenate(of), np.concatenate(row)
        order = np.argsort(all_keys, kind="stable")
        sorted_keys = all_keys[order]
        # of a key that is kept twice the one that came last
        last = np.ones(len(order), bool)
        last[:-1] = sorted_keys[1:] != sorted_keys[:-1]
        self._keys = sorted_keys[last]
        self._of, self._row = all_of[order[last]], all_row[order[last]]


def _halves(keys: bytes | Keys) -> Keys:
    """Return the first half of each key."""
    return np.frombuffer(keys, f"S{_HALF}")[::2]


def _slim(manifest: Manifest) -> Manifest:
    """Return a manifest without what the index has taken over, and what is read when needed."""
    return Manifest(
        manifest.name, manifest.shard, manifest.n_bytes, b"", manifest.sizes, manifest.names, b""
    )
