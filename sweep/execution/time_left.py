"""Estimate of the time left, from the run times of similar cells and their number.

Cells that differ only in seed are similar; without one that finished, those that also differ in
capacity; else all cells. The estimate is the larger of two: all work over all slots, and the
longest cell. The first cell of a policy and trace may have compiled its kernels: it counts only
until another one is done, and the first of all says nothing yet. Time that passes without a result
counts as progress of the running cells, so the estimate falls as they run. Once it has fallen to
nothing they take longer than any similar cell, and there is no estimate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

MAX_KINDS = 50_000
"""Beyond, neighbouring seeds and capacities are one kind: the state stays small."""

Rows = np.ndarray[Any, np.dtype[np.int64]]
F8 = np.ndarray[Any, np.dtype[np.float64]]


class TimeLeft:
    """Counts of cells left and of their run times, by kind."""

    def __init__(
        self,
        rows: Rows,
        n_seeds: int = 1,
        n_capacities: int = 1,
        slots: Callable[[], int] = lambda: 1,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stride = max(n_seeds, 1 + len(rows) // MAX_KINDS)
        self._kinds, self._n_left = np.unique(rows // self._stride, return_counts=True)
        starts = self._kinds * self._stride // (n_seeds * n_capacities)
        self._wider = np.unique(starts, return_inverse=True)[1]  # policy and trace of each kind
        self._n = np.zeros(len(self._kinds))
        self._sum_s = np.zeros(len(self._kinds))
        self._first_row = np.full(
            int(self._wider.max(initial=-1)) + 1, -1
        )  # kind of the first cell
        self._first_cell_s = np.zeros(len(self._first_row))
        self._slots, self._now = slots, now
        self._first_s: float | None = None  # first result; the time before it was startup
        self._last_s = now()
        self._busy_s = 0.0  # run time of the cells that finished since
        self._overhead = 1.0  # time of the slots over that of their cells, while all slots had work

    def done(self, rows: Sequence[int], seconds: Sequence[float]) -> None:
        """Count finished cells; `seconds` of a failed one are 0."""
        self._last_s = self._now()
        kinds = np.searchsorted(self._kinds, np.asarray(rows, np.int64) // self._stride)
        kinds = np.minimum(kinds, len(self._kinds) - 1)
        elapsed_s = np.asarray(seconds)
        np.subtract.at(self._n_left, kinds, 1)
        np.maximum(self._n_left, 0, out=self._n_left)
        np.add.at(self._n, kinds, elapsed_s > 0)
        np.add.at(self._sum_s, kinds, elapsed_s)
        for kind, cell_s in zip(kinds.tolist(), elapsed_s.tolist(), strict=True):
            if cell_s > 0 and self._first_row[self._wider[kind]] < 0:
                self._first_row[self._wider[kind]] = kind
                self._first_cell_s[self._wider[kind]] = cell_s
        if self._first_s is None:
            self._first_s = self._last_s
            return
        self._busy_s += float(elapsed_s.sum())
        if self._n_left.sum() >= self._slots() and self._busy_s > 0:
            spent_s = (self._last_s - self._first_s) * self._slots()
            self._overhead = max(1.0, spent_s / self._busy_s)

    def seconds(self) -> float | None:
        """Estimate the seconds left; None where no run time is known yet."""
        n_left, slots = int(self._n_left.sum()), max(1, self._slots())
        if not n_left or self._n.sum() < 2:
            return None
        counts, sums_s = self._without_first()
        expected_s = np.full(len(self._kinds), sums_s.sum() / counts.sum())
        for group in (self._wider, np.arange(len(self._kinds))):
            n = np.bincount(group, counts)
            mean_s = np.bincount(group, sums_s) / np.maximum(n, 1)
            expected_s = np.where(n[group] > 0, mean_s[group], expected_s)
        idle_s = self._now() - self._last_s
        work_s = self._overhead * float(self._n_left @ expected_s) - min(n_left, slots) * idle_s
        longest_s = float(expected_s[self._n_left > 0].max()) - idle_s
        remaining_s = max(work_s / slots, longest_s)
        return remaining_s if remaining_s > 0 else None

    def _without_first(self) -> tuple[F8, F8]:
        """Return counts and run times by kind, without first cells of which another one is done."""
        n, sum_s = self._n.copy(), self._sum_s.copy()
        wider = np.flatnonzero(np.bincount(self._wider, self._n) > 1)
        kinds = self._first_row[wider]
        n[kinds] -= 1
        sum_s[kinds] -= self._first_cell_s[wider]
        return n, np.maximum(sum_s, 0.0)
