"""Components of gangs: slots of unequal demands, or on unequal machines, that are held together.

A gang whose stages that start at once have as many tasks as it holds slots (``min_tasks``), of
unequal demands or machines, is *heterogeneous*: it has a component for each set of like stages
among them, with a slot for each of their tasks. Later stages use the slots of the first component
whose slots hold their tasks. All other gangs have one component, whose slots each hold a task of
any stage; so has one with a later stage that no component holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sim.base.arrays import I8, Mask, offsets

if TYPE_CHECKING:
    from sim.workload.columns import Columns

UNLIMITED = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class Machines:
    """Empty machines.

    Attributes
    ----------
    capacity : (M, R) int64
        Quanta.
    code : (M,) int64
        Code of the class and partitions of each.
    device : int
        Resource that comes in devices, -1 for none.
    device_quanta : int
        Quanta of each.
    """

    capacity: I8
    code: I8
    device: int = -1
    device_quanta: int = 1


@dataclass(frozen=True, eq=False)
class Components:
    """Components of the heterogeneous gangs of J jobs, in the order in which they get room.

    Those of which the empty machines hold the fewest slots come first.

    Attributes
    ----------
    job0 : (J+1,) int64
        Components of job j are ``job0[j]`` to ``job0[j + 1]``; none of other jobs.
    size : (C,) int64
        Slots.
    stage : (C,) int64
        A stage whose task fills a slot, and runs on its machines.
    stage_component : (G,) int64
        Component in whose slots the tasks of each stage run, -1 for none.
    """

    job0: I8
    size: I8
    stage: I8
    stage_component: I8

    @property
    def is_heterogeneous(self) -> Mask:
        """Tell which jobs have components, (J,)."""
        has_some: Mask = np.diff(self.job0) > 0
        return has_some


def gang_components(
    columns: Columns, demand: I8, allowed: I8, machines: Machines
) -> Components | None:
    """Return the components of the heterogeneous gangs; None if there is none.

    Parameters
    ----------
    demand : (G, R) int64
        Demand of a task of each stage, quanta.
    allowed : (G,) int64
        Codes of machines on which each stage may run, as bits.
    machines : Machines
        Those of the cluster.
    """
    if not columns.job_min_tasks.any() or len(demand) < len(columns.stage_job):
        return None  # of a pool of slots all are equal
    n_tasks, first = np.diff(columns.stage_task0), columns.job_stage0[:-1]
    is_first = (columns.stage_n_barrier + columns.stage_n_o2o) == 0
    at_once = np.add.reduceat(np.where(is_first, n_tasks, 0), first)
    holds_all = (columns.job_min_tasks > 0) & (at_once == columns.job_min_tasks)
    candidates = np.flatnonzero(holds_all & (np.add.reduceat(is_first, first) > 1))
    if not len(candidates):
        return None
    known = np.bitwise_or.reduce(np.left_shift(1, machines.code.astype(np.int64)))
    allowed = allowed & known
    kind = np.unique(np.column_stack([demand, allowed]), axis=0, return_inverse=True)[1].ravel()
    stage_component, n_slots = np.full(len(kind), -1, np.int64), _Slots(demand, allowed, machines)
    counts = np.zeros(len(first), np.int64)
    sizes: list[int] = []
    stages: list[int] = []
    for job in candidates.tolist():
        own = range(int(first[job]), int(columns.job_stage0[job + 1]))
        by_kind: dict[int, list[int]] = {}
        for g in (g for g in own if is_first[g]):
            by_kind.setdefault(int(kind[g]), []).append(g)
        if len(by_kind) == 1:
            continue
        places = n_slots.order(by_kind, is_single=bool(columns.job_one_per_node[job]))
        component = {g: k for k, like in enumerate(places) for g in like}
        for g in (g for g in own if not is_first[g]):
            component[g] = _holder(g, places, demand, allowed)
        if -1 in component.values():
            continue
        for g, k in component.items():
            stage_component[g] = len(sizes) + k
        counts[job] = len(places)
        sizes += [int(n_tasks[like].sum()) for like in places]
        stages += [like[0] for like in places]
    if not sizes:
        return None
    return Components(offsets(counts), np.array(sizes), np.array(stages), stage_component)


class _Slots:
    """Slots that the empty machines hold of the tasks of each kind of stages."""

    def __init__(self, demand: I8, allowed: I8, machines: Machines) -> None:
        self.demand, self.allowed, self.machines = demand, allowed, machines
        self.known: dict[tuple[int, bool], int] = {}

    def order(self, by_kind: dict[int, list[int]], *, is_single: bool) -> list[list[int]]:
        """Return like stages, those of the fewest slots first."""
        for kind, (g, *_) in by_kind.items():
            if (kind, is_single) not in self.known:
                fits = room(self.demand[g], int(self.allowed[g]), self.machines, is_single)
                self.known[kind, is_single] = int(fits.sum())
        n_slots = {like[0]: self.known[kind, is_single] for kind, like in by_kind.items()}
        return sorted(by_kind.values(), key=lambda like: (n_slots[like[0]], like[0]))


def needs_at_once(columns: Columns, demand: I8, components: Components | None) -> I8:
    """Return what all slots of each gang take together, of other jobs the largest task, (J, R)."""
    need: I8 = np.maximum.reduceat(demand, columns.job_stage0[:-1], axis=0)
    need = need * np.maximum(columns.job_min_tasks, 1)[:, None]
    if components is not None:
        several = components.is_heterogeneous
        taken = demand[components.stage] * components.size[:, None]
        need[several] = np.add.reduceat(taken, components.job0[:-1][several], axis=0)
    return need


def _holder(g: int, groups: list[list[int]], demand: I8, allowed: I8) -> int:
    """Return the first group of stages whose slots hold the tasks of stage `g`, -1 for none."""
    for k, (like, *_) in enumerate(groups):
        if (demand[g] <= demand[like]).all() and not allowed[like] & ~allowed[g]:
            return k
    return -1


def room(
    slot: I8, allowed: int, machines: Machines, one_per_node: bool, free: I8 | None = None
) -> I8:
    """Return how many slots of that demand each machine holds, (M,): empty, or of `free` room."""
    capacity = machines.capacity if free is None else free
    takes = slot > 0
    fits: I8 = np.full(len(capacity), UNLIMITED, np.int64)
    if takes.any():
        fits = (capacity[:, takes] // slot[takes]).min(axis=1)
    if machines.device >= 0 and free is None:
        amount, devices = slot[machines.device], capacity[:, machines.device]
        fits = np.minimum(fits, by_devices(amount, devices, machines.device_quanta))
    fits = np.where((allowed >> machines.code) & 1 > 0, fits, 0)
    return np.minimum(fits, 1) if one_per_node else fits


def by_devices(amount: I8, capacity: I8, per: int) -> I8:
    """Return how many slots, of that amount each, the devices of empty machines hold.

    `per`: quanta of a device.
    """
    n_devices = capacity // per
    part = n_devices * (per // np.clip(amount, 1, per))
    whole = n_devices // np.maximum(amount // per, 1)
    return np.where(amount == 0, UNLIMITED, np.where(amount < per, part, whole))


def fit_together(
    slots: I8, allowed: I8, size: I8, machines: Machines, *, one_per_node: bool
) -> int:
    """Place components in turn on the first empty machines with room; return how many slots fit.

    All of them, if components fit in their order. It stops at the first that does not.
    """
    free = machines.capacity.copy()
    devices = _devices(machines)
    taken = np.zeros(len(free), bool)
    n_placed = 0
    for slot, codes, n in zip(slots, allowed.tolist(), size.tolist(), strict=True):
        left = n
        fits = room(slot, codes, machines, one_per_node, free)
        fits[taken] = 0
        for m in np.flatnonzero(fits > 0).tolist():
            n_slots = min(int(fits[m]), left)
            if machines.device >= 0:
                n_slots = _take_devices(devices[m], int(slot[machines.device]), machines, n_slots)
            free[m] -= n_slots * slot
            taken[m] = one_per_node and n_slots > 0
            left -= n_slots
            if left == 0:
                break
        n_placed += n - left
        if left:
            break
    return n_placed


def _devices(machines: Machines) -> list[list[int]]:
    """Return the free quanta of each device of each machine."""
    if machines.device < 0:
        return []
    counts = (machines.capacity[:, machines.device] // machines.device_quanta).tolist()
    return [[machines.device_quanta] * n for n in counts]


def _take_devices(devices: list[int], amount: int, machines: Machines, n_slots: int) -> int:
    """Take devices of a machine for so many slots, or as many as find some; return how many."""
    if amount == 0:
        return n_slots
    for taken in range(n_slots):
        n = max(amount // machines.device_quanta, 1)
        share = min(amount, machines.device_quanta)
        with_room = [d for d, free in enumerate(devices) if free >= share][:n]
        if len(with_room) < n:
            return taken
        for d in with_room:
            devices[d] -= share
    return n_slots
