"""Metrics of a plan's cells by key, in columns: a mapping that a million cells fit into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sweep.store import shards
from sweep.store.index import Keys, as_keys

Flags = np.ndarray[Any, np.dtype[np.bool_]]
Rows = np.ndarray[Any, np.dtype[np.int64]]


class CellMetrics(Mapping[str, dict[str, float]]):
    """Metrics of those cells of a plan that are known, by key.

    Of a key that is there again the first one counts.
    """

    def __init__(self, keys: Keys, kept: Flags, load: Callable[[Keys], dict[str, F8]]) -> None:
        self._keys = keys
        self._order = np.argsort(keys, kind="stable")
        ordered = keys[self._order]
        again = self._order[1:][ordered[1:] == ordered[:-1]]
        self.n_keys = len(keys) - len(again)  # each once
        self.known = kept.copy()  # of each key, whether its cell is there
        self.known[again] = False
        self._kept = np.flatnonzero(self.known)
        self._load: Callable[[Keys], dict[str, F8]] | None = load
        self._columns: dict[str, F8] = {}

    @classmethod
    def of_none(cls) -> CellMetrics:
        """Make one of no cells."""
        return cls(as_keys(b""), np.zeros(0, bool), lambda _: {})

    def __contains__(self, key: object) -> bool:
        """Tell whether a cell is there."""
        return isinstance(key, str) and bool(self.are_known(as_keys(bytes.fromhex(key)))[0])

    def __getitem__(self, key: str) -> dict[str, float]:
        """Return a cell's metrics by name."""
        (at,), (is_ours,) = self._places(as_keys(bytes.fromhex(key)))
        if not is_ours or not self.known[at]:
            raise KeyError(key)
        return _present((name, column[at]) for name, column in self._all().items())

    def __setitem__(self, key: str, metrics: Mapping[str, float]) -> None:
        """Note a cell's metrics."""
        of = {name: np.array([value], np.float64) for name, value in metrics.items()}
        self.take(as_keys(bytes.fromhex(key)), of)

    def take(self, keys: Keys, columns: Mapping[str, F8]) -> None:
        """Note the metrics of many cells by name, `shards.ABSENT` where a cell has none.

        Keys that are not the plan's are left out, as are names that none of its cells has.
        """
        at, ours = self._places(keys)
        rows, known = at[ours], self._all()
        for name, values in columns.items():
            if name not in known and shards.are_absent(values[ours]).all():
                continue
            if name not in known:
                known[name] = np.full(len(self._keys), shards.ABSENT)
            known[name][rows] = values[ours]
        self.known[rows] = True

    def __iter__(self) -> Iterator[str]:
        """Keys of the cells that are there."""
        for at in np.flatnonzero(self.known).tolist():
            yield self._keys[at : at + 1].tobytes().hex()

    def __len__(self) -> int:
        """Count the cells that are there."""
        return int(self.known.sum())

    def are_known(self, keys: Keys) -> Flags:
        """Tell of each key whether its cell is there."""
        if keys is self._keys and self.n_keys == len(keys):
            return self.known.copy()
        at, found = self._places(keys)
        found[found] = self.known[at[found]]
        return found

    def names(self) -> list[str]:
        """Names of all metrics that a cell of the plan has."""
        return [*self._all()]

    def column(self, name: str) -> tuple[F8, Flags]:
        """Return a metric of each of the plan's keys, NaN where it is not; and whether it is."""
        values, known = self._all().get(name, np.full(len(self._keys), shards.ABSENT)), self.known
        if self.n_keys < len(self._keys):
            at, _ = self._places(self._keys)
            values, known = values[at], known[at]
        there = ~shards.are_absent(values) & known
        return np.where(there, values, np.nan), there

    def _places(self, keys: Keys) -> tuple[Rows, Flags]:
        """Return where keys stand among these, and whether they do."""
        if not len(self._keys):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
        at = self._keys.searchsorted(keys, sorter=self._order)
        at = self._order[np.minimum(at, len(self._keys) - 1)]
        return at, self._keys[at] == keys

    def _all(self) -> dict[str, F8]:
        """Return the columns; those of what was kept are read when one is asked for."""
        if self._load is not None:
            load, self._load = self._load, None
            for name, values in load(self._keys[self._kept]).items() if len(self._kept) else ():
                self._columns[name] = np.full(len(self._keys), shards.ABSENT)
                self._columns[name][self._kept] = values
        return self._columns


def _present(values: Iterable[tuple[str, np.float64]]) -> dict[str, float]:
    absent = shards.ABSENT.view(np.uint64)
    return {name: float(v) for name, v in values if v.view(np.uint64) != absent}
