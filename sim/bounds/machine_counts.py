"""Number of machines of each job, for jobs that are scheduled one by one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim.base import maths
from sim.base.arrays import I8
from sim.base.errors import InputError
from sim.base.random import stream
from sim.bounds import bound_arrays
from sim.cluster.cluster import Cluster
from sim.cluster.fits import check_fits
from sim.workload.workload import Workload

LOW, HIGH = 0.5, 4.0


def machines_per_job(
    workload: Workload,
    shape: Mapping[str, float],
    seed: int = 0,
    low: float = LOW,
    high: float = HIGH,
) -> I8:
    """Draw a number of machines for each job, about as many as keep its critical path busy.

    A job with work TWork on one machine and a critical path of CPLen can, at best, use
    TWork / CPLen machines throughout. With far fewer any order fills them, with far more only the
    critical path counts; so schedules differ in between. Each job gets a factor, log-uniform in
    [low, high], times that ratio, rounded to a whole number of at least 1. Rounding changes the
    factor of small jobs: the real factor is ``count * cp_len / twork``, both on one machine.

    Parameters
    ----------
    workload : Workload
        Of J jobs.
    shape : mapping of str to float
        Resources of one machine.
    seed : int
        Seed of the draw; the first `k` jobs get the same, regardless of the number of jobs.
    low, high : float
        Range of the factor, positive.

    Returns
    -------
    (J,) int64
        Machines of each job; 1 where a job takes no time.

    Raises
    ------
    InputError
        If the range is empty or not positive, or a task's demand fits no machine of that shape.
    """
    if not 0 < low <= high < np.inf:
        raise InputError(
            f"low and high must be positive numbers in that order, not {low!r} and {high!r}",
            rule="range",
        )
    machine = Cluster.machines(1, fungible=(), **shape)
    check_fits(workload, machine)
    bounds = bound_arrays(workload.columns, machine)
    ratio = np.divide(
        bounds["twork"], bounds["cp_len"], np.zeros(workload.n_jobs), where=bounds["cp_len"] > 0
    )
    uniform = stream(seed, "machines per job").random(workload.n_jobs)
    factor = maths.exp(maths.log(low) + uniform * (maths.log(high) - maths.log(low)))
    return np.maximum(1, np.rint(factor * ratio)).astype(np.int64)
