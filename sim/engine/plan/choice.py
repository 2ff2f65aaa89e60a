"""Machine choice: the machine and device of a task, among those with room for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.errors import PolicyError
from sim.cluster.allowed import allowed_codes
from sim.cluster.cluster import Cluster
from sim.workload.columns import Columns


class Machine(IntEnum):
    """Rule for the machine of a task, among those with room; of equal ones the first."""

    FIRST = 0  #: the first
    BEST_FIT = 1  #: least room left after it: Σ over resources of room / the largest machine's
    LEAST_DOT = 2  #: least free · demand, both over the largest machine's
    PACKED = 3  #: devices in use first, then idle devices of a machine in use, then an idle machine
    FRAGMENTATION = 4  #: least increase of the devices' room that the next task of `mix` can't use
    FASTEST = (
        5  #: greatest speed of its class for the stage (a gang's first), `Columns.stage_speed`
    )


class Device(IntEnum):
    """Rule for the device of which a task takes a part; whole devices are the first idle ones."""

    FIRST = 0  #: the first with room
    TIGHTEST = 1  #: the one with the least room that suffices
    FRAGMENTATION = 2  #: the one whose rest is of most use to the next task of `mix`


@dataclass(frozen=True)
class Mix:
    """Task types of a workload, one of which the next task is of, with their probabilities.

    Attributes
    ----------
    demand : (K, R) int64
        Demand of a task of each type for the cluster's resources, quanta.
    allowed : (K,) int64
        The classes of machines that it may run on, as bits.
    weight : (K,) float64
        Probability that the next task is of the type; they add up to 1.
    """

    demand: I8
    allowed: I8
    weight: F8

    @classmethod
    def from_columns(cls, columns: Columns, cluster: Cluster) -> Mix:
        """Return the types of a workload's tasks, each as likely as it is frequent."""
        column = {name: i for i, name in enumerate(columns.resources)}
        none = np.zeros(len(columns.stage_job), np.int64)
        demand = [
            columns.stage_demand[:, column[name]] if name in column else none
            for name in cluster.resources
        ]
        allowed = allowed_codes(columns, cluster)
        types, type_index = np.unique(
            np.column_stack([*demand, allowed]), axis=0, return_inverse=True
        )
        n_tasks = np.bincount(type_index.ravel(), columns.stage_n_tasks, len(types))
        return cls(types[:, :-1].copy(), types[:, -1].copy(), n_tasks / n_tasks.sum())


@dataclass(frozen=True)
class Choice:
    """Choice of a task's machine, and of the device of which it takes a part.

    Attributes
    ----------
    machine : Machine
        The first that has room, by default. Only where tasks choose machines: with Fit.STRICT and
        Fit.SKIP; with Fit.PACK machines choose tasks.
    device : Device
        The first that has room, by default.
    mix : Mix or None
        Types of the next task; needed for FRAGMENTATION. The part of a machine's devices that is
        of no use to a task of a type is all that is free of them, if it can't run there or takes
        none, and else that of the devices with less free than it takes of one (Weng et al., ATC
        2023, §4). Fragmentation is the mean of that over the types.
    """

    machine: Machine = Machine.FIRST
    device: Device = Device.FIRST
    mix: Mix | None = None

    def __post_init__(self) -> None:
        """Raise PolicyError where a mix is needed and missing."""
        needed = (self.machine == Machine.FRAGMENTATION, self.device == Device.FRAGMENTATION)
        if any(needed) and self.mix is None:
            raise PolicyError(
                "choosing by fragmentation needs a mix of task types: Choice(mix=...)"
            )
