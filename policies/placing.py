"""Placement rules for first come, first served: best_fit, dot_product, gpu_packing, fgd.

The policies that Weng et al. compare on shared GPUs (*Beware of fragmentation: scheduling
GPU-sharing workloads with fragmentation gradient descent*, ATC 2023, §6). Only gpu_packing and fgd
need devices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from policies.base import FitName, Policy, check_ranges
from policies.knows import Knows
from policies.registry import register
from sim.engine.plan import Choice, Device, Fit, Machine, Mix, Plan, World


@dataclass(frozen=True)
class Placing(Policy, ABC):
    """Tasks go first come, first served; a task that does not fit is passed over.

    With ``fit=pack`` machines choose tasks, and the rule applies to devices alone.
    """

    fit: FitName = "skip"

    def prepare(self, world: World, plan: Plan) -> None:
        """Set the rule that chooses a task's machine."""
        plan.choice = self.choice(world)
        if plan.fit == Fit.PACK:
            plan.choice = replace(plan.choice, machine=Machine.FIRST)

    @abstractmethod
    def choice(self, world: World) -> Choice:
        """Return the rule that chooses machines and devices."""


@register("best_fit")
@dataclass(frozen=True)
class BestFit(Placing):
    """Each task goes to the machine with the least free resources left, summed over resources.

    Best fit is folklore; as Weng et al. (ATC 2023, §6) define it, each resource counts as a
    fraction of the largest machine's capacity. A part of a device goes to the device that it fills
    most.
    """

    def choice(self, world: World) -> Choice:
        """Return the rule."""
        return Choice(Machine.BEST_FIT, Device.TIGHTEST)


@register("dot_product")
@dataclass(frozen=True)
class DotProduct(Placing):
    """Each task goes to the machine with the least dot product of free resources and demand.

    Tetris (Grandl et al., SIGCOMM 2014, §3.2) in reverse, as Weng et al. define it: the task
    chooses, and leaves machines with plenty of the resources that it demands to other tasks.
    """

    def choice(self, world: World) -> Choice:
        """Return the rule."""
        return Choice(Machine.LEAST_DOT, Device.TIGHTEST)


@register("gpu_packing")
@dataclass(frozen=True)
class GpuPacking(Placing):
    """Each task goes to devices in use, else idle ones of a machine in use, else an idle machine.

    Weng et al., *MLaaS in the wild*, NSDI 2022. Whole devices and machines stay free.
    """

    def choice(self, world: World) -> Choice:
        """Return the rule."""
        return Choice(Machine.PACKED, Device.TIGHTEST)


@register("fgd")
@dataclass(frozen=True)
class FragmentationGradientDescent(Placing):
    """Each task goes where it increases the fragmentation of free devices least.

    Weng et al., ATC 2023, §4 and §5. A free device is a fragment if the next task can't use it. The
    next task is a draw from the workload's mix of task types. The policy knows the frequent types,
    as a cluster's history would show them.

    Attributes
    ----------
    popular : float
        Share of all tasks that the mix covers, by its most frequent types.
    """

    popular: float = 1.0

    def __post_init__(self) -> None:
        """Check the range of `popular`."""
        check_ranges(self, popular=(0.0, 1.0))

    @property
    def knows(self) -> Knows:
        """The true mix of the demands of all tasks, also of jobs that have not arrived."""
        return Knows(demands="true")

    def choice(self, world: World) -> Choice:
        """Return the rule, and the mix."""
        mix = _most_popular(Mix.from_columns(world.whole, world.cluster), self.popular)
        return Choice(Machine.FRAGMENTATION, Device.FRAGMENTATION, mix)


def _most_popular(mix: Mix, share: float) -> Mix:
    """Return the most frequent types that make up `share` of the tasks, at least one."""
    order = np.argsort(-mix.weight, kind="stable")
    before = np.cumsum(mix.weight[order]) - mix.weight[order]
    selected = np.sort(order[(before < share) | (np.arange(len(order)) == 0)])
    weight = mix.weight[selected]
    return Mix(mix.demand[selected], mix.allowed[selected], weight / weight.sum())
