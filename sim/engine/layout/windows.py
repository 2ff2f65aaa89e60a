"""Windows in which machines are closed to jobs, in the kernel's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I4, offsets
from sim.cluster.faults import KNOWN_LOST
from sim.cluster.fits import has_enforced_limits
from sim.engine.layout.columns import job_limits

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.engine.plan import Plan
    from sim.workload.columns import Columns


def has_windows(columns: Columns, cluster: Cluster, plan: Plan) -> bool:
    """Tell whether a machine may be closed to a job before an outage or a drain begins.

    That takes an outage that is known beforehand, and an expected end of some job: from a plan, a
    reservation, or a limit at which jobs are ended.
    """
    if not cluster.outages.is_known.any():
        return False
    return plans(plan) or has_enforced_limits(columns, cluster)


def plans(plan: Plan) -> bool:
    """Tell whether the run plans by expected ends."""
    return plan.reservations > 0 or plan.replan is not None


def window_fields(cluster: Cluster, is_needed: bool) -> dict[str, NDArray[Any]]:
    """Return the fields of windows; of none if the run does not need them."""
    outages = cluster.outages
    rows = np.flatnonzero(outages.is_known) if is_needed else np.zeros(0, np.int64)
    rows = rows[np.lexsort((outages.down_s[rows], outages.machine[rows]))]
    n_machines = cluster.n_machines if is_needed else 0
    return {
        "c_window0": offsets(np.bincount(outages.machine[rows], minlength=n_machines)),
        "c_window_from": outages.down_s[rows],
        "c_window_until": outages.up_s[rows],
        "c_window_ahead": (outages.kind[rows] == KNOWN_LOST).astype(np.int8),
    }


def kinds_by_windows(
    columns: Columns, cluster: Cluster, kind: I4, running_kind: I4
) -> tuple[I4, I4, int]:
    """Split kinds of stages, so that machines are closed to all of a kind or to none.

    Each job with a limit has kinds of its own. Return the kind of each stage, its kind while its
    job counts as running (one number, if no caps count), and their number.
    """
    limit_s = job_limits(columns, cluster.enforce_limits, is_needed=True)
    job = np.where(np.isfinite(limit_s), np.arange(len(limit_s)) + 1, 0)[columns.stage_job]
    n_kinds = int(max(kind.max(initial=0), running_kind.max(initial=0))) + 1
    running = running_kind if len(running_kind) == len(kind) else kind
    codes = np.concatenate([job * n_kinds + kind, job * n_kinds + running])
    split = np.unique(codes, return_inverse=True)[1].ravel().astype(np.int32)
    own, while_running = split[: len(kind)], split[len(kind) :]
    return own, while_running[: len(running_kind)], int(split.max(initial=0)) + 1
