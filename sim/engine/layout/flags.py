"""The integer registers of the kernel's state: what is small about a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import I8
from sim.base.errors import InputError, PolicyError
from sim.engine.kernels import state as layout
from sim.engine.plan import Event, Plan

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def registers(
    columns: Columns,
    cluster: Cluster,
    plan: Plan,
    events: Event,
    resources: tuple[str, ...],
    keep_tasks: bool,
) -> I8:
    """Return the registers that say what the run has; the kernel skips the rest."""
    flags = np.zeros(layout.N_I, dtype=np.int64)
    if not -1 <= plan.share < len(cluster.resources):
        raise PolicyError(
            f"plan.share is {plan.share}; valid: -1 (dominant) to {len(cluster.resources) - 1}"
        )
    share = plan.share if plan.share < 0 else resources.index(cluster.resources[plan.share])
    flags[layout.SHARE] = share
    flags[layout.UNIT] = cluster.unit
    flags[layout.EVENTS] = int(events)
    flags[layout.RECORD] = keep_tasks
    flags[layout.HARD] = cluster.queue_mode == "hard"
    flags[layout.PER_TASK] = bool(columns.stage_n_o2o.any())
    flags[layout.TASK_ORDER] = plan.task_order is not None or plan.task_prefers is not None
    flags[layout.BUNDLE] = plan.packing.bundle
    flags[layout.PRIORITY] = plan.task_priority is not None
    flags[layout.PREFERS] = plan.task_prefers is not None
    flags[layout.SEEN] = not np.isnan(plan.stages["seen_s"]).all()
    flags[layout.FAILS] = bool(len(columns.attempt_s))
    flags[layout.JOBS_LEFT] = len(columns.job_submit)
    return flags


def event_room(events: Event, n_jobs: int, n_stages: int) -> int:
    """Return how many events may be noted between two callbacks."""
    if events == Event.NONE:
        return 1
    if n_jobs + n_stages > 2**28:
        raise InputError("too many jobs for a policy with callbacks")
    return 6 * n_jobs + n_stages + 2
