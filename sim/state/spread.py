"""Tasks of gangs on the nodes that a log names: how many on each, which it rarely says of all.

What it says counts. Otherwise: Slurm takes nodes by their weights, of one weight by consecutive
best fit, all the room of each and the rest on the last
(`sim.engine.kernels.rigid.replan_nodes.choose_nodes`). So are tasks assigned to a job's nodes, in
order of time. Where a later job would then lack room, tasks of earlier gangs
change places among their own nodes, if these had room ever since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np

from sim.base.arrays import F8, I8

Nodes = dict[int, int]
"""Tasks on each machine."""


@dataclass(frozen=True)
class Ran:
    """Jobs that ran, (J,), and the machines that they ran on.

    Attributes
    ----------
    start_s, finish_s : (J,) float64
        When each ran, s.
    machines : sequence of tuple of int
        Machines of each, ascending.
    n_tasks : (J,) int64
        Tasks of each, of which each machine has one at least.
    demand : (J, R) int64
        Demand of one task, in quanta.
    known : sequence of dict
        Tasks of each job on some of its machines, as the log has them; empty if it has none.
    """

    start_s: F8
    finish_s: F8
    machines: Sequence[tuple[int, ...]]
    n_tasks: I8
    demand: I8
    known: Sequence[Nodes] = ()

    def is_loose(self, job: int) -> bool:
        """Tell whether the log leaves open how many tasks each machine had."""
        n = len(self.machines[job])
        return n > 1 and int(self.n_tasks[job]) > n and len(self.known[job]) < n

    def completed(self) -> Ran:
        """Return the jobs with what follows from the known tasks; without those that cannot be."""
        known = []
        for job, machines in enumerate(self.machines):
            own = {m: n for m, n in self.known[job].items() if m in machines} if self.known else {}
            n_left = int(self.n_tasks[job]) - sum(own.values())
            rest = [machine for machine in machines if machine not in own]
            if n_left < len(rest) or (n_left > 0 and not rest) or 0 in own.values():
                own = {}
            elif len(rest) == 1:
                own[rest[0]] = n_left
            known.append(own)
        return replace(self, known=known)


def spread(ran: Ran, capacity: I8, weight: I8) -> list[Nodes]:
    """Return the tasks of each job on its machines; fewer than it has where they lack room.

    Parameters
    ----------
    ran : Ran
        Jobs; of those that start at one time, the ones that leave nothing open come first.
    capacity : (M, R) int64
        Capacity of each machine, in quanta.
    weight : (M,) int64
        Those of the least weight are taken first.
    """
    return _Spread(ran.completed(), capacity, weight).all()


class _Spread:
    """Jobs assigned in order of time, and the room that they leave."""

    def __init__(self, ran: Ran, capacity: I8, weight: I8) -> None:
        self.ran, self.capacity, self.free = ran, capacity, capacity.copy()
        self.weight = weight
        self.nodes: list[Nodes] = [{} for _ in ran.machines]
        self.running: list[tuple[float, int]] = []  # end and job, a heap

    def all(self) -> list[Nodes]:
        ran = self.ran
        n_machines = np.array([len(machines) for machines in ran.machines])
        loose = np.array([ran.is_loose(job) for job in range(len(n_machines))])
        for job in np.lexsort((n_machines, loose, ran.start_s)).tolist():
            while self.running and self.running[0][0] <= ran.start_s[job]:
                _, ended = heappop(self.running)
                for machine, n in self.nodes[ended].items():
                    self.free[machine] += n * ran.demand[ended]
            own = self.assign(job)
            for machine, n in own.items():
                self.free[machine] -= n * ran.demand[job]
            self.nodes[job] = own
            heappush(self.running, (float(ran.finish_s[job]), job))
        return self.nodes

    def assign(self, job: int) -> Nodes:
        machines, n_left = self.ran.machines[job], int(self.ran.n_tasks[job])
        known = self.ran.known[job]
        if not self.ran.is_loose(job):
            own = dict.fromkeys(machines, n_left // len(machines))
            if len(known) == len(machines):
                own = dict(known)
            for machine, n in own.items():
                self.make_room(job, machine, n)
            return own
        for machine in machines:
            self.make_room(job, machine, known.get(machine, 1))
        own = dict(known)
        n_left -= sum(known.values())
        machines = tuple(machine for machine in self.in_order(job) if machine not in known)
        for n_others, machine in zip(range(len(machines))[::-1], machines, strict=True):
            own[machine] = max(min(self.room(job, machine), n_left - n_others), 1)
            n_left -= own[machine]
        for machine in machines:
            if n_left > 0:
                self.make_room(job, machine, own[machine] + n_left)
                more = max(min(self.room(job, machine) - own[machine], n_left), 0)
                own[machine] += more
                n_left -= more
        return own

    def in_order(self, job: int) -> tuple[int, ...]:
        """Return the machines of a job in the order in which consecutive best fit takes them."""
        order: list[int] = []
        left, known = int(self.ran.n_tasks[job]), self.ran.known[job]
        room = {
            machine: known.get(machine, self.room(job, machine))
            for machine in self.ran.machines[job]
        }
        for weight in sorted({int(self.weight[machine]) for machine in room}):
            rows: list[list[int]] = []
            for machine in (m for m in room if self.weight[m] == weight):
                if rows and rows[-1][-1] == machine - 1:
                    rows[-1].append(machine)
                else:
                    rows.append([machine])
            while rows:
                sums = [sum(room[machine] for machine in row) for row in rows]
                enough = [total for total in sums if total >= left]
                row = rows.pop(sums.index(min(enough) if enough else max(sums)))
                order += row
                left -= sum(room[machine] for machine in row)
        return tuple(order)

    def room(self, job: int, machine: int) -> int:
        """Return how many tasks of a job fit on a machine."""
        return _room(self.free[machine], self.ran.demand[job])

    def make_room(self, job: int, machine: int, n: int) -> None:
        """Move tasks of other gangs away until `n` of a job fit on a machine, if that goes."""
        if self.room(job, machine) >= n:
            return
        for _, other in sorted(self.running):
            known = self.ran.known[other]
            if not self.ran.is_loose(other) or machine not in self.nodes[other] or machine in known:
                continue
            for target in self.ran.machines[other]:
                while (
                    target != machine
                    and target not in known
                    and self.nodes[other][machine] > 1
                    and self.room(job, machine) < n
                    and self.had_room(other, target)
                ):
                    for place, sign in ((machine, -1), (target, 1)):
                        self.free[place] -= sign * self.ran.demand[other]
                        self.nodes[other][place] += sign

    def had_room(self, job: int, machine: int) -> bool:
        """Tell whether a machine had room for one more task of a job ever since it started."""
        ran, since_s = self.ran, self.ran.start_s[job]
        overlapping = [
            (ran.start_s[j], ran.finish_s[j], own[machine] * ran.demand[j])
            for j, own in enumerate(self.nodes)
            if machine in own and ran.finish_s[j] > since_s
        ]
        return all(
            _room(
                self.capacity[machine] - sum(use for a, b, use in overlapping if a <= time_s < b),
                ran.demand[job],
            )
            for time_s in {since_s, *(a for a, _, _ in overlapping if a > since_s)}
        )


def _room(free: I8, demand: I8) -> int:
    """Return how many of a demand fit."""
    is_demanded = demand > 0
    return (
        max(int((free[is_demanded] // demand[is_demanded]).min()), 0)
        if is_demanded.any()
        else 2**31
    )
