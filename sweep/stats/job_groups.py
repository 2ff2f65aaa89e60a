"""Mean waits of groups of jobs: by partition, QOS, account, user and width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sim.base.arrays import F8
from sim.metrics.groups import WIDTH, members
from sim.workload.schema import BILLING, PARTITION
from sim.workload.tables import names, values
from sim.workload.workload import Workload

QUEUE = "queue"
ACCOUNT, QOS = (column.name for column in BILLING)


class GroupWaits(NamedTuple):
    """Waits of a group of jobs in some runs."""

    by: str  # key of `keys_of`
    group: str
    jobs: int  # with a wait in every run
    wait_mean_s: F8  # of these jobs in each run, (R,) s


def keys_of(workload: Workload) -> list[str]:
    """List the keys by which the jobs of a workload are grouped: those that its jobs have.

    ``partition`` is the one in which the log has the job: its ``queue``, if jobs name partitions.
    """
    queue = PARTITION.name if PARTITION.name in workload.jobs.column_names else QUEUE
    return [*(key for key in (queue, QOS, ACCOUNT, "user") if _is_known(workload, key)), WIDTH]


def mean_waits(
    workload: Workload, wait_s: F8, *, in_slots: bool, keys: Sequence[str] = ()
) -> list[GroupWaits]:
    """Compute the mean wait of each group of jobs in each run, by each key.

    Of many groups by one key the smaller ones are one, ``(others)``
    (`sim.metrics.groups.members`); jobs without a name are ``(none)``.

    Parameters
    ----------
    workload : Workload
        Workload of J jobs.
    wait_s : (R, J) float64
        Wait of each job in each of R runs, s. A job that is NaN in a run counts in none.
    in_slots : bool
        Width counts tasks; otherwise the first resource that they demand.
    keys : sequence of str
        Keys of `keys_of`; all of them if empty.

    Returns
    -------
    list of GroupWaits
        In the order of the keys; widths ascending, others by name; groups without jobs are left
        out.
    """
    is_known = ~np.isnan(wait_s).any(axis=0)
    rows = []
    for key in keys or keys_of(workload):
        column = QUEUE if key == PARTITION.name else key
        for group, is_member in members(workload, column, in_slots=in_slots):
            chosen = is_member & is_known
            if chosen.any():
                means = wait_s[:, chosen].mean(axis=1)
                rows.append(GroupWaits(key, group, int(chosen.sum()), means))
    return rows


def _is_known(workload: Workload, key: str) -> bool:
    """Tell whether a job has a name of this key."""
    column = QUEUE if key == PARTITION.name else key
    if column not in workload.jobs.column_names:
        return False
    known = names(workload.jobs, column)
    return any(known[code] for code in np.unique(values(workload.jobs, column)).tolist())
