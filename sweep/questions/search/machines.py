"""Conversion between whole machines and capacity, a fraction of a trace's cluster."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sweep.grid import cluster_size, clusters

if TYPE_CHECKING:
    from sim.workload.workload import Workload

N_PARTS = 100
"""Steps of a cluster that is one machine, such as a pool of tokens written as one: hundredths."""

_TOLERANCE = 1e-9
_DIGITS = range(3, 13)


def machine_range(
    config: Mapping[str, Any], low: float, high: float, workload: Workload
) -> Machines:
    """Find the whole numbers of machines between two capacities, and those too few for some job.

    Only this function, which may run in a task, sees the workload. If n like machines are enough,
    so are more; with several kinds, each has its rounded share, so that every number is tried.
    """
    machines = Machines(config, cluster_size.full_count(workload, config))
    first = max(1, math.ceil(low * machines.full / machines.machines_per_unit - _TOLERANCE))
    last = int(high * machines.full / machines.machines_per_unit + _TOLERANCE)
    if first > last:
        raise InputError(
            f"no whole number of machines lies between capacity {low:g} and {high:g}: the trace's "
            f"cluster has {machines.full:.4g} at 1.0; give capacity a wider interval",
            rule="range",
        )

    def rejection(n: int) -> str:
        try:
            clusters.build_for(workload, config, machines.capacity(n))
        except InputError as error:
            return error.message
        return ""

    if reason := rejection(last):
        raise InputError(f"the high end of capacity's interval: {reason}", rule="range")
    candidates = range(first, last)
    if isinstance(config["shape"], list):
        too_few: Collection[int] = frozenset(filter(rejection, candidates))
    else:
        too_few = candidates[: bisect_left(candidates, True, key=lambda n: not rejection(n))]
    return replace(machines, first=first, last=last, too_few=too_few)


@dataclass
class Machines:
    """Number of machines at each capacity, for one workload on one cluster."""

    config: Mapping[str, Any]  # the cluster's
    full_machines: float  # number at capacity 1, before slots are rounded
    first: int = 0  # range of numbers
    last: int = 0
    too_few: Collection[int] = ()  # numbers on which some job does not fit
    _capacity: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.full = self._count(1.0)
        # a number counts whole machines, or hundredths of a single one
        self.machines_per_unit = self.full / N_PARTS if abs(self.full - 1) < _TOLERANCE else 1.0

    def capacity(self, n: int) -> float:
        """Return the capacity, in as few digits as possible, that gives exactly `n` machines."""
        if n not in self._capacity:
            self._capacity[n] = self._find(n)
        return self._capacity[n]

    def count(self, n: int) -> float:
        """Return the machines that a number stands for: itself, unless hundredths count."""
        return n * self.machines_per_unit

    def _find(self, n: int) -> float:
        target = self.count(n)
        exact = target / self.full
        if cluster_size.comes_whole(self.config):  # the unrounded size is not whole
            for _ in _DIGITS:
                error = self._count(exact) - target
                if not error:
                    break
                exact -= error / 2 / self.full
        for digits in _DIGITS:
            short = float(f"{exact:.{digits}g}")
            if abs(self._count(short) - target) < _TOLERANCE * self.machines_per_unit:
                return short
        return exact

    def _count(self, capacity: float) -> float:
        """Return the number of machines at a capacity."""
        cluster = cluster_size.at_capacity(self.config, self.full_machines, capacity)
        return cluster_size.machine_count(cluster, self.config["shape"])
