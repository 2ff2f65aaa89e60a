"""Slurm's main scheduling loop and backfill cycle in plain Python: one cycle, from a given state.

The facts are those of Slurm 22.05 (`slurm.conf`(5), and the behaviour of its source): the main loop
starts jobs in order until one does not fit; a backfill cycle plans all waiting jobs anew, in order,
and holds whole nodes for those that have to wait. Times are whole seconds.

The naive simulator and the judge of real logs (`tests/sim/engine/judge_replan.py`) both use it.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np

from sim.engine.plan import WhenPreempted
from tests.sim.engine.reference_cycles import Counts, slice_end, slice_s


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
    depths: tuple[int, ...] = ()  # most jobs that a plan tries, of each kind of group
    main_depths: tuple[int, ...] = ()  # the same of the main loop
    starts: int = 0  # most jobs that a plan starts; 0: no limit
    main_starts: int = 0
    array_reserve: int = 0  # most reservations of an array; 0: no limit


@dataclass(frozen=True)
class Component:
    """Tasks of one demand of a job of several, and the nodes for them; None: all."""

    tasks: int
    demand: tuple[int, ...]
    usable: frozenset[int] | None = None


class Nodes(dict[int, int]):
    """Tasks by node of a job of several components, and those of each."""

    def __init__(self, parts: Sequence[dict[int, int]], demands: Sequence[tuple[int, ...]]) -> None:
        super().__init__(sum((Counter(part) for part in parts), Counter()))
        self.parts, self.demands = parts, demands


@dataclass
class Job:
    """A waiting job: tasks that start together, each with one demand."""

    name: int
    tasks: int
    limit_s: int
    demand: tuple[int, ...] = (1,)
    usable: frozenset[int] | None = None  # nodes; None: all
    queue: int = 0
    groups: tuple[int, ...] = ()  # one of each kind whose jobs a plan counts; -1: none
    main_groups: tuple[int, ...] = ()
    partition: int = 0  # by which reservations count
    array: int = -1
    throttle: int = 0  # of its array; 0: none
    one_per_node: bool = False
    components: tuple[Component, ...] = ()  # if they are unequal; `demand` is of none then
    runs_on: frozenset[int] | None = None  # of the usable nodes those with room for it; None: all
    in_domains: Callable[..., Any] | None = None  # a search in those that it asks for; None: none
    fits_by: int = -1  # the resource by which its nodes are compared; -1: by its tasks that fit


@dataclass
class Running:
    """A running job: its expected end, and its tasks by node."""

    end_s: int
    nodes: dict[int, int]
    demand: tuple[int, ...] = (1,)
    job: int = -1


@dataclass
class State:
    """Nodes, what is free on them, which of them complete a job, and the running jobs."""

    now: int
    free: list[list[int]]
    completing: set[int]
    running: list[Running] = field(default_factory=list)
    #: what a start changes at once; the job on the nodes of each flavor that it tries in turn, of
    #: those that shares and quotas allow now, or of all; its tasks by a node's devices
    start: Callable[[int, dict[int, int]], None] = lambda job, nodes: None
    tries: Callable[[Job, bool], Sequence[Job]] = lambda job, is_allowed: [job]
    n_by_devices: Callable[..., float] = lambda job, node, k=0, placed=(): math.inf
    #: whether a job exceeds a cap, and so "passes" or "blocks"; whether it is one of running jobs
    over: Callable[[Job], str | None] = lambda job: None
    is_over_jobs: Callable[[Job], bool] = lambda job: False
    #: arrays of the running jobs, an entry a job
    running_arrays: Sequence[int] = ()
    #: nodes on which nothing starts now; whether one is closed to a job between two times, by a
    #: window that is known beforehand; the ends of these, and what the clock is ahead of them
    absent: frozenset[int] = frozenset()
    is_closed: Callable[[Job, int, float, float], bool] = lambda job, node, begin, end: False
    openings: Callable[[Job, float], tuple[bool, Sequence[float]]] = lambda job, after: (False, ())
    clock_s: float = 0.0
    weights: Sequence[int] = ()  # of the nodes; empty if all are equal
    #: whether an exclusive job exceeds a cap with all of these nodes, as `over`
    over_with: Callable[[Job, dict[int, int]], str | None] = lambda job, nodes: None
    #: whether a job may preempt another one
    may_preempt: Callable[[int, int], bool] = lambda job, other: False
    #: notes a job that could start if those that it may preempt were gone
    note_preemptor: Callable[[int], None] = lambda job: None

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
    fits = min((max(have, 0) // need for have, need in needs if need), default=job.tasks)
    return min(fits, 1) if job.one_per_node else fits


def choose(
    free: Sequence[Sequence[int]],
    allowed: set[int],
    job: Job,
    max_tasks: Callable[..., float] = lambda node, k=0, placed=(): math.inf,
    weights: Sequence[int] = (),
) -> dict[int, int] | None:
    """Choose nodes by consecutive best fit: the tightest row of nodes that suffices, or the widest.

    Within the row, the tightest single node that takes all that is left, or nodes from its begin.
    Tight is by tasks that fit, or by what is free of a resource: then a row with too few nodes may
    be wider than one that suffices, and is taken if it stands behind it. All nodes of a smaller
    weight come first. Components in turn, so; where that does not suffice, each on the first nodes
    with room.
    """
    if job.components:
        return _choose_components(free, allowed, job, max_tasks, weights)
    if job.runs_on is not None:
        allowed = allowed & job.runs_on
    if len(set(weights)) > 1:
        return _by_weight(free, allowed, job, max_tasks, weights)
    rooms = [min(room(free[n], job), max_tasks(n)) if n in allowed else 0 for n in range(len(free))]
    rows, row = [], []
    for n, fits in enumerate([*rooms, 0]):
        if fits:
            row.append(n)
        elif row:
            rows.append(row)
            row = []
    fits = rooms if job.fits_by < 0 else [have[job.fits_by] for have in free]
    left, chosen = job.tasks, {}
    while left and rows:
        row = _best_row(rows, rooms, fits, left)
        rows.remove(row)
        whole = [n for n in row if rooms[n] >= left]
        if whole:
            row = [min(whole, key=lambda n: (fits[n], n))]
        for n in row:
            take = min(rooms[n], left)
            if take:
                chosen[n] = take
                left -= take
    return None if left else chosen


def _best_row(rows, rooms, fits, left):
    best = rows[0]
    for row in rows[1:]:
        fit, best_fit = (sum(fits[n] for n in nodes) for nodes in (row, best))
        enough, best_enough = (sum(rooms[n] for n in nodes) >= left for nodes in (row, best))
        if (enough and (not best_enough or fit < best_fit)) or (not enough and fit > best_fit):
            best = row
    return best


def _choose_components(free, allowed, job, max_tasks, weights):
    first = job.components[0]

    def search(outside):
        return _choose_beside(free, allowed - outside, job, max_tasks, weights)

    def slots(n):
        if n not in allowed or (first.usable is not None and n not in first.usable):
            return 0
        own = Job(job.name, first.tasks, 0, first.demand, one_per_node=job.one_per_node)
        return min(room(free[n], own), max_tasks(n))

    return search(set()) if job.in_domains is None else job.in_domains(search, slots)


def _choose_beside(free, allowed, job, max_tasks, weights):
    demands = [component.demand for component in job.components]
    for in_order in (False, True):
        left, parts, placed = [list(have) for have in free], [], []
        for k, component in enumerate(job.components):
            used = {n for part in parts for n in part} if job.one_per_node else set()
            usable = allowed - used
            usable = usable if component.usable is None else usable & component.usable
            own = Job(job.name, component.tasks, 0, component.demand, None)
            own.one_per_node, own.fits_by = job.one_per_node, job.fits_by

            def limit(n, k=k, placed=tuple(placed)):
                return max_tasks(n, k, placed)

            if in_order:
                nodes = _first_with_room(left, usable, own, limit)
            else:
                nodes = choose(left, usable, own, limit, weights)
            if nodes is None:
                break
            parts.append(nodes)
            _take(left, nodes, component.demand, -1)
            placed += [(n, k) for n in sorted(nodes) for _ in range(nodes[n])]
        else:
            return Nodes(parts, demands)
    return None


def _first_with_room(free, allowed, job, max_tasks):
    left, chosen = job.tasks, {}
    for n in sorted(allowed):
        take = min(room(free[n], job), max_tasks(n), left)
        if take:
            chosen[n] = take
            left -= take
    return None if left else chosen


def _by_weight(free, allowed, job, max_tasks, weights):
    left, chosen = job.tasks, {}
    for weight in sorted(set(weights)):
        mine = {n for n in allowed if weights[n] == weight}
        fits = sum(min(room(free[n], job), max_tasks(n)) for n in mine)
        part = replace(job, tasks=min(left, fits))
        chosen |= choose(free, mine, part, max_tasks) or {}
        left -= part.tasks
    return None if left else chosen


def main_cycle(state: State, jobs: Sequence[Job], settings: Settings, full: bool) -> list[Start]:
    """Start jobs in order; nodes that complete a job, or that an earlier one waits for, are out."""
    starts: list[Start] = []
    free = [list(have) for have in state.free]
    barred: set[int] = set()
    counts, tried = Counts(settings.main_depths, state.running_arrays), 0
    for job in jobs:
        if 0 < settings.main_starts <= len(starts):
            break
        if counts.skips(job) or counts.exceeds(job.main_groups):
            continue
        if not full and tried > settings.main_depth:
            break
        tried += 1
        over = state.over(job)
        runs_any = bool(state.running or starts)
        nodes, awaited, for_room = _choose_now(state, job, over, free, barred, runs_any)
        if nodes is None:
            if for_room and not awaited & barred:
                state.note_preemptor(job.name)
            barred |= awaited
            counts.close(job)
            continue
        _take(free, nodes, job.demand, -1)
        state.start(job.name, nodes)
        starts.append((job.name, nodes))
    return starts


def _choose_now(
    state: State,
    job: Job,
    over: str | None,
    free: list[list[int]],
    barred: set[int],
    runs_any: bool,
) -> tuple[dict[int, int] | None, set[int], bool]:
    """Choose nodes in the first flavor in which a job may start now; None if it may in none.

    Then also return the nodes that it waits for, and whether it does for want of room.
    """
    awaited: set[int] = set()
    for_room = False
    for attempt in [] if over == "passes" else state.tries(job, not over):
        usable = state.usable(attempt) - state.absent - state.closed(job, state.now, state.now)
        closed = state.closed(job, state.now, state.now + job.limit_s)
        allowed = usable - closed - state.completing - barred
        max_tasks = partial(state.n_by_devices, job)
        over_here, nodes = over, None
        if not over:
            nodes = choose(free, allowed, attempt, max_tasks, state.weights)
        if nodes is not None and runs_any:
            over_here = state.over_with(job, nodes)
        if nodes is not None and not over_here:
            return nodes, set(), False
        if over_here != "passes":
            awaited |= usable
            for_room |= not over_here
    return None, awaited, for_room


@dataclass
class Cycle:
    """A cycle of the backfill thread, which may sleep and go on later.

    Attributes
    ----------
    profile : list of (begin, end, nodes that are not reserved)
    records : int
        Steps that the profile ever had; joined ones count.
    """

    profile: list[tuple[int, int, set[int]]]
    counts: Counts
    jobs: list[int] = field(default_factory=list)  # names, in order
    position: int = 0  # of the next job
    began_s: float = 0.0
    factor: float = 1.0
    records: int = 1
    tried: int = 0
    started: int = 0
    reserved: Counter[int] = field(default_factory=Counter)  # by partition
    blocked: set[int] = field(default_factory=set)  # queues: a job waits for a cap that blocks
    is_over: bool = False

    @classmethod
    def begin(cls, state: State, settings: Settings) -> Cycle:
        """Begin one: nothing is reserved."""
        now, resolution = state.now, settings.resolution_s
        horizon = _floor(now + settings.window_s, resolution)
        everything = set(range(len(state.free)))
        counts = Counts(settings.depths, state.running_arrays)
        return cls([(_floor(now, resolution), horizon, everything)], counts)


def backfill_cycle(
    state: State, jobs: Sequence[Job], settings: Settings, cycle: Cycle | None = None
) -> list[Start]:
    """Plan the jobs in order; return those that start now. `cycle`: one that goes on."""
    cycle = cycle or Cycle.begin(state, settings)
    now, counts = state.now, cycle.counts
    free = [list(have) for have in state.free]
    running = list(state.running)
    starts: list[Start] = []
    for job in jobs:
        if cycle.tried >= settings.depth or 0 < settings.starts <= cycle.started:
            cycle.is_over = True
            break
        over = state.over(job)
        cycle.blocked |= {job.queue} if over == "blocks" else set()
        if job.queue in cycle.blocked or state.is_over_jobs(job) or counts.skips(job):
            continue
        counts.close(job)  # unless it starts, or gets a reservation
        if counts.exceeds(job.groups) or over:
            continue
        may_reserve = settings.reserve == 0 or cycle.reserved[job.partition] < settings.reserve
        start, nodes = _plan_tries(state, cycle, job, free, running, settings, may_reserve)
        if start is None:
            continue
        counts.closed.discard(job.array)
        if start <= now:
            _take(free, nodes, job.demand, -1)
            state.start(job.name, nodes)
            running.append(Running(now + job.limit_s, nodes, job.demand, job.name))
            starts.append((job.name, nodes))
            cycle.started += 1
            continue
        if cycle.records >= settings.depth:  # Slurm's bf_node_space_size
            cycle.is_over = True
            break
        cycle.reserved[job.partition] += 1
        counts.note_reserved(job, settings.array_reserve)
        from_s = max(_floor(start, settings.resolution_s), cycle.profile[0][0])
        until_s = _floor(start + job.limit_s, settings.resolution_s)
        until_s = max(until_s, from_s + settings.resolution_s)
        cycle.records += _new_steps(cycle.profile, from_s, until_s, cycle.records)
        cycle.profile = _hold(cycle.profile, set(nodes), from_s, until_s)
    return starts


def _plan_tries(
    state: State,
    cycle: Cycle,
    job: Job,
    free: list[list[int]],
    running: list[Running],
    settings: Settings,
    may_reserve: bool,
) -> tuple[int | None, dict[int, int]]:
    """Return when and where a job is to start: of the flavors that quotas allow it now.

    In the first in which it may start now, or else that in which it is planned to first.
    """
    best: tuple[int | None, dict[int, int]] = None, {}
    tried = cycle.tried
    for attempt in state.tries(job, True):
        start, nodes = _plan_job(state, cycle, attempt, free, running, settings, may_reserve)
        cycle.tried = min(cycle.tried, tried + 1)  # one job
        if start is None or (start <= state.now and running and state.over_with(job, nodes)):
            continue
        if start <= state.now:
            return start, nodes
        if best[0] is None or start < best[0]:
            best = start, nodes
    return best


def _plan_job(
    state: State,
    cycle: Cycle,
    job: Job,
    free: list[list[int]],
    running: list[Running],
    settings: Settings,
    may_reserve: bool,
) -> tuple[int | None, dict[int, int]]:
    """Return when and where a job is to start; None if no reservation is to be made for it."""
    now, resolution = state.now, settings.resolution_s
    horizon = cycle.profile[-1][1]
    later, counted = now, False

    def max_tasks(n, k=0, placed=()):
        return state.n_by_devices(job, n, k, placed)

    while True:
        begin, later = later, 0
        end = max(begin, now) + job.limit_s
        closed = state.closed(job, begin, end)
        usable = state.usable(job) - closed - (state.absent if begin <= now else set())
        allowed = set(usable)
        for k, (first, last, nodes) in enumerate(cycle.profile):
            has_next = last > begin and k + 1 < len(cycle.profile)
            if has_next and not later and not cycle.profile[k + 1][2] & usable <= allowed & nodes:
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
            return None, {}
        cycle.tried += not counted
        counted = True
        future = now, job, allowed, free, running, settings, may_reserve, max_tasks
        planned = _will_run(*future, state.weights, partial(state.may_preempt, job.name))
        if planned is None:
            if later and may_reserve:
                continue
            return None, {}
        start, chosen = max(planned[0], begin), planned[1]
        if planned[2] and begin <= now and not chosen.keys() & state.completing:
            state.note_preemptor(job.name)
        if start <= now and chosen.keys() & state.completing:
            start, later = now + 1, 0
        if start <= now:
            if job.components:  # its nodes complete no job
                return start, chosen
            chosen = choose(free, allowed - state.completing, job, max_tasks, state.weights)
            assert chosen is not None
            return start, chosen
        if not may_reserve:
            return None, {}
        if later and start > later:
            continue
        if start > now + settings.window_s:
            return None, {}
        until_s = _floor(start + job.limit_s, resolution)
        if not _is_held(cycle.profile, set(chosen), _floor(start, resolution), until_s):
            return start, chosen
        later = start


def _will_run(
    now: int,
    job: Job,
    allowed: set[int],
    free: list[list[int]],
    running: list[Running],
    settings: Settings,
    may_wait: bool,
    max_tasks: Callable[[int], float],
    weights: Sequence[int],
    may_preempt: Callable[[int], bool],
) -> tuple[int, dict[int, int], bool] | None:
    """Return when and where a job could start if running jobs end one by one as expected.

    Those that it may preempt count as gone; also tell whether that alone suffices.
    """
    nodes = choose(free, allowed, job, max_tasks, weights)
    if nodes is not None:
        return now, nodes, False
    if not may_wait:
        return None
    future = [list(have) for have in free]
    freed: set[int] = set()  # nodes on which a job has ended by then
    preemptable = [other for other in running if may_preempt(other.job)]
    for other in preemptable:
        if allowed & set(other.nodes):
            _take(future, other.nodes, other.demand, 1)
            freed |= set(other.nodes)
    if preemptable:
        nodes = choose(future, allowed, job, _unless(freed, max_tasks), weights)
        if nodes is not None:
            return now + 1, nodes, True
    staying = [other for other in running if other not in preemptable]
    ends = sorted(staying, key=lambda other: (other.end_s, other.job))
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
        nodes = choose(future, allowed, job, _unless(freed, max_tasks), weights)
        if nodes is not None:
            if last > now:
                return last, nodes, False
            return max(last + settings.kill_wait_s, now + 1), nodes, False
    return None


def _unless(freed: set[int], max_tasks: Callable[..., float]) -> Callable[..., float]:
    """Return the limit of tasks by devices, which no longer holds on nodes where a job ended.

    Of several components it holds for none.
    """
    return lambda node, k=None, placed=(): (
        math.inf if node in freed or k is not None else max_tasks(node)
    )


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
    if isinstance(nodes, Nodes):
        for part, own in zip(nodes.parts, nodes.demands, strict=True):
            _take(free, part, own, sign)
        return
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
            resolution_s=options.resolution_s,
            window_s=options.window_s,
            linear_s=options.linear_s,
            depth=options.depth,
            reserve=options.reserved,
            main_depth=options.main_depth,
            first_window_s=options.first_window_s,
            kill_wait_s=options.kill_wait_s,
            depths=tuple(depth.at_most for depth in options.depths),
            main_depths=tuple(depth.at_most for depth in options.main_depths),
            starts=options.starts,
            main_starts=options.main_starts,
            array_reserve=options.array_reserved,
        )
        self.cycle, self.changed = None, False  # of the backfill thread, if it sleeps meanwhile
        self.nodes = {}  # of each running job, its tasks by node
        self.expected_end = {}
        self.completing = {}  # job: time until which its nodes complete it
        self.known = self.plans = 0
        self.back = {}  # job that was stopped: when it is looked at again
        self.last_poll, self.next_full, self.requested = -(10**9), options.main_phase, None
        self.wake, self.is_idle = options.plan_phase_s, False
        self.last_plan, self.last_update = 0, -1
        self.preemptors, self.preemptors_s = set(), 0.0  # jobs for which others are to stop now

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
        self.last_update, self.changed = self._clock(), True
        if self.is_idle:
            self.is_idle = False
            self.wake += max(float(math.ceil(self.now - self.wake)), 0.0)

    def _replan(self):
        if self.preemptors_s != self.now:
            self.preemptors.clear()
        self.preemptors_s = self.now
        while self._poll_s(self._next_pass()) < self.now:
            self._end_pass(self._next_pass())  # nobody waited
        self._note_events()
        poll = self._next_pass()
        if self._waiting() and self._poll_s(poll) <= self.now:
            full = self._end_pass(poll)
            main_cycle(self._cluster(), self._queue_jobs(True), self.settings, full)
            self._note_update()
        if self.plan.replan.plans and not self.is_idle and self.wake <= self.now:
            self._wake_up()

    def _note_events(self):
        submitted = len(self.submitted) > self.known
        self.known = len(self.submitted)
        ended = [j for j in self.nodes if self.view["left"][j] == 0 and j in self.expected_end]
        for j in ended:
            del self.expected_end[j]
            self.completing[j] = float(self.view["finish"][j]) + self._completing_s(j)
        stopped = [j for j in self.expected_end if not self._holds(j)]
        for j in stopped:
            del self.expected_end[j], self.nodes[j]
            if self._when(j) != WhenPreempted.SUSPEND:
                self.back[j] = self.now + self.plan.replan.requeue_s
        completed = [j for j, until in self.completing.items() if until <= self.now]
        for j in completed:
            del self.completing[j], self.nodes[j]
        if (submitted or completed or stopped) and self.requested is None:
            self.requested = self.now
        if submitted or ended or completed or stopped:
            self._note_update()

    def _completing_s(self, j):
        if self.plan.replan is None:
            return 0.0
        return float(np.broadcast_to(self.plan.replan.completing_s, self.n_jobs)[j])

    def _wake_up(self):
        options = self.plan.replan
        if self.cycle is None:
            if self.last_update < self.last_plan:
                self.is_idle, self.wake = True, self.now + 1.0
                return
            self.last_plan = self._clock()
            factors = np.array(options.cycle_factors, ndmin=1)
            self.cycle = Cycle.begin(self._cluster(), self.settings)
            self.cycle.jobs = [job.name for job in self._queue_jobs(bool(options.depths))]
            self.cycle.began_s = self.now
            self.cycle.factor = float(factors[self.plans % len(factors)])
        elif (self.changed and not options.continues) or self._time_left_s() <= 0.0:
            self._end_cycle(0.0)
            return
        self._plan_slice()

    def _time_left_s(self):
        return self.plan.replan.max_s - (self.now - self.cycle.began_s)

    def _end_cycle(self, taken_s):
        self.cycle = None
        self.plans += 1
        self.wake = self.now + (taken_s + self.plan.replan.interval_s)

    def _plan_slice(self):
        cycle, options, self.changed = self.cycle, self.plan.replan, False
        first, n = cycle.position, len(cycle.jobs)
        end = slice_end(options, cycle.factor, first, n, self._time_left_s())
        waiting = {job.name: job for job in self._queue_jobs(True)}
        jobs = [waiting[name] for name in cycle.jobs[first:end] if name in waiting]
        starts = backfill_cycle(self._cluster(), jobs, self.settings, cycle)
        started = {j for j, _ in starts}
        left = [waiting[name] for name in cycle.jobs if name in waiting and name not in started]
        head, after = [job for job in left if self._over(job) != "passes"][:1], self._cluster()
        marked = first == 0 and any(
            self._has_room(after, job, n) for job in head for n in after.usable(job) - after.absent
        )
        if starts or marked:
            self.last_update = max(self.last_update, self.last_plan)
        cycle.position, taken_s = end, slice_s(options, cycle.factor, first, end)
        if end == n or cycle.is_over or self._time_left_s() <= taken_s:
            self._end_cycle(taken_s)
        else:
            self.wake = self.now + (taken_s + options.sleep_s)

    def _has_room(self, state, job, n):
        if not job.components:
            may_run = job.runs_on is None or n in job.runs_on
            return may_run and min(room(state.free[n], job), state.n_by_devices(job, n)) > 0
        return any(
            n in component.usable
            and room(state.free[n], Job(job.name, 1, 0, component.demand)) > 0
            and state.n_by_devices(job, n, k) > 0
            for k, component in enumerate(job.components)
        )

    def _queue_jobs(self, with_passed):
        order_of_queue = cache(self._order_of_queue)  # nothing changes meanwhile

        def order(g):  # weighted queues by what they use now
            by_queue = () if self.queues_are_hard else order_of_queue(self._queue(g))
            return (self._tier_of(g), by_queue, self._rank(g))

        waiting = [
            g for g in sorted(self._waiting(), key=order) if with_passed or not self._passes(g)
        ]
        jobs = [int(self.c.stage_job[g]) for g in waiting]
        jobs = [j for j in jobs if self.back.get(j, -math.inf) <= self.now]
        return [self._as_job(j) for j in dict.fromkeys(jobs)]

    def _as_job(self, j):
        options = self.plan.replan
        return Job(
            j,
            self._width(j),
            self._limit_s(j),
            self._demand_of(j),
            self._usable_nodes(j),
            self.org[j],
            tuple(int(depth.group[j]) for depth in options.depths),
            tuple(int(depth.group[j]) for depth in options.main_depths),
            0 if options.reserved_in is None else int(options.reserved_in[j]),
            self._array_of(j),
            0 if options.throttle is None else int(options.throttle[j]),
            bool(self.c.job_one_per_node[j]),
            self._unequal_components(j),
            self._hosts(j),
            partial(self._in_domains, j),
            self._fits_by(j),
        )

    def _fits_by(self, j):
        by = -1 if self.plan.replan.fits_by is None else int(self.plan.replan.fits_by[j])
        return by if by in self.deciding and not self.unit else -1

    def _unequal_components(self, j):
        if not self._is_searched(j):
            return ()
        nodes = range(len(self.free))
        return tuple(
            Component(
                component.size,
                self._deciding_part(component.slot),
                frozenset(n for n in nodes if self._may_hold(j, k, n)),
            )
            for k, component in enumerate(self.components[j])
        )

    def _array_of(self, j):
        return -1 if self.plan.replan.array is None else int(self.plan.replan.array[j])

    def _demand_of(self, j):
        return self._deciding_part(self._slot(j))

    def _deciding_part(self, demand):
        return tuple(d if r in self.deciding else 0 for r, d in enumerate(demand))

    def _usable_nodes(self, j):
        if self._is_pool():
            return frozenset() if self.unforeseen else None
        return (self._hosts(j) | self.planned_on[j]) - frozenset(self.unforeseen)

    def _hosts(self, j):
        if self._is_pool():
            return None
        return frozenset(
            n
            for n in range(len(self.free))
            if any(self._may_hold(j, k, n) for k in range(len(self.components[j])))
        )

    def _over(self, job):
        return self._rigid_over(job.name)

    def _over_with(self, job, nodes):
        if not self._is_waiting_gang(job.name) or not self.exclusive[job.name]:
            return None
        whole = [self.capacity[n] for n in nodes]
        return self._over_cap_with(job.name, [sum(row) for row in zip(*whole, strict=True)])

    def _is_over_jobs(self, job):
        return self._over_running_jobs(job.name)

    def _tries_of(self, job, is_allowed):
        """List a job on the nodes of each of its flavors, in the order in which it tries them.

        `is_allowed`: of those alone whose quotas allow it now. Without flavors it is tried once.
        """
        j = job.name
        needs = self._total(j) if self.c.job_min_tasks[j] else self._slot(j)
        if not self.by_flavor:
            return [job] if not is_allowed or self._within_cap(j, needs, 1) else []
        return [
            replace(job, usable=job.usable & frozenset(attempt.machines))
            for attempt in self._in_order(j, needs, is_allowed)
        ]

    def _n_by_devices(self, job, node, k=0, placed=()):
        """Return how many slots find devices on a node now, beside those that are placed first."""
        if self._is_pool():
            return math.inf
        components, devices = self.components[job.name], copy.deepcopy(self.devices)
        for n, other in placed:
            self._acquire_devices(components[other].slot, n)
        count = self._slots_by_devices(components[k].slot, node)
        self.devices = devices
        return count

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
            Running(self.expected_end[j], self.nodes[j], self._demand_of(j), j)
            for j in sorted(self.expected_end)
        ]
        hooks = self._start_on, self._tries_of, self._n_by_devices, self._over, self._is_over_jobs
        absent = range(len(free)) if self._is_pool() and self.down else self.down
        clock_s = self.plan.replan.clock_s
        windows = frozenset(absent), self._is_node_closed, self._look_again_at, clock_s
        arrays = [a for j in self.expected_end if (a := self._array_of(j)) >= 0]
        weights = [] if self._is_pool() else self._weights()
        preempts = [self._may_preempt, self.preemptors.add] if self.plan.preemption else []
        now = self._clock()
        whole = self._over_with
        return State(
            now, free, completing, running, *hooks, arrays, *windows, weights, whole, *preempts
        )

    def _weights(self):
        cluster = self.world.cluster
        codes = cluster.machine_class.tolist() or [0] * len(self.free)
        return [cluster.weights[code] if cluster.weights else 1 for code in codes]

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
        job = self._as_job(j)
        state = self._cluster()
        closed = state.closed(job, state.now, state.now + job.limit_s)
        max_tasks = partial(self._n_by_devices, job)
        for attempt in self._tries_of(job, True):
            usable = state.usable(attempt) - state.absent - closed
            nodes = choose(state.free, usable, attempt, max_tasks, state.weights)
            if nodes is not None:
                self._start_on(j, nodes)
                self._note_update()
                return True
        return False

    def _start_on(self, j, nodes):
        self.nodes[j] = nodes
        self.expected_end[j] = self._clock() + self._limit_s(j)
        places = [
            (0 if self._is_pool() else n, k)
            for k, part in enumerate(nodes.parts if isinstance(nodes, Nodes) else [nodes])
            for n in sorted(part)
            for _ in range(part[n])
        ]
        if self._is_waiting_gang(j):
            self._admit(j, places)
        else:
            g = next(g for g in self.job_stages[j] if self._ready(g))
            self._start(g, places[0][0])
