"""Width of jobs: CPUs that a job holds at once."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8
from sim.workload.workload import Workload

CPU = "cpu"


def job_widths(workload: Workload) -> F8:
    """Return the CPUs that each job holds at once, (J,).

    Those of its stages without parents together, which may all run at once, or of a later stage, if
    that has more. If no job demands CPUs, it is of the first resource that some job demands, such
    as GPUs; if none is demanded, of tasks.
    """
    columns = workload.columns
    amount = columns.stage_n_tasks.astype(np.float64)
    demanded = [k for k in range(len(columns.resources)) if columns.stage_demand[:, k].any()]
    if demanded:
        cpus = [k for k in demanded if columns.resources[k] == CPU]
        amount = amount * columns.stage_demand_f[:, (cpus or demanded)[0]]
    is_first = (columns.stage_n_barrier == 0) & (columns.stage_n_o2o == 0)
    together = np.bincount(columns.stage_job, np.where(is_first, amount, 0.0), workload.n_jobs)
    largest = np.zeros(workload.n_jobs)
    np.maximum.at(largest, columns.stage_job, amount)
    return np.maximum(together, largest)


def width_classes(width: F8) -> tuple[I8, list[str]]:
    """Return each width's class, and the names of the classes: 1, 2-3, 4-7, ...

    >>> width_classes(np.array([0.5, 3.0, 4.0]))
    (array([0, 1, 2]), ['1', '2-3', '4-7'])
    """
    code = np.zeros(len(width), np.int64)
    is_wide = width >= 2
    code[is_wide] = np.frexp(width[is_wide])[1] - 1
    n = int(code.max(initial=0))
    return code, ["1", *(f"{2**k}-{2 ** (k + 1) - 1}" for k in range(1, n + 1))]
