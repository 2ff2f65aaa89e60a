"""Whole machines as capacities: the fraction of a trace's cluster that is so many machines."""

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

PARTS = 100
"""Of a cluster that is one machine, such as a pool of tokens written as one: hundredths count."""

_HAIR = 1e-9
_DIGITS = range(3, 13)


def between(config: Mapping[str, Any], low: float, high: float, workload: Workload) -> Machines:
    """Find the whole machines between two capacities, and which are too few for a job.

    The workload is seen here alone, which may be in a task. Where like machines are enough, so are
    more of them; of kinds each has its share, rounded, and every number is looked at.
    """
    found = Machines(config, cluster_size.full_count(workload, config))
    first = max(1, math.ceil(low * found.full / found.each - _HAIR))
    last = int(high * found.full / found.each + _HAIR)
    if first > last:
        raise InputError(
            f"between capacity {low:g} and {high:g} there is no whole machine: the trace's "
            f"cluster has {found.full:.4g}; give capacity a wider interval",
            rule="range",
        )

    def why_not(n: int) -> str:
        try:
            clusters.build_for(workload, config, found.capacity(n))
        except InputError as error:
            return error.message
        return ""

    if why := why_not(last):
        raise InputError(f"the high end of capacity's interval: {why}", rule="range")
    some = range(first, last)
    if isinstance(config["shape"], list):
        too_few: Collection[int] = frozenset(filter(why_not, some))
    else:
        too_few = some[: bisect_left(some, True, key=lambda n: not why_not(n))]
    return replace(found, first=first, last=last, too_few=too_few)


@dataclass
class Machines:
    """How many machines a capacity is, for one workload on one cluster."""

    config: Mapping[str, Any]  # the cluster's
    of_one: float  # how many its workload has at capacity 1, before slots are made whole
    first: int = 0  # what may be asked for, as whole numbers, and which of these are
    last: int = 0
    too_few: Collection[int] = ()  # for a job
    _capacity: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.full = self._count(1.0)
        # one number stands for so much of a machine
        self.each = self.full / PARTS if abs(self.full - 1) < _HAIR else 1.0

    def capacity(self, n: int) -> float:
        """Return the capacity, in as few digits as do, that is so many machines exactly."""
        if n not in self._capacity:
            self._capacity[n] = self._find(n)
        return self._capacity[n]

    def count(self, n: int) -> float:
        """Return of how many machines a number stands: of itself, but where parts count."""
        return n * self.each

    def _find(self, n: int) -> float:
        wanted = self.count(n)
        exact = wanted / self.full
        if cluster_size.comes_whole(self.config):  # so that what they are of is not
            for _ in _DIGITS:
                off = self._count(exact) - wanted
                if not off:
                    break
                exact -= off / 2 / self.full
        for digits in _DIGITS:
            short = float(f"{exact:.{digits}g}")
            if abs(self._count(short) - wanted) < _HAIR * self.each:
                return short
        return exact

    def _count(self, capacity: float) -> float:
        """Return how many machines a capacity is."""
        cluster = cluster_size.at_capacity(self.config, self.of_one, capacity)
        return cluster_size.machine_count(cluster, self.config["shape"])
