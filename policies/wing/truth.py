"""True values and run times of jobs, for Wing's oracles (§6.3)."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import PolicyError
from sim.engine.plan import World
from sim.workload.tables import values


def truth(world: World, policy: str, column: str) -> F8:
    """Return a column of true values of jobs, for oracles only, (J,)."""
    jobs = world.columns.features.jobs
    if column not in jobs.column_names:
        raise PolicyError(
            f"policy {policy} with knowledge=true needs the column {column!r} of jobs, which "
            "this workload does not have; use trace=cosmos or a workload built from logs "
            "(policies.wing.lineage.workload), or set knowledge=history"
        )
    return values(jobs, column)


def lengths(world: World) -> F8:
    """Return the true run time of each job, for oracles only, s, (J,)."""
    c = world.columns
    return np.bincount(c.stage_job, c.stage_max_s, len(c.job_submit)).astype(np.float64)


def ratio(value: F8, compute: F8) -> F8:
    """Return value over resource-time; 0 where either is unknown or resource-time is 0."""
    out = np.zeros(len(value))
    np.divide(value, compute, out=out, where=(compute > 0) & ~np.isnan(value))
    return out
