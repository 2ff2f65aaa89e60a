"""Facts of the jobs of a workload that results leave out: who sent them, and how large they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sim.workload.width import job_widths

if TYPE_CHECKING:
    from sim.workload.workload import Workload

NAMED = ("user", "queue", "partition")


def facts(workload: Workload) -> pa.Table:
    """Return a row a job.

    job_id, user, queue string; partition if jobs name some; width float64, the CPUs that it holds
    at once (`sim.workload.width`); n_tasks int64; work_s float64, the sum of its tasks' durations;
    requested_s float64, its limit of run time, if jobs have some.
    """
    columns, jobs = workload.columns, workload.jobs
    n_tasks, requested_s = columns.job_n_tasks, columns.job_requested
    texts = {name: jobs[name].cast(pa.string()) for name in NAMED if name in jobs.column_names}
    return pa.table(
        {
            "job_id": jobs["job_id"],
            **texts,
            "width": job_widths(workload),
            "n_tasks": n_tasks,
            "work_s": columns.job_work,
            **({} if np.isnan(requested_s).all() else {"requested_s": requested_s}),
        }
    )
