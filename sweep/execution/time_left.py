"""Time left, from how long like cells took and how many of each kind there are still to run.

Cells are alike if only their seeds differ, else if their capacities do too, else all are. What is
left is the larger of two: all work over all slots, and the longest cell. Time that passes without
a result is time that the cells which run have had, so that the estimate falls as they run. Once it
has fallen to nothing they take longer than any like them, and there is none.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

MOST_KINDS = 50_000
"""Beyond, seeds and capacities next to each other are one kind: what is kept stays small."""

Rows = np.ndarray[Any, np.dtype[np.int64]]


class TimeLeft:
    """Counts what is left by kind, and how long each took."""

    def __init__(
        self,
        rows: Rows,
        n_seeds: int = 1,
        n_capacities: int = 1,
        slots: Callable[[], int] = lambda: 1,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stride = max(n_seeds, 1 + len(rows) // MOST_KINDS)
        self._kinds, self._left = np.unique(rows // self._stride, return_counts=True)
        starts = self._kinds * self._stride // (n_seeds * n_capacities)
        self._wider = np.unique(starts, return_inverse=True)[1]  # policy and trace of each kind
        self._n = np.zeros(len(self._kinds))
        self._seconds = np.zeros(len(self._kinds))
        self._slots, self._now = slots, now
        self._first_s: float | None = None  # what came before the first cell was starting
        self._last_s = now()
        self._busy_s = 0.0  # what cells that came since took
        self._overhead = 1.0  # slots' time over cells' own, while all slots had work

    def done(self, rows: Sequence[int], seconds: Sequence[float]) -> None:
        """Count cells that are done; `seconds` of one that failed are 0."""
        self._last_s = self._now()
        kind = np.searchsorted(self._kinds, np.asarray(rows, np.int64) // self._stride)
        kind = np.minimum(kind, len(self._kinds) - 1)
        took = np.asarray(seconds)
        np.subtract.at(self._left, kind, 1)
        np.maximum(self._left, 0, out=self._left)
        np.add.at(self._n, kind, took > 0)
        np.add.at(self._seconds, kind, took)
        if self._first_s is None:
            self._first_s = self._last_s
            return
        self._busy_s += float(took.sum())
        if self._left.sum() >= self._slots() and self._busy_s > 0:
            spent_s = (self._last_s - self._first_s) * self._slots()
            self._overhead = max(1.0, spent_s / self._busy_s)

    def seconds(self) -> float | None:
        """Estimate how many are left; None where what was seen does not tell."""
        n_left, slots = int(self._left.sum()), max(1, self._slots())
        if not n_left or not self._n.any():
            return None
        expected = np.full(len(self._kinds), self._seconds.sum() / self._n.sum())
        for group in (self._wider, np.arange(len(self._kinds))):
            n = np.bincount(group, self._n)
            mean = np.bincount(group, self._seconds) / np.maximum(n, 1)
            expected = np.where(n[group] > 0, mean[group], expected)
        had_s = self._now() - self._last_s
        work_s = self._overhead * float(self._left @ expected) - min(n_left, slots) * had_s
        longest_s = float(expected[self._left > 0].max()) - had_s
        left_s = max(work_s / slots, longest_s)
        return left_s if left_s > 0 else None
