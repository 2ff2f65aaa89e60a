"""The naive simulator: slow, obvious Python, and the reference for the kernel.

It uses plain Python lists, recomputes everything at every instant, and has no heaps, dirty machines
or stale entries. The kernel must give the same bits.
"""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np

from sim.cluster.cluster import Cluster
from sim.engine.clock import on_own_clock
from sim.engine.plan import Batch, Event, Fit, Order, Plan, State, World, seen_by
from sim.workload.columns import capacity_quanta
from sim.workload.workload import Workload
from tests.sim.engine.reference_caps import Capping
from tests.sim.engine.reference_choice import Choosing
from tests.sim.engine.reference_components import Composing
from tests.sim.engine.reference_elastic import Stretching
from tests.sim.engine.reference_launch import Launching
from tests.sim.engine.reference_limits import Limits
from tests.sim.engine.reference_partitions import Partitioning, with_default_times
from tests.sim.engine.reference_pins import Pinning
from tests.sim.engine.reference_preempt import Preempting
from tests.sim.engine.reference_quotas import Quotas
from tests.sim.engine.reference_release import Releasing
from tests.sim.engine.reference_replan import Replanning
from tests.sim.engine.reference_requests import with_requests
from tests.sim.engine.reference_reserve import reserve
from tests.sim.engine.reference_runs_on import Selecting
from tests.sim.engine.reference_speeds import Speeds
from tests.sim.engine.reference_topology import Topologies
from tests.sim.engine.reference_windows import Windows

INF = math.inf
MAX_IDLE_TICKS = 1000
"""Ticks in a row while nothing runs or comes, after which nothing ever will."""


def simulate(
    workload: Workload, cluster: Cluster, policy, seed: int = 0, state: State | None = None
) -> SimpleNamespace:
    """Run like `sim.simulate`; return job and task times and the batches that the policy saw.

    The batches are on the clock of the run, the rest on the workload's.
    """
    zero_s = workload.origin_s
    own = None if state is None else state.later(-zero_s)
    run = _Run(*on_own_clock(workload, cluster), policy, seed, own).go()
    if run.job_eligible is not None:
        run.job_eligible = run.job_eligible + zero_s
    for name in ("job_submit", "job_start", "job_finish", "task_start", "task_finish"):
        setattr(run, name, getattr(run, name) + zero_s)
    if run.task_placed is not None:
        run.task_placed = run.task_placed + zero_s
    run.stopped = [
        (stop + zero_s, task, machine, start + zero_s, why, kept_s)
        for stop, task, machine, start, why, kept_s in run.stopped
    ]
    return run


