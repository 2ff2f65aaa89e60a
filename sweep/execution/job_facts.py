"""Facts of the jobs of a workload that results leave out: who sent them, and how large they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from sim.workload.workload import Workload

NAMED = ("user", "queue", "partition")


def facts(workload: Workload) -> pa.Table:
    """Return a row a job.

    job_id, user, queue string; partition if jobs name some; width int32, the slots of its gang, or
    its tasks; n_tasks int64; work_s float64, the sum of its tasks' durations; requested_s float64,
    its limit of run time, if jobs have some.
    """
    columns, jobs = workload.columns, workload.jobs
    gang, n_tasks, requested_s = columns.job_min_tasks, columns.job_n_tasks, columns.job_requested
    texts = {name: jobs[name].cast(pa.string()) for name in NAMED if name in jobs.column_names}
    return pa.table(
        {
            "job_id": jobs["job_id"],
            **texts,
            "width": np.where(gang > 0, gang, n_tasks),
            "n_tasks": n_tasks,
            "work_s": columns.job_work,
            **({} if np.isnan(requested_s).all() else {"requested_s": requested_s}),
        }
    )
