"""Mean waits of groups of jobs: by partition, QOS, account, user and width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sim.base.arrays import F8, I8
from sim.workload.columns import job_n_tasks
from sim.workload.logged_partition import QUEUE, partition_column
from sim.workload.schema import BILLING, PARTITION
from sim.workload.tables import names, values
from sim.workload.workload import Workload

ACCOUNT, QOS = (column.name for column in BILLING)
USER, WIDTH = "user", "width"
NO_NAME = "(none)"


class GroupWaits(NamedTuple):
    """Waits of a group of jobs in some runs."""

    by: str  # key of `keys_of`
    group: str
    jobs: int  # with a wait in every run
    wait_mean_s: F8  # of these jobs in each run, (R,) s


def keys_of(workload: Workload) -> list[str]:
    """List the keys by which the jobs of a workload are grouped: those that its jobs have.

    ``partition`` is the one in which the log has the job, if jobs name partitions
    (`sim.workload.logged_partition`); otherwise, or if they are no partitions, there is ``queue``.
    """
    partition = partition_column(workload)
    first = [PARTITION.name] * (partition is not None) + [QUEUE] * (partition != QUEUE)
    return [*first, *(key for key in (QOS, ACCOUNT, USER) if _is_known(workload, key)), WIDTH]


def mean_waits(workload: Workload, wait_s: F8, keys: Sequence[str] = ()) -> list[GroupWaits]:
    """Compute the mean wait of each group of jobs in each run, by each key.

    Parameters
    ----------
    workload : Workload
        Workload of J jobs.
    wait_s : (R, J) float64
        Wait of each job in each of R runs, s. A job that is NaN in a run counts in none.
    keys : sequence of str
        Keys of `keys_of`; all of them if empty.

    Returns
    -------
    list of GroupWaits
        In the order of the keys; widths ascending, others by name, ``(none)`` for jobs without
        one; groups without jobs are left out.
    """
    known = np.flatnonzero(~np.isnan(wait_s).any(axis=0))
    rows = []
    for key in keys or keys_of(workload):
        code, groups = _codes(workload, key)
        n_jobs = np.bincount(code[known], minlength=len(groups))
        sums = [np.bincount(code[known], run[known], len(groups)) for run in wait_s]
        shown = np.flatnonzero(n_jobs).tolist()
        for k in shown if key == WIDTH else sorted(shown, key=lambda k: groups[k]):
            means = np.array([run[k] for run in sums]) / n_jobs[k]
            rows.append(GroupWaits(key, groups[k], int(n_jobs[k]), means))
    return rows


def width_of(workload: Workload) -> F8:
    """Return the CPUs of each job, or its tasks, if these demand none, (J,)."""
    columns = workload.columns
    if "cpu" in columns.resources:
        cpus = columns.stage_demand_f[:, columns.resources.index("cpu")]
        total = np.bincount(columns.stage_job, cpus * columns.stage_n_tasks, workload.n_jobs)
        if total.any():
            return total.astype(np.float64)
    return job_n_tasks(workload).astype(np.float64)


def _codes(workload: Workload, key: str) -> tuple[I8, list[str]]:
    """Return each job's group of a key, (J,), and the names of the groups."""
    if key == WIDTH:
        level = np.ceil(np.log2(np.maximum(width_of(workload), 1.0))).astype(np.int64)
        return level, [*map(_between, range(int(level.max(initial=0)) + 1))]
    column = (partition_column(workload) or QUEUE) if key == PARTITION.name else key
    known = [name or NO_NAME for name in names(workload.jobs, column)]
    return values(workload.jobs, column).astype(np.int64), known


def _between(k: int) -> str:
    """Write a power of two and what is above the one before.

    >>> [_between(k) for k in (0, 1, 2, 4)]
    ['1', '2', '3-4', '9-16']
    """
    low, high = 2 ** (k - 1) + 1 if k > 0 else 1, 2**k
    return str(high) if low >= high else f"{low:.0f}-{high}"


def _is_known(workload: Workload, key: str) -> bool:
    """Tell whether a job has a name of this key."""
    if key not in workload.jobs.column_names:
        return False
    known = names(workload.jobs, key)
    return any(known[code] for code in np.unique(values(workload.jobs, key)).tolist())
