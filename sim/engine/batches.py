"""Records of batches: like tasks that ran at the same time on one machine, as one row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I4, ranges
from sim.engine.kernels.state import N_BATCHES

TASK_COLUMNS = {"start": np.nan, "finish": np.nan, "machine": -1}
"""Columns of a task's record, and their values for a task that never started."""
_COLUMNS = ("task", "count", *TASK_COLUMNS)


@dataclass(frozen=True, eq=False)
class Batches:
    """Batches of tasks in the order of their starts, (N,) each.

    Attributes
    ----------
    task : int32
        The first of its tasks, which are contiguous rows of one stage.
    count : int32
        Number of its tasks.
    start, finish : float64
        When they started and ended, s.
    machine : int32
        Where they ran.
    """

    task: I4
    count: I4
    start: F8
    finish: F8
    machine: I4

    def by_task(self, n_tasks: int) -> dict[str, NDArray[Any]]:
        """Return ``task_start``, ``task_finish`` and ``task_machine``, a row a task, (T,) each.

        NaN and -1 for tasks that never started.
        """
        order = self._in_task_order(n_tasks)
        first, count = self.task[order].astype(np.int64), self.count[order]
        columns = {}
        for name, absent in TASK_COLUMNS.items():
            column = np.repeat(getattr(self, name)[order], count)
            if len(column) < n_tasks:
                started, column = column, np.full(n_tasks, absent, dtype=column.dtype)
                column[ranges(first, first + count)] = started
            columns[f"task_{name}"] = column
        return columns

    def _in_task_order(self, n_tasks: int) -> NDArray[Any]:
        """Return the batches in the order of their tasks, (N,): this is faster than a sort."""
        row = np.full(n_tasks, -1, dtype=np.int32)
        row[self.task] = np.arange(len(self.task), dtype=np.int32)
        return row[row >= 0]


class Recorder:
    """The batches that the kernel has recorded, taken from its arrays whenever they are full."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._parts: list[list[NDArray[Any]]] = []

    def empty(self) -> None:
        """Take what the kernel has recorded since the last call."""
        n = self._arrays["state_i"].item(N_BATCHES)
        self._parts.append([self._arrays[f"out_batch_{name}"][:n].copy() for name in _COLUMNS])
        self._arrays["state_i"][N_BATCHES] = 0

    def batches(self) -> Batches:
        """Return all batches."""
        self.empty()
        return Batches(*(np.concatenate(part) for part in zip(*self._parts, strict=True)))
