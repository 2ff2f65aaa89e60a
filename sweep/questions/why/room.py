"""Room in a run over time: how many tasks of some demand would find room at each instant."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from sim.base.arrays import I8, Mask
from sim.cluster.allowed import allowed_codes
from sim.cluster.domains import asked_levels
from sim.cluster.reservations import jobs_in
from sweep.questions.why.attempts import Attempts
from sweep.questions.why.steps import Steps


class Request(NamedTuple):
    """Room that is asked for: `n` slots of a demand, at most `per_machine` on one."""

    demand: tuple[int, ...]
    codes: int  # of machines, as bits
    n: int
    per_machine: int
    reservation: int  # that the job asks for, -1 for none
    may_use: int  # reservations, as bits
    level: int = -1  # of domains of machines, one of which has it all


class Room:
    """Free room of the machines of a run, as the kernel counts it: in quanta."""

    def __init__(self, attempts: Attempts) -> None:
        self.attempts = attempts
        run = attempts.run
        self._codes = allowed_codes(run.workload.columns, run.cluster)
        n_machines = len(attempts.capacity)
        classes = run.cluster.machine_class
        code = classes if len(classes) else np.zeros(n_machines, np.int64)
        self._machine_bit = np.left_shift(1, code.astype(np.int64))
        self._own, self._may_use = jobs_in(run.workload.columns, run.cluster.reservations)
        self._level = asked_levels(run.workload.columns, run.cluster)[0]
        self._known: dict[Request, tuple[Steps, ...]] = {}
        self._events()

    def _events(self) -> None:
        """Set the changes of each machine's room, by machine and time, and those by time."""
        a, cluster = self.attempts, self.attempts.run.cluster
        taken = a.demand[a.stage] * a.count[:, None]
        down, reserved = cluster.outages, cluster.reservations
        n_names = len(reserved.names)
        closed = np.zeros((len(down) + len(reserved), 1 + n_names), np.int64)
        closed[: len(down), 0] = 1
        closed[len(down) + np.arange(len(reserved)), 1 + reserved.code] = 1
        closing = np.concatenate([down.machine, reserved.machine]).astype(np.int64)
        begins = np.concatenate([down.down_s, reserved.from_s])
        ends = np.concatenate([down.up_s, reserved.until_s])
        machine = np.concatenate([a.machine, a.machine, closing, closing])
        times = np.concatenate([a.placed_s, a.held_s, begins, ends])
        n, none = len(closing), np.zeros((2 * len(taken), 1 + n_names), np.int64)
        used = np.concatenate([taken, -taken, np.zeros((2 * n, taken.shape[1]), np.int64)])
        shut = np.concatenate([none, closed, -closed])
        order = np.lexsort((times, machine))
        self._machine, self._times = machine[order], times[order]
        # what is held on a machine is 0 at its end, so one sum runs through all of them
        self._free = a.capacity[self._machine] - np.cumsum(used[order], axis=0)
        self._shut = np.cumsum(shut[order], axis=0)
        self._first = np.diff(self._machine, prepend=-1) != 0
        self._by_time = np.argsort(self._times, kind="stable")

    @cached_property
    def is_closed_ever(self) -> bool:
        """True if a machine is out of service or reserved at some time."""
        return bool(self._shut.any())

    def request(self, job: int, stage: int, n: int) -> Request:
        """Return the request of a task of a stage; with `n` above 1 of its gang.

        If slots of a gang are unequal, it asks for more than that: each is at least the smallest.
        """
        columns = self.attempts.columns
        demand, codes = self.attempts.demand[stage], int(self._codes[stage])
        if n > 1:
            stages = slice(*columns.job_stage0[job : job + 2].tolist())
            demand = self.attempts.demand[stages].min(axis=0)
            codes = int(np.bitwise_or.reduce(self._codes[stages]))
        is_single = columns.job_one_per_node[job] and not self.attempts.run.cluster.unit
        return Request(
            tuple(demand.tolist()),
            codes,
            n,
            1 if is_single else n,
            int(self._own[job]),
            int(self._may_use[job]),
            int(self._level[job]) if n > 1 else -1,
        )

    def may_host(self, request: Request) -> Mask:
        """Tell which machines a request may use, (M,)."""
        mask: Mask = (self._machine_bit & request.codes) > 0
        return mask

    def steps(self, request: Request) -> tuple[Steps, ...]:
        """Return the slots that find room: of each resource alone, of all, and on open machines."""
        if request not in self._known:
            self._known[request] = self._count(request)
        return self._known[request]

    def domain_steps(self, request: Request) -> Steps:
        """Return the slots on open machines of the domain with the most, of the level asked for."""
        host = self.may_host(request)
        fits, empty = self._slots(request)
        slots, begin = self._on_open(request, fits[-1], empty[-1])
        domain = self.attempts.run.cluster.topology.domain[request.level]
        curves = [self._sum(slots, begin, host & (domain == d)) for d in np.unique(domain)]
        times = np.unique(np.concatenate([curve.times for curve in curves]))
        values = np.array([[curve.values[0], *curve.values_at(times)] for curve in curves])
        return Steps(times, values.max(axis=0).astype(np.int64))

    def _count(self, request: Request) -> tuple[Steps, ...]:
        host = self.may_host(request)
        fits, empty = self._slots(request)
        steps = [self._sum(f, e, host) for f, e in zip(fits, empty, strict=True)]
        if not self.is_closed_ever:
            return (*steps, steps[-1])
        return (*steps, self._sum(*self._on_open(request, fits[-1], empty[-1]), host))

    def _slots(self, request: Request) -> tuple[list[I8], list[I8]]:
        """Return slots after each event, and on empty machines: of each resource, and of all."""
        demand = np.array(request.demand, np.int64)
        fits, empty = (
            [_slots(room[:, [r]], demand[[r]], request.per_machine) for r in range(len(demand))]
            for room in (self._free, self.attempts.capacity)
        )
        return [*fits, np.minimum.reduce(fits)], [*empty, np.minimum.reduce(empty)]

    def _on_open(self, request: Request, slots: I8, empty: I8) -> tuple[I8, I8]:
        """Return slots of open machines alone, after each event and before the first."""
        is_open = self._shut[:, 0] == 0
        for name in range(self._shut.shape[1] - 1):
            if name == request.reservation:
                is_open &= self._shut[:, 1 + name] > 0
            elif not request.may_use >> name & 1:
                is_open &= self._shut[:, 1 + name] == 0
        return np.where(is_open, slots, 0), empty * (0 if request.reservation >= 0 else 1)

    def _sum(self, slots: I8, empty: I8, host: Mask) -> Steps:
        """Sum over machines: `slots` after each event, `empty` before the first of a machine."""
        before = np.where(self._first, empty[self._machine], np.roll(slots, 1))
        change = np.where(host[self._machine], slots - before, 0)[self._by_time]
        times = self._times[self._by_time]
        last = np.append(np.flatnonzero(np.diff(times)), len(times) - 1)
        values = int(empty[host].sum()) + np.cumsum(change)[last]
        return Steps(times[last], np.concatenate([[empty[host].sum()], values]).astype(np.int64))


def _slots(free: I8, demand: I8, per_machine: int) -> I8:
    """Return how many slots of a demand of one resource find room, at most `per_machine`."""
    if not demand[0]:
        return np.full(len(free), per_machine, np.int64)
    slots: I8 = np.clip(free[:, 0] // demand[0], 0, per_machine)
    return slots
