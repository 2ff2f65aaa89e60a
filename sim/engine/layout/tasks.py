"""Task columns of the plan in the order of turns, before the run and when jobs arrive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I1, I4
from sim.base.errors import PolicyError
from sim.engine.kernels.state import MAX_PRIORITY

if TYPE_CHECKING:
    from sim.engine.plan import Plan
    from sim.workload.columns import Columns


def uniform_stages(columns: Columns, plan: Plan, o2o: I1, may_batch: bool) -> I1:
    """Return 1 for stages whose tasks are uniform, so that they run in the order of rows, (G,).

    `sim.engine.batches.Recorder` puts their records into the order of turns. Not those of gangs,
    because the order of their ends decides which held slot is taken next. (1,) if all tasks are in
    order.
    """
    if plan.task_order is None and plan.task_prefers is None:
        return np.zeros(1, dtype=np.int8)
    if not may_batch or plan.task_priority is not None or plan.task_prefers is not None:
        return np.zeros(len(o2o), dtype=np.int8)
    is_like = (np.diff(columns.stage_run0) == 1) & (o2o == 0)
    in_gang = columns.job_min_tasks[columns.stage_job] > 0
    uniform: I1 = (is_like & ~in_gang).astype(np.int8)
    return uniform


def turns(columns: Columns, plan: Plan, uniform: I1) -> tuple[I4, I4]:
    """Return the task of each turn and the turn of each task: (T,) each; (1,) if in order."""
    if plan.task_order is None and plan.task_prefers is None:
        return np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int32)
    n_tasks = int(columns.stage_task0[-1])
    if plan.task_order is not None and np.shape(plan.task_order) != (n_tasks,):
        raise PolicyError(
            f"task_order has shape {np.shape(plan.task_order)}; expected {(n_tasks,)}"
        )
    return _turns(columns, plan, uniform, 0, len(columns.stage_job))


def by_turn(columns: Columns, plan: Plan, name: str) -> NDArray[Any]:
    """Return a task column of the plan, in the order of turns in each stage; (1,) if not set."""
    column, dtype = getattr(plan, f"task_{name}"), plan.TASK_COLUMNS[name]
    if column is None:
        return np.zeros(1, dtype=dtype)
    n_tasks = int(columns.stage_task0[-1])
    if np.shape(column) != (n_tasks,):
        raise _out_of_range(name, n_tasks)
    return _by_turn(columns, plan, name, 0, len(columns.stage_job))


def max_priority(priority: F8 | None) -> float:
    """Return the largest of the priorities, 0 if there is none."""
    return 0.0 if priority is None else float(np.max(priority, initial=0.0))


def update_tasks(
    columns: Columns, plan: Plan, rows: NDArray[Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write the plan's columns of the tasks `rows` to the kernel's `arrays`.

    Raises
    ------
    PolicyError
        If a job of these tasks has started one, or a value is out of its range.
    """
    stages = np.searchsorted(columns.stage_task0, rows, side="right") - 1
    for j in np.unique(columns.stage_job[stages]).tolist():
        if not np.isnan(arrays["out_job_start"][j]):
            raise PolicyError(
                f"the job in row {j} started at {arrays['out_job_start'][j]:g} s, and its tasks "
                "can't be ordered anew; call set_tasks before, at the job's arrival for instance"
            )
        s0, s1 = columns.job_stage0[j : j + 2].tolist()
        tasks = slice(*columns.stage_task0[[s0, s1]].tolist())
        if plan.task_order is not None:
            order, turn = _turns(columns, plan, arrays["w_stage_uniform"], s0, s1)
            _reorder_heaps(columns, turn, s0, s1, arrays)
            arrays["p_task_order"][tasks] = order
            arrays["p_task_turn"][tasks] = turn
        for name in ("priority", "prefers"):
            if getattr(plan, f"task_{name}") is not None:
                column = arrays[f"p_turn_{name}"][tasks] = _by_turn(columns, plan, name, s0, s1)
                if name == "priority":
                    bound = arrays["state_f"][MAX_PRIORITY]
                    arrays["state_f"][MAX_PRIORITY] = max(bound, max_priority(column))


def _turns(columns: Columns, plan: Plan, uniform: I1, s0: int, s1: int) -> tuple[I4, I4]:
    """Return the task of each turn and the turn of each task, of the stages from s0 to s1.

    Those of `uniform` stages are in the order of rows.
    """
    base, sizes = _bases(columns, s0, s1)
    in_order = np.arange(len(base)) - base
    order = in_order.astype(np.int32)
    if plan.task_order is not None:
        t0 = int(columns.stage_task0[s0])
        order = np.array(plan.task_order[t0 : t0 + len(base)], dtype=np.int32, order="C")
    row = base + order
    inside = (order >= 0) & (order < np.repeat(sizes, sizes))
    if not inside.all() or (np.bincount(row, minlength=len(base)) != 1).any():
        raise PolicyError("task_order must hold, for each stage, a permutation of its tasks")
    if uniform[s0:s1].all():
        return in_order.astype(np.int32), in_order.astype(np.int32)
    turn = np.empty(len(base), dtype=np.int32)
    turn[row] = in_order
    in_rows = np.repeat(uniform[s0:s1] != 0, sizes)
    order[in_rows] = turn[in_rows] = in_order[in_rows]
    return order, turn


def _by_turn(columns: Columns, plan: Plan, name: str, s0: int, s1: int) -> NDArray[Any]:
    """Return a task column of the stages from s0 to s1, in the order of their turns."""
    base, _ = _bases(columns, s0, s1)
    t0 = int(columns.stage_task0[s0])
    tasks = slice(t0, t0 + len(base))
    column: NDArray[Any] = getattr(plan, f"task_{name}")
    # a copy, because the kernel reorders it
    array: NDArray[Any] = np.array(column[tasks], dtype=plan.TASK_COLUMNS[name])
    if not (np.isfinite(array) & (array >= _low(name))).all():
        raise _out_of_range(name, int(columns.stage_task0[-1]))
    if plan.task_order is None:
        return array
    reordered: NDArray[Any] = array[base + plan.task_order[tasks]]
    return reordered


def _bases(columns: Columns, s0: int, s1: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the first task of each task's stage, counted from that of s0, and stages' sizes."""
    task0 = columns.stage_task0[s0 : s1 + 1]
    sizes = np.diff(task0)
    return np.repeat(task0[:-1] - task0[0], sizes), sizes


def _reorder_heaps(
    columns: Columns, turn: I4, s0: int, s1: int, arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Give the ready tasks of a job that has not started their new turns, in the stages' heaps."""
    heap, old_order = arrays["state_task_heap"], arrays["p_task_order"]
    n_ready = arrays["state_stage_waiting"]
    t0 = int(columns.stage_task0[s0])
    for g in (s0 + np.flatnonzero(arrays["w_stage_o2o"][s0:s1] & 1)).tolist():
        base, n = int(columns.stage_task0[g]), int(n_ready[g])
        index = old_order[base + heap[base : base + n]]
        heap[base : base + n] = np.sort(turn[base - t0 + index])  # sorted, it is a binary heap


def _low(name: str) -> int:
    return -1 if name == "prefers" else 0


def _out_of_range(name: str, n_tasks: int) -> PolicyError:
    return PolicyError(
        f"task_{name} must hold a finite number of at least {_low(name)} for each of the "
        f"{n_tasks} tasks"
    )
