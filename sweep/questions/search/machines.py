"""Conversion between whole machines and capacity, a fraction of a trace's cluster."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sim.base.errors import InputError
from sweep.grid import cluster_size, clusters
from sweep.grid.cluster_size import EXTRA
from sweep.grid.machine_kinds import EXTRA_KIND, find_kind

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

    def total(self, n: int) -> float:
        """Return the machines of the whole cluster."""
        return self.count(n)

    def labels(self, n: int) -> dict[str, Any]:
        """Return the labels of cells with this number."""
        return {"capacity": self.capacity(n)}

    @property
    def unit(self) -> str:
        """Unit of a number."""
        return "slots" if self.config["shape"] == "slots" else "machines"

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


def kind_range(
    config: Mapping[str, Any], kind: str, low: float, high: float, workload: Workload
) -> KindMachines:
    """Find the numbers of machines of a kind between two fractions of today's.

    Those that are too few for some job are the smallest.
    """
    text = f"target.nodes={kind}"
    if not isinstance(config["shape"], list):
        raise InputError(
            f"{text}: the cluster has no kinds of machines; leave it out, or list machines "
            "(cluster.shape)",
            rule="unknown kind",
        )
    bare = {key: value for key, value in config.items() if key not in (EXTRA, EXTRA_KIND)}
    cluster = cluster_size.at_capacity(bare, cluster_size.full_count(workload, config), 1.0)
    today = find_kind(cluster, kind).count
    n_others = cluster.n_machines - today
    first, last = (
        max(math.ceil(low * today - _TOLERANCE), not n_others),
        int(high * today + _TOLERANCE),
    )
    if first > last:
        raise InputError(
            f"no number of machines lies between {low:g} and {high:g} times the {today} of {kind}; "
            "give capacity a wider interval",
            rule="range",
        )

    def fits(n: int) -> bool:
        try:
            clusters.build_for(workload, {**config, EXTRA: n - today}, 1.0)
        except InputError:
            if n == last:
                raise
            return False
        return True

    fits(last)
    candidates = range(first, last)
    too_few = candidates[: bisect_left(candidates, True, key=fits)]
    return KindMachines(kind, today, n_others, first, last, too_few)


@dataclass(frozen=True)
class KindMachines:
    """Numbers of machines of one kind, beside all others of the cluster."""

    kind: str
    today: int
    n_others: int
    first: int
    last: int
    too_few: Collection[int]

    def capacity(self, n: int) -> float:
        """Return a number as a fraction of today's."""
        return n / self.today

    def count(self, n: int) -> float:
        """Return the machines of the kind that a number stands for: itself."""
        return float(n)

    def total(self, n: int) -> float:
        """Return the machines of the whole cluster."""
        return float(self.n_others + n)

    def labels(self, n: int) -> dict[str, Any]:
        """Return the labels of cells with this number."""
        return {"capacity": 1.0, f"cluster.{EXTRA}": n - self.today}

    @property
    def unit(self) -> str:
        """Unit of a number."""
        return f"{self.kind} machines"
