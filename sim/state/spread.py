"""Tasks of gangs on the nodes that a log names: how many on each, which it rarely says of all.

What it says counts. Otherwise: Slurm takes nodes by their weights, of one weight by consecutive
best fit, all the room of each and the rest on the last
(`sim.engine.kernels.rigid.replan_nodes.choose_nodes`). So are tasks assigned to a job's nodes, in
order of time. Where some time a machine then lacks room, tasks of gangs change places among their
own nodes, as few as suffice, so that all had room as long as they ran: an integer program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any

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
    """Return the tasks of each job on its machines, which lack room only if that can't be helped.

    Parameters
    ----------
    ran : Ran
        Jobs; of those that start at one time, the ones that leave nothing open come first.
    capacity : (M, R) int64
        Capacity of each machine, in quanta.
    weight : (M,) int64
        Those of the least weight are taken first.
    """
    spreading = _Spread(ran.completed(), capacity, weight)
    return _Mended(spreading.ran, capacity, spreading.all()).all()


class _Spread:
    """Jobs assigned in order of time, and the room that they leave."""

    def __init__(self, ran: Ran, capacity: I8, weight: I8) -> None:
        self.ran, self.free, self.weight = ran, capacity.copy(), weight
        self.running: list[tuple[float, int]] = []  # end and job, a heap

    def all(self) -> list[Nodes]:
        ran, nodes = self.ran, [Nodes() for _ in self.ran.machines]
        n_machines = np.array([len(machines) for machines in ran.machines])
        loose = np.array([ran.is_loose(job) for job in range(len(n_machines))])
        for job in np.lexsort((n_machines, loose, ran.start_s)).tolist():
            while self.running and self.running[0][0] <= ran.start_s[job]:
                _, ended = heappop(self.running)
                for machine, n in nodes[ended].items():
                    self.free[machine] += n * ran.demand[ended]
            nodes[job] = self.assign(job)
            for machine, n in nodes[job].items():
                self.free[machine] -= n * ran.demand[job]
            heappush(self.running, (float(ran.finish_s[job]), job))
        return nodes

    def assign(self, job: int) -> Nodes:
        machines, n_left = self.ran.machines[job], int(self.ran.n_tasks[job])
        known = self.ran.known[job]
        if not self.ran.is_loose(job):
            if len(known) == len(machines):
                return dict(known)
            return dict.fromkeys(machines, n_left // len(machines))
        own = dict(known)
        n_left -= sum(known.values())
        machines = tuple(machine for machine in self.in_order(job) if machine not in known)
        for n_others, machine in zip(range(len(machines))[::-1], machines, strict=True):
            own[machine] = max(min(self.room(job, machine), n_left - n_others), 1)
            n_left -= own[machine]
        own[machines[-1]] += n_left
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


class _Mended:
    """Assigned jobs, of which tasks change places where machines lack room."""

    def __init__(self, ran: Ran, capacity: I8, nodes: list[Nodes]) -> None:
        self.ran, self.capacity, self.nodes = ran, capacity, nodes
        self.users: list[list[int]] = [[] for _ in capacity]  # jobs of each machine
        for job, machines in enumerate(ran.machines):
            for machine in machines:
                self.users[machine].append(job)
        self.open = [
            () if not ran.is_loose(job) else tuple(m for m in own if m not in ran.known[job])
            for job, own in enumerate(nodes)
        ]  # machines of each job, of whose tasks the log says nothing

    def all(self) -> list[Nodes]:
        for machine, users in enumerate(self.users):
            if any(machine in self.open[job] for job in users):
                for time_s in self.crowded(machine).tolist():
                    self.mend(machine, time_s)
        return self.nodes

    def crowded(self, machine: int) -> F8:
        """Return the starts of jobs at which a machine lacks room, ascending, s."""
        users = np.array(self.users[machine])
        counts = np.array([self.nodes[j][machine] for j in users.tolist()])
        amount = counts[:, None] * self.ran.demand[users]
        times = np.unique(self.ran.start_s[users])
        use = np.zeros((len(times), amount.shape[1]), np.int64)
        for event_s, sign in ((self.ran.start_s[users], 1), (self.ran.finish_s[users], -1)):
            order = np.argsort(event_s, kind="stable")
            total = np.vstack([0 * amount[:1], np.cumsum(amount[order], axis=0)])
            use += sign * total[np.searchsorted(event_s[order], times, side="right")]
        lacking: F8 = times[(use > self.capacity[machine]).any(axis=1)]
        return lacking

    def mend(self, machine: int, time_s: float) -> None:
        """Give a machine room at a time, by the fewest moves among the fewest jobs that suffice."""
        if (self.use(machine, time_s) <= self.capacity[machine]).all():
            return  # what was moved before suffices
        jobs = {j for j in self.running(machine, time_s) if machine in self.open[j]}
        n_before = 0
        while n_before < len(jobs):
            if self.solve(sorted(jobs), machine, time_s):
                return
            n_before = len(jobs)
            jobs |= {other for job in jobs for other in self.neighbours(job)}

    def neighbours(self, job: int) -> set[int]:
        """Return the jobs that may leave it more room on a machine."""
        start_s, finish_s = self.ran.start_s, self.ran.finish_s
        return {
            j
            for machine in self.open[job]
            for j in self.users[machine]
            if machine in self.open[j] and start_s[j] < finish_s[job] and start_s[job] < finish_s[j]
        }

    def running(self, machine: int, time_s: float) -> list[int]:
        start_s, finish_s = self.ran.start_s, self.ran.finish_s
        return [j for j in self.users[machine] if start_s[j] <= time_s < finish_s[j]]

    def use(self, machine: int, time_s: float) -> I8:
        running = self.running(machine, time_s)
        counts = np.array([self.nodes[j][machine] for j in running], np.int64)
        use: I8 = (counts[:, None] * self.ran.demand[running]).sum(axis=0)
        return use

    def solve(self, jobs: Sequence[int], machine: int, time_s: float) -> bool:
        """Move tasks of some jobs so that a machine has room at a time; False if that can't be.

        Elsewhere, and at other times, none gets less room than it has, or than it needs.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp  # 0.3 s to import: rarely needed

        places = [(j, m) for j in jobs for m in self.open[j]]
        row_of = {place: row for row, place in enumerate(places)}
        n = len(places)
        now = np.array([self.nodes[j][m] for j, m in places])
        # of as few moves those to machines that were to be taken first
        ranks = [self.open[j].index(m) / 1024 for j, m in places]
        rows, low, high = [], [], []

        def add(coefficients: dict[int, Any], at_least: float, at_most: float) -> None:
            row = np.zeros(2 * n)
            row[[*coefficients]] = [*coefficients.values()]
            rows.append(row)
            low.append(at_least)
            high.append(at_most)

        for j in jobs:
            total = sum(self.nodes[j][m] for m in self.open[j])
            add({row_of[j, m]: 1 for m in self.open[j]}, total, total)
        for m in sorted({m for _, m in places}):
            own = [j for j in jobs if (j, m) in row_of]
            times = {self.ran.start_s[j] for j in self.users[m]} | {time_s}
            for t in sorted(times):
                running = [j for j in own if self.ran.start_s[j] <= t < self.ran.finish_s[j]]
                if not running:
                    continue
                use = self.use(m, t)
                limit = self.capacity[m]
                if (m, t) != (machine, time_s):
                    limit = np.maximum(limit, use)
                for r in np.flatnonzero(self.ran.demand[running].any(axis=0)).tolist():
                    fixed = use[r] - sum(self.nodes[j][m] * self.ran.demand[j, r] for j in running)
                    demands = {row_of[j, m]: self.ran.demand[j, r] for j in running}
                    add(demands, -np.inf, limit[r] - fixed)
        for row in range(n):  # the moves of a place, which are to be few
            add({row: 1, n + row: -1}, -np.inf, now[row])
            add({row: -1, n + row: -1}, -np.inf, -now[row])
        solution = milp(
            np.array([*ranks, *[1.0] * n]),
            constraints=LinearConstraint(np.array(rows), low, high),
            integrality=np.ones(2 * n),
            bounds=Bounds(np.repeat([1.0, 0.0], n), np.inf),
            options={"mip_rel_gap": 0},
        )
        if solution.x is None:
            return False
        for (j, m), tasks in zip(places, np.rint(solution.x[:n]).astype(int).tolist(), strict=True):
            self.nodes[j][m] = tasks
        return True


def _room(free: I8, demand: I8) -> int:
    """Return how many of a demand fit."""
    is_demanded = demand > 0
    return (
        max(int((free[is_demanded] // demand[is_demanded]).min()), 0)
        if is_demanded.any()
        else 2**31
    )
