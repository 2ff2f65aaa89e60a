"""Machines on which stages may run: of a class, and in a partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.base.arrays import I8
from sim.cluster.classes import class_bits, name_bits

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
