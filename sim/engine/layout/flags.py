"""What a run has and does without: the integer registers of the kernel's state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import InputError, PolicyError
from sim.engine.kernels import state as layout
from sim.engine.plan import NO_LIMIT, Event, Fit, Order, Plan
from sim.engine.plan.packing import Packing

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns

I8 = NDArray[np.int64]


def flags_of(
    columns: Columns,
    cluster: Cluster,
    plan: Plan,
    events: Event,
    keep_tasks: bool,
    n_queues: int,
    gangs: bool,
) -> I8:
    """Return the registers that say what the run has; the kernel skips the rest."""
    flags = np.zeros(layout.N_I, dtype=np.int64)
    queues, jobs = plan.queues, plan.jobs
    if not -1 <= plan.share < len(cluster.resources):
        raise PolicyError(
            f"plan.share is {plan.share}; valid: -1 (dominant) to {len(cluster.resources) - 1}"
        )
    shares = bool((queues.order == Order.SHARE).any())
    limits = any((jobs[name] < NO_LIMIT).any() for name in ("run_limit", "start_gate"))
    crossings = np.isfinite(queues.demote_at).any() or np.isfinite(jobs["service_at"]).any()
    flags[layout.FIT] = int(plan.fit)
    flags[layout.SHARE] = plan.share
    flags[layout.UNIT] = cluster.unit
    flags[layout.EVENTS] = int(events)
    flags[layout.RECORD] = keep_tasks
    flags[layout.HARD] = cluster.queue_mode == "hard"
    flags[layout.USAGE] = n_queues > 1 or shares or cluster.queue_mode == "hard"
    flags[layout.SERVICE] = crossings or bool(events & Event.SERVICE)
    flags[layout.MOVING] = bool((queues.order >= Order.REMAINING).any())
    flags[layout.LIMITS] = limits or events != Event.NONE
    flags[layout.GANGS] = gangs
    flags[layout.INPUTS] = bool(columns.job_input_mode.any())
    flags[layout.PER_TASK] = bool(columns.stage_n_o2o.any())
    flags[layout.TASK_ORDER] = plan.task_order is not None or plan.task_prefers is not None
    flags[layout.BUNDLE] = plan.packing.bundle
    flags[layout.PRIORITY] = plan.task_priority is not None
    flags[layout.PREFERS] = plan.task_prefers is not None
    flags[layout.SEEN] = not np.isnan(plan.stages["seen_s"]).all()
    steady = not (len(cluster.outages) or len(cluster.slowdowns) or len(columns.attempt_s))
    pack = plan.fit == Fit.PACK
    flags[layout.OVERBOOK] = pack and plan.packing.overbook and bool(cluster.fungible)
    scored = plan.packing != Packing() or plan.task_priority is not None
    scored = pack and (scored or plan.task_prefers is not None)
    flags[layout.SCORED] = scored
    if cluster.unit and not gangs and not scored:
        flags[layout.FIT] = int(Fit.STRICT)  # like demands: what fits one fits all
        rare = ("EVENTS", "LIMITS", "HARD", "PER_TASK", "TASK_ORDER", "SEEN", "INPUTS")
        plain = not any(flags[getattr(layout, name)] for name in rare) and steady
        flags[layout.POOL] = plain and not plan.evict and cluster.queue_mode == "global"
    if plan.evict and (gangs or flags[layout.FIT] != Fit.STRICT):
        raise PolicyError(
            "plan.evict needs the fit strict, and jobs that are no gangs: a policy that evicts "
            f"was given fit {plan.fit.name.lower()}" + (" and gangs" if gangs else "")
        )
    return flags


def event_room(events: Event, n_jobs: int, n_stages: int) -> int:
    """Return how many events may be noted between two callbacks."""
    if events == Event.NONE:
        return 1
    if n_jobs + n_stages > 2**28:
        raise InputError("too many jobs for a policy with callbacks")
    return 6 * n_jobs + n_stages + 2
