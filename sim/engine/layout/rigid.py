"""Requirements of reservations: rigid jobs, in one order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.errors import InputError, PolicyError
from sim.engine.plan import NO_LIMIT, Machine, Plan

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


_RESERVES_BY = (Machine.FIRST, Machine.BEST_FIT, Machine.LEAST_DOT, Machine.FASTEST)


NOT_RIGID = "reservations for jobs that are not rigid"
"""Rule of the error where a policy reserves room for other jobs."""


def check_rigid(columns: Columns, cluster: Cluster, plan: Plan) -> None:
    """Refuse a plan whose reservations can't be kept with these jobs on that cluster."""
    if not 0 <= plan.reservations <= NO_LIMIT:
        raise PolicyError(f"plan.reservations must be 0 to {NO_LIMIT}, not {plan.reservations}")
    if plan.reservations == 0 and plan.replan is None:
        return
    if plan.selects_classes:
        raise PolicyError(
            "plan.set_jobs(runs_on=...) may take a machine from a job at any time, and "
            "plan.reservations and plan.replan promise it one; leave out either"
        )
    if plan.reservations:
        _check_reservable(plan)
    n_tasks = columns.job_n_tasks
    is_flexible = (columns.job_min_tasks != n_tasks) & (n_tasks > 1)
    if is_flexible.any():
        j = int(np.argmax(is_flexible))
        cure = "set min_tasks to its number of tasks (logs of parallel jobs: trace.gang=true)"
        if _is_array(columns, j):
            cure = (
                "its stages do not depend on each other, as those of an array that is one job: "
                "make its elements jobs (logs of Slurm: trace.arrays=jobs)"
            )
        raise InputError(
            f"the policy reserves room for rigid jobs, and the job in row {j} is none: it has "
            f"{n_tasks[j]} tasks, of which {columns.job_min_tasks[j]} start together; {cure}, or "
            "take a policy that reserves none",
            rule=NOT_RIGID,
        )
    if len(plan.queues.weight) > 1:
        raise PolicyError(
            f"plan.reservations needs one queue, and the plan has {len(plan.queues.weight)}"
        )
    if not np.isfinite(plan.jobs["expected_s"]).all():
        j = int(np.argmin(np.isfinite(plan.jobs["expected_s"])))
        raise PolicyError(
            f"plan.reservations needs the job column 'expected_s' for all jobs; the job in row {j} "
            "has none"
        )


def _is_array(columns: Columns, job: int) -> bool:
    """Tell whether a job has several stages, and no edge between them."""
    first, end = columns.job_stage0[job : job + 2].tolist()
    return end - first > 1 and bool(columns.edge0[end] == columns.edge0[first])


def _check_reservable(plan: Plan) -> None:
    """Refuse scores of machines that are of the present alone."""
    if plan.choice.machine not in _RESERVES_BY:
        raise PolicyError(
            f"plan.choice.machine is {plan.choice.machine.name.lower()}, and a machine whose "
            "room is reserved has no devices in use yet to be scored by; take first, best_fit, "
            "least_dot or fastest"
        )
