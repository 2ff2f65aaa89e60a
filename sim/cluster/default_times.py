"""Requested times of jobs that state none: the default, or the longest, of their partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.cluster.allowed import job_nodes
from sim.cluster.classes import SEPARATOR
from sim.cluster.partitions import NO_RULES
from sim.workload.columns import replaced
from sim.workload.schema import REQUESTED
from sim.workload.tables import with_column

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.workload import Workload


def with_default_times(workload: Workload, cluster: Cluster) -> Workload:
    """Return the same workload, in which jobs without a requested time have their partition's.

    It is that of the first partition that a job names and that admits it, by its number of nodes.
    """
    if not any(rules.default_s is not None for rules in cluster.rules.values()):
        return workload
    columns = workload.columns
    if not np.isnan(columns.job_requested).any():
        return workload
    requested_s, n_nodes = columns.job_requested.copy(), job_nodes(columns)
    is_open = np.isnan(requested_s)
    for code, text in enumerate(columns.partitions):
        names = (text or cluster.default_partition).split(SEPARATOR)
        for name in names:
            if not any(name in own for own in cluster.partitions):
                continue
            rules = cluster.rules.get(name, NO_RULES)
            jobs = is_open & (columns.job_partition == code) & rules.admits(np.nan, n_nodes)
            requested_s[jobs] = np.nan if rules.default_s is None else rules.default_s
            is_open &= ~jobs
    tables = workload.stored_tables()
    tables["jobs"] = with_column(workload.jobs, REQUESTED.name, requested_s)
    filled = type(workload)(tables, workload.stored_durations(), workload.meta)
    requested_s.setflags(write=False)
    filled.__dict__["columns"] = replaced(columns, job_requested=requested_s)
    return filled
