"""Levels of domains that gangs ask for, and the slots of a gang that one domain holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import I4, I8
from sim.base.errors import InputError, did_you_mean
from sim.cluster.components import Machines, fit_together

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def asked_levels(columns: Columns, cluster: Cluster) -> tuple[I4, I4]:
    """Return the level that each job requires, and the narrowest it asks for: (J,), -1 for none.

    Of jobs that are no gang, or whose levels the cluster does not have, none.

    Raises
    ------
    InputError
        If a gang requires a level that the cluster does not have.
    """
    known, is_gang = cluster.topology.levels, columns.job_min_tasks > 0
    if not known and columns.levels_required == ("",):
        none = np.full(len(is_gang), -1, np.int32)
        return none, none.copy()
    required = _codes(columns.levels_required, known)[columns.job_level_required]
    preferred = _codes(columns.levels_preferred, known)[columns.job_level_preferred]
    names = np.array(columns.levels_required)[columns.job_level_required]
    unknown = is_gang & (names != "") & (required < 0) & (not cluster.unit)
    if unknown.any():
        level = str(names[np.argmax(unknown)])
        text = f"it has {', '.join(known)}" if known else "it has none (cluster.topology)"
        raise InputError(
            f"the job in row {int(np.argmax(unknown))} requires one domain of the level {level!r}, "
            f"which the cluster does not have; {did_you_mean(level, known)}{text}",
            rule="unknown level",
        )
    asks = (names != "") | (np.array(columns.levels_preferred)[columns.job_level_preferred] != "")
    usual = known.index(cluster.topology.preferred) if cluster.topology.preferred else -1
    preferred = np.where(asks, preferred, usual)
    narrowest = np.where(is_gang, np.maximum(required, preferred), -1)
    return np.where(is_gang, required, -1).astype(np.int32), narrowest.astype(np.int32)


def asks_for_domains(columns: Columns, cluster: Cluster) -> bool:
    """Tell whether some gang asks for a level of the cluster."""
    return bool(cluster.topology) and bool((asked_levels(columns, cluster)[1] >= 0).any())


def most_in_a_domain(
    domain: I4, slots: I8, allowed: I8, size: I8, machines: Machines, *, one_per_node: bool
) -> int:
    """Return the most slots of a gang that the machines of one domain hold when all are empty.

    :param domain: Domain of each machine, (M,).
    """
    greatest = 0
    for number in np.unique(domain).tolist():
        own = domain == number
        part = replace(machines, capacity=machines.capacity[own], code=machines.code[own])
        greatest = max(
            greatest, fit_together(slots, allowed, size, part, one_per_node=one_per_node)
        )
    return greatest


def _codes(names: Sequence[str], known: Sequence[str]) -> I4:
    return np.array([known.index(n) if n in known else -1 for n in names] or [-1], np.int32)
