"""The naive simulator: slow, obvious, and the judge of the kernel.

It keeps plain Python lists, looks at everything anew at every instant, and knows nothing of heaps,
dirty machines or stale entries. The kernel must give the same bits.
"""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np

from sim.cluster.cluster import Cluster
from sim.engine.plan import Batch, Event, Fit, Order, Plan, World
from sim.workload.columns import capacity_quanta
from sim.workload.workload import Workload
from tests.sim.engine.reference_choice import Choosing
from tests.sim.engine.reference_reserve import reserve

INF = math.inf


def simulate(workload: Workload, cluster: Cluster, policy, seed: int = 0) -> SimpleNamespace:
    """Run like `sim.simulate`; returns job and task times and the batches the policy saw."""
    return _Run(workload, cluster, policy, seed).go()


class _Run(Choosing):
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
            "first_work": np.zeros(n_jobs),
            "submit": c.job_submit.copy(),
            "failed": np.zeros(n_jobs, "i1"),
            "turn": np.full(n_jobs, -1, "i4"),
            "start": np.full(n_jobs, np.nan),
            "finish": np.full(n_jobs, np.nan),
            "stage_left": np.diff(c.stage_task0).astype("i4"),
            "stage_done_work": np.zeros(n_stages),
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
        self.failed = [0] * n_tasks
        self.waits_for = {}  # of tasks that found an output lost: which one
        self.stages_done = set()
        self.made_before = set()  # tasks that run again: what read their output goes on
        self.task_begun = [False] * n_tasks
        self.task_start = np.full(n_tasks, np.nan)
        self.task_finish = np.full(n_tasks, np.nan)
        self.task_machine = np.full(n_tasks, -1, "i4")
        self.running = []  # (end, task, stage, machine, among first k, held)
        self.turn = []  # jobs in the order of submission
        uppers = np.repeat(np.arange(n_jobs), np.diff(c.input0))
        self.inputs = [uppers[c.input_reader == j].tolist() for j in range(n_jobs)]
        self.readers = [c.input_reader[uppers == j].tolist() for j in range(n_jobs)]
        self.seen = not np.isnan(self.plan.stages["expected_s"]).all()
        work = self.size * self.plan.stages["expected_s"] if self.seen else c.stage_work
        work = work * self.plan.stages["weight"]
        self.remaining = np.add.reduceat(work, c.job_stage0[:-1]).tolist()
        self.deficit, self.worths, self.lefts, self.freed = {}, 0.0, 0.0, set()
        self.attained = [0.0] * n_jobs
        self.since = [0.0] * n_jobs
        self.first_done = [0] * n_jobs
        self.first_started = [0] * n_jobs
        self.idle = [None] * n_jobs  # machines of idle held slots; None: not admitted
        self.used = [[0] * len(self.total) for _ in range(n_jobs)]
        self.now = 0.0
        self.timer = self.plan.timer_s
        self.reserved = {}
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
        self._set_up_devices(cluster, quantum)
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
        self.rigid = rigid
        pack = self.plan.fit == Fit.PACK and self.plan.packing.overbook
        self.speeds = list(zip(*(x.tolist() for x in cluster.slowdowns.steps()), strict=True))
        fails = len(self.c.attempt_s) > 0
        self.down = set()
        self.outages = sorted(
            event
            for m, down_s, up_s in zip(*cluster.outages.columns, strict=True)
            for event in ((down_s, int(m), 1), (up_s, int(m), 0))
        )
        self.loses = bool(self.outages) or fails or self.plan.evict
        self.overbooks = (
            self.loses
            or len(self.speeds) > 1
            or len(self.looked) < len(names)
            or (pack and bool(self.fungible))
        )
        slower = (self.c.stage_home >= 0) & (self.c.stage_remote_factor > 1)
        self.overbooks = self.overbooks or (len(self.capacity) > 1 and bool(slower.any()))
        self.pace = {}  # of each running task: rate, what is left at that rate's begin, since when

    # ---- the loop

    def go(self):
        while ((self.view["left"] > 0) & (self.view["failed"] == 0)).any():
            self.now = max(self.now, self._next())
            assert self.now < INF, "stuck"
            self.events = []
            for entry in sorted(e for e in self.running if e[0] <= self.now):
                if self._failures_left(entry[1]):
                    self._fail_attempt(entry)
                else:
                    self._end(entry)
            while self.outages and self.outages[0][0] <= self.now:
                self._outage(*self.outages.pop(0)[1:])
            for j in range(self.n_jobs):
                while self._crossing(j) <= self.now:
                    self._cross(j)
            if self.timer <= self.now:
                self.timer = INF
                self._emit(Event.TIMER, -1)
            for j in range(self.n_jobs):
                if self._due(j) <= self.now:
                    self._arrive(j)
            if self.events:
                self._ask_policy()
            self._dispatch()
            self._stretch()
        return SimpleNamespace(
            job_submit=self.view["submit"],
            job_failed=self.view["failed"].astype(bool),
            job_start=self.view["start"],
            job_finish=self.view["finish"],
            task_start=self.task_start,
            task_finish=self.task_finish,
            task_machine=self.task_machine,
            task_devices=self._devices_given(),
            batches=self.batches,
            view=self.view,
        )

    def _next(self):
        times = [self.timer] + [e[0] for e in self.running]
        times += [self._due(j) for j in range(self.n_jobs)]
        times += [event[0] for event in self.outages[:1]]
        times += [self._crossing(j) for j in range(self.n_jobs)]
        return min(times)

    def _due(self, j):
        """When job j is looked at next: submitted, or failed for want of an input."""
        submit = float(self.c.job_submit[j])
        if j in self.turn or self.view["failed"][j]:
            return INF
        if self.c.job_input_mode[j] != 2:
            return submit
        made = [float(self.view["finish"][i]) for i in self.inputs[j]]
        if any(math.isnan(t) for t in made):
            return INF
        return max([submit] + [t + float(self.c.job_poll_lag[j]) for t in made])

    def _arrive(self, j):
        made = self.view["finish"][self.inputs[j]]
        if self.c.job_input_mode[j] == 1 and np.isnan(made).any():
            self._fail(j)
            return
        self.view["turn"][j] = len(self.turn)
        self.turn.append(j)
        self.view["submit"][j] = self.since[j] = self.now
        self._emit(Event.JOB_ARRIVED, j)

    def _fail(self, j):
        failing = [j]
        for i in failing:
            self.view["failed"][i] = 1
            self._emit(Event.JOB_FAILED, i)
            polling = [r for r in self.readers[i] if self.c.job_input_mode[r] == 2]
            failing += [r for r in polling if r not in failing and not self.view["failed"][r]]

    def _emit(self, kind, row):
        if self.policy.events & kind:
            self.events.append((int(kind), int(row)))

    def _ask_policy(self):
        kinds, rows = zip(*self.events, strict=True)
        batch = Batch(self.now, np.array(kinds, "i4"), np.array(rows, "i4"))
        self.batches.append((self.now, kinds, rows))
        self.plan.timer_s = self.timer
        self.plan.take_changed()
        self.policy.react(self.memory, batch, self.world, self.plan)
        for j in self.plan.take_changed().tolist() if self.seen else []:
            self.remaining[j] = 0.0
            for g in self.stages_of[j]:
                tasks = range(int(self.c.stage_task0[g]), int(self.c.stage_task0[g + 1]))
                n = self.view["stage_left"][g]
                if self._pending():
                    n = sum(not self.task_begun[task] for task in tasks)
                left = float(n * self.plan.stages["expected_s"][g])
                self.remaining[j] += left * float(self.plan.stages["weight"][g])
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
        if j not in self.turn or self.view["left"][j] == 0:
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
            if self.task_begun[base + index] or base + index in self.waits_for:
                continue
            if all(self._allows(p, kind, index) for p, kind in self.parents[g]):
                turns.append(index)
        return turns

    def _allows(self, p, kind, index):
        base = self.c.stage_task0[p]
        if kind == 0:
            return p in self.stages_done
        if index >= self.size[p]:
            return True
        return self.task_done[base + index] or base + index in self.made_before

    def _start(self, g, machine, held):
        c, view = self.c, self.view
        j = int(c.stage_job[g])
        task = self._next_task(g, machine)
        self._accrue(j)
        first = self.first_started[j] < self.plan.jobs["notify_at"][j]
        self.first_started[j] += first
        if not held:
            self._start_on_devices(task, g, machine)
            self._take(j, self.demand[g], machine, 1)
        if np.isnan(view["start"][j]):
            view["start"][j] = self.now
        view["started"][j] += 1
        view["running"][j] += 1
        self.task_begun[task] = True
        if self._pending():
            self.remaining[j] -= self._weighted_s(g, task)
        self.task_start[task] = self.now
        self.task_machine[task] = machine
        lasts = float(c.task_duration[task])
        home = c.stage_home[g] + task - c.stage_task0[g]
        if c.stage_home[g] >= 0 and home % len(self.free) != machine:
            lasts *= float(c.stage_remote_factor[g])
        if self._failures_left(task):
            lasts = self._failures_left(task)[0][0]
        self.pace[task] = (1.0, lasts, self.now)
        self.running.append((self._after(lasts), task, g, machine, first, held))

    def _end(self, entry):
        _, task, g, machine, first, held = entry
        c, view = self.c, self.view
        j = int(c.stage_job[g])
        self.running.remove(entry)
        self.task_done[task] = True
        self.task_finish[task] = self.now
        self._accrue(j)
        view["done_work"][j] += c.task_duration[task]
        view["stage_left"][g] -= 1
        view["stage_done_work"][g] += c.task_duration[task]
        if not self._pending():
            self.remaining[j] -= self._weighted_s(g, task)
        view["running"][j] -= 1
        view["done"][j] += 1
        view["left"][j] -= 1
        if held:
            self.idle[j].append(machine)
        else:
            self._leave_devices(task, g, machine)
            self._take(j, self.demand[g], machine, -1)
        if self.plan.first_ended:
            first = self.first_done[j] < self.plan.jobs["notify_at"][j]
        if first:
            self.first_done[j] += 1
            view["first_work"][j] += c.task_duration[task]
            if self.first_done[j] == self.plan.jobs["notify_at"][j]:
                self._emit(Event.TASKS_DONE, j)
        base = c.stage_task0[g]
        self.waits_for = {r: p for r, p in self.waits_for.items() if p != task}
        if all(self.task_done[base : base + self.size[g]]) and g not in self.stages_done:
            self.stages_done.add(g)
            self._emit(Event.STAGE_DONE, g)
        if view["left"][j] == 0:
            view["finish"][j] = self.now
            for m in self.idle[j] or []:
                self._take(j, self._slot(j), m, -1)
            self.idle[j] = None
            self._emit(Event.JOB_DONE, j)

    def _outage(self, machine, lost):
        self._emit(Event.FAULT, machine)
        if not lost:
            self.down.remove(machine)
            self.freed.add(machine)
            return
        self.down.add(machine)
        for entry in [e for e in self.running if e[3] == machine]:
            self._take_down(entry)

    def _take_down(self, entry):
        _, task, g, machine, first, _ = entry
        j = int(self.c.stage_job[g])
        self.running.remove(entry)
        self.task_begun[task] = False
        if self._pending():
            self.remaining[j] += self._weighted_s(g, task)
        self._accrue(j)
        self.view["running"][j] -= 1
        self.view["started"][j] -= 1
        self.first_started[j] -= first
        self._leave_devices(task, g, machine)
        self._take(j, self.demand[g], machine, -1)

    # ---- failures, and outputs that are lost

    def _failures_left(self, task):
        """What the next attempts of a task are, as long as they fail: (after s, what is lost)."""
        c = self.c
        if len(c.attempt_s) == 0:
            return []
        rows = range(c.attempt0[task] + self.failed[task], c.attempt0[task + 1])
        return [(float(c.attempt_s[i]), int(c.attempt_lost[i])) for i in rows]

    def _fail_attempt(self, entry):
        task = entry[1]
        _, lost = self._failures_left(task)[0]
        self.failed[task] += 1
        self._take_down(entry)
        if lost < 0:
            return
        self.waits_for[task] = lost
        if not self.task_done[lost]:
            return  # another found it lost before
        c, view = self.c, self.view
        g = int(np.searchsorted(c.stage_task0, lost, side="right")) - 1
        j = int(c.stage_job[g])
        self.task_done[lost] = self.task_begun[lost] = False
        self.made_before.add(lost)
        view["stage_left"][g] += 1
        view["left"][j] += 1
        view["done"][j] -= 1
        view["done_work"][j] -= c.task_duration[lost]
        view["stage_done_work"][g] -= c.task_duration[lost]
        self.remaining[j] += self._weighted_s(g, lost)

    # ---- slow periods

    def _after(self, work):
        """When so many seconds at full speed, begun now, are done."""
        time = self.now
        for i, (_, speed) in enumerate(self.speeds):
            until = self.speeds[i + 1][0] if i + 1 < len(self.speeds) else INF
            if until <= time:
                continue
            end = time + max(work, 0.0) / speed
            if end <= until:
                return end
            work -= (until - time) * speed
            time = until
        raise AssertionError("the last speed never ends")

    def _done_since(self, since):
        done, now = 0.0, self.now
        for begin, speed in reversed(self.speeds):
            if begin >= now and begin > 0:
                continue
            if begin <= since:
                return done + (now - since) * speed
            done += (now - begin) * speed
            now = begin
        raise AssertionError("the first speed begins at 0")

    def _stretch(self):
        """Let each running task go at the rate that its machine now has for it."""
        for i, (_, task, g, machine, first, held) in enumerate(self.running):
            rate, left, since = self.pace[task]
            new = self._rate(g, machine)
            if new != rate:
                left = max(0.0, left - rate * self._done_since(since))
                self.pace[task] = (new, left, self.now)
                self.running[i] = (self._after(left / new), task, g, machine, first, held)

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
        if sign < 0:
            self.freed.add(machine)

    def _worth_overbooking(self, m):
        """The stage whose next task machine m, full as it is, gains most by taking; or None."""
        stages = [
            g
            for g in self._single()
            if all(self.demand[g][r] <= self.free[m][r] for r in self.rigid)
            and self._within_cap(int(self.c.stage_job[g]), self.demand[g], 1)
        ]
        here = [entry for entry in reversed(self.running) if entry[3] == m]
        rows = []
        for g in self._served(stages) if stages else []:
            gain = self._gain(g, m, here)
            if gain > 0:
                worth = self._worth(g, m, gain)
                rows.append((-self._score(g, worth), self._queue(g), self._rank(g), g))
        return min(rows)[3] if rows else None

    def _gain(self, g, m, here):
        """Work done by not waiting until g fits, less the work that all there are late with."""
        weight = self.plan.stages["weight"]
        left = []
        for _, task, _, _, _, _ in here:
            rate, at_begin, since = self.pace[task]
            left.append(max(0.0, at_begin - rate * self._done_since(since)))
        rates = [self._rate(h, m) for _, _, h, _, _, _ in here]
        ends = [x / rate for x, rate in zip(left, rates, strict=True)]
        wait = 0.0
        for r in [r for r in self.looked if self.demand[g][r] > 0]:
            free = self.free[m][r]
            for end, i in sorted((end, i) for i, end in enumerate(ends)):
                if free >= self.demand[g][r]:
                    break
                _, _, h, _, _, held = here[i]
                free += 0 if held else self.demand[h][r]  # a held slot stays held
                wait = max(wait, end)
        self.free[m] = [f - d for f, d in zip(self.free[m], self.demand[g], strict=True)]
        lasts = self.plan.stages["expected_s"][g] if self.seen else None
        lasts = float(self.c.task_duration[self._next_task(g, m)] if lasts is None else lasts)
        late = (lasts / self._rate(g, m) - lasts) * float(weight[g])
        for (_, _, h, _, _, _), x, end in zip(here, left, ends, strict=True):
            late += (x / self._rate(h, m) - end) * float(weight[h])
        self.free[m] = [f + d for f, d in zip(self.free[m], self.demand[g], strict=True)]
        return wait * float(weight[g]) - late

    # ---- placement

    def _where(self, j):
        jobs = self.plan.jobs
        at_limit = self.view["running"][j] >= jobs["run_limit"][j]
        if at_limit or self.view["started"][j] >= jobs["start_gate"][j]:
            return None if jobs["overflow_queue"][j] < 0 else int(jobs["overflow_queue"][j])
        return int(jobs["queue"][j])

    def _waiting(self):
        return [
            g
            for j in range(self.n_jobs)
            if j in self.turn and self.view["left"][j] > 0 and self._where(j) is not None
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
            Order.FIFO: lambda: self.turn.index(j),
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
            if m not in self.down
            and all(self.demand[g][r] <= max(free[r], 0) for r in self.looked)
            and self._may_use(g, m)
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
        if self.plan.reservations:
            reserve(self)
            return
        {Fit.STRICT: self._strict, Fit.SKIP: self._skip, Fit.PACK: self._pack}[self.plan.fit]()

    def _strict(self):
        blocked, started = set(), False
        while True:
            heads = {}
            for g in self._waiting():
                q = self._queue(g)
                if q not in heads or self._rank(g) < self._rank(heads[q]):
                    heads[q] = g
            open_queues = [q for q in heads if q not in blocked]
            if not open_queues and self.plan.evict and started:
                blocked, started = set(), False  # what has started may be what makes way
                continue
            if not open_queues:
                return
            q = min(open_queues, key=self._queue_turn)
            if self._place(heads[q]):
                started = True
                continue
            machine = self._evict(heads[q]) if self.plan.evict else None
            if machine is None:
                blocked.add(q)
            else:
                self._start(heads[q], machine, False)
                blocked, started = set(), True

    def _evict(self, g):
        """The machine on which tasks that their jobs run beyond their limits made way for g."""
        jobs, j = self.plan.jobs, int(self.c.stage_job[g])
        if self.view["running"][j] >= jobs["run_limit"][j]:
            return None
        if self.view["started"][j] >= jobs["start_gate"][j]:
            return None
        if not self._within_cap(j, self.demand[g], 1):
            return None
        ways = [self._way(g, m) for m in range(len(self.free)) if m not in self.down]
        ways = [(-self.task_start[way[-1][1]], way[-1][3], way) for way in ways if way]
        if not ways:
            return None
        _, machine, way = min(ways)
        for entry in way:
            self._take_down(entry)
        return machine

    def _way(self, g, m):
        """The running tasks of machine m that make way for g, None if that is no use."""
        surplus = self.view["running"] - self.plan.jobs["run_limit"]
        free, way = list(self.free[m]), []
        for entry in [e for e in reversed(self.running) if e[3] == m]:
            j = int(self.c.stage_job[entry[2]])
            if surplus[j] <= 0:
                continue
            surplus[j] -= 1
            way.append(entry)
            free = [f + d for f, d in zip(free, self.demand[entry[2]], strict=True)]
            if all(self.demand[g][r] <= max(free[r], 0) for r in self.looked):
                return way
        return None

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
        self._start(g, self._chosen(g, machines), False)
        return True

    def _pack(self):
        def turn(g):
            return (self._queue_turn(self._queue(g)), self._rank(g))

        while True:
            gangs = [g for g in self._waiting() if self._waits_as_gang(int(self.c.stage_job[g]))]
            if not any(self._place(g) for g in sorted(gangs, key=turn)):
                break
        while self._fill_machines() and self.freed:
            pass  # for whom room was kept may have found it elsewhere

    def _fill_machines(self):
        """Fill the machines in turn; tell whether anything started."""
        held_back, n_running = set(), len(self.running)
        for m in range(len(self.free)):
            while fitting := [g for g in self._single() if m in self._machines(g)]:
                if not (served := self._served(fitting)):
                    held_back.add(m)
                    break
                self._start_bundle(served, m)
            while (
                self.overbooks
                and self.plan.packing.overbook
                and m in self.freed
                and m not in self.down
                and (best := self._worth_overbooking(m)) is not None
            ):
                self._charge(best)
                self._start(best, m, False)
        self.freed = held_back
        return len(self.running) > n_running

    def _single(self):
        return [g for g in self._waiting() if not self._waits_as_gang(int(self.c.stage_job[g]))]

    def _start_bundle(self, served, m):
        for n, (g, worth, left) in enumerate(self._bundle(served, m)):
            if n > 0:
                if g not in self._waiting() or m not in self._machines(g):
                    return
                if self._owed(self._tier(g)) not in (None, self._queue(g)):
                    return
            self.worths += worth
            self.lefts += left
            self._charge(g)
            self._start(g, m, False)

    def _served(self, stages):
        """Those of the queue that is served now; of all its tier, if queues compete by score.

        While a queue of the tier is owed, those of that queue alone, and be it that none is.
        """
        if self.plan.packing.unfairness == INF:
            first = min(self._queue_turn(self._queue(g)) for g in stages)
            return [g for g in stages if self._queue_turn(self._queue(g)) == first]
        tier = min(self._tier(g) for g in stages)
        owed = self._owed(tier)
        of = [g for g in stages if self._tier(g) == tier]
        return of if owed is None else [g for g in of if self._queue(g) == owed]

    def _tier(self, g):
        return self.plan.queues.tier[self._where(self.c.stage_job[g])]

    def _owed(self, tier):
        """The queue of greatest deficit with a task that only room is wanted for, if it is owed."""
        queues = {
            self._queue(g)
            for g in self._single()
            if self._tier(g) == tier
            and self._within_cap(int(self.c.stage_job[g]), self.demand[g], 1)
        }
        if self.plan.packing.unfairness == INF or not queues:
            return None
        deficit, queue = min((-self.deficit.get(q, 0.0), q) for q in queues)
        return queue if -deficit >= self.plan.packing.unfairness else None

    def _charge(self, g):
        if self.plan.packing.unfairness == INF:
            return
        mine, cost = self._queue(g), float(self.plan.stages["cost"][g])
        weight = {
            (o, q): self.org_weight[o] * self.plan.queues.weight[q]
            for o, q in sorted({self._queue(h) for h in self._waiting()})
        }
        total = 0.0
        for w in weight.values():
            total += w
        for q in weight:
            share = weight[q] / total
            more = cost * (share - 1.0) if q == mine else cost * share
            self.deficit[q] = self.deficit.get(q, 0.0) + more

    def _next_task(self, g, machine):
        """The first in turn that prefers the machine, where all are ready at once; or the first."""
        tasks = [int(self.c.stage_task0[g]) + index for index in self._ready(g)]
        at_once = self.c.stage_n_o2o[g] == 0 and not self.loses
        if self.plan.task_prefers is not None and at_once:
            return next((t for t in tasks if self.plan.task_prefers[t] == machine), tasks[0])
        return tasks[0]

    def _worth(self, g, m, what):
        task, plan = self._next_task(g, m), self.plan
        worth = what
        if plan.task_priority is not None:
            priority = float(plan.task_priority[task])
            if plan.packing.rebased:
                j = self.c.stage_job[g]
                others = int(self.view["left"][j] - self.view["running"][j]) - 1
                priority = min(1.0, priority / others) if others else 1.0
            worth = (1.0 - plan.packing.order * (1.0 - priority)) * what
        far = plan.task_prefers is not None and plan.task_prefers[task] not in (-1, m)
        return worth * plan.packing.remote if far else worth

    def _pending(self):
        """Whether what has started counts no more in remaining work."""
        return self.plan.fit == Fit.PACK and self.plan.packing.pending

    def _weighted_s(self, g, task):
        lasts = self.plan.stages["expected_s"][g] if self.seen else self.c.task_duration[task]
        return float(lasts) * float(self.plan.stages["weight"][g])

    def _score(self, g, worth):
        m = self.plan.packing.remaining
        eta = m * self.worths / self.lefts if self.lefts > 0 else 0.0
        return worth - eta * self.remaining[self.c.stage_job[g]]

    def _bundle(self, stages, m):
        """Of the best tasks, those that fit together and have the greatest total score."""
        rows = []
        for g in stages:
            aligned = self._alignment(g, m) if self.plan.packing.aligned else 1.0
            worth = self._worth(g, m, aligned)
            rows.append((-self._score(g, worth), self._queue(g), self._rank(g), g, worth))
        rows.sort()
        room, taken = self.plan.packing.bundle, []
        for score, _, _, g, worth in rows:
            fit = [
                max(self.free[m][r], 0) // self.demand[g][r]
                for r in self.looked
                if self.demand[g][r] > 0
            ]
            copies = min([room, len(self._ready(g)), *fit])
            taken += [(-score, g, worth, copies)] if copies else []
            room -= copies
        best, best_total = (1,), 0.0
        positive = [row for row in taken if row[0] > 0]
        for counts in itertools.product(*(range(row[3], -1, -1) for row in positive)):
            total = 0.0
            for n, row in zip(counts, positive, strict=True):
                for _ in range(n):
                    total += row[0]
            if total > best_total and self._hold_together(counts, positive, m):
                best, best_total = counts, total
        picked = []
        for n, (_, g, worth, _) in zip(best, taken, strict=False):
            picked += [(g, worth, self.remaining[self.c.stage_job[g]])] * n
        return picked

    def _hold_together(self, counts, rows, m):
        return all(
            sum(n * self.demand[row[1]][r] for n, row in zip(counts, rows, strict=True))
            <= max(self.free[m][r], 0)
            for r in self.looked
        )

    def _alignment(self, g, m):
        score = 0.0
        for r in self.looked:
            weight = self.free[m][r] * (1.0 / float(self.capacity[m][r] or 1) ** 2)
            score += weight * self.demand[g][r]
        return score