class _Run(
    Capping,
    Choosing,
    Composing,
    Topologies,
    Launching,
    Limits,
    Partitioning,
    Pinning,
    Preempting,
    Quotas,
    Releasing,
    Replanning,
    Selecting,
    Speeds,
    Stretching,
    Windows,
):
    def __init__(self, workload, cluster, policy, seed, state=None):
        c = with_requests(workload, workload.columns, cluster, policy)
        c = self.c = with_default_times(c, cluster)
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
            "stage_started": np.zeros(n_stages, "i4"),
            "stage_done_work": np.zeros(n_stages),
        }
        self.world = seen_by(policy, World(c, cluster, seed, self.view))
        self.plan.pinned = state
        self.memory = policy.begin(self.world, self.plan)
        self._init_limits(cluster)
        self._init_cluster(workload, cluster)
        self._init_launches(cluster)
        self.stage_lag_s = (cluster.stage_lag_s + self.c.stage_lag).tolist()
        self._init_replan()
        self.job_stages = [range(c.job_stage0[j], c.job_stage0[j + 1]) for j in range(n_jobs)]
        self.size = np.diff(c.stage_task0).tolist()
        parents = np.repeat(np.arange(n_stages), np.diff(c.edge0))
        self.parents = [[] for _ in range(n_stages)]
        for p, child, kind in zip(parents, c.edge_child, c.edge_kind, strict=True):
            self.parents[child].append((int(p), int(kind)))
        self._init_components()
        self._init_topology()
        self._init_elastic()
        self.view["left"][:] = [sum(self.size[g] for g in s) for s in self.job_stages]
        self.task_done = [False] * n_tasks
        self.failed = [0] * n_tasks
        self.waits_for_output = {}  # task that found an output lost: the task to run again
        self.stages_done = {}  # when each was
        self.rerun = set()  # tasks that run again; earlier readers of their output go on
        self.ran_s = [0.0] * n_tasks  # of its last run, at the speed of then
        self.task_started = [False] * n_tasks
        self.task_start = np.full(n_tasks, np.nan)
        self.task_finish = np.full(n_tasks, np.nan)
        self.task_machine = np.full(n_tasks, -1, "i4")
        self.stopped = []  # attempts: (stop, task, machine, start, reason, kept s)
        self.running = []  # (end, task, stage, machine, among first k, held)
        self.submitted = []  # jobs in the order of submission
        self._init_releases(cluster)
        self._init_preemption()
        self._init_pins()
        self.seen = not np.isnan(self.plan.stages["expected_s"]).all()
        work = self.size * self.plan.stages["expected_s"] if self.seen else c.stage_work
        work = work * self.plan.stages["weight"]
        self.remaining = np.add.reduceat(work, c.job_stage0[:-1]).tolist()
        self.deficit, self.sum_worth, self.sum_remaining, self.freed = {}, 0.0, 0.0, set()
        self.attained = [0.0] * n_jobs
        self.since = [0.0] * n_jobs
        self.first_done = [0] * n_jobs
        self.first_started = [0] * n_jobs
        # machine, devices and component of idle held slots; None: not admitted
        self.idle = [None] * n_jobs
        self.stopping = set()  # gangs that lost a slot, or a task in one
        self.used = [[0] * len(self.total) for _ in range(n_jobs)]
        self.now = 0.0
        self.timer, self.idle_ticks = self.plan.timer_s, 0
        self.live, self.last_seen, self.refine_at = set(), {}, INF
        self.reserved, self.machines_of, self.run_start = {}, {}, {}
        self.events, self.batches = [], []

    def _init_cluster(self, workload, cluster):
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
        self._init_partitions(cluster)
        self._init_devices(cluster, quantum)
        self._init_caps(cluster, quantum)
        self.beyond = {}  # of exclusive gangs, what their machines have beyond their slots
        self._init_exclusive()
        self.free = [list(row) for row in self.capacity]
        self._order_resources(cluster)
        self.total = [sum(column) for column in zip(*self.capacity, strict=True)]
        self.org = [0] * self.n_jobs
        self.cap, self.org_weight = [[INF] * len(self.total)], [1.0]
        if cluster.queue_mode in ("hard", "weighted"):
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
        self._init_quotas(cluster, quantum)
        if self.whole is not None:
            for row in self.cap:
                row[self.whole] = INF

    def _order_resources(self, cluster):
        """Set the resources that decide what fits: rigid ones, which can't be overbooked, first."""
        names, fitting = cluster.resources, self.plan.fit_resources or cluster.resources
        rigid = [r for r, name in enumerate(names) if name not in cluster.fungible]
        self.fungible = [r for r, name in enumerate(names) if name in cluster.fungible]
        self.deciding = rigid + [r for r in self.fungible if names[r] in fitting]
        self.rigid = rigid
        pack = self.plan.fit == Fit.PACK and self.plan.packing.overbook
        self.speeds = list(zip(*(x.tolist() for x in cluster.slowdowns.steps()), strict=True))
        fails = len(self.c.attempt_s) > 0
        self._init_outages(cluster)
        self.has_outages = len(cluster.outages) > 0
        self.restarts = self.has_outages or fails or self.plan.preemption is not None
        self.variable_ends = (
            self.restarts
            or self.enforces
            or len(cluster.reservations) > 0
            or len(self.speeds) > 1
            or len(self.deciding) < len(names)
            or (pack and bool(self.fungible))
        )
        if self.whole is not None:
            self.deciding, self.rigid = [*self.deciding, self.whole], [*rigid, self.whole]
        slower = (self.c.stage_home >= 0) & (self.c.stage_remote_factor > 1)
        self.variable_ends = self.variable_ends or (len(self.capacity) > 1 and bool(slower.any()))
        self.variable_ends |= bool(self.c.job_width_min.any())
        self.progress = {}  # of each running task: rate, remaining work at its begin, its begin

    # ---- the loop

    def go(self):
        while not self._is_over():
            coming_s = self._next_event()
            self.idle_ticks = self.idle_ticks + 1 if coming_s == INF else 0
            plans = self.plan.replan and self._has_begun()
            poll_s = self._next_wake() if plans else INF
            self.now = max(self.now, min(self.timer, self.refine_at, coming_s, poll_s))
            assert self.now < INF, "stuck"
            assert self.idle_ticks <= MAX_IDLE_TICKS, "stuck"
            for entry in sorted(e for e in self.running if e[0] <= self.now):
                if self._next_failure(entry[1], entry[2]):
                    self._fail_attempt(entry)
                else:
                    self._end(entry)
            self._stop_gangs()
            while self.outages and self.outages[0][0] <= self.now:
                self._outage(*self.outages.pop(0)[1:])
            self._time_out_jobs()
            self._end_reservations()
            self._stop_leaving()
            for j in range(self.n_jobs):
                while self._crossing(j) <= self.now:
                    self._cross(j)
            self._change_caps()
            self._update_limits()
            if self.timer <= self.now:
                self.timer = INF
                self._emit(Event.TIMER, -1)
            n_before = len(self.submitted)
            self._arrivals()
            if self.plan.learning:
                self._refine(self.plan.learning, self.submitted[n_before:])
            if {kind for kind, *_ in self.events} - {int(kind) for kind in self.plan.deferred}:
                self._call_policy()
            self._dispatch()
            self._update_rates()
        return SimpleNamespace(
            job_submit=self.view["submit"],
            job_failed=self.view["failed"].astype(bool) | self._unreleased(),
            job_timeout=self.view["failed"] == 2,
            job_cancelled=self._cancelled(),
            job_rejected=self.view["failed"] == 3,
            job_start=self.view["start"],
            job_finish=self.view["finish"],
            job_eligible=self.eligible if self.c.releases.exist else None,
            job_unreleased=self._unreleased(),
            task_start=self.task_start,
            task_finish=self.task_finish,
            task_machine=self.task_machine,
            task_placed=self.task_placed if self.lag else None,
            task_devices=self._device_bits(),
            stopped=sorted(self.stopped, key=lambda row: row[:2]),
            batches=self.batches,
            view=self.view,
            job_estimate=self.plan.estimate_s,
        )

    def _next_event(self):
        """Return the next time at which anything happens, other than a tick or poll."""
        times = [self.cap_tick, self._next_cap_change()] + [e[0] for e in self.running]
        times += [self._due(j) for j in range(self.n_jobs)]
        times += [event[0] for event in self.outages[:1]]
        times += [time for j in range(self.n_jobs) if (time := self._over_at(j)) > self.now]
        times += [self._crossing(j) for j in range(self.n_jobs)]
        times += [row[0] for row in self.leaving]
        times += [self._limit_end(j) for j in range(self.n_jobs)]
        times += [time for g in range(len(self.size)) if (time := self._opening(g)) > self.now]
        times += [self._next_pin()]
        return min(times)

    def _opening(self, g):
        """Return when stage g opens, after the lag behind its last barrier parent; inf: unknown."""
        barriers = [p for p, kind in self.parents[g] if kind == 0]
        if not all(p in self.stages_done for p in barriers):
            return INF
        return max((self.stages_done[p] + self.stage_lag_s[g] for p in barriers), default=0.0)

    def _emit(self, kind, row):
        if self.policy.events & kind:
            self.events.append((int(kind), int(row), self.now))

    def _call_policy(self):
        kinds, rows, times = zip(*self.events, strict=True)
        self.events = []
        times_s = np.array(times) if self.plan.deferred else None
        batch = Batch(self.now, np.array(kinds, "i4"), np.array(rows, "i4"), times_s)
        self.batches.append((self.now, kinds, rows, times if self.plan.deferred else None))
        self.plan.timer_s = self.timer
        self.plan.take_changed()
        self.policy.react(self.memory, batch, self.world, self.plan)
        changed = self.plan.take_changed().tolist()
        for j in changed if self.seen else []:
            self._recompute_remaining(j)
        self._stop_outside(changed)
        if self._has_begun():
            self._resize(changed)
        self.timer = self.plan.timer_s

    def _recompute_remaining(self, j):
        self.remaining[j] = 0.0
        for g in self.job_stages[j]:
            tasks = range(int(self.c.stage_task0[g]), int(self.c.stage_task0[g + 1]))
            n = self.view["stage_left"][g]
            if self._pending():
                n = sum(not self.task_started[task] for task in tasks)
            left = float(n * self.plan.stages["expected_s"][g])
            self.remaining[j] += left * float(self.plan.stages["weight"][g])

    def _refine(self, learning, arrived):
        """Learn from finished stages; refine jobs that arrive, and all of them every so often."""
        is_time = self.refine_at <= self.now
        if not is_time and not arrived:
            return
        left, done_work = self.view["stage_left"], self.view["stage_done_work"]
        for g in sorted(g for g in self.live if left[g] == 0):
            self.live.remove(g)
            for i in (int(level[g]) for level in learning.group if level[g] >= 0):
                learning.work_s[i] += done_work[g]
                learning.n_tasks[i] += self.size[g]
                learning.mean_s[i] = learning.work_s[i] / learning.n_tasks[i]
            if learning.group[0, g] >= 0:
                learning.runs[learning.group[0, g]] += 1
        self.live -= {g for g in self.live if self.view["failed"][self.c.stage_job[g]]}
        for j in arrived:
            self.live |= set(self.job_stages[j])
        jobs = sorted({int(self.c.stage_job[g]) for g in self.live}) if is_time else arrived
        self.refine_at = INF if is_time else self.refine_at
        if jobs:
            self.refine_at = min(self.refine_at, self.now + learning.refresh_s)
        expected = self.plan.stages["expected_s"]
        for j in jobs:
            before = expected.copy()
            for g in (g for g in self.job_stages[j] if g in self.live):
                means = [learning.mean_s[level[g]] for level in learning.group if level[g] >= 0]
                prior_s = next((m for m in means if not math.isnan(m)), learning.guess_s)
                work_s = prior_s * learning.prior_tasks + done_work[g]
                expected[g] = work_s / (learning.prior_tasks + self.size[g] - left[g])
            seen = int(self.view["left"][j]), int(self.view["started"][j])
            loses = len(self.c.attempt_s) > 0 or self.has_outages or self.plan.preemption
            changed = (expected != before).any() or self.last_seen.get(j) != seen
            self.last_seen[j] = seen
            if j in arrived and learning.estimates:
                terms = [done_work[g] + left[g] * expected[g] for g in self.job_stages[j]]
                self.plan.estimate_s[j] = sum(terms, 0.0)
            if changed or loses or j in arrived:
                self._recompute_remaining(j)
                self._emit(Event.REFINED, j)

    # ---- attained service

    def _accrue(self, j):
        self.attained[j] += int(self.view["running"][j]) * (self.now - self.since[j])
        self.since[j] = self.now

    def _thresholds(self, j):
        demote_at = self.plan.queues.demote_at[self.plan.jobs["queue"][j]]
        return float(demote_at), float(self.plan.jobs["service_at"][j])

    def _crossing(self, j):
        limit = min(self._thresholds(j))
        if limit == INF or j not in self.submitted or self.view["left"][j] == 0:
            return INF
        is_bounded = not self.variable_ends and not self.lag and not self._has_speeds()
        if is_bounded and limit > self.c.job_work[j] * (1 + 1e-9):
            return INF
        if self.attained[j] >= limit:
            return self.since[j]
        if self.view["running"][j] == 0:
            return INF
        return self.since[j] + (limit - self.attained[j]) / int(self.view["running"][j])

    def _cross(self, j):
        self._accrue(j)
        demote_at, service_at = self._thresholds(j)
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
        """Return the tasks of stage g that may start (indices within it), by turn."""
        base = self.c.stage_task0[g]
        order = self.plan.task_order
        turns = []
        if self._opening(g) > self.now:
            return turns
        for turn in range(self.size[g]):
            index = turn if order is None else int(order[base + turn])
            if self.task_started[base + index] or base + index in self.waits_for_output:
                continue
            if all(self._parent_allows(p, kind, index) for p, kind in self.parents[g]):
                turns.append(index)
        return turns

    def _parent_allows(self, p, kind, index):
        base = self.c.stage_task0[p]
        if kind == 0:  # done: the stage is open
            return True
        if index >= self.size[p]:
            return True
        return self.task_done[base + index] or base + index in self.rerun

    def _start(self, g, machine, held_slot=None):
        c, view = self.c, self.view
        j = int(c.stage_job[g])
        task = self._next_task(g, machine)
        rows = self._rows_with(task, g)
        self._accrue(j)
        first = self.first_started[j] < self.plan.jobs["notify_at"][j]
        self.first_started[j] += first * len(rows)
        in_held_slot = held_slot is not None
        if in_held_slot:
            self.devices_of_task[task] = held_slot[1]
        else:
            self.devices_of_task[task] = self._acquire_devices(self.demand[g], machine)
            self._acquire(j, self.demand[g], machine, 1)
        self.nth[task], self.n_placed = self.n_placed, self.n_placed + 1
        self.begun_at.setdefault(j, self.now)
        start = self._launch(j, task, in_held_slot)
        view["started"][j] += len(rows)
        view["running"][j] += len(self.idle[j]) + 1 if self._is_elastic(j) else 1
        self._note_running(j)
        view["stage_started"][g] += len(rows)
        for row in rows:
            self.task_started[row] = True
            if self._pending():
                self.remaining[j] -= self._weighted_s(g, row)
        self.task_start[task] = start
        self.task_machine[task] = machine
        duration = self._work_s(task, g, machine)[1] + self._restart_s(task, g)
        self.progress[task] = (1.0, duration, start)
        end = self._finish_time(start, duration)
        self.running.append((end, task, g, machine, first, in_held_slot))

    def _end(self, entry):
        _, task, g, machine, first, in_held_slot = entry
        c, view = self.c, self.view
        j = int(c.stage_job[g])
        self.running.remove(entry)
        self.task_finish[task] = self.now
        self._accrue(j)
        rows = self._rows_with(task, g)
        if self._is_elastic(j):
            self._finish_places(j, machine)
        for row in rows:
            self.task_done[row] = True
            self.ran_s[row] = self._run_s(row, g, machine)
            view["done_work"][j] += self.ran_s[row]
            view["stage_left"][g] -= 1
            view["stage_done_work"][g] += self.ran_s[row]
            if not self._pending():
                self.remaining[j] -= self._weighted_s(g, row)
        view["running"][j] -= view["running"][j] if self._is_elastic(j) else 1
        view["done"][j] += len(rows)
        view["left"][j] -= len(rows)
        self._leave(task, g, machine, in_held_slot)
        for row in rows:
            if self.plan.first_ended or self._is_elastic(j):
                is_first = first or self.plan.first_ended
                is_first &= bool(self.first_done[j] < self.plan.jobs["notify_at"][j])
            else:
                is_first = first
            if is_first:
                self.first_done[j] += 1
                view["first_work"][j] += self._run_s(row, g, machine)
                if self.first_done[j] == self.plan.jobs["notify_at"][j]:
                    self._emit(Event.TASKS_DONE, j)
        base = c.stage_task0[g]
        self.waits_for_output = {r: p for r, p in self.waits_for_output.items() if p != task}
        if all(self.task_done[base : base + self.size[g]]) and g not in self.stages_done:
            self.stages_done[g] = self.now
            self._emit(Event.STAGE_DONE, g)
        if view["left"][j] == 0:
            view["finish"][j] = self.now
            self._release_slots(j)
            self._end_of_job(j)
            self._emit(Event.JOB_DONE, j)

    def _leave(self, task, g, machine, in_held_slot):
        """Release the room and devices of a task; a held slot is idle then."""
        j, devices = int(self.c.stage_job[g]), self.devices_of_task[task]
        if in_held_slot:
            self.idle[j].append((machine, devices, self._component_of(g)))
        else:
            self._release_devices(self.demand[g], machine, devices)
            self._acquire(j, self.demand[g], machine, -1)

    def _release_slots(self, j):
        """Release the idle held slots of job j, which is done or stops."""
        for machine, devices, k in self.idle[j] or []:
            slot = self.components[j][k].slot
            self._release_devices(slot, machine, devices)
            self._acquire(j, slot, machine, -1)
        self.idle[j] = None
        self._note_running(j)

    def _stop_gangs(self, reason="gang stopped"):
        """Stop the gangs that lost a slot or a task in one: they wait for all slots again."""
        for j in sorted(self.stopping):
            for entry in [e for e in self.running if e[5] and self.c.stage_job[e[2]] == j]:
                self._stop_task(entry, reason)
            self._release_slots(j)
        self.stopping = set()

    def _lose(self, machine):
        """Stop what runs on a machine, and the gangs with slots there."""
        for entry in [e for e in self.running if e[3] == machine]:
            self._stop_task(entry, "machine lost")
        for j in range(self.n_jobs):
            if any(m == machine for m, *_ in self.idle[j] or []):
                self.stopping.add(j)
        self._stop_gangs()

    def _stop_task(self, entry, reason):
        _, task, g, machine, first, in_held_slot = entry
        j = int(self.c.stage_job[g])
        start = float(self.task_start[task])
        kept_s = self._follow_work(entry, reason)
        if start < self.now or reason in ("failed", "input lost"):
            self.stopped.append((self.now, task, machine, start, reason, kept_s))
        self.running.remove(entry)
        rows = self._rows_with(task, g)
        if self._is_elastic(j):
            place_reason = "gang stopped" if reason == "failed" else reason
            self._stop_places(j, start, place_reason, kept_s)
        self.view["stage_started"][g] -= len(rows)
        for row in rows:
            self.task_started[row] = False
            if self._pending():
                self.remaining[j] += self._weighted_s(g, row)
        self._accrue(j)
        self.view["running"][j] -= self.view["running"][j] if self._is_elastic(j) else 1
        self.view["started"][j] -= len(rows)
        self._forget_launch(j, task)
        failed = reason in ("failed", "input lost")
        if (
            start >= self.now == self.view["start"][j]  # whichever of its tasks is stopped last
            and self.view["started"][j] == 0
            and not failed
        ):
            self.starts[j], self.view["start"][j] = [], np.nan  # it never ran
        self.first_started[j] -= first * len(rows)
        self._leave(task, g, machine, in_held_slot)
        self._note_running(j)
        if in_held_slot and reason not in ("timeout", "cancelled"):
            self.stopping.add(j)

    # ---- failures, and outputs that are lost

    def _next_failure(self, task, g):
        """Return how the attempt of a task of stage g fails, None if it does not.

        After how long, which task fails, and the task whose output is lost. An elastic job fails
        with the first of its tasks that do.
        """
        c, failures = self.c, []
        for row in self._rows_with(task, g) if len(c.attempt_s) else []:
            rest = range(c.attempt0[row] + self.failed[row], c.attempt0[row + 1])
            failures += [(float(c.attempt_s[i]), row, int(c.attempt_lost[i])) for i in rest[:1]]
        return min(failures, default=None)

    def _fail_attempt(self, entry):
        task = entry[1]
        _, failing, lost = self._next_failure(task, entry[2])
        self.failed[failing] += 1
        self._stop_task(entry, "failed" if lost < 0 else "input lost")
        if lost < 0:
            return
        self.waits_for_output[task] = lost
        if not self.task_done[lost]:
            return  # another reader found it lost before
        c, view = self.c, self.view
        g = int(np.searchsorted(c.stage_task0, lost, side="right")) - 1
        j = int(c.stage_job[g])
        start, end = float(self.task_start[lost]), float(self.task_finish[lost])
        self.stopped.append((end, lost, int(self.task_machine[lost]), start, "output lost", 0.0))
        self.task_done[lost] = self.task_started[lost] = False
        view["stage_started"][g] -= 1
        self.rerun.add(lost)
        self._lose_work(lost)
        view["stage_left"][g] += 1
        view["left"][j] += 1
        view["done"][j] -= 1
        view["done_work"][j] -= self.ran_s[lost]
        view["stage_done_work"][g] -= self.ran_s[lost]
        self.remaining[j] += self._weighted_s(g, lost)

    # ---- slow periods

    def _finish_time(self, begin, work):
        """Return the time at which `work` seconds at full speed, begun at `begin`, are done."""
        time = begin
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
        if since > self.now:
            return 0.0  # it launches
        done, now = 0.0, self.now
        for begin, speed in reversed(self.speeds):
            if begin >= now and begin > 0:
                continue
            if begin <= since:
                return done + (now - since) * speed
            done += (now - begin) * speed
            now = begin
        raise AssertionError("the first speed begins at 0")

    def _update_rates(self):
        """Set each running task to the rate that its machine gives it now."""
        for i, (_, task, g, machine, first, in_held_slot) in enumerate(self.running):
            rate, left, since = self.progress[task]
            new = self._rate(g, machine)
            if new != rate:
                left = max(0.0, left - rate * self._done_since(since))
                begin = max(self.now, since)
                self.progress[task] = (new, left, begin)
                self.running[i] = (
                    self._finish_time(begin, left / new),
                    task,
                    g,
                    machine,
                    first,
                    in_held_slot,
                )

    def _rate(self, g, machine):
        rate, j = 1.0, int(self.c.stage_job[g])
        machines = [machine, *(m for m, *_ in self.idle[j])] if self._is_elastic(j) else [machine]
        for m, r in itertools.product(machines, self.fungible):
            capacity = max(self.capacity[m][r], 1)
            demanded = self.capacity[m][r] - self.free[m][r]
            if self.demand[g][r] > 0 and demanded > capacity:
                rate = min(rate, capacity / demanded)
        return rate * self.pace[j]

    def _acquire(self, j, demand, machine, sign):
        for r, amount in enumerate(demand):
            self.free[machine][r] -= sign * amount
            self.used[j][r] += sign * amount
            self.used_in[j][self.column_on[machine][r]] += sign * amount
        if sign < 0:
            self.freed.add(machine)

    def _best_overbooking(self, m):
        """Return the stage whose next task gains most on the full machine m; None if none gains."""
        stages = [
            g
            for g in self._single_task_stages()
            if all(self.demand[g][r] <= self.free[m][r] for r in self.rigid)
            and self._can_use(g, m)
            and self._within_cap_on(int(self.c.stage_job[g]), self.demand[g], m)
        ]
        residents = [entry for entry in reversed(self.running) if entry[3] == m]
        rows = []
        for g in self._eligible(stages) if stages else []:
            gain = self._overbooking_gain(g, m, residents)
            if gain > 0:
                worth = self._task_worth(g, m, gain)
                rows.append((-self._score(g, worth), self._queue(g), self._rank(g), g))
        return min(rows)[3] if rows else None

    def _overbooking_gain(self, g, m, residents):
        """Return the work done by not waiting until g fits, less the delay of all tasks there."""
        weight = self.plan.stages["weight"]
        remaining = []
        for _, task, _, _, _, _ in residents:
            rate, at_begin, since = self.progress[task]
            remaining.append(max(0.0, at_begin - rate * self._done_since(since)))
        rates = [self._rate(resident_stage, m) for _, _, resident_stage, _, _, _ in residents]
        ends = [remaining_s / rate for remaining_s, rate in zip(remaining, rates, strict=True)]
        wait = 0.0
        for r in [r for r in self.deciding if self.demand[g][r] > 0]:
            free = self.free[m][r]
            for end, i in sorted((end, i) for i, end in enumerate(ends)):
                if free >= self.demand[g][r]:
                    break
                _, _, resident_stage, _, _, in_held_slot = residents[i]
                free += (
                    0 if in_held_slot else self.demand[resident_stage][r]
                )  # a held slot stays held
                wait = max(wait, end)
        self.free[m] = [f - d for f, d in zip(self.free[m], self.demand[g], strict=True)]
        duration = self.plan.stages["expected_s"][g] if self.seen else None
        duration = float(self._run_s(self._next_task(g, m), g, m) if duration is None else duration)
        delay = (duration / self._rate(g, m) - duration) * float(weight[g])
        for (_, _, resident_stage, _, _, _), remaining_s, end in zip(
            residents, remaining, ends, strict=True
        ):
            delay += (remaining_s / self._rate(resident_stage, m) - end) * float(
                weight[resident_stage]
            )
        self.free[m] = [f + d for f, d in zip(self.free[m], self.demand[g], strict=True)]
        return wait * float(weight[g]) - delay

    # ---- placement

    def _waiting_queue(self, j):
        jobs = self.plan.jobs
        if jobs["runs_on"][j] == 0:
            return None
        at_limit = self.view["running"][j] >= jobs["run_limit"][j]
        if at_limit or self.view["started"][j] >= jobs["start_gate"][j]:
            return None if jobs["overflow_queue"][j] < 0 else int(jobs["overflow_queue"][j])
        return int(jobs["queue"][j])

    def _waiting(self):
        return [
            g
            for j in range(self.n_jobs)
            if j in self.submitted
            and self.view["left"][j] > 0
            and self._waiting_queue(j) is not None
            for g in self.job_stages[j]
            if self._ready(g)
        ]

    def _queue(self, g):
        j = self.c.stage_job[g]
        return (self.org[j], self._waiting_queue(j))

    def _queue_use(self, jobs):
        used = [sum(self.used[j][r] for j in jobs) for r in range(len(self.total))]
        return self._dominant_share(used)

    def _dominant_share(self, used):
        shares = self._shares(used)
        return max(shares) if self.plan.share < 0 else shares[self.plan.share]

    def _queue_key(self, queue):
        org, level = queue
        queues = self.plan.queues
        jobs_of_org = [j for j in range(self.n_jobs) if self.org[j] == org]
        jobs_of_queue = [j for j in jobs_of_org if self.plan.jobs["queue"][j] == level]
        between = (self._queue_use(jobs_of_org) / self.org_weight[org], org)
        return (
            queues.tier[level],
            self._tree_key(queue) if self.quota_nodes else between,
            org,
            self._queue_use(jobs_of_queue) / queues.weight[level],
            level,
        )

    def _rank(self, g):
        j = int(self.c.stage_job[g])
        order = self.plan.queues.order[self._waiting_queue(j)]
        rank = {
            Order.KEY: lambda: self.plan.jobs["key"][j],
            Order.FIFO: lambda: self.submitted.index(j),
            Order.REMAINING: lambda: self._left_over_worth(j),
            Order.ATTAINED: lambda: self.attained[j],
            Order.SHARE: lambda: max(self._shares(self.used[j])),
        }[Order(order)]()
        return (-self.tier[j], rank, self.plan.stages["key"][g], g)

    def _order(self, g):
        """Return by what waiting stages are ordered: tier of partitions, queue, rank."""
        return (*self._tier_of(g), self._stage_key(g))

    def _left_over_worth(self, j):
        jobs = self.plan.jobs
        return (self.remaining[j] + float(jobs["beyond"][j])) / float(jobs["worth"][j])

    def _slot(self, j):
        return [max(self.demand[g][r] for g in self.job_stages[j]) for r in range(len(self.total))]

    def _holds(self, j):
        return self.view["running"][j] > 0 or self.idle[j] is not None

    def _is_waiting_gang(self, j):
        return self.c.job_min_tasks[j] > 0 and self.idle[j] is None

    def _within_cap(self, j, demand, times):
        if self._over_cap(j, demand, times):
            return False
        org = self.org[j]
        if not self._within_quota(org, [times * int(amount) for amount in demand]):
            return False
        jobs_of_org = [i for i in range(self.n_jobs) if self.org[i] == org]
        return all(
            sum(self.used[i][r] for i in jobs_of_org) + times * demand[r] <= self.cap[org][r]
            for r in self.deciding
        )

    def _machines(self, g):
        j = int(self.c.stage_job[g])
        if self.open is None and self.by_flavor:
            tries = self._in_order(j, self.demand[g])
            return sorted(
                m for attempt in tries for m in self._within(attempt, lambda: self._machines(g))
            )
        if not self._within_cap(j, self.demand[g], 1):
            return []
        return [
            m
            for m, free in enumerate(self.free)
            if m not in self.down
            and all(self.demand[g][r] <= max(free[r], 0) for r in self.deciding)
            and self._can_use(g, m)
        ]

    def _admit(self, j, places):
        """Take the slots of gang j: a machine and a component for each."""
        slots = []
        for m, k in places:
            slot = self.components[j][k].slot
            slots.append((m, self._acquire_devices(slot, m), k))
            self._acquire(j, slot, m, 1)
        self.idle[j] = slots[::-1]
        if not self._is_elastic(j):
            self._note_crossing(j, places)
        self.admitted_s[j], self.nth_of_gang[j] = self.now, self.n_placed
        self.n_placed += 1
        if self.exclusive[j]:  # it uses all of its machines
            self.beyond[j] = [0] * len(self.total)
            for m, k in places:
                self._count_beyond(j, m, k, 1)
        self._note_running(j)
        self._launch_gang(j)
        if self._is_elastic(j):
            self._start_unit(j)
        self._fill_held(j)

    def _count_beyond(self, j, m, k, sign):
        """Count what machine m has beyond a slot of exclusive gang j; no more, if sign is -1."""
        slot = self.components[j][k].slot
        beyond = [have - need for have, need in zip(self.capacity[m], slot, strict=True)]
        self.beyond[j] = [n + sign * b for n, b in zip(self.beyond[j], beyond, strict=True)]

    def _fill_held(self, j):
        while self.idle[j]:
            jobs = self.plan.jobs
            if self.view["running"][j] >= jobs["run_limit"][j]:
                return
            if self.view["started"][j] >= jobs["start_gate"][j]:
                return
            idle = [k for _, _, k in self.idle[j]]
            ready = [g for g in self.job_stages[j] if self._ready(g)]
            ready = [g for g in ready if self._component_of(g) in idle]
            if not ready:
                return
            first = min(ready, key=lambda g: (self.plan.stages["key"][g], g))
            last = max(i for i, k in enumerate(idle) if k == self._component_of(first))
            slot = self.idle[j].pop(last)
            self._start(first, slot[0], slot)

    def _dispatch(self):
        self._place_pinned()
        if not self._has_begun():
            self._fill_all_held()
            if self.plan.replan:
                self._note_events()
            return
        self._start_claimants()
        self._place_all()
        while self._preempt_in_order():
            self._place_all()

    def _fill_all_held(self):
        for j in range(self.n_jobs):
            if self.idle[j]:
                self._fill_held(j)

    def _place_all(self):
        self._fill_all_held()
        if self.plan.reservations:
            reserve(self)
            return
        if self.plan.replan:
            self._replan()
            return
        by_fit = {Fit.SKIP: self._skip, Fit.PACK: self._pack}
        by_fit.get(self.fit, self._strict)()

    def _strict(self):
        blocked, started, refused = {}, False, set()  # machines that the first of queues wait for
        counts_runs = any(group.counted != "submitted_jobs" for group in self.cap_groups)
        while True:
            heads = {}
            for g in self._waiting():
                q = self._queue(g)
                is_blocked = self._blocks(g) <= blocked.get(q, set()) or self._passes(g)
                is_blocked |= g in refused
                if not is_blocked and (q not in heads or self._rank(g) < self._rank(heads[q])):
                    heads[q] = g
            if not heads and counts_runs and started:
                # those that just started may let jobs pass that blocked
                blocked, started, refused = {}, False, set()
                continue
            if not heads:
                return
            q = min(heads, key=lambda q: self._order(heads[q]))
            g, barred = heads[q], blocked.get(q, set())
            if self._place(g, barred):
                started = True
                continue
            if self.plan.preemption and self._preempt(g, barred):
                blocked, started, refused = {}, False, set()
                continue
            if q[0] in self.skipping:
                refused.add(g)
            else:
                blocked[q] = barred | self._blocks(g)

    def _blocks(self, g):
        """Return the machines that stage g blocks while it waits: none that is reserved now.

        Nor one on which the policy does not let it run.
        """
        j = int(self.c.stage_job[g])
        machines = {m for m in self._machines_of(g) if self._runs_on(j, m)}
        return {m for m in machines if not self._is_reserved(j, m)}

    def _machines_of(self, g):
        """Return the machines that stage g may block: all, or those it can run on."""
        machines, j = range(len(self.free)), int(self.c.stage_job[g])
        if not len(self.world.cluster.machine_class):
            return set(machines)
        if self._is_waiting_gang(j):
            parts = enumerate(self.components[j])
            return {
                m
                for k, component in parts
                for m in machines
                if self._is_large_enough(component.slot, m) and self._may_hold(j, k, m)
            }
        return {
            m
            for m in machines
            if self._is_large_enough(self.demand[g], m) and (self.unit or self.allowed_on[g][m])
        }

    def _is_large_enough(self, demand, m):
        return all(demand[r] <= self.capacity[m][r] for r in self.deciding)

    def _skip(self):
        while True:
            order = sorted(self._waiting(), key=self._order)
            order = [g for g in order if not self._passes(g)]
            if not order:
                return
            if not self._place(order[0]):
                barred = self._machines_held_for(order[0])
                if not any(self._place(g, barred if any(self._asks(g)) else ()) for g in order[1:]):
                    return

    def _asks(self, g):
        """Return the demand of a task of stage g, or that of a slot if its job is a gang."""
        j = int(self.c.stage_job[g])
        return self._slot(j) if self._is_waiting_gang(j) else self.demand[g]

    def _machines_held_for(self, g):
        """Return the machines held for stage g, the first in order, which does not fit."""
        lacking, j = [], int(self.c.stage_job[g])
        demand = self.demand[g]
        n_left = int(np.diff(self.c.stage_task0)[g] - self.view["stage_started"][g])
        if self._is_waiting_gang(j):
            demand, n_left = self._slot(j), int(self.c.job_min_tasks[j])
        needs = self._total(j) if self._is_waiting_gang(j) else demand
        if self.unit or not self._within_cap(j, needs, 1):
            return set()
        allowed = {m for attempt in self._in_order(j, needs) for m in attempt.machines}
        for m, (free, capacity) in enumerate(zip(self.free, self.capacity, strict=True)):
            never = any(demand[r] > capacity[r] for r in self.deciding)
            if self._is_waiting_gang(j):
                never |= not any(self._may_hold(j, k, m) for k in range(len(self.components[j])))
            else:
                never |= not self.allowed_on[g][m]
            never |= self._is_closed_now(j, m) or self._is_beside_itself(j, m)
            never |= m not in allowed
            if m not in self.down and not never:
                lacks = [
                    (demand[r] - free[r]) * (1.0 / max(1, *(c[r] for c in self.capacity)))
                    for r in self.deciding
                    if r != self.whole
                ]
                lacking.append((max([0.0, *lacks]), m))
        return {m for _, m in sorted(lacking)[: min(self.plan.held_machines, n_left)]}

    def _place(self, g, barred=()):
        """Start stage g, or its gang, in the first of its flavors in which it fits."""
        if not self.by_flavor:
            return self._place_open(g, barred)
        tries = self._in_order(int(self.c.stage_job[g]), self._needs(g)[0])
        return any(self._within(attempt, lambda: self._place_open(g, barred)) for attempt in tries)

    def _place_open(self, g, barred):
        j = int(self.c.stage_job[g])
        if self._is_waiting_gang(j):
            places = self._gang_fit(j, barred)
            if places is None:
                return False
            self._admit(j, places)
            return True
        machines = [m for m in self._machines(g) if m not in barred]
        if not machines:
            return False
        self._start(g, self._best_machine(g, self.demand[g], machines))
        return True

    def _pack(self):
        while True:
            gangs = [g for g in self._waiting() if self._is_waiting_gang(int(self.c.stage_job[g]))]
            if not any(self._place(g) for g in sorted(gangs, key=self._order)):
                break
        while self._fill_machines() and self.freed:
            pass  # a queue for which room was kept may have found it elsewhere

    def _fill_machines(self):
        """Fill the machines in turn; tell whether anything started."""
        held_back, n_running = set(), len(self.running)
        for m in range(len(self.free)):
            while fitting := [g for g in self._single_task_stages() if m in self._machines(g)]:
                if not (served := self._eligible(fitting)):
                    held_back.add(m)
                    break
                self._start_bundle(served, m)
            while (
                self.variable_ends
                and self.plan.packing.overbook
                and m in self.freed
                and m not in self.down
                and (best := self._best_overbooking(m)) is not None
            ):
                self._charge(best)
                self._start(best, m)
        self.freed = held_back
        return len(self.running) > n_running

    def _single_task_stages(self):
        return [g for g in self._waiting() if not self._is_waiting_gang(int(self.c.stage_job[g]))]

    def _start_bundle(self, served, m):
        for n, (g, worth, left) in enumerate(self._bundle(served, m)):
            if n > 0:
                if g not in self._waiting() or m not in self._machines(g):
                    return
                is_owed = self._owed(self._tier(g), self._tier_of(g)) in (None, self._queue(g))
                if not is_owed and any(self.demand[g]):
                    return
            self.sum_worth += worth
            self.sum_remaining += left
            self._charge(g)
            self._start(g, m)

    def _eligible(self, stages):
        """Return the stages of the queue that is served now; of its whole tier if queues compete.

        Only those of the highest tier of partitions.

        While a queue of the tier is owed, only the stages of that queue, even if there are none,
        and those without a demand.
        """
        highest = min(self._tier_of(g) for g in stages)
        stages = [g for g in stages if self._tier_of(g) == highest]
        if self.plan.packing.unfairness == INF:
            first = min(self._queue_key(self._queue(g)) for g in stages)
            return [g for g in stages if self._queue_key(self._queue(g)) == first]
        tier = min(self._tier(g) for g in stages)
        owed = self._owed(tier, highest)
        in_tier = [g for g in stages if self._tier(g) == tier]
        if owed is None:
            return in_tier
        return [g for g in stages if self._queue(g) == owed or not any(self.demand[g])]

    def _tier(self, g):
        return self.plan.queues.tier[self._waiting_queue(self.c.stage_job[g])]

    def _owed(self, tier, partition_tier):
        """Return the queue of greatest deficit with a task that lacks only room, if it is owed.

        A task of partitions of that tier.
        """
        queues = {
            self._queue(g)
            for g in self._single_task_stages()
            if self._tier(g) == tier
            and self._tier_of(g) == partition_tier
            and self._within_cap(int(self.c.stage_job[g]), self.demand[g], 1)
        }
        if self.plan.packing.unfairness == INF or not queues:
            return None
        deficit, queue = min((-self.deficit.get(q, 0.0), q) for q in queues)
        return queue if -deficit >= self.plan.packing.unfairness else None

    def _charge(self, g):
        if self.plan.packing.unfairness == INF or not any(self.demand[g]):
            return
        charged, cost = self._queue(g), float(self.plan.stages["cost"][g])
        weight = {
            (o, q): self.org_weight[o] * self.plan.queues.weight[q]
            for o, q in sorted({self._queue(h) for h in self._waiting()})
        }
        total = 0.0
        for w in weight.values():
            total += w
        for q in weight:
            share = weight[q] / total
            change = cost * (share - 1.0) if q == charged else cost * share
            self.deficit[q] = self.deficit.get(q, 0.0) + change

    def _next_task(self, g, machine):
        """Return the first ready task that prefers the machine, if all are ready; or the first."""
        tasks = [int(self.c.stage_task0[g]) + index for index in self._ready(g)]
        if self._is_elastic(int(self.c.stage_job[g])):
            return int(self.c.stage_task0[g])
        at_once = self.c.stage_n_o2o[g] == 0 and not self.restarts
        if self.plan.task_prefers is not None and at_once:
            return next((t for t in tasks if self.plan.task_prefers[t] == machine), tasks[0])
        return tasks[0]

    def _task_worth(self, g, m, value):
        task, plan = self._next_task(g, m), self.plan
        worth = value
        if plan.task_priority is not None:
            priority = float(plan.task_priority[task])
            if plan.packing.rebased:
                j = self.c.stage_job[g]
                n_unstarted = int(self.view["left"][j] - self.view["running"][j]) - 1
                priority = min(1.0, priority / n_unstarted) if n_unstarted else 1.0
            worth = (1.0 - plan.packing.order * (1.0 - priority)) * value
        is_remote = plan.task_prefers is not None and plan.task_prefers[task] not in (-1, m)
        return worth * plan.packing.remote if is_remote else worth

    def _pending(self):
        """Tell whether started tasks no longer count in remaining work."""
        return self.plan.fit == Fit.PACK and self.plan.packing.pending

    def _weighted_s(self, g, task):
        duration = self.plan.stages["expected_s"][g] if self.seen else self.c.task_duration[task]
        return float(duration) * float(self.plan.stages["weight"][g])

    def _score(self, g, worth):
        m = self.plan.packing.remaining
        eta = m * self.sum_worth / self.sum_remaining if self.sum_remaining > 0 else 0.0
        return worth - eta * self._left_over_worth(self.c.stage_job[g])

    def _bundle(self, stages, m):
        """Return the best tasks that fit together and have the greatest total score."""
        rows = []
        for g in stages:
            aligned = self._alignment(g, m) if self.plan.packing.aligned else 1.0
            worth = self._task_worth(g, m, aligned)
            rows.append((-self._score(g, worth), self._queue(g), self._rank(g), g, worth))
        rows.sort()
        n_left, candidates = self.plan.packing.bundle, []
        for score, _, _, g, worth in rows:
            fit = [
                max(self.free[m][r], 0) // self.demand[g][r]
                for r in self.deciding
                if self.demand[g][r] > 0
            ]
            n_most = 1 if self._is_single(int(self.c.stage_job[g])) else n_left
            n_tasks = min([n_left, n_most, len(self._ready(g)), *fit])
            candidates += [(-score, g, worth, n_tasks)] if n_tasks else []
            n_left -= n_tasks
        best, best_total = (1,), 0.0
        positive = [row for row in candidates if row[0] > 0]
        for counts in itertools.product(*(range(row[3], -1, -1) for row in positive)):
            total = 0.0
            for n, row in zip(counts, positive, strict=True):
                for _ in range(n):
                    total += row[0]
            if total > best_total and self._fit_together(counts, positive, m):
                best, best_total = counts, total
        picked = []
        for n, (_, g, worth, _) in zip(best, candidates, strict=False):
            picked += [(g, worth, self._left_over_worth(self.c.stage_job[g]))] * n
        return picked

    def _fit_together(self, counts, rows, m):
        return all(
            sum(n * self.demand[row[1]][r] for n, row in zip(counts, rows, strict=True))
            <= max(self.free[m][r], 0)
            for r in self.deciding
        )

    def _alignment(self, g, m):
        score = 0.0
        for r in self.deciding:
            if r == self.whole:
                continue
            weight = self.free[m][r] * (1.0 / float(self.capacity[m][r] or 1) ** 2)
            score += weight * self.demand[g][r]
        return score
