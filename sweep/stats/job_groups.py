"""Mean waits of groups of jobs: by partition, QOS, account, user and width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sim.base.arrays import F8, I8
from sim.metrics.groups import NONE, WIDTH, group_order
from sim.workload.logged_partition import QUEUE, partition_column
from sim.workload.schema import BILLING, PARTITION
from sim.workload.tables import names, values
from sim.workload.width import job_widths, width_classes
from sim.workload.workload import Workload

ACCOUNT, QOS = (column.name for column in BILLING)
USER = "user"


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
        In the order of the keys, and of `sim.metrics.groups.group_order`; ``(none)`` for jobs
        without a name; groups without jobs are left out.
    """
    known = np.flatnonzero(~np.isnan(wait_s).any(axis=0))
    rows = []
    for key in keys or keys_of(workload):
        code, groups = _codes(workload, key)
        n_jobs = np.bincount(code[known], minlength=len(groups))
        sums = [np.bincount(code[known], run[known], len(groups)) for run in wait_s]
        shown = np.flatnonzero(n_jobs).tolist()
        for k in sorted(shown, key=lambda k: group_order(groups[k])):
            means = np.array([run[k] for run in sums]) / n_jobs[k]
            rows.append(GroupWaits(key, groups[k], int(n_jobs[k]), means))
    return rows


def _codes(workload: Workload, key: str) -> tuple[I8, list[str]]:
    """Return each job's group of a key, (J,), and the names of the groups."""
    if key == WIDTH:
        return width_classes(job_widths(workload))
    column = (partition_column(workload) or QUEUE) if key == PARTITION.name else key
    known = [name or NONE for name in names(workload.jobs, column)]
    return values(workload.jobs, column).astype(np.int64), known


def _is_known(workload: Workload, key: str) -> bool:
    """Tell whether a job has a name of this key."""
    if key not in workload.jobs.column_names:
        return False
    known = names(workload.jobs, key)
    return any(known[code] for code in np.unique(values(workload.jobs, key)).tolist())
