"""Lower bounds on completion times: no schedule, of any policy, can beat them.

The formulas are those of Grandl et al., *Do the hard stuff first* (DAGPS, MSR-TR-2016-19), §6,
Fig. 9, made valid for one-to-one edges as well, and a tighter one (`sim.bounds.tight`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.bounds.at_fastest import at_fastest
from sim.bounds.pace import Pace
from sim.bounds.tight import tight_part_bounds
from sim.cluster.sizing import queue_shares, stage_demands
from sim.workload.paths import stage_tail_s, topological_order
from sim.workload.schema import INPUT_MODES

if TYPE_CHECKING:
    import pyarrow as pa

    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns
    from sim.workload.workload import Workload


NAMES = ("cp_len", "twork", "mod_cp", "new_lb")
"""Bounds of the paper, in its order."""


def lower_bound(workload: Workload, cluster: Cluster) -> pa.Table:
    """Bound from below the time between submission and completion, job by job.

    A job has the whole cluster for these bounds, or, where queues are hard, its queue's share of
    the whole (not of a fungible resource, which a policy may overbook); never a weighted share.
    With C that capacity, over a job's paths p, stages s, tasks t:

    - ``cp_len``: the longest path of tasks (1a), task by task over one-to-one edges;
    - ``twork``: max over resources r of Σ duration × demand_r / C_r (1b);
    - ``mod_cp``: max over p and s on p of max(twork_s, longest task of s) + Σ over the other
      stages of p of their shortest task (1c); a one-to-one edge between stages of different sizes
      is followed only as far as that stays a bound (`sim.bounds.kernels.bounds.whole_stage_paths`);
    - ``new_lb``: Σ over the job's totally ordered parts of the greatest of the three (1d). Parts
      are cut wherever every task after the cut waits for every task before it;
    - ``tight_lb``: the same sum, with a fourth bound for each part, by heads, tails and packing
      (`sim.bounds.tight`).

    A duration is that on the fastest class of machines that the task may run on, and of an elastic
    job that at its greatest width; its work is the least at any width. In periods in
    which the cluster runs faster than 1 these hold for work, and the bounds are the
    times in which that much can be done (`sim.bounds.pace`).

    The bound of a job with a task that fits no machine is meaningless: it has no schedule.

    Parameters
    ----------
    workload : Workload
        Of J jobs.
    cluster : Cluster
        The cluster that they run on.

    Returns
    -------
    pyarrow.Table
        A row a job: ``job_id`` and the five bounds, float64, s. Each of ``new_lb`` and
        ``tight_lb`` is never below those before it.

    Raises
    ------
    InputError
        If the cluster lacks a resource that the workload demands, or a hard queue has no share.
    """
    import pyarrow as pa

    bounds = bound_arrays(workload.columns, cluster, tight=True)
    return pa.table({"job_id": workload.jobs["job_id"], **bounds})


def bound_arrays(columns: Columns, cluster: Cluster, tight: bool = False) -> dict[str, F8]:
    """Compute the bounds of `lower_bound` as arrays, (J,) s each.

    ``tight_lb`` (only if `tight`) takes longer than the others together.
    """
    from sim.bounds.kernels import bounds

    n_jobs = len(columns.job_submit)
    if n_jobs == 0:
        return {name: np.zeros(0) for name in (*NAMES, *(("tight_lb",) if tight else ()))}
    columns = at_fastest(columns, cluster)
    order = topological_order(columns)
    load = stage_load_s(columns, cluster)
    whole = np.maximum(load.max(axis=1), columns.stage_max_s)
    whole.setflags(write=False)
    edges = (columns.edge0, columns.edge_child, columns.edge_kind, columns.stage_task0)
    starts = bounds.part_starts(order, columns.job_stage0, *edges)

    def by_group(first: I8, group: I8) -> tuple[F8, F8, F8]:
        """Bound each group of stages, a range of the order that begins at `first`."""
        tail = stage_tail_s(columns, group, order)
        path = bounds.whole_stage_paths(order, group, *edges, columns.stage_min_s, whole)
        return (
            np.maximum.reduceat(tail[order], first),
            np.add.reduceat(load[order], first, axis=0).max(axis=1),
            np.maximum.reduceat(path[order], first),
        )

    job0 = columns.job_stage0[:-1]
    cp_len, twork, mod_cp = by_group(job0, columns.stage_job.astype(np.int64))
    part0 = np.flatnonzero(starts)
    part = np.empty(len(order), dtype=np.int64)
    part[order] = np.cumsum(starts) - 1
    best = np.maximum.reduce(by_group(part0, part))
    new_lb = np.add.reduceat(best, np.searchsorted(part0, job0))
    new_lb = np.maximum.reduce([new_lb, cp_len, twork, mod_cp])  # adding rounds, a little
    bounds_s = {"cp_len": cp_len, "twork": twork, "mod_cp": mod_cp, "new_lb": new_lb}
    if tight:
        share = _job_share(columns, cluster)
        best = np.maximum(best, tight_part_bounds(columns, cluster, order, part0, load, share))
        tight_lb = np.maximum(new_lb, np.add.reduceat(best, np.searchsorted(part0, job0)))
        # which packs tasks of fixed duration
        bounds_s["tight_lb"] = np.where(columns.job_width_min > 0, new_lb, tight_lb)
    pace = Pace(cluster.slowdowns)
    if pace.is_even:
        return bounds_s
    submit_s = columns.job_submit - columns.job_submit[0]
    waits = waits_for_inputs(columns)
    return {name: pace.least_s(bound_s, submit_s, waits) for name, bound_s in bounds_s.items()}


def waits_for_inputs(columns: Columns) -> Mask:
    """Flag the jobs that are submitted only once others have made their inputs: (J,)."""
    waits = np.zeros(len(columns.job_submit), bool)
    waits[columns.input_reader] = True
    waits &= columns.job_input_mode == INPUT_MODES.index("poll")
    return waits


def stage_load_s(columns: Columns, cluster: Cluster) -> F8:
    """Compute each stage's work over the capacity that its job may use.

    Parameters
    ----------
    columns : Columns
        Of a workload with G stages.
    cluster : Cluster
        With R resources.

    Returns
    -------
    (G, R) float64
        Σ duration × demand / capacity, s.
    """
    load = columns.stage_work[:, None] * (stage_demands(columns, cluster) / cluster.total)
    if cluster.queue_mode == "hard":
        load /= _job_resource_share(columns, cluster)[columns.stage_job]
    return load


def _job_resource_share(columns: Columns, cluster: Cluster) -> F8:
    """Return the fraction of each resource that each job may use, (J, R).

    All of a fungible one: a policy that overbooks it does not count the use by a queue.
    """
    share = np.repeat(_job_share(columns, cluster)[:, None], len(cluster.resources), axis=1)
    share[:, [name in cluster.fungible for name in cluster.resources]] = 1.0
    return share


def _job_share(columns: Columns, cluster: Cluster) -> F8:
    """Return the fraction of the cluster that each job may use, (J,)."""
    if cluster.queue_mode != "hard":
        return np.ones(len(columns.job_submit))
    return queue_shares(columns, cluster)[columns.job_queue]
