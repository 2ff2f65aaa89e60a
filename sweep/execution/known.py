"""Metrics of a plan's cells by key, in columns: a mapping that a million cells fit into."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sweep.store import shards
from sweep.store.index import Keys, as_keys

Flags = np.ndarray[Any, np.dtype[np.bool_]]
Rows = np.ndarray[Any, np.dtype[np.int64]]
_ABSENT = shards.ABSENT.view(np.uint64)


class Metrics(MutableMapping[str, dict[str, float]]):
    """Metrics of those cells that are known, among keys that a plan has; others are few."""

    def __init__(self, keys: Keys, kept: Flags, load: Callable[[Keys], dict[str, F8]]) -> None:
        self._keys = keys  # sorted, each once
        self.known = kept.copy()  # of each key, whether its cell is there
        self._kept = np.flatnonzero(kept)
        self._load: Callable[[Keys], dict[str, F8]] | None = load
        self._columns: dict[str, F8] = {}
        self._late: dict[str, dict[str, float]] = {}  # of keys that came to be known later

    def __contains__(self, key: object) -> bool:
        """Tell whether a cell is there."""
        at = self._find(key)
        return key in self._late if at is None else bool(self.known[at])

    def __getitem__(self, key: str) -> dict[str, float]:
        """Return a cell's metrics by name."""
        at = self._find(key)
        if at is None:
            return self._late[key]
        if not self.known[at]:
            raise KeyError(key)
        values = [(name, column[at]) for name, column in self._all().items()]
        return {name: float(v) for name, v in values if v.view(np.uint64) != _ABSENT}

    def __setitem__(self, key: str, metrics: dict[str, float]) -> None:
        """Note a cell's metrics."""
        at = self._find(key)
        if at is None:
            self._late[key] = metrics
            return
        columns = self._all()
        for name, value in metrics.items():
            if name not in columns:
                columns[name] = np.full(len(self._keys), shards.ABSENT)
            columns[name][at] = value
        self.known[at] = True

    def __delitem__(self, key: str) -> None:
        """Forget a cell."""
        at = self._find(key)
        if at is None:
            del self._late[key]
        else:
            self.known[at] = False

    def __iter__(self) -> Iterator[str]:
        """Keys of the cells that are there."""
        for at in np.flatnonzero(self.known).tolist():
            yield self._keys[at : at + 1].tobytes().hex()
        yield from self._late

    def __len__(self) -> int:
        """Count the cells that are there."""
        return int(self.known.sum()) + len(self._late)

    def are_known(self, keys: Keys) -> Flags:
        """Tell of each key whether its cell is there."""
        at = np.minimum(self.places(keys), max(0, len(self._keys) - 1))
        if not len(self._keys):
            return np.zeros(len(keys), bool)
        found: Flags = (self._keys[at] == keys) & self.known[at]
        if self._late:
            late = as_keys(b"".join(map(bytes.fromhex, self._late)))
            found |= np.isin(keys, late)
        return found

    def among(self, keys: Keys) -> Metrics:
        """Return the same for other keys, sorted and each once."""
        found = Metrics(keys, np.zeros(len(keys), bool), lambda _: {})
        at = np.minimum(np.searchsorted(self._keys, keys), max(0, len(self._keys) - 1))
        if len(self._keys):
            same = self._keys[at] == keys
            found.known[same] = self.known[at[same]]
            for name, column in self._all().items():
                found._columns[name] = np.where(same, column[at], shards.ABSENT)
        for key, metrics in self._late.items():
            found[key] = metrics
        return found

    @property
    def n_keys(self) -> int:
        """Count the keys of the plan, each once."""
        return len(self._keys)

    def names(self) -> list[str]:
        """Names of all metrics."""
        return [*self._all()]

    def column(self, name: str, rows: Rows) -> tuple[F8, Flags]:
        """Return a metric of keys by their places, NaN where it is not; and whether it is."""
        column = self._all().get(name)
        if column is None:
            return np.full(len(rows), np.nan), np.zeros(len(rows), bool)
        values = column[rows]
        there = (values.view(np.uint64) != _ABSENT) & self.known[rows]
        return np.where(there, values, np.nan), there

    def places(self, keys: Keys) -> Rows:
        """Return the places of keys that are all among these."""
        return np.searchsorted(self._keys, keys)

    def _find(self, key: object) -> int | None:
        if not isinstance(key, str):
            return None
        wanted = bytes.fromhex(key)
        at = int(self._keys.searchsorted(np.bytes_(wanted)))
        same = at < len(self._keys) and self._keys[at : at + 1].tobytes() == wanted
        return at if same else None

    def _all(self) -> dict[str, F8]:
        """Return the columns; those of what was kept are read when one is asked for."""
        if self._load is not None:
            load, self._load = self._load, None
            for name, values in load(self._keys[self._kept]).items() if len(self._kept) else ():
                self._columns[name] = np.full(len(self._keys), shards.ABSENT)
                self._columns[name][self._kept] = values
        return self._columns
