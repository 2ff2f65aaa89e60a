"""Depths and longest paths of a workload's DAGs, for bounds, metrics and policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import InputError

if TYPE_CHECKING:
    from sim.workload.workload import Columns

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]


def topological_order(columns: Columns) -> I8:
    """Order the stages so that parents come before children, job by job.

    Parameters
    ----------
    columns : Columns
        Of a workload with G stages.

    Returns
    -------
    (G,) int64
        Rows of stages; job j's are at ``job_stage0[j]:job_stage0[j + 1]``.

    Raises
    ------
    InputError
        If the edges of a job form a cycle, naming the job's row.
    """
    from sim.workload.kernels import paths

    order = paths.topological_order(columns.job_stage0, columns.edge0, columns.edge_child)
    if len(order) and order.min() < 0:
        place = int(np.argmin(order))
        job = int(np.searchsorted(columns.job_stage0, place, side="right")) - 1
        raise InputError(f"the stages of the job in row {job} form a cycle", rule="cycle")
    order.setflags(write=False)
    return order


def stage_depth(columns: Columns) -> NDArray[np.int32]:
    """Count the edges on the longest path from a source of its job to each stage.

    Parameters
    ----------
    columns : Columns
        Of a workload with G stages.

    Returns
    -------
    (G,) int32
        0 for a stage without parents.
    """
    from sim.workload.kernels import paths

    return paths.depths(topological_order(columns), columns.edge0, columns.edge_child)


def stage_tail_s(columns: Columns, group: I8 | None = None, order: I8 | None = None) -> F8:
    """Find the longest path, task by task, from each stage to the end of its job.

    Parameters
    ----------
    columns : Columns
        Of a workload with G stages.
    group : (G,) int64, optional
        Edges between stages of different groups do not count; left out, all edges do.
    order : (G,) int64, optional
        A topological order, where the caller has one.

    Returns
    -------
    (G,) float64
        The largest sum of task durations on a path that begins in the stage, s.
    """
    from sim.workload.kernels import paths

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


def critical_path_s(columns: Columns) -> F8:
    """Measure the time each job would take alone on an unlimited cluster.

    Parameters
    ----------
    columns : Columns
        Of a workload with J jobs.

    Returns
    -------
    (J,) float64
        Length of the job's longest path of tasks, s (CPLen of the DAGPS paper, §6, Fig. 9, 1a).
    """
    if len(columns.job_submit) == 0:
        return np.zeros(0)
    tail = stage_tail_s(columns)
    longest: F8 = np.maximum.reduceat(tail, columns.job_stage0[:-1])
    return longest
