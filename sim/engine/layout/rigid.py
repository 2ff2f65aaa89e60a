"""Requirements of reservations: rigid jobs, in one order, without faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.errors import InputError, PolicyError
from sim.cluster.fits import has_constraints
from sim.engine.plan import NO_LIMIT, Machine, Plan

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def check_rigid(columns: Columns, cluster: Cluster, plan: Plan) -> None:
    """Refuse a plan whose reservations can't be kept with these jobs on that cluster."""
    if not 0 <= plan.reservations <= NO_LIMIT:
        raise PolicyError(f"plan.reservations must be 0 to {NO_LIMIT}, not {plan.reservations}")
    if plan.reservations == 0 and plan.replan is None:
        return
    if plan.reservations:
        _check_reservable(columns, cluster, plan)
    n_tasks = columns.job_n_tasks
    is_flexible = (columns.job_min_tasks != n_tasks) & (n_tasks > 1)
    if is_flexible.any():
        j = int(np.argmax(is_flexible))
        raise InputError(
            f"the policy reserves room for rigid jobs, and the job in row {j} is none: it has "
            f"{n_tasks[j]} tasks, of which {columns.job_min_tasks[j]} start together; set "
            "min_tasks to its number of tasks (logs of parallel jobs: trace.gang=true), or take a "
            "policy that reserves none",
            rule="reservations for jobs that are not rigid",
        )
    if len(cluster.outages) or len(columns.attempt_s):
        raise InputError(
            "the policy reserves room, and what becomes of a reservation when a task starts again "
            "is not simulated; leave outages and failures out, or take a policy that reserves none",
            rule="reservations with faults",
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


def _check_reservable(columns: Columns, cluster: Cluster, plan: Plan) -> None:
    """Refuse queues in no order, and machines of which not any will do."""
    if cluster.queue_mode == "weighted":
        raise InputError(
            "the policy reserves room for the first jobs in order, and the cluster has "
            "queues.mode=weighted: which queue comes first there changes with every start; take "
            "queues.mode=hard, or global with a policy whose order weighs them, or a policy that "
            "reserves none",
            rule="reservations in weighted queues",
        )
    if has_constraints(columns, cluster):
        raise InputError(
            "the policy reserves room, and devices and classes of machines can't be reserved; take "
            "machines without devices and jobs that run on any, or a policy that reserves none",
            rule="reservations of devices",
        )
    if plan.choice.machine not in (Machine.FIRST, Machine.BEST_FIT, Machine.LEAST_DOT):
        raise PolicyError(
            f"plan.choice.machine is {plan.choice.machine.name.lower()}, and room on machines is "
            "reserved by first, best_fit or least_dot"
        )
