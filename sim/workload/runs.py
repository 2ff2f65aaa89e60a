"""Runs of like tasks: contiguous rows of one stage with equal durations, as columns.

A stage of 10,000 tasks that last as long as each other is one run. Nothing here holds a number for
each task, except `Runs.expand` and `Runs.table`, which return some.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4, I8, Mask, frozen, offsets, ranges
from sim.workload.schema import COUNT


@dataclass(frozen=True, eq=False)
class Runs:
    """N runs of the T tasks of G stages, in the order of the tasks; read-only arrays.

    A run is as long as it can be: neighbours in one stage differ in duration.

    Attributes
    ----------
    stage0 : (G+1,) int64
        The runs of stage g are the rows ``stage0[g]`` to ``stage0[g+1]``.
    task0 : (N+1,) int64
        The tasks of run n are the rows ``task0[n]`` to ``task0[n+1]``.
    duration_s : (N,) float64
        Running time of each task of the run, s.
    """

    stage0: I8
    task0: I8
    duration_s: F8

    @property
    def nbytes(self) -> int:
        """Size of the arrays."""
        return self.stage0.nbytes + self.task0.nbytes + self.duration_s.nbytes

    @property
    def one_a_stage(self) -> bool:
        """True if all tasks of each stage have one duration."""
        return len(self.duration_s) == len(self.stage0) - 1

    @property
    def count(self) -> I8:
        """Number of tasks of each run, (N,); a new array at each call."""
        return np.diff(self.task0)

    @property
    def stage(self) -> I4:
        """Row of each run's stage, (N,); a new array at each call."""
        return np.repeat(np.arange(len(self.stage0) - 1, dtype=np.int32), np.diff(self.stage0))

    def expand(self, stages: I8 | slice) -> F8:
        """Return the durations of the tasks of some stages, stage by stage."""
        first, last = self.stage0[:-1][stages], self.stage0[1:][stages]
        rows = ranges(first, last)
        return np.repeat(self.duration_s[rows], self.task0[rows + 1] - self.task0[rows])

    def run_rows(self, tasks: I4 | I8) -> I8:
        """Return the run of each of some tasks."""
        return np.searchsorted(self.task0, tasks, side="right") - 1

    def with_durations(self, duration_s: F8) -> Runs:
        """Return the same tasks with other durations, (N,) s; neighbours that are alike join."""
        is_first = _is_first(duration_s, self.stage0)
        first = np.flatnonzero(is_first)
        if len(first) == len(is_first):
            return Runs(self.stage0, self.task0, duration_s).freeze()
        task0 = self.task0[np.append(first, len(is_first))]
        return Runs(np.searchsorted(first, self.stage0), task0, duration_s[first]).freeze()

    def take(self, stages: I8) -> Runs:
        """Return the runs of some stages, which are numbered anew."""
        first, last = self.stage0[stages], self.stage0[stages + 1]
        rows = ranges(first, last)
        count = self.task0[rows + 1] - self.task0[rows]
        return Runs(offsets(last - first), offsets(count), self.duration_s[rows])

    def table(self, begin: int = 0, end: int | None = None) -> pa.Table:
        """Return the rows `begin` to `end` as a table of tasks with a column ``count``."""
        last = len(self.duration_s)
        end = last if end is None else min(end, last)
        stage = np.searchsorted(self.stage0, np.arange(begin, end), side="right") - 1
        return pa.table(
            {
                "stage": stage.astype(np.int32),
                "duration_s": self.duration_s[begin:end],
                COUNT.name: np.diff(self.task0[begin : end + 1]),
            }
        )

    def freeze(self) -> Runs:
        """Make the arrays read-only, and return the runs."""
        for array in (self.stage0, self.task0, self.duration_s):
            array.setflags(write=False)
        return self


def one_a_stage(duration_s: F8, task0: I8) -> Runs:
    """Return the runs of stages that have one duration each, (G,) s; `task0` is (G+1,)."""
    return Runs(np.arange(len(task0)), task0, duration_s).freeze()


def find_runs(duration_s: F8, task0: I8) -> Runs:
    """Find the runs of tasks with the durations, (T,) s, of stages that begin at `task0`, (G+1,).

    If no two neighbours are alike, the arrays are the arguments, and the numbers of the tasks.
    """
    return Runs(task0, frozen(np.arange(len(duration_s) + 1)), duration_s).with_durations(
        duration_s
    )


def _is_first(duration_s: F8, stage0: I8) -> Mask:
    """Mark the rows of stages that begin at `stage0` whose duration is not that of the row above.

    Durations are compared bit by bit.
    """
    is_first = np.ones(len(duration_s), dtype=bool)
    bits = duration_s.view(np.int64)
    np.not_equal(bits[1:], bits[:-1], out=is_first[1:])
    is_first[stage0[:-1][stage0[:-1] < len(is_first)]] = True
    return is_first
