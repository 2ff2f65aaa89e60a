"""Machines on which stages may run, of a class and in a partition; tiers of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import I4, I8
from sim.cluster.classes import SEPARATOR, class_bits, name_bits
from sim.cluster.partitions import NO_RULES

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def allowed_codes(columns: Columns, cluster: Cluster) -> I8:
    """Return the codes of machines on which each stage may run, as bits, (G,): class, partition."""
    allowed = class_bits(columns.runs_on, cluster.classes)[columns.stage_runs_on]
    if cluster.partitions:
        texts = [text or cluster.default_partition for text in columns.partitions]
        allowed &= name_bits(cluster.partitions, texts)[columns.job_partition[columns.stage_job]]
    return allowed


def names_of_jobs(columns: Columns, cluster: Cluster) -> list[tuple[str, ...]]:
    """Return the partitions that each text of ``columns.partitions`` names; the default for ""."""
    texts = [text or cluster.default_partition for text in columns.partitions]
    known = {name for names in cluster.partitions for name in names}
    return [tuple(name for name in text.split(SEPARATOR) if name in known) for text in texts]


def has_tiers(cluster: Cluster) -> bool:
    """Tell whether the partitions of the cluster have different tiers."""
    known = {name for names in cluster.partitions for name in names}
    return len({cluster.rules.get(name, NO_RULES).tier for name in known} | {NO_RULES.tier}) > 1


def job_tiers(columns: Columns, cluster: Cluster) -> I4:
    """Return the tier of each job, (J,): the highest of its partitions."""
    tier = np.array(
        [
            max((cluster.rules.get(name, NO_RULES).tier for name in names), default=NO_RULES.tier)
            for names in names_of_jobs(columns, cluster)
        ],
        np.int32,
    )
    return tier[columns.job_partition]
