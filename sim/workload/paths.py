"""Depths and longest paths of a workload's DAGs, for bounds, metrics and policies."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.errors import InputError
from sim.workload.columns import Columns


def order_stages(job_stage0: I8, edge0: I8, edge_child: I4) -> I8:
    """Sort stages topologically, job by job; raise InputError on a cycle."""
    from sim.workload.kernels import paths  # numba is loaded where a kernel runs

    order: I8 = paths.topological_order(job_stage0, edge0, edge_child)
    if len(order) and order.min() < 0:
        job = int(np.searchsorted(job_stage0, np.argmin(order), side="right")) - 1
        raise InputError(f"the stages of the job in row {job} form a cycle", rule="cycle")
    return order


def topological_order(columns: Columns) -> I8:
    """Return the stages of a workload in topological order, read-only; see `order_stages`."""
    order = order_stages(columns.job_stage0, columns.edge0, columns.edge_child)
    order.setflags(write=False)
    return order


def stage_depth(columns: Columns) -> I4:
    """Count the edges on the longest path from a source of its job to each stage."""
    from sim.workload.kernels import paths  # numba is loaded where a kernel runs

    return paths.depths(topological_order(columns), columns.edge0, columns.edge_child)


def stage_tail_s(columns: Columns, group: I8 | None = None, order: I8 | None = None) -> F8:
    """Find the longest path, task by task, from each stage to the end of its job."""
    from sim.workload.kernels import paths  # numba is loaded where a kernel runs

    if order is None:
        order = topological_order(columns)
    if group is None:
        group = np.zeros(len(order), dtype=np.int64)
    group.setflags(write=False)
    paired = bool(columns.edge_kind.any())
    return paths.tails(
        order,
        group,
        columns.edge0,
        columns.edge_child,
        columns.edge_kind,
        columns.stage_task0,
        columns.stage_max_s,
        columns.task_duration if paired else columns.stage_max_s,
    )


def task_tail_s(columns: Columns) -> F8:
    """Find the longest path from each task to the end of its job, the task included."""
    from sim.workload.kernels import paths  # numba is loaded where a kernel runs

    return paths.task_tails(
        topological_order(columns), columns.edge0, columns.edge_child, columns.edge_kind,
        columns.stage_task0, columns.task_duration,
    )  # fmt: skip


def critical_path_s(columns: Columns) -> F8:
    """Return the duration of each job alone on an unlimited cluster."""
    if len(columns.job_submit) == 0:
        return np.zeros(0)
    tail = stage_tail_s(columns)
    return np.maximum.reduceat(tail, columns.job_stage0[:-1])


def submit_span_s(columns: Columns) -> float:
    """Return the time from the first submission to the last, or the longest critical path if 0."""
    if len(columns.job_submit) == 0:
        return 1.0
    span = float(columns.job_submit[-1] - columns.job_submit[0])
    return span or float(critical_path_s(columns).max()) or 1.0
