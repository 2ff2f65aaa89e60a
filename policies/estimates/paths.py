"""Longest paths of expected durations, by which list schedulers order stages."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8, frozen, ranges
from sim.engine.plan import Plan
from sim.workload.columns import Columns
from sim.workload.paths import order_stages


def order_by_paths(columns: Columns, plan: Plan, jobs: I4 | I8) -> None:
    """Key the stages of `jobs` by the longest expected path to their job's end, longest first."""
    if not len(jobs):
        return
    first, tail_s = expected_tails_s(columns, plan.stages["expected_s"], jobs)
    stages = ranges(columns.job_stage0[jobs], columns.job_stage0[jobs + 1])
    plan.set_stages(stages, jobs=jobs, key=-tail_s[stages - first])


def expected_tails_s(columns: Columns, task_s: F8, jobs: I4 | I8) -> tuple[int, F8]:
    """Find the longest path from stages to the end of their job, for all from the first of `jobs`.

    Every task of a stage is expected to take ``task_s``, so that one-to-one edges count as
    barriers.

    Returns
    -------
    first : int
        Row of the first stage.
    tail_s : (n,) float64
        Paths from that stage and the next ones, up to the last stage of `jobs`, s.
    """
    from sim.workload.kernels import paths  # numba is loaded where a kernel runs

    job0, job1 = int(jobs.min()), int(jobs.max()) + 1
    first, last = (int(columns.job_stage0[job]) for job in (job0, job1))
    edge0 = columns.edge0[first : last + 1]
    child = frozen(columns.edge_child[edge0[0] : edge0[-1]] - np.int32(first))
    edge0, longest_s = frozen(edge0 - edge0[0]), frozen(task_s[first:last].copy())
    order = order_stages(frozen(columns.job_stage0[job0 : job1 + 1] - first), edge0, child)
    kind = frozen(np.zeros(len(child), dtype=np.int8))
    group = frozen(np.zeros(last - first, dtype=np.int64))
    task0 = columns.stage_task0[first : last + 1]
    return first, paths.tails(frozen(order), group, edge0, child, kind, task0, longest_s, longest_s)
