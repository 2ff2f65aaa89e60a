"""Another value of a key of the cluster: ``what_if.cluster.partitions.long.tier=2``."""

from __future__ import annotations

from sweep.grid.changes import Change, Config, with_cluster

HAS_KEYS = True


def check(change: Change) -> None:
    """Accept any value: a cluster is checked as a whole."""


def apply(parts: Config, change: Change) -> Config:
    """Set the key."""
    return with_cluster(parts, change.key, change.value)


def phrase(change: Change) -> str:
    """Write ``cluster.partitions.long.tier=2``."""
    return change.word
