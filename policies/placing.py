"""First come, first served, to the machine that a rule likes best: best_fit, fgd, and others.

The policies that Weng et al. compare where GPUs are shared (*Beware of fragmentation: scheduling
GPU-sharing workloads with fragmentation gradient descent*, ATC 2023, §6); gpu_packing and fgd look
at devices, the others do without.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from policies.base import Policy, check_ranges
from policies.registry import register
from sim.engine.plan import Choice, Device, Fit, Machine, Mix, Plan, World


@dataclass(frozen=True)
class Placing(Policy, ABC):
    """Tasks go first come, first served; what does not fit is passed over.

    With fit pack machines choose tasks, and the rule is of devices alone.
    """

    fit: Literal["strict", "skip", "pack"] = "skip"

    def prepare(self, world: World, plan: Plan) -> None:
        """Say how a task's machine is chosen."""
        plan.choice = self.choice(world)
        if plan.fit == Fit.PACK:
            plan.choice = replace(plan.choice, machine=Machine.FIRST)

    @abstractmethod
    def choice(self, world: World) -> Choice:
        """Return how machines and devices are chosen."""


@register("best_fit")
@dataclass(frozen=True)
class BestFit(Placing):
    """To the machine on which least is left, summed over the resources.

    Best fit is folklore; as Weng et al. (ATC 2023, §6) have it, each resource counts as a part of
    what the largest machine has of it. A part of a device goes to the device that it fills most.
    """

    def choice(self, world: World) -> Choice:
        """Return the rule."""
        return Choice(Machine.BEST_FIT, Device.TIGHTEST)


@register("dot_product")
@dataclass(frozen=True)
class DotProduct(Placing):
    """To the machine where the dot product of what is free and what is asked is least.

    Tetris (Grandl et al., SIGCOMM 2014, §3.2) turned round, as Weng et al. have it: the task
    chooses, and leaves machines that have much of what it asks to others.
    """

    def choice(self, world: World) -> Choice:
        """Return the rule."""
        return Choice(Machine.LEAST_DOT, Device.TIGHTEST)


@register("gpu_packing")
@dataclass(frozen=True)
class GpuPacking(Placing):
    """To devices in use, else to idle ones of a machine in use, else to an idle machine.

    Weng et al., *MLaaS in the wild*, NSDI 2022: so that whole devices and machines stay free.
    """

    def choice(self, world: World) -> Choice:
        """Return the rule."""
        return Choice(Machine.PACKED, Device.TIGHTEST)


@register("fgd")
@dataclass(frozen=True)
class FragmentationGradientDescent(Placing):
    """To where it makes least more of the free devices of no use to the next task.

    Weng et al., ATC 2023, §4 and §5. What comes next is a draw from the mix of the workload's
    tasks, of which the policy knows the frequent types, as a cluster's history tells them.

    Attributes
    ----------
    popular : float
        The mix is of the most frequent types, so many that they are this share of all tasks.
    """

    popular: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a share that is none."""
        check_ranges(self, popular=(0.0, 1.0))

    def choice(self, world: World) -> Choice:
        """Return the rule, and the mix."""
        mix = _most_popular(Mix.from_columns(world.columns, world.cluster), self.popular)
        return Choice(Machine.FRAGMENTATION, Device.FRAGMENTATION, mix)


def _most_popular(mix: Mix, share: float) -> Mix:
    """Return the most frequent types that make up `share` of the tasks, at least one."""
    order = np.argsort(-mix.weight, kind="stable")
    before = np.cumsum(mix.weight[order]) - mix.weight[order]
    kept = np.sort(order[(before < share) | (np.arange(len(order)) == 0)])
    weight = mix.weight[kept]
    return Mix(mix.demand[kept], mix.allowed[kept], weight / weight.sum())
