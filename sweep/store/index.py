"""Index of a cache: the shard and row of every key, from all manifests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sweep.store import shards
from sweep.store.shards import KEY_BYTES, MANIFESTS, Manifest
from sweep.store.storage import Storage, read_or_none

Keys = np.ndarray[Any, np.dtype[np.bytes_]]
Positions = np.ndarray[Any, np.dtype[np.int32]]
_HALF = KEY_BYTES // 2
_MIN_RECENT, _MAX_RECENT = 4096, 16_384


def as_keys(content: bytes | bytearray) -> Keys:
    """View concatenated keys as an array; of a bytearray they can be replaced."""
    return np.frombuffer(content, f"S{KEY_BYTES}")


class Index:
    """Sorted array of keys with their shards; the shard that was added last wins.

    Only the first half of each key is kept: 128 bits of SHA-256 tell cells apart. Recently added
    keys are in a dictionary, which is merged into the array once it has grown.
    """

    def __init__(self) -> None:
        self.manifests: list[Manifest] = []
        self._keys: Keys = _halves(b"")
        self._manifest_numbers: Positions = np.empty(0, np.int32)
        self._rows: Positions = np.empty(0, np.int32)
        self._recent: dict[bytes, tuple[int, int]] = {}
        self.dropped: set[str] = set()  # shards that are damaged or missing

    def load(self, storage: Storage) -> None:
        """Add the manifests that are new in a storage, and drop those that were deleted there."""
        sizes = storage.list(MANIFESTS)
        names = {name.rpartition("/")[2]: name for name in sizes}
        known = {manifest.name for manifest in self.manifests}
        if known - names.keys():
            self.drop(known - names.keys())
        new = []
        for digest, name in names.items():
            content = None if digest in known else read_or_none(storage, name)
            manifests = [] if content is None else shards.read_manifests(digest, content)
            new += [manifest for manifest in manifests if manifest.shard not in self.dropped]
        self._merge(new)

    def add(self, manifest: Manifest) -> None:
        """Add a manifest."""
        number = len(self.manifests)
        self.manifests.append(_without_content(manifest))
        self.dropped.discard(manifest.shard)  # a damaged shard was written again
        keys = manifest.keys
        for row, begin in enumerate(range(0, len(keys), KEY_BYTES)):
            self._recent[keys[begin : begin + _HALF]] = (number, row)
        if len(self._recent) > min(max(_MIN_RECENT, len(self._keys) // 8), _MAX_RECENT):
            self._merge([])

    def find(self, key: bytes) -> tuple[int, int] | None:
        """Return the number of a key's manifest and its row there; None if it is not cached."""
        key = key[:_HALF]
        location = self._recent.get(key)
        if location is not None:
            return location
        position = int(np.searchsorted(self._keys, np.bytes_(key)))
        if position < len(self._keys) and self._keys[position : position + 1].tobytes() == key:
            return int(self._manifest_numbers[position]), int(self._rows[position])
        return None

    def find_all(self, keys: Keys) -> tuple[Positions, Positions]:
        """Find many keys at once, see `find`; −1 where a key is not cached."""
        self._merge([])
        if not len(self._keys):
            return np.full(len(keys), -1, np.int32), np.full(len(keys), -1, np.int32)
        halves = _halves(keys)
        positions = np.minimum(np.searchsorted(self._keys, halves), len(self._keys) - 1)
        matches = self._keys[positions] == halves
        return np.where(matches, self._manifest_numbers[positions], -1), np.where(
            matches, self._rows[positions], -1
        )

    def drop(self, names: set[str]) -> None:
        """Drop the manifests of these files."""
        self._merge([])
        remaining = [k for k, manifest in enumerate(self.manifests) if manifest.name not in names]
        number = np.full(len(self.manifests), -1, np.int32)
        number[remaining] = np.arange(len(remaining))
        self.manifests = [self.manifests[k] for k in remaining]
        manifest_numbers = number[self._manifest_numbers]
        is_kept = manifest_numbers >= 0
        self._keys, self._manifest_numbers, self._rows = (
            self._keys[is_kept],
            manifest_numbers[is_kept],
            self._rows[is_kept],
        )

    def _merge(self, new_manifests: Sequence[Manifest]) -> None:
        if not new_manifests and not self._recent:
            return
        keys, numbers, rows = [self._keys], [self._manifest_numbers], [self._rows]
        if self._recent:
            keys.append(np.frombuffer(b"".join(self._recent), self._keys.dtype))
            positions = np.array(list(self._recent.values()), np.int32)
            numbers.append(positions[:, 0])
            rows.append(positions[:, 1])
            self._recent = {}
        for manifest in new_manifests:
            keys.append(_halves(manifest.keys))
            numbers.append(np.full(len(manifest), len(self.manifests), np.int32))
            rows.append(np.arange(len(manifest), dtype=np.int32))
            self.manifests.append(_without_content(manifest))
        all_keys, all_numbers, all_rows = (
            np.concatenate(keys),
            np.concatenate(numbers),
            np.concatenate(rows),
        )
        order = np.argsort(all_keys, kind="stable")
        sorted_keys = all_keys[order]
        # of a key that is there twice the last one is kept
        last = np.ones(len(order), bool)
        last[:-1] = sorted_keys[1:] != sorted_keys[:-1]
        self._keys = sorted_keys[last]
        self._manifest_numbers, self._rows = all_numbers[order[last]], all_rows[order[last]]


def _halves(keys: bytes | Keys) -> Keys:
    """Return the first half of each key."""
    return np.frombuffer(keys, f"S{_HALF}")[::2]


def _without_content(manifest: Manifest) -> Manifest:
    """Copy a manifest without its keys and metrics.

    The index has taken over the keys; metrics are read when they are needed.
    """
    return Manifest(
        manifest.name, manifest.shard, manifest.n_bytes, b"", manifest.sizes, manifest.names, b""
    )
