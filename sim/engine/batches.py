"""Records of tasks, and of batches: like tasks that ran at the same time, as one row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I4, I8, ranges
from sim.engine.kernels import ordering
from sim.engine.kernels.state import N_BATCHES

_COLUMNS = ("task", "count", "start", "finish", "machine")
MAX_SCATTERED = 2**24
"""Largest number of tasks for which batches are put in order by an array of that length."""


@dataclass(frozen=True, eq=False)
class TaskRecords:
    """Start, end and machine of tasks: of each, or of batches of like tasks.

    The tasks of a batch are rows of one stage, one after the other, that ran at the same time.

    Attributes
    ----------
    start_s, finish_s : (N,) float64
        Times of each task or batch, s; NaN for never.
    machine : (N,) int32
        The machine it ran on; -1 for none.
    task, count : (N,) int32 or None
        First task of each batch, ascending, and number of its tasks; None if all T tasks have a row
        of their own. Tasks without a batch never ran.
    """

    start_s: F8
    finish_s: F8
    machine: I4
    task: I4 | None = None
    count: I4 | None = None

    def rows(self, first: int, last: int) -> slice:
        """Return the rows of the tasks `first` to `last`, of whole stages."""
        if self.task is None:
            return slice(first, last)
        ends = np.array([first, last], self.task.dtype)  # of another type `task` would be copied
        return slice(*np.searchsorted(self.task, ends).tolist())

    def expand(self, values: NDArray[Any], missing: float, first: int, last: int) -> NDArray[Any]:
        """Return a value for each of the tasks `first` to `last`, of whole stages.

        `values` has one for each of their rows; `missing` is that of tasks that never ran.
        """
        if self.task is None or self.count is None:
            return values
        rows = self.rows(first, last)
        count = self.count[rows]
        if count.sum(dtype=np.int64) == last - first:
            return np.repeat(values, count)
        begin = self.task[rows].astype(np.int64) - first
        expanded = np.full(last - first, missing, values.dtype)
        expanded[ranges(begin, begin + count)] = np.repeat(values, count)
        return expanded


class Recorder:
    """The batches that the kernel has recorded, taken from its arrays whenever they are full."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in _COLUMNS}

    def empty(self) -> None:
        """Take what the kernel has recorded since the last call."""
        n = self._arrays["state_i"].item(N_BATCHES)
        for name, parts in self._parts.items():
            column = self._arrays[f"out_batch_{name}"][:n]
            parts.append(column.copy() if column.any() else np.zeros(n, column.dtype))
        self._arrays["state_i"][N_BATCHES] = 0

    def records(self, n_tasks: int, batches: bool) -> TaskRecords:
        """Return the records of all batches, or of each task if the kernel knows no batches."""
        if not batches:
            return TaskRecords(*(self._arrays[f"out_task_{name}"] for name in _COLUMNS[2:]))
        self.empty()
        order = order_by_task(self._take("task", keep=True), n_tasks)
        columns = {f"{name}_s": self._take(name)[order] for name in ("start", "finish")}
        machine = self._take("machine")
        if machine.any():
            machine = machine[order]
        more = {name: self._take(name)[order] for name in ("task", "count")}
        return TaskRecords(**columns, machine=machine, **more)

    def _take(self, name: str, keep: bool = False) -> NDArray[Any]:
        """Return a column of all batches, and forget it unless `keep`."""
        parts = self._parts[name]
        if not keep:
            self._parts[name] = []
        if name == "machine" and not any(part.any() for part in parts):
            return np.zeros(sum(len(part) for part in parts), np.int32)  # touches no memory
        return np.concatenate(parts)


def order_by_task(task: I4, n_tasks: int) -> I8:
    """Return the order of batches by their first task, (N,)."""
    if n_tasks <= MAX_SCATTERED:
        row = np.full(n_tasks, -1, dtype=np.int32)
        row[task] = np.arange(len(task), dtype=np.int32)
        return row[row >= 0].astype(np.int64)
    shift = max(0, int(n_tasks // max(len(task), 1)).bit_length() - 1)
    return ordering.order_by_task(task, n_tasks, shift)
