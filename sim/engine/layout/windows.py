"""Windows in which machines are closed to jobs, in the kernel's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I4, I8, offsets
from sim.cluster.faults import KNOWN_LOST
from sim.cluster.fits import has_enforced_limits
from sim.cluster.reservations import jobs_in
from sim.engine.layout.columns import job_limits

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.engine.plan import Plan
    from sim.workload.columns import Columns


def has_windows(columns: Columns, cluster: Cluster, plan: Plan) -> bool:
    """Tell whether a machine may be closed to a job while it is there.

    That takes a reservation, or an outage that is known beforehand and an expected end of some job:
    from a plan, a reservation for the first in order, or a limit at which jobs are ended.
    """
    if len(cluster.reservations):
        return True
    if not cluster.outages.is_known.any():
        return False
    plans = plan.reservations > 0 or plan.replan is not None
    return plans or has_enforced_limits(columns, cluster)


def outage_fields(cluster: Cluster) -> dict[str, NDArray[Any]]:
    """Return each begin and end of outages, by time, machine, ends first.

    Begins and ends of reservations, of kind 0, count as ends: at both a machine opens to some job.
    """
    outages, reserved = cluster.outages, cluster.reservations
    n, n_reserved = len(outages), len(reserved)
    machine = np.concatenate([outages.machine, outages.machine, *[reserved.machine] * 2])
    time_s = np.concatenate([outages.down_s, outages.up_s, reserved.from_s, reserved.until_s])
    back = np.repeat(np.array([0, 1, 1], np.int8), [n, n, 2 * n_reserved])
    kind = np.concatenate([outages.kind, outages.kind, np.zeros(2 * n_reserved, np.int8)])
    rows = np.flatnonzero(np.isfinite(time_s))
    order = rows[np.lexsort((kind[rows], -back[rows], machine[rows], time_s[rows]))]
    return {
        "w_outage_time": time_s[order],
        "w_outage_machine": machine[order].astype(np.int32),
        "w_outage_back": back[order],
        "w_outage_kind": kind[order],
    }


def window_fields(
    columns: Columns, cluster: Cluster, mach_pool: I8, features: frozenset[str]
) -> dict[str, NDArray[Any]]:
    """Return the fields of windows; of none if the run does not need them.

    `mach_pool`: the pool of each machine, as bits.
    """
    outages, reserved, is_needed = cluster.outages, cluster.reservations, "WINDOWS" in features
    rows = np.flatnonzero(outages.is_known) if is_needed else np.zeros(0, np.int64)
    machine = np.concatenate([outages.machine[rows], reserved.machine])
    begin_s = np.concatenate([outages.down_s[rows], reserved.from_s])
    end_s = np.concatenate([outages.up_s[rows], reserved.until_s])
    ahead = np.concatenate([outages.kind[rows] == KNOWN_LOST, np.ones(len(reserved), np.bool_)])
    owner = np.concatenate([np.full(len(rows), -1, np.int32), reserved.code])
    known_s = np.concatenate([np.full(len(rows), -np.inf), reserved.known_s])
    order = np.lexsort((owner, begin_s, machine))
    n_machines = cluster.n_machines if is_needed else 0
    own, may_use = np.full(1, -1, np.int32), np.zeros(1, np.int64)
    over_s, pools = np.zeros(0), np.zeros(0, np.int64)
    if is_needed:
        own, may_use = jobs_in(columns, reserved)
        over_s = np.append(reserved.over_s(), np.inf)[own]
    if len(reserved) or "RUNS_ON" in features:
        pools = np.unique(mach_pool, return_index=True)[1]
    return {
        "w_job_reservation": own,
        "w_job_may_use": may_use,
        "w_job_over_s": over_s if is_needed else np.zeros(1),
        "c_window0": offsets(np.bincount(machine, minlength=n_machines)),
        "c_window_from": begin_s[order],
        "c_window_until": end_s[order],
        "c_window_ahead": ahead[order].astype(np.int8),
        "c_window_known": known_s[order],
        "c_window_owner": owner[order],
        "c_over_s": np.unique(over_s[np.isfinite(over_s)]),
        "c_pool_machine": pools,
        "state_next_over": np.zeros(1, np.int64),
    }


def reserved_sets(cluster: Cluster) -> I8:
    """Return codes of machines, (M,): equal for those of the same windows of reservations."""
    reserved = cluster.reservations
    windows: list[list[tuple[float, ...]]] = [[] for _ in range(cluster.n_machines)]
    columns = (reserved.code, reserved.from_s, reserved.until_s, reserved.known_s)
    for machine, *window in sorted(zip(reserved.machine, *columns, strict=True)):
        windows[machine].append(tuple(window))
    codes: dict[tuple[tuple[float, ...], ...], int] = {}
    return np.array([codes.setdefault(tuple(w), len(codes)) for w in windows], np.int64)


def kinds_by_job(
    columns: Columns, cluster: Cluster, kind: I4, running_kind: I4, features: frozenset[str]
) -> tuple[I4, I4, int]:
    """Split kinds of stages, so that machines are closed to all of a kind or to none.

    By windows each job with a limit has kinds of its own, and so have jobs of the same
    reservations; so has each job of which no two tasks share a machine, and each where the policy
    selects machines. Return the kind of each
    stage, its kind while its job counts as running (one number, if no caps count), and their
    number.
    """
    is_alone = columns.job_one_per_node & ("SPREADS" in features)
    is_alone |= "RUNS_ON" in features
    if "WINDOWS" in features:
        is_alone |= np.isfinite(job_limits(columns, cluster.enforce_limits, is_needed=True))
    alone = np.where(is_alone, np.arange(len(is_alone)) + 1, 0)
    own, may_use = jobs_in(columns, cluster.reservations)
    job = np.unique(np.stack([alone, own, may_use]), axis=1, return_inverse=True)[1].ravel()
    job = job[columns.stage_job]
    n_kinds = int(max(kind.max(initial=0), running_kind.max(initial=0))) + 1
    running = running_kind if len(running_kind) == len(kind) else kind
    codes = np.concatenate([job * n_kinds + kind, job * n_kinds + running])
    split = np.unique(codes, return_inverse=True)[1].ravel().astype(np.int32)
    stage_kind, while_running = split[: len(kind)], split[len(kind) :]
    return stage_kind, while_running[: len(running_kind)], int(split.max(initial=0)) + 1
