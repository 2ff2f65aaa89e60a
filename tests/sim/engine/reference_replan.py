"""Slurm's main scheduling loop and backfill cycle in plain Python: one cycle, from a given state.

The facts are those of Slurm 22.05 (`slurm.conf`(5), and the behaviour of its source): the main loop
starts jobs in order until one does not fit; a backfill cycle plans all waiting jobs anew, in order,
and holds whole nodes for those that have to wait. Times are whole seconds.

The naive simulator and the judge of real logs (`tests/sim/engine/judge_replan.py`) both use it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Settings:
    """Options of Slurm; see `policies.backfill.slurm`."""

    resolution_s: int = 60
    window_s: int = 86_400
    linear_s: int = 0  # 0: windows of expected ends double
    depth: int = 500
    reserve: int = 0  # 0: no limit
    main_depth: int = 100
    first_window_s: int = 30  # expected ends are taken together up to a multiple of this
    kill_wait_s: int = 30  # how long a job may outlive its limit


@dataclass
class Job:
    """A waiting job: tasks that start together, each with one demand."""

    name: int
    tasks: int
    limit_s: int
    demand: tuple[int, ...] = (1,)
    usable: frozenset[int] | None = None  # nodes; None: all
    queue: int = 0


@dataclass
class Running:
    """A running job: its expected end, and its tasks by node."""

    end_s: int
    nodes: dict[int, int]
    demand: tuple[int, ...] = (1,)


@dataclass
class State:
    """Nodes, what is free on them, which of them complete a job, and the running jobs."""

    now: int
    free: list[list[int]]
    completing: set[int]
    running: list[Running] = field(default_factory=list)
    #: what a start changes at once; whether a job is over its share; its tasks by a node's devices
    start: Callable[[int, dict[int, int]], None] = lambda job, nodes: None
    is_capped: Callable[[Job], bool] = lambda job: False
    n_by_devices: Callable[[Job, int], float] = lambda job, node: math.inf
    #: whether a job exceeds a cap, and so "passes" or "blocks"
    over: Callable[[Job], str | None] = lambda job: None
    #: nodes on which nothing starts now; whether one is closed to a job between two times, by a
    #: window that is known beforehand; the ends of these, and what the clock is ahead of them
    absent: frozenset[int] = frozenset()
    is_closed: Callable[[Job, int, float, float], bool] = lambda job, node, begin, end: False
    openings: Callable[[Job, float], tuple[bool, Sequence[float]]] = lambda job, after: (False, ())
    clock_s: float = 0.0
    weight: Sequence[int] = ()  # of each node; empty: all alike

    def closed(self, job: Job, begin: float, end: float) -> set[int]:
        """Return the nodes that are closed to a job between two times."""
        return {n for n in range(len(self.free)) if self.is_closed(job, n, begin, end)}

    def opening(self, job: Job, begin: float, resolution: int) -> int | None:
        """Return when to look again: 1 s behind the first end of a window, rounded up.

        For a job with a reservation: when that begins.
        """
        has_own, times = self.openings(job, begin - self.clock_s)
        if not times:
            return None
        if has_own:
            return max(math.ceil(self.clock_s + min(times)), begin + 1)
        return math.ceil((self.clock_s + min(times)) / resolution) * resolution + 1

    def usable(self, job: Job) -> set[int]:
        return set(range(len(self.free)) if job.usable is None else job.usable)


Start = tuple[int, dict[int, int]]  # job, its tasks by node


def room(free: Sequence[int], job: Job) -> int:
    """Return how many tasks of a job fit on a node; all of one that demands nothing."""
    needs = zip(free, job.demand, strict=True)
    return min((max(have, 0) // need for have, need in needs if need), default=job.tasks)


def choose(
    free: Sequence[Sequence[int]],
    allowed: set[int],
    job: Job,
    max_tasks: Callable[[int], float] = lambda node: math.inf,
    weight: Sequence[int] = (),
) -> dict[int, int] | None:
    """Choose nodes by consecutive best fit: the tightest row of nodes that suffices, or the widest.

    Nodes of a row have one weight, and rows of the least weight come first. Within the row, the
    tightest single node that takes all that is left, or nodes from its begin.
    """
    weight = weight or [1] * len(free)
    rooms = [min(room(free[n], job), max_tasks(n)) if n in allowed else 0 for n in range(len(free))]
    rows, row = [], []
    for n, fits in enumerate([*rooms, 0]):
        if row and (not fits or weight[n] != weight[n - 1]):
            rows.append(row)
            row = []
        if fits:
            row.append(n)
    left, chosen = job.tasks, {}
    while left and rows:
        least = min(weight[row[0]] for row in rows)
        sizes = [sum(rooms[n] for n in row) if weight[row[0]] == least else None for row in rows]
        enough = [size for size in sizes if size is not None and size >= left]
        size = min(enough) if enough else max(size for size in sizes if size is not None)
        row = rows.pop(sizes.index(size))
        whole = [rooms[n] for n in row if rooms[n] >= left]
        if whole:
            row = [next(n for n in row if rooms[n] == min(whole))]
        for n in row:
            take = min(rooms[n], left)
            if take:
                chosen[n] = take
                left -= take
    return None if left else chosen


def main_cycle(state: State, jobs: Sequence[Job], settings: Settings, full: bool) -> list[Start]:
    """Start jobs in order; nodes that complete a job, or that an earlier one waits for, are out."""
    starts: list[Start] = []
    free = [list(have) for have in state.free]
    barred: set[int] = set()
    for job in jobs if full else jobs[: settings.main_depth + 1]:
        over = state.over(job)
        if over == "passes" or (not over and state.is_capped(job)):
            continue
        usable = state.usable(job) - state.absent - state.closed(job, state.now, state.now)
        closed = state.closed(job, state.now, state.now + job.limit_s)
        allowed = usable - closed - state.completing - barred
        limit = functools.partial(state.n_by_devices, job)
        nodes = choose(free, allowed, job, limit, state.weight)
        nodes = None if over else nodes
        if nodes is None:
            barred |= usable
            continue
        _take(free, nodes, job.demand, -1)
        state.start(job.name, nodes)
        starts.append((job.name, nodes))
    return starts


def backfill_cycle(state: State, jobs: Sequence[Job], settings: Settings) -> list[Start]:
    """Plan the jobs in order; return those that start now."""
    now, resolution = state.now, settings.resolution_s
    free = [list(have) for have in state.free]
    running = list(state.running)
    everything = set(range(len(free)))
    starts: list[Start] = []
    horizon = _floor(now + settings.window_s, resolution)
    profile = [(_floor(now, resolution), horizon, set(everything))]  # begin, end, nodes not held
    tried = reserved = 0
    blocked: set[int] = set()  # queues in which a job waits for a cap that blocks
    records = 1  # steps that the profile ever had; joined ones count
    for job in jobs:
        if tried >= settings.depth:
            break
        blocked |= {job.queue} if state.over(job) == "blocks" else set()
        if job.queue in blocked or state.over(job) or state.is_capped(job):
            continue
        may_reserve = settings.reserve == 0 or reserved < settings.reserve
        later, counted = now, False

        def max_tasks(n, job=job):
            return state.n_by_devices(job, n)

        while True:
            begin, later = later, 0
            end = max(begin, now) + job.limit_s
            closed = state.closed(job, begin, end)
            usable = state.usable(job) - closed - (state.absent if begin <= now else set())
            allowed = set(usable)
            for k, (first, last, nodes) in enumerate(profile):
                has_next = last > begin and k + 1 < len(profile)
                if has_next and not later and not profile[k + 1][2] & usable <= allowed & nodes:
                    later = last
                if last > begin:
                    if first > end:
                        break
                    allowed &= nodes
            opening = state.opening(job, begin, resolution) if closed else None
            if opening is not None and opening < horizon and not 0 < later <= opening:
                later = opening
            if not allowed:
                if later and may_reserve:
                    continue
                break
            tried += not counted
            counted = True
            planned = _will_run(
                state, job, allowed, free, running, settings, may_reserve, max_tasks
            )
            if planned is None:
                if later and may_reserve:
                    continue
                break
            start, nodes = max(planned[0], begin), set(planned[1])
            if start <= now and nodes & state.completing:
                start, later = now + 1, 0
            if start <= now:
                chosen = choose(free, allowed - state.completing, job, max_tasks, state.weight)
                assert chosen is not None
                _take(free, chosen, job.demand, -1)
                state.start(job.name, chosen)
                running.append(Running(now + job.limit_s, chosen, job.demand))
                starts.append((job.name, chosen))
                break
            if not may_reserve:
                break
            if later and start > later:
                continue
            from_s = _floor(start, resolution)
            until_s = _floor(start + job.limit_s, resolution)
            if start > now + settings.window_s:
                break
            if _is_held(profile, nodes, from_s, until_s):
                later = start
                continue
            if records >= settings.depth:  # Slurm's bf_node_space_size
                return starts
            reserved += 1
            from_s = max(from_s, profile[0][0])
            until_s = max(until_s, from_s + resolution)
            records += _new_steps(profile, from_s, until_s, records)
            profile = _hold(profile, nodes, from_s, until_s)
            break
    return starts


def _will_run(
    state: State,
    job: Job,
    allowed: set[int],
    free: list[list[int]],
    running: list[Running],
    settings: Settings,
    may_wait: bool,
    max_tasks: Callable[[int], float],
) -> tuple[int, dict[int, int]] | None:
    """Return when and where a job could start if running jobs end one by one as expected."""
    now = state.now
    nodes = choose(free, allowed, job, max_tasks, state.weight)
    if nodes is not None:
        return now, nodes
    if not may_wait:
        return None
    future = [list(have) for have in free]
    freed: set[int] = set()  # nodes on which a job has ended by then
    ends = sorted(running, key=lambda other: other.end_s)
    window = step = settings.first_window_s
    aligned = k = 0
    while k < len(ends):
        last = None
        while k < len(ends):
            other = ends[k]
            k += 1
            if not allowed & set(other.nodes):
                continue  # passed over, whatever its end
            if not aligned:
                aligned = other.end_s + step - other.end_s % step
            last = other.end_s
            _take(future, other.nodes, other.demand, 1)
            freed |= set(other.nodes)
            if k < len(ends) and ends[k].end_s > aligned + window:
                break  # by the next one, wherever it runs
        if last is None:
            break
        while True:
            window += settings.linear_s if settings.linear_s else window
            if k == len(ends) or ends[k].end_s <= aligned + window:
                break
        nodes = choose(future, allowed, job, _unless(freed, max_tasks), state.weight)
        if nodes is not None:
            if last > now:
                return last, nodes
            return max(last + settings.kill_wait_s, now + 1), nodes
    return None


def _unless(freed: set[int], max_tasks: Callable[[int], float]) -> Callable[[int], float]:
    """Return the limit of tasks by devices, which no longer holds on nodes where a job ended."""
    return lambda node: math.inf if node in freed else max_tasks(node)


def _is_held(profile, nodes: set[int], from_s: int, until_s: int) -> bool:
    return any(
        not nodes <= free for first, last, free in profile if last > from_s and first < until_s
    )


def _new_steps(profile, from_s: int, until_s: int, records: int) -> int:
    """Return by how many steps a reservation cuts the profile; the first one also at its begin."""
    begin, horizon = profile[0][0], profile[-1][1]
    ends = {last for _, last, _ in profile} | ({begin} if records > 1 else set())
    if from_s >= horizon:
        return 0
    return (from_s not in ends) + (until_s < horizon and until_s not in ends)


def _hold(profile, nodes: set[int], from_s: int, until_s: int):
    """Take nodes out of the profile between two times."""
    steps = []
    for first, last, free in profile:
        cuts = sorted({first, last, *(t for t in (from_s, until_s) if first < t < last)})
        for a, b in itertools.pairwise(cuts):
            taken = nodes if from_s <= a and b <= until_s else set()
            steps.append((a, b, free - taken))
    merged = steps[:1]
    for first, last, free in steps[1:]:
        if free == merged[-1][2]:
            merged[-1] = (merged[-1][0], last, free)
        else:
            merged.append((first, last, free))
    return merged


def _take(free, nodes: dict[int, int], demand: Sequence[int], sign: int) -> None:
    for n, tasks in nodes.items():
        for r, need in enumerate(demand):
            free[n][r] += sign * tasks * need


def _floor(time: float, step: int) -> int:
    return math.floor(time / step) * step


class Replanning:
    """The part of the naive simulator that polls, plans and starts jobs as Slurm does."""

    def _init_replan(self):
        options = self.plan.replan
        if options is None:
            return
        self.settings = Settings(
            options.resolution_s,
            options.window_s,
            options.linear_s,
            options.depth,
            options.reserved,
            options.main_depth,
            options.first_window_s,
            options.kill_wait_s,
        )
        self.nodes = {}  # of each running job, its tasks by node
        self.expected_end = {}
        self.completing = {}  # job: time until which its nodes complete it
        self.known = self.plans = 0
        self.last_poll, self.next_full, self.requested = -(10**9), options.main_phase, None
        self.wake, self.is_idle = options.plan_phase_s, False
        self.last_plan, self.last_update = 0, -1

    def _clock(self):
        return math.floor(self.plan.replan.clock_s + self.now)

    def _poll_s(self, poll):
        return self.plan.replan.poll_phase_s + poll

    def _next_pass(self):
        if self.requested is None:
            return self.next_full
        phase = self.plan.replan.poll_phase_s
        poll = max(math.ceil(self.requested - phase), 0)
        poll += phase + poll < self.requested
        return min(max(poll, self.last_poll + self.plan.replan.main_delay_s), self.next_full)

    def _next_wake(self):
        times = list(self.completing.values())
        if self._waiting():
            times.append(self._poll_s(self._next_pass()))
        if self.plan.replan.plans and not self.is_idle:
            times.append(self.wake)
        return min(times, default=math.inf)

    def _end_pass(self, poll):
        is_full = poll == self.next_full
        self.next_full += is_full * self.plan.replan.main_interval_s
        self.last_poll, self.requested = poll, None
        return is_full

    def _note_update(self):
        self.last_update = self._clock()
        if self.is_idle:
            self.is_idle = False
            self.wake += max(float(math.ceil(self.now - self.wake)), 0.0)

    def _replan(self):
        while self._poll_s(self._next_pass()) < self.now:
            self._end_pass(self._next_pass())  # nobody waited
        self._note_events()
        poll = self._next_pass()
        if self._waiting() and self._poll_s(poll) <= self.now:
            full = self._end_pass(poll)
            main_cycle(self._cluster(), self._queue_jobs(), self.settings, full)
            self._note_update()
        if self.plan.replan.plans and not self.is_idle and self.wake <= self.now:
            self._wake_up()

    def _note_events(self):
        submitted = len(self.submitted) > self.known
        self.known = len(self.submitted)
        ended = [j for j in self.nodes if self.view["left"][j] == 0 and j in self.expected_end]
        for j in ended:
            del self.expected_end[j]
            completing_s = np.broadcast_to(self.plan.replan.completing_s, len(self.view["left"]))
            self.completing[j] = float(self.view["finish"][j] + completing_s[j])
        stopped = [j for j in self.expected_end if not self._holds(j)]
        for j in stopped:
            del self.expected_end[j], self.nodes[j]
        completed = [j for j, until in self.completing.items() if until <= self.now]
        for j in completed:
            del self.completing[j], self.nodes[j]
        if (submitted or completed or stopped) and self.requested is None:
            self.requested = self.now
        if submitted or ended or completed or stopped:
            self._note_update()

    def _wake_up(self):
        if self.last_update < self.last_plan:
            self.is_idle, self.wake = True, self.now + 1.0
            return
        self.last_plan = self._clock()
        options, jobs = self.plan.replan, self._queue_jobs()
        factors = np.array(options.cycle_factors, ndmin=1)
        cycle_s = options.cycle_s + options.job_cycle_s * min(len(jobs), options.depth)
        cycle_s *= float(factors[self.plans % len(factors)])
        self.plans += 1
        self.wake = self.now + (cycle_s + options.interval_s)
        starts = backfill_cycle(self._cluster(), jobs, self.settings)
        started = {j for j, _ in starts}
        waiting = [job for job in jobs if job.name not in started]
        first, after = [job for job in waiting if self._over(job) != "passes"][:1], self._cluster()
        marked = any(
            min(room(after.free[n], job), after.n_by_devices(job, n)) > 0
            for job in first
            for n in after.usable(job) - after.absent
        )
        if starts or marked:
            self.last_update = self.last_plan

    def _queue_jobs(self):
        def order(g):  # weighted queues by what they use now
            if self.queues_are_hard:
                return (self._tier_of(g), (), self._rank(g))
            return self._order(g)

        waiting = [g for g in sorted(self._waiting(), key=order) if not self._passes(g)]
        jobs = [int(self.c.stage_job[g]) for g in waiting]
        return [
            Job(
                j,
                self._width(j),
                self._limit_s(j),
                self._demand_of(j),
                self._usable_nodes(j),
                self.org[j],
            )
            for j in dict.fromkeys(jobs)
        ]

    def _demand_of(self, j):
        return tuple(d if r in self.deciding else 0 for r, d in enumerate(self._slot(j)))

    def _usable_nodes(self, j):
        if self._is_pool():
            return frozenset() if self.unforeseen else None
        return frozenset(
            n
            for n in range(len(self.free))
            if n not in self.unforeseen and all(self.allowed_on[g][n] for g in self.job_stages[j])
        )

    def _over(self, job):
        return self._rigid_over(job.name)

    def _is_capped(self, job):
        return not self._within_cap(job.name, self._slot(job.name), job.tasks)

    def _n_by_devices(self, job, node):
        return math.inf if self._is_pool() else self._slots_by_devices(self._slot(job.name), node)

    def _width(self, j):
        return sum(self.size[g] for g in self.job_stages[j])

    def _limit_s(self, j):
        return math.ceil(self.plan.jobs["expected_s"][j])

    def _is_pool(self):
        return len(self.free) == 1 and self.world.cluster.unit

    def _cluster(self):
        free = [list(have) for have in self.free]
        if self._is_pool():
            free = [[1] for _ in range(self.total[0])]
            for j in self.expected_end:
                _take(free, self.nodes[j], (1,), -1)
        completing = {n for j in self.completing for n in self.nodes[j]}
        running = [
            Running(self.expected_end[j], self.nodes[j], self._demand_of(j))
            for j in sorted(self.expected_end)
        ]
        hooks = self._start_on, self._is_capped, self._n_by_devices, self._over
        absent = range(len(free)) if self._is_pool() and self.down else self.down
        clock_s = self.plan.replan.clock_s
        windows = frozenset(absent), self._is_node_closed, self._look_again_at, clock_s
        weight = self.world.cluster.weight.tolist()
        return State(self._clock(), free, completing, running, *hooks, *windows, weight)

    def _look_again_at(self, job, after):
        """Tell whether a job asks for a reservation; list its begins, or else the ends to come."""
        own = self.asks_for[job.name]
        if own is not None:
            return True, [row[1] for row in self.windows if row[4] == own and row[1] > after]
        return False, [row[2] for row in self.windows if after <= row[2] < math.inf]

    def _is_node_closed(self, job, node, begin, end):
        clock_s, machine = self.plan.replan.clock_s, 0 if self._is_pool() else node
        return self._is_closed(job.name, machine, begin - clock_s, end - clock_s)

    def _start_replanned(self, j):
        """Start job j where it fits now, whatever is planned for others; tell whether it did."""
        self._note_events()
        job = Job(
            j,
            self._width(j),
            self._limit_s(j),
            self._demand_of(j),
            self._usable_nodes(j),
            self.org[j],
        )
        state = self._cluster()
        nodes = None
        if not self._is_capped(job):
            closed = state.closed(job, state.now, state.now + job.limit_s)
            usable = state.usable(job) - state.absent - closed
            limit = functools.partial(self._n_by_devices, job)
            nodes = choose(state.free, usable, job, limit, state.weight)
        if nodes is None:
            return False
        self._start_on(j, nodes)
        self._note_update()
        return True

    def _start_on(self, j, nodes):
        self.nodes[j] = nodes
        self.expected_end[j] = self._clock() + self._limit_s(j)
        machines = [0 if self._is_pool() else n for n in sorted(nodes) for _ in range(nodes[n])]
        if self._is_waiting_gang(j):
            self._admit(j, machines)
        else:
            g = next(g for g in self.job_stages[j] if self._ready(g))
            self._start(g, machines[0])
