"""The naive simulator: slow, obvious, and the judge of the kernel.

It keeps plain Python lists, looks at everything anew at every instant, and knows nothing of heaps,
dirty machines or stale entries. The kernel must give the same bits.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np

from sim.cluster import Cluster
from sim.columns import capacity_quanta
from sim.plan import Batch, Event, Fit, Order, Plan, World
from sim.workload import Workload

INF = math.inf


def simulate(workload: Workload, cluster: Cluster, policy, seed: int = 0) -> SimpleNamespace:
    """Run like `sim.simulate`; returns job and task times and the batches the policy saw."""
    return _Run(workload, cluster, policy, seed).go()


class _Run:
    def __init__(self, workload, cluster, policy, seed):
        c = self.c = workload.columns
        self.policy = policy
        n_jobs, n_stages, n_tasks = len(c.job_submit), len(c.stage_job), len(c.task_duration)
        self.n_jobs = n_jobs
        self.plan = Plan(n_jobs, n_stages, n_tasks)
        self.view = {
            "left": np.zeros(n_jobs, "i4"),
            "running": np.zeros(n_jobs, "i4"),
            "started": np.zeros(n_jobs, "i4"),
            "done": np.zeros(n_jobs, "i4"),
            "done_work": np.zeros(n_jobs),
            "start": np.full(n_jobs, np.nan),
            "finish": np.full(n_jobs, np.nan),
        }
        self.world = World(c, cluster, seed, self.view)
        self.memory = policy.begin(self.world, self.plan)
        self._cluster(workload, cluster)
        self.stages_of = [range(c.job_stage0[j], c.job_stage0[j + 1]) for j in range(n_jobs)]
        self.size = np.diff(c.stage_task0).tolist()
        parents = np.repeat(np.arange(n_stages), np.diff(c.edge0))
        self.parents = [[] for _ in range(n_stages)]
        for p, child, kind in zip(parents, c.edge_child, c.edge_kind, strict=True):
            self.parents[child].append((int(p), int(kind)))
        self.view["left"][:] = [sum(self.size[g] for g in s) for s in self.stages_of]
        self.task_done = [False] * n_tasks
        self.task_begun = [False] * n_tasks
        self.task_start = np.full(n_tasks, np.nan)
        self.task_finish = np.full(n_tasks, np.nan)
        self.task_machine = np.full(n_tasks, -1, "i4")
        self.running = []  # (end, task, stage, machine, among first k, held)
        self.arrived = [False] * n_jobs
        work = c.stage_work * self.plan.stages["weight"]
        self.remaining = np.add.reduceat(work, c.job_stage0[:-1]).tolist()
        self.attained = [0.0] * n_jobs
        self.since = [0.0] * n_jobs
        self.first_done = [0] * n_jobs
        self.idle = [None] * n_jobs  # machines of idle held slots; None: not admitted
        self.used = [[0] * len(self.total) for _ in range(n_jobs)]
        self.now = 0.0
        self.timer = self.plan.timer_s
        self.events, self.batches = [], []

    def _cluster(self, workload, cluster):
        c = self.c
        if cluster.unit:
            quantum = np.ones(1)
            self.demand = [[1]] * len(c.stage_job)
        else:
            known = dict(zip(c.resources, c.quantum, strict=True))
            quantum = np.array([known.get(r, 1.0) for r in cluster.resources])
            columns = [
                c.stage_demand[:, c.resources.index(r)] if r in c.resources else 0 * c.stage_job
                for r in cluster.resources
            ]
            self.demand = np.stack(columns, axis=1).tolist()
        self.capacity = capacity_quanta(cluster.capacity, quantum).tolist()
        self.free = [list(row) for row in self.capacity]
        self._looked_at(cluster)
        self.total = [sum(column) for column in zip(*self.capacity, strict=True)]
        self.org = [0] * self.n_jobs
        self.cap, self.org_weight = [[INF] * len(self.total)], [1.0]
        if cluster.queue_mode != "global":
            names = c.queue_names
            table = cluster.queue_share or {n: 1 / len(names) for n in names}
            self.org = c.job_queue.tolist()
            self.org_weight = [table[n] for n in names]
            self.cap = [
                [INF if cluster.queue_mode == "weighted" else x for x in row]
                for row in capacity_quanta(
                    np.outer(self.org_weight, self.total), np.ones(1)
                ).tolist()
            ]

    def _looked_at(self, cluster):
        """Which resources decide what fits: those that can't be overbooked first."""
        names, wanted = cluster.resources, self.plan.fit_resources or cluster.resources
        rigid = [r for r, name in enumerate(names) if name not in cluster.fungible]
        self.fungible = [r for r, name in enumerate(names) if name in cluster.fungible]
        self.looked = rigid + [r for r in self.fungible if names[r] in wanted]
        self.overbooks = len(self.looked) < len(names)
        self.pace = {}  # of each running task: rate, what is left at that rate's begin, since when

    # ---- the loop

    def go(self):
        while (self.view["left"] > 0).any():
            self.now = max(self.now, self._next())
            assert self.now < INF, "stuck"
            self.events = []
            for entry in sorted(e for e in self.running if e[0] <= self.now):
                self._end(entry)
            for j in range(self.n_jobs):
                while self._crossing(j) <= self.now:
                    self._cross(j)
            if self.timer <= self.now:
                self.timer = INF
                self._emit(Event.TIMER, -1)
            for j in range(self.n_jobs):
                if not self.arrived[j] and self.c.job_submit[j] <= self.now:
                    self.arrived[j] = True
                    self.since[j] = self.now
                    self._emit(Event.JOB_ARRIVED, j)
            if self.events:
                self._ask_policy()
            self._dispatch()
            self._stretch()
        return SimpleNamespace(
            job_start=self.view["start"],
            job_finish=self.view["finish"],
            task_start=self.task_start,
            task_finish=self.task_finish,
            task_machine=self.task_machine,
            batches=self.batches,
        )

    def _next(self):
        times = [self.timer] + [e[0] for e in self.running]
        times += [t for j, t in enumerate(self.c.job_submit) if not self.arrived[j]]
        times += [self._crossing(j) for j in range(self.n_jobs)]
        return min(times)

    def _emit(self, kind, row):
        if self.policy.events & kind:
            self.events.append((int(kind), int(row)))

    def _ask_policy(self):
        kinds, rows = zip(*self.events, strict=True)
        batch = Batch(self.now, np.array(kinds, "i4"), np.array(rows, "i4"))
        self.batches.append((self.now, kinds, rows))
        self.plan.timer_s = self.timer
        self.policy.react(self.memory, batch, self.world, self.plan)
        self.timer = self.plan.timer_s

    # ---- attained service

    def _accrue(self, j):
        self.attained[j] += int(self.view["running"][j]) * (self.now - self.since[j])
        self.since[j] = self.now

    def _limits(self, j):
        at = self.plan.queues.demote_at[self.plan.jobs["queue"][j]]
        return float(at), float(self.plan.jobs["service_at"][j])

    def _crossing(self, j):
        limit = min(self._limits(j))
        if not self.arrived[j] or self.view["left"][j] == 0:
            return INF
        if not self.overbooks and limit > self.c.job_work[j] * (1 + 1e-9):
            return INF
        if self.attained[j] >= limit:
            return self.since[j]
        if self.view["running"][j] == 0:
            return INF
        return self.since[j] + (limit - self.attained[j]) / int(self.view["running"][j])

    def _cross(self, j):
        self._accrue(j)
        demote_at, service_at = self._limits(j)
        limit = min(demote_at, service_at)
        self.attained[j] = max(self.attained[j], limit)
        if service_at == limit:
            self.plan.jobs["service_at"][j] = INF
            self._emit(Event.SERVICE, j)
        if demote_at == limit:
            queue = self.plan.jobs["queue"][j]
            self.plan.jobs["queue"][j] = self.plan.queues.demote_to[queue]

    # ---- tasks

    def _ready(self, g):
        """Turns of the tasks of stage g that may start."""
        base = self.c.stage_task0[g]
        order = self.plan.task_order
        turns = []
        for turn in range(self.size[g]):
            index = turn if order is None else int(order[base + turn])
            if self.task_begun[base + index]:
                continue
            if all(self._allows(p, kind, index) for p, kind in self.parents[g]):
                turns.append(index)
        return turns

    def _allows(self, p, kind, index):
        base = self.c.stage_task0[p]
        if kind == 0:
            return all(self.task_done[base : base + self.size[p]])
        return index >= self.size[p] or self.task_done[base + index]

    def _start(self, g, machine, held):
        c, view = self.c, self.view
        j = int(c.stage_job[g])
        task = int(c.stage_task0[g]) + self._ready(g)[0]
        self._accrue(j)
        first = view["started"][j] < self.plan.jobs["notify_at"][j]
        if not held:
            self._take(j, self.demand[g], machine, 1)
        if view["started"][j] == 0:
            view["start"][j] = self.now
        view["started"][j] += 1
        view["running"][j] += 1
        self.task_begun[task] = True
        self.task_start[task] = self.now
        self.task_machine[task] = machine
        self.pace[task] = (1.0, float(c.task_duration[task]), self.now)
        end = self.now + float(c.task_duration[task])
        self.running.append((end, task, g, machine, first, held))

    def _end(self, entry):
        _, task, g, machine, first, held = entry
        c, view = self.c, self.view
        j = int(c.stage_job[g])
        self.running.remove(entry)
        self.task_done[task] = True
        self.task_finish[task] = self.now
        self._accrue(j)
        view["done_work"][j] += c.task_duration[task]
        self.remaining[j] -= float(c.task_duration[task]) * float(self.plan.stages["weight"][g])
        view["running"][j] -= 1
        view["done"][j] += 1
        view["left"][j] -= 1
        if held:
            self.idle[j].append(machine)
        else:
            self._take(j, self.demand[g], machine, -1)
        if first:
            self.first_done[j] += 1
            if self.first_done[j] == self.plan.jobs["notify_at"][j]:
                self._emit(Event.TASKS_DONE, j)
        base = c.stage_task0[g]
        if all(self.task_done[base : base + self.size[g]]):
            self._emit(Event.STAGE_DONE, g)
        if view["left"][j] == 0:
            view["finish"][j] = self.now
            for m in self.idle[j] or []:
                self._take(j, self._slot(j), m, -1)
            self.idle[j] = None
            self._emit(Event.JOB_DONE, j)

    def _stretch(self):
        """Let each running task go at the rate that its machine now has for it."""
        for i, (_, task, g, machine, first, held) in enumerate(self.running):
            rate, left, since = self.pace[task]
            new = self._rate(g, machine)
            if new != rate:
                left = max(0.0, left - rate * (self.now - since))
                self.pace[task] = (new, left, self.now)
                self.running[i] = (self.now + left / new, task, g, machine, first, held)

    def _rate(self, g, machine):
        rate = 1.0
        for r in self.fungible:
            has = max(self.capacity[machine][r], 1)
            demanded = self.capacity[machine][r] - self.free[machine][r]
            if self.demand[g][r] > 0 and demanded > has:
                rate = min(rate, has / demanded)
        return rate

    def _take(self, j, demand, machine, sign):
        for r, amount in enumerate(demand):
            self.free[machine][r] -= sign * amount
            self.used[j][r] += sign * amount

    # ---- placement

    def _where(self, j):
        jobs = self.plan.jobs
        if self.view["running"][j] >= jobs["run_limit"][j]:
            return None
        if self.view["started"][j] >= jobs["start_gate"][j]:
            return None if jobs["overflow_queue"][j] < 0 else int(jobs["overflow_queue"][j])
        return int(jobs["queue"][j])

    def _waiting(self):
        return [
            g
            for j in range(self.n_jobs)
            if self.arrived[j] and self.view["left"][j] > 0 and self._where(j) is not None
            for g in self.stages_of[j]
            if self._ready(g)
        ]

    def _queue(self, g):
        j = self.c.stage_job[g]
        return (self.org[j], self._where(j))

    def _use(self, jobs):
        used = [sum(self.used[j][r] for j in jobs) for r in range(len(self.total))]
        shares = [u * (1.0 / t) if t else 0.0 for u, t in zip(used, self.total, strict=True)]
        return max(shares) if self.plan.share < 0 else shares[self.plan.share]

    def _queue_turn(self, queue):
        org, level = queue
        queues = self.plan.queues
        mine = [j for j in range(self.n_jobs) if self.org[j] == org]
        home = [j for j in mine if self.plan.jobs["queue"][j] == level]
        return (
            queues.tier[level],
            self._use(mine) / self.org_weight[org],
            org,
            self._use(home) / queues.weight[level],
            level,
        )

    def _rank(self, g):
        j = int(self.c.stage_job[g])
        order = self.plan.queues.order[self._where(j)]
        rank = {
            Order.KEY: lambda: self.plan.jobs["key"][j],
            Order.FIFO: lambda: j,
            Order.REMAINING: lambda: self.remaining[j],
            Order.ATTAINED: lambda: self.attained[j],
            Order.SHARE: lambda: max(
                u * (1.0 / t) if t else 0.0 for u, t in zip(self.used[j], self.total, strict=True)
            ),
        }[Order(order)]()
        return (rank, self.plan.stages["key"][g], g)

    def _slot(self, j):
        return [max(self.demand[g][r] for g in self.stages_of[j]) for r in range(len(self.total))]

    def _waits_as_gang(self, j):
        return self.c.job_min_tasks[j] > 0 and self.idle[j] is None

    def _gang_fit(self, j):
        """Machines of the slots that job j would get, or None."""
        need, slot = int(self.c.job_min_tasks[j]), self._slot(j)
        found = []
        for m, free in enumerate(self.free):
            room = min((free[r] // slot[r] for r in self.looked if slot[r] > 0), default=need)
            found += [m] * room
        found = found[:need]
        if len(found) < need or not self._within_cap(j, slot, need):
            return None
        return found

    def _within_cap(self, j, demand, times):
        org = self.org[j]
        mine = [i for i in range(self.n_jobs) if self.org[i] == org]
        return all(
            sum(self.used[i][r] for i in mine) + times * demand[r] <= self.cap[org][r]
            for r in self.looked
        )

    def _machines(self, g):
        if not self._within_cap(int(self.c.stage_job[g]), self.demand[g], 1):
            return []
        return [
            m
            for m, free in enumerate(self.free)
            if all(self.demand[g][r] <= max(free[r], 0) for r in self.looked)
        ]

    def _admit(self, j):
        machines = self._gang_fit(j)
        for m in machines:
            self._take(j, self._slot(j), m, 1)
        self.idle[j] = machines[::-1]
        self._fill(j)

    def _fill(self, j):
        while self.idle[j]:
            jobs = self.plan.jobs
            if self.view["running"][j] >= jobs["run_limit"][j]:
                return
            if self.view["started"][j] >= jobs["start_gate"][j]:
                return
            ready = [g for g in self.stages_of[j] if self._ready(g)]
            if not ready:
                return
            self._start(
                min(ready, key=lambda g: (self.plan.stages["key"][g], g)), self.idle[j].pop(), True
            )

    def _dispatch(self):
        for j in range(self.n_jobs):
            if self.idle[j]:
                self._fill(j)
        {Fit.STRICT: self._strict, Fit.SKIP: self._skip, Fit.PACK: self._pack}[self.plan.fit]()

    def _strict(self):
        blocked = set()
        while True:
            heads = {}
            for g in self._waiting():
                q = self._queue(g)
                if q not in heads or self._rank(g) < self._rank(heads[q]):
                    heads[q] = g
            open_queues = [q for q in heads if q not in blocked]
            if not open_queues:
                return
            q = min(open_queues, key=self._queue_turn)
            if not self._place(heads[q]):
                blocked.add(q)

    def _skip(self):
        while True:
            order = sorted(
                self._waiting(), key=lambda g: (self._queue_turn(self._queue(g)), self._rank(g))
            )
            if not any(self._place(g) for g in order):
                return

    def _place(self, g):
        j = int(self.c.stage_job[g])
        if self._waits_as_gang(j):
            if self._gang_fit(j) is None:
                return False
            self._admit(j)
            return True
        machines = self._machines(g)
        if not machines:
            return False
        self._start(g, machines[0], False)
        return True

    def _pack(self):
        def turn(g):
            return (self._queue_turn(self._queue(g)), self._rank(g))

        while True:
            gangs = [g for g in self._waiting() if self._waits_as_gang(int(self.c.stage_job[g]))]
            if not any(self._place(g) for g in sorted(gangs, key=turn)):
                break
        for m in range(len(self.free)):
            while True:
                fitting = [
                    g
                    for g in self._waiting()
                    if not self._waits_as_gang(int(self.c.stage_job[g])) and m in self._machines(g)
                ]
                if not fitting:
                    break
                best = min(
                    fitting,
                    key=lambda g: (
                        self._queue_turn(self._queue(g)),
                        -self._score(g, m),
                        self._rank(g),
                    ),
                )
                self._start(best, m, False)

    def _score(self, g, m):
        score = 0.0
        for r in self.looked:
            weight = self.free[m][r] * (1.0 / float(self.capacity[m][r] or 1) ** 2)
            score += weight * self.demand[g][r]
        return score
