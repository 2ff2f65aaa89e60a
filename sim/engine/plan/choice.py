"""Where a task goes, of the machines and devices that have room for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.errors import PolicyError
from sim.cluster.classes import class_bits
from sim.cluster.cluster import Cluster
from sim.workload.columns import Columns


class Machine(IntEnum):
    """Which machine a task goes to, of those with room; of equal ones the first."""

    FIRST = 0  #: the first
    BEST_FIT = (
        1  #: where least is left: Σ over resources of what is left over the largest machine's
    )
    LEAST_DOT = 2  #: of least free · demand, both over the largest machine's
    PACKED = 3  #: of devices in use, else of idle devices of a machine in use, else of an idle one
    FRAGMENTATION = 4  #: where it makes least more of the devices of no use to the next of `mix`


class Device(IntEnum):
    """Which device of its machine a task gets a part of; whole ones are the first that are idle."""

    FIRST = 0  #: the first with room
    TIGHTEST = 1  #: of those with room, that with least
    FRAGMENTATION = 2  #: that of which the rest is of most use to the next of `mix`


@dataclass(frozen=True)
class Mix:
    """Types of tasks, of which the next to come is one.

    Attributes
    ----------
    demand : (K, R) int64
        What a task of each type demands of the cluster's resources, quanta.
    allowed : (K,) int64
        The classes of machines that it may run on, as bits.
    weight : (K,) float64
        How likely the next task is of it; they add up to 1.
    """

    demand: I8
    allowed: I8
    weight: F8

    @classmethod
    def from_columns(cls, columns: Columns, cluster: Cluster) -> Mix:
        """Return the types of a workload's tasks, each as likely as it is frequent."""
        at = {name: i for i, name in enumerate(columns.resources)}
        none = np.zeros(len(columns.stage_job), np.int64)
        demand = [
            columns.stage_demand[:, at[name]] if name in at else none for name in cluster.resources
        ]
        allowed = class_bits(columns.runs_on, cluster.classes)[columns.stage_runs_on]
        types, which = np.unique(np.column_stack([*demand, allowed]), axis=0, return_inverse=True)
        n_tasks = np.bincount(which.ravel(), columns.stage_n_tasks, len(types))
        return cls(types[:, :-1].copy(), types[:, -1].copy(), n_tasks / n_tasks.sum())


@dataclass(frozen=True)
class Choice:
    """How a task's machine, and the device of which it takes a part, are chosen.

    Attributes
    ----------
    machine : Machine
        The first that has room, by default. Only where tasks choose machines: with Fit.STRICT and
        Fit.SKIP; with Fit.PACK machines choose tasks.
    device : Device
        The first that has room, by default.
    mix : Mix or None
        What is asked of the devices next; needed for FRAGMENTATION. What of a machine's devices is
        of no use to a task of a type is all that is free of them, if it can't run there or takes
        none, and else that of the devices with less free than it takes of one (Weng et al., ATC
        2023, §4). Fragmentation is the mean of that over the types.
    """

    machine: Machine = Machine.FIRST
    device: Device = Device.FIRST
    mix: Mix | None = None

    def __post_init__(self) -> None:
        """Raise PolicyError where a mix is needed and not given."""
        needed = (self.machine == Machine.FRAGMENTATION, self.device == Device.FRAGMENTATION)
        if any(needed) and self.mix is None:
            raise PolicyError(
                "to choose by fragmentation a mix of tasks is needed: Choice(mix=...)"
            )
