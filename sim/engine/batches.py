"""Records of tasks, and of batches: like tasks that ran at the same time, as one row.

And of stopped attempts, which are taken from the kernel in the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I1, I4, ranges
from sim.base.memory import check_memory
from sim.engine.stops import StoppedAttempts

if TYPE_CHECKING:
    from sim.workload.columns import Columns

_COLUMNS = ("task", "count", "start", "machine")
_STOP_COLUMNS = ("task", "machine", "start", "time", "reason", "kept")
PIECE, GROWTH = 2**20, 2**22
ORDER_BYTES = 12
"""Memory to put batches in order, for each: its place, and one column again."""
MAX_SCATTERED = 2**24
"""Largest number of tasks for which batches are put in order by an array of that length."""


@dataclass(frozen=True, eq=False)
class TaskRecords:
    """Start, end and machine of tasks: of each, or of batches of like tasks.

    The tasks of a batch are rows of one stage, one after the other, that ran at the same time.

    Attributes
    ----------
    start_s : (N,) float64
        Start of each task or batch, s; NaN for never.
    machine : (N,) int32
        The machine it ran on; -1 for none.
    end_s : (N,) float64 or None
        Its end, s; None if each batch ends when its run's duration is over, at speed 1.
    task : (N,) int32 or None
        First task of each batch, ascending; None if all T tasks have a row of their own. Tasks
        without a batch never ran.
    size : (N,) int32 or None
        Number of tasks of each batch; None if each reaches to the next.
    columns : sim.workload.columns.Columns or None
        Columns of the workload, where there are batches.
    """

    start_s: F8
    machine: I4
    end_s: F8 | None = None
    task: I4 | None = None
    size: I4 | None = None
    columns: Columns | None = None

    @cached_property
    def finish_s(self) -> F8:
        """End of each task or batch, (N,) s; NaN for never."""
        return self.times(slice(0, len(self.start_s)))[1]

    @cached_property
    def count(self) -> I4 | None:
        """Number of tasks of each batch, (N,); None if each row is a task."""
        return None if self.task is None else self.counts(slice(0, len(self.start_s)))

    def rows(self, first: int, last: int) -> slice:
        """Return the rows of the tasks `first` to `last`, of whole stages."""
        if self.task is None:
            return slice(first, last)
        ends = np.array([first, last], self.task.dtype)  # of another type `task` would be copied
        return slice(*np.searchsorted(self.task, ends).tolist())

    def times(self, rows: slice) -> tuple[F8, F8]:
        """Return start and end of some rows, s."""
        start_s = self.start_s[rows]
        if self.end_s is not None:
            return start_s, self.end_s[rows]
        return start_s, start_s + self.durations(rows)

    def durations(self, rows: slice) -> F8:
        """Return the duration of the tasks of some batches in the workload, s."""
        assert self.task is not None
        assert self.columns is not None
        if rows.start == rows.stop:
            return np.zeros(0)
        task, run_task0 = self.task[rows], self.columns.run_task0
        first, last = np.searchsorted(run_task0, [task[0], task[-1]], side="right").tolist()
        begins = run_task0[first:last].astype(task.dtype)
        is_each = int(task[-1]) - int(task[0]) + 1 == len(task)  # a batch for each task
        cuts = begins - task[0] if is_each else np.searchsorted(task, begins)
        n_batches = np.diff(cuts, prepend=0, append=len(task))
        return np.repeat(self.columns.run_duration[first - 1 : last], n_batches)

    def counts(self, rows: slice) -> I4:
        """Return the numbers of tasks of some batches."""
        assert self.task is not None
        assert self.columns is not None
        if self.size is not None:
            return self.size[rows]
        if rows.stop < len(self.task):
            return np.diff(self.task[rows.start : rows.stop + 1])
        end = np.array([self.columns.n_tasks], self.task.dtype)
        return np.diff(self.task[rows], append=end)

    def expand(self, values: NDArray[Any], missing: float, first: int, last: int) -> NDArray[Any]:
        """Return a value for each of the tasks `first` to `last`, of whole stages.

        `values` has one for each of their rows; `missing` is that of tasks that never ran.
        """
        if self.task is None:
            return values
        rows = self.rows(first, last)
        count = self.counts(rows)
        if count.sum(dtype=np.int64) == last - first:
            return np.repeat(values, count)
        begin = self.task[rows].astype(np.int64) - first
        expanded = np.full(last - first, missing, values.dtype)
        expanded[ranges(begin, begin + count)] = np.repeat(values, count)
        return expanded


class _Records:
    """Records of one kind, taken from the kernel's arrays whenever these are full."""

    def __init__(
        self,
        arrays: Mapping[str, NDArray[Any]],
        kind: str,
        names: Iterable[str],
        words: str,
        narrow: Collection[str] = (),
    ) -> None:
        self._taken_from = {name: arrays[f"out_{kind}_{name}"] for name in names}
        self._words = words
        self.n = 0
        self.columns = {
            name: np.empty(0, np.int16 if name in narrow else a.dtype)
            for name, a in self._taken_from.items()
        }

    def take(self, n: int) -> None:
        """Take the first `n` rows of the kernel's arrays."""
        end = self.n + n
        if self.columns and end > len(next(iter(self.columns.values()))):
            self._grow(end + min(GROWTH, self.n // 4))
        for name, column in self.columns.items():
            column[self.n : end] = self._taken_from[name][:n]
        self.n = end

    def _grow(self, n: int) -> None:
        """Make room for `n` rows, in place: large blocks are moved by their pages."""
        row_bytes = sum(column.itemsize for column in self.columns.values())
        more = row_bytes * (n - len(next(iter(self.columns.values()))))
        check_memory(
            more + ORDER_BYTES * n,
            f"records of {n:,} {self._words}",
            "take a larger cluster, where more tasks start at once, or fewer jobs (trace.end_s); "
            'from Python, record="jobs" keeps none',
        )
        for column in self.columns.values():
            column.resize(n, refcheck=False)

    def finish(self) -> None:
        """Let go of the kernel's arrays."""
        self._taken_from = {}


class Recorder:
    """The batches and the stopped attempts that the kernel has recorded.

    Of batches these are not kept: ends, which follow from starts and machines, the one machine of a
    pool of slots, and numbers of tasks if all tasks run: then each batch reaches to the next.
    Machines take two bytes if that is enough.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]], features: Collection[str]) -> None:
        self._arrays = arrays
        self._features = features
        self._uniform = arrays["w_stage_uniform"]
        self._speed, self._kind = arrays["w_stage_speed"], arrays["c_mach_kind"]
        self._crossing = arrays["state_job_crossing"]
        left_out = {"machine"} if "POOL" in features else set()
        if not {"INPUTS", "CAPS"} & set(features):  # else jobs may fail, and their tasks never run
            left_out.add("count")
        names = [name for name in _COLUMNS if "BATCHES" in features and name not in left_out]
        few_machines = len(arrays["state_mach_free"]) <= np.iinfo(np.int16).max
        narrow = {"machine"} if few_machines else ()
        self._batches = _Records(arrays, "batch", names, "batches of like tasks", narrow)
        self._stops = _Records(arrays, "stop", _STOP_COLUMNS, "stopped attempts")

    def empty(self) -> None:
        """Take what the kernel has recorded since the last call."""
        from sim.engine.kernels.state import N_BATCHES, N_STOPS, N_TAKEN  # loads numba

        counts = self._arrays["state_i"]
        self._batches.take(counts.item(N_BATCHES) - counts.item(N_TAKEN))
        counts[N_TAKEN] = counts.item(N_BATCHES)
        self._stops.take(counts.item(N_STOPS))
        counts[N_STOPS] = 0

    def finish(self) -> None:
        """Take the last records and let go of the kernel's state."""
        self.empty()
        self._batches.finish()
        self._stops.finish()
        by_task = [f"out_task_{name}" for name in ("start", "machine", "finish")]
        names = () if "BATCHES" in self._features else by_task
        self._arrays = {name: self._arrays[name] for name in names}

    def stopped(self) -> StoppedAttempts:
        """Return the stopped attempts, by end and task."""
        n, columns = self._stops.n, self._stops.columns
        rows = np.lexsort((columns["task"][:n], columns["time"][:n]))
        return StoppedAttempts(*(columns[name][rows] for name in _STOP_COLUMNS))

    def records(self, columns: Columns, task_order: I4 | None) -> TaskRecords:
        """Return the records of all batches, or of each task.

        Of each task if the kernel knows no batches, or if there is an order of tasks: those of
        uniform stages took the turns of that order.
        """
        if "BATCHES" not in self._features:
            start_s, machine, end_s = (
                self._arrays[f"out_task_{name}"] for name in ("start", "machine", "finish")
            )
            return TaskRecords(start_s, machine, end_s)
        n, batches = self._batches.n, self._batches.columns
        if "count" in batches and batches["count"][:n].sum(dtype=np.int64) == columns.n_tasks:
            del batches["count"]
        task = batches.pop("task")[:n]
        order = order_by_task(task, columns.n_tasks)
        task = _gathered(task, order)
        by_task = {name: _gathered(batches.pop(name)[:n], order) for name in [*batches]}
        all_batches = TaskRecords(
            by_task["start"],
            by_task.get("machine", np.zeros(n, np.int32)).astype(np.int32, copy=False),
            None,
            task,
            by_task.get("count"),
            columns,
        )
        if "CLASS_SPEEDS" in self._features:
            stage = columns.stages_of(task)
            speed = self._speed[stage, self._kind[all_batches.machine]]
            if "TOPOLOGY" in self._features:  # no gang starts twice where like tasks move as one
                speed = speed / self._crossing[columns.stage_job[stage]]
            duration_s = all_batches.durations(slice(0, n))
            all_batches = replace(all_batches, end_s=all_batches.start_s + duration_s / speed)
        if task_order is None or not self._uniform.any():
            return all_batches
        return _in_turns(all_batches, columns, np.asarray(task_order), self._uniform)


def _in_turns(batches: TaskRecords, columns: Columns, task_order: I4, uniform: I1) -> TaskRecords:
    """Return the records of each task, those of `uniform` stages in the order of their turns."""
    sizes = np.diff(columns.stage_task0)
    row = np.arange(columns.n_tasks, dtype=np.int32)
    first = np.repeat(columns.stage_task0[:-1].astype(np.int32), sizes)
    np.copyto(row, first + task_order, where=np.repeat(uniform != 0, sizes))

    def by_row(values: NDArray[Any], missing: float) -> NDArray[Any]:
        column = np.empty(len(row), values.dtype)
        column[row] = batches.expand(values, missing, 0, len(row))
        return column

    start_s, finish_s = (by_row(values, np.nan) for values in (batches.start_s, batches.finish_s))
    return TaskRecords(start_s, by_row(batches.machine, -1), finish_s)


def _gathered(column: NDArray[Any], order: I4) -> NDArray[Any]:
    """Return the column in that order, a piece at a time: an index of 32 bits is copied."""
    out = np.empty_like(column)
    for begin in range(0, len(order), PIECE):
        np.take(column, order[begin : begin + PIECE], out=out[begin : begin + PIECE], mode="clip")
    return out


def order_by_task(task: I4, n_tasks: int) -> I4:
    """Return the order of batches by their first task, (N,).

    Those of a stage start in the order of its tasks: a stable sort merges few runs, but of nearly
    as many batches as tasks.
    """
    if n_tasks <= MAX_SCATTERED and 2 * len(task) <= n_tasks:
        return np.argsort(task, kind="stable").astype(np.int32)
    if n_tasks <= MAX_SCATTERED:
        row = np.full(n_tasks, -1, dtype=np.int32)
        row[task] = np.arange(len(task), dtype=np.int32)
        return row[row >= 0]
    shift = int(n_tasks // max(len(task), 1)).bit_length() + 1
    from sim.engine.kernels import ordering  # compiled: slow to import

    return ordering.order_by_task(task, n_tasks, shift)
