"""Metrics of a plan's cells by key, as columns: compact enough for a million cells."""

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
    """Metrics of the finished cells of a plan, by key.

    Where a key repeats, its first row holds the metrics.
    """

    def __init__(self, keys: Keys, is_cached: Flags, load: Callable[[Keys], dict[str, F8]]) -> None:
        self._keys = keys
        self._order = np.argsort(keys, kind="stable")
        ordered = keys[self._order]
        repeated = self._order[1:][ordered[1:] == ordered[:-1]]
        self.n_keys = len(keys) - len(repeated)  # distinct
        self.known = is_cached.copy()  # flag of each key: its cell has metrics
        self.known[repeated] = False
        self._cached_rows = np.flatnonzero(self.known)
        self._load: Callable[[Keys], dict[str, F8]] | None = load
        self._columns: dict[str, F8] = {}

    @classmethod
    def empty(cls) -> CellMetrics:
        """Build an instance without cells."""
        return cls(as_keys(b""), np.zeros(0, bool), lambda _: {})

    def __contains__(self, key: object) -> bool:
        """Tell whether a cell has metrics."""
        return isinstance(key, str) and bool(self.are_known(as_keys(bytes.fromhex(key)))[0])

    def __getitem__(self, key: str) -> dict[str, float]:
        """Return a cell's metrics by name."""
        (row,), (is_planned,) = self._rows_of_keys(as_keys(bytes.fromhex(key)))
        if not is_planned or not self.known[row]:
            raise KeyError(key)
        return _present((name, column[row]) for name, column in self._loaded_columns().items())

    def __setitem__(self, key: str, metrics: Mapping[str, float]) -> None:
        """Add a cell's metrics."""
        columns = {name: np.array([value], np.float64) for name, value in metrics.items()}
        self.add(as_keys(bytes.fromhex(key)), columns)

    def add(self, keys: Keys, columns: Mapping[str, F8]) -> None:
        """Add the metrics of many cells by name, `shards.ABSENT` where a cell has none.

        Keys outside the plan are ignored, and so are names that none of its cells has.
        """
        positions, is_planned = self._rows_of_keys(keys)
        rows, stored = positions[is_planned], self._loaded_columns()
        for name, values in columns.items():
            if name not in stored and shards.are_absent(values[is_planned]).all():
                continue
            if name not in stored:
                stored[name] = np.full(len(self._keys), shards.ABSENT)
            stored[name][rows] = values[is_planned]
        self.known[rows] = True

    def __iter__(self) -> Iterator[str]:
        """Yield the keys of the cells that have metrics."""
        for row in np.flatnonzero(self.known).tolist():
            yield self._keys[row : row + 1].tobytes().hex()

    def __len__(self) -> int:
        """Count the cells that have metrics."""
        return int(self.known.sum())

    def are_known(self, keys: Keys) -> Flags:
        """Flag the keys whose cells have metrics."""
        if keys is self._keys and self.n_keys == len(keys):
            return self.known.copy()
        rows, flags = self._rows_of_keys(keys)
        flags[flags] = self.known[rows[flags]]
        return flags

    def names(self) -> list[str]:
        """Names of all metrics that any cell of the plan has."""
        return [*self._loaded_columns()]

    def column(self, name: str) -> tuple[F8, Flags]:
        """Return a metric of each of the plan's keys, NaN where absent; and flags of presence."""
        values, known = (
            self._loaded_columns().get(name, np.full(len(self._keys), shards.ABSENT)),
            self.known,
        )
        if self.n_keys < len(self._keys):
            rows, _ = self._rows_of_keys(self._keys)
            values, known = values[rows], known[rows]
        is_present = ~shards.are_absent(values) & known
        return np.where(is_present, values, np.nan), is_present

    def _rows_of_keys(self, keys: Keys) -> tuple[Rows, Flags]:
        """Return the row of each key, and flags of the keys that belong to the plan."""
        if not len(self._keys):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
        positions = self._keys.searchsorted(keys, sorter=self._order)
        positions = self._order[np.minimum(positions, len(self._keys) - 1)]
        return positions, self._keys[positions] == keys

    def _loaded_columns(self) -> dict[str, F8]:
        """Return the columns; those of cached cells are read at the first call."""
        if self._load is not None:
            load, self._load = self._load, None
            for name, values in (
                load(self._keys[self._cached_rows]).items() if len(self._cached_rows) else ()
            ):
                self._columns[name] = np.full(len(self._keys), shards.ABSENT)
                self._columns[name][self._cached_rows] = values
        return self._columns


def _present(values: Iterable[tuple[str, np.float64]]) -> dict[str, float]:
    absent = shards.ABSENT.view(np.uint64)
    return {name: float(v) for name, v in values if v.view(np.uint64) != absent}
