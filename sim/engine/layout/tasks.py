"""Tasks, stages and jobs as the kernel has them: turns, who waits for whom, and work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import PolicyError

if TYPE_CHECKING:
    from sim.engine.plan import Plan
    from sim.workload.columns import Columns

F8 = NDArray[np.float64]
I4 = NDArray[np.int32]


def weighted_work(columns: Columns, plan: Plan) -> F8:
    """Return the work of each job that is left at its beginning, weighted by stage: (J,)."""
    stage_work, seen_s = columns.stage_work, plan.stages["seen_s"]
    if not np.isnan(seen_s).all():
        stage_work = np.diff(columns.stage_task0) * seen_s
    weighted = stage_work * plan.stages["weight"]
    for name, column in (("weight", plan.stages["weight"]), ("seen_s", stage_work)):
        if not np.isfinite(column).all():
            raise PolicyError(f"stage column {name!r} must be finite, for all stages or for none")
    work: F8 = np.add.reduceat(weighted, columns.job_stage0[:-1])
    return work


def turns(columns: Columns, plan: Plan) -> tuple[I4, I4]:
    """Return the task of each turn, and the turn of each task: (T,) each; (1,) if in order."""
    order = plan.task_order
    if order is None and plan.task_prefers is None:
        return np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int32)
    sizes = np.diff(columns.stage_task0)
    base = np.repeat(columns.stage_task0[:-1], sizes)
    own = np.arange(len(base)) - base
    order = np.array(own if order is None else order, dtype=np.int32, order="C")
    if order.shape != base.shape:
        raise PolicyError(f"task_order has shape {order.shape}; wanted {base.shape}")
    at = base + order
    inside = (order >= 0) & (order < np.repeat(sizes, sizes))
    if not inside.all() or (np.bincount(at, minlength=len(base)) != 1).any():
        raise PolicyError("task_order must hold, for each stage, a permutation of its tasks")
    turn = np.empty(len(base), dtype=np.int32)
    turn[at] = own
    return order, turn


def per_turn(columns: Columns, plan: Plan, name: str, dtype: str) -> NDArray[Any]:
    """Return the column `name` of the plan's tasks, in the order of their turns in each stage."""
    column, sizes = getattr(plan, name), np.diff(columns.stage_task0)
    if column is None:
        return np.zeros(1, dtype=dtype)
    array: NDArray[Any] = np.array(column, dtype=dtype, order="C")  # the kernel reorders it
    low, n_tasks = -1 if name == "task_prefers" else 0, int(sizes.sum())
    if array.shape != (n_tasks,) or not (np.isfinite(array) & (array >= low)).all():
        raise PolicyError(
            f"{name} must hold a finite number of at least {low} for each of the {n_tasks} tasks"
        )
    if plan.task_order is None:
        return array
    by_turn: NDArray[Any] = array[np.repeat(columns.stage_task0[:-1], sizes) + plan.task_order]
    return by_turn


def may_be_remote(columns: Columns, n_machines: int) -> bool:
    """Tell whether any task may take longer for running where its input does not lie."""
    slower = (columns.stage_home >= 0) & (columns.stage_remote_factor > 1)
    return n_machines > 1 and bool(slower.any())


def o2o_bits(columns: Columns, restarts: bool) -> NDArray[np.int8]:
    """Return bit 0 where ready tasks are a heap, bit 1 where children are one-to-one: (G,)."""
    bits = ((columns.stage_n_o2o > 0) | restarts).astype(np.int8)
    parents = np.repeat(np.arange(len(bits)), np.diff(columns.edge0))
    bits[parents[columns.edge_kind == 1]] |= 2
    return bits


def missing(columns: Columns, n_tasks: int) -> I4:
    """Count for each task how many one-to-one parents' tasks it waits for."""
    one = columns.edge_kind == 1
    parent = np.repeat(np.arange(len(columns.stage_job)), np.diff(columns.edge0))[one]
    child = columns.edge_child[one]
    sizes = np.diff(columns.stage_task0)
    pairs = np.minimum(sizes[parent], sizes[child])
    first = np.repeat(columns.stage_task0[child], pairs)
    within = np.arange(pairs.sum()) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    return np.bincount(first + within, minlength=n_tasks).astype(np.int32)


def inputs_of(columns: Columns) -> dict[str, NDArray[Any]]:
    """Return the fields about what jobs make for each other, of one entry where no job looks."""
    looks = bool(columns.job_input_mode.any())
    n = len(columns.job_submit) if looks else 1
    readers = columns.input_reader if looks else np.zeros(0, dtype=np.int32)
    return {
        "w_job_mode": columns.job_input_mode[:n],
        "w_job_poll_lag": columns.job_poll_lag[:n],
        "w_input0": columns.input0 if looks else np.zeros(1, dtype=np.int64),
        "w_input_reader": readers,
        "state_job_missing": np.bincount(readers, minlength=n).astype(np.int32),
        "state_job_due": np.zeros(n),
        "state_due_heap": np.zeros(n, dtype=np.int32),
        "state_failing": np.zeros(n, dtype=np.int32),
    }
