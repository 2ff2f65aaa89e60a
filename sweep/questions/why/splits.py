"""The completion time of a job, split exactly: running, run again, and waits by reason.

A wait is cut where anything changes: an attempt takes or gives back room, a machine closes or
opens, the policy sets a bound. Each piece has the first reason below that holds in it.

============  ====================================================================================
reason        holds while
============  ====================================================================================
not released  a begin time or other jobs keep the job back
lag           its stage opens later than its inputs are there, or it is launched
pilots        as many tasks of the job have started as its start gate lets
limit         as many tasks of the job run as its run limit lets
share         its queue's hard share of the cluster is in use
quota         its queue, or a cohort above it, uses all that its quota and what it borrows let it
no R          no machine that it may use has enough of R for a task, or all have for its gang
in pieces     there is enough of each resource, but not together on a machine
closed        it would fit on machines that are out of service, or reserved for others
cap           its user, account or another group uses all that a cap of the cluster lets it
blocked       it would fit: in strict order it waits for the first, which does not fit
reserved      it would fit: a reservation or a plan of jobs in front keeps the room
order         it would fit, and is not started: others go first
gang slots    it would fit as far as the run tells, which does not tell what some gangs hold
device parts  it would fit as far as the run tells, which does not tell which parts are in use
============  ====================================================================================
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I8, Mask
from sim.cluster.classes import PARTS
from sim.engine.plan import NO_LIMIT, Fit
from sweep.questions.why import fronts
from sweep.questions.why.attempts import Attempts, simple_gangs
from sweep.questions.why.bounds import Bounds, BoundsOfJobs
from sweep.questions.why.caps import Caps
from sweep.questions.why.chains import PARENT, PARTNER, SUBMISSION, Link, chain
from sweep.questions.why.quotas import Quotas
from sweep.questions.why.room import Request, Room
from sweep.questions.why.shares import Shares
from sweep.questions.why.steps import Steps, from_changes, grid

RUNNING, AGAIN = "running", "run again"
UNRELEASED, LAG, PILOTS, LIMIT, SHARE = "not released", "lag", "pilots", "limit", "share"
QUOTA, PIECES, CLOSED, CAP, DOMAIN = "quota", "in pieces", "closed", "cap", "domain"
BLOCKED, RESERVED, ORDER = "blocked", "reserved", "order"
GANG_SLOTS, DEVICE_PARTS = "gang slots", "device parts"
TURNS = (BLOCKED, RESERVED, ORDER)
"""Reasons of a wait while there is room."""
UNTOLD = (GANG_SLOTS, DEVICE_PARTS)
"""Reasons of a wait of which the run does not tell whether there is room."""


@dataclass
class Split:
    """The completion time of a job, s, by reason, and behind whom it waited.

    Attributes
    ----------
    seconds : dict of str to float
        By `RUNNING`, `AGAIN` and the reasons of waits.
    behind : dict of (int, str) to float
        By job, and how it came to be in front (`sweep.questions.why.fronts`).
    stages : dict of int to float
        Wait of each stage of its chain.
    """

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    behind: dict[tuple[int, str], float] = field(default_factory=lambda: defaultdict(float))
    stages: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def waits(self) -> dict[str, float]:
        """Seconds by the reason of a wait."""
        return {k: v for k, v in self.seconds.items() if k not in (RUNNING, AGAIN)}

    @property
    def wait_s(self) -> float:
        """Sum of all waits."""
        return sum(self.waits.values())


class Splitter:
    """Splits the completion times of jobs of a run."""

    def __init__(self, attempts: Attempts) -> None:
        self.attempts = attempts
        self._room, self._shares, self._caps = Room(attempts), Shares(attempts), Caps(attempts)
        self._quotas = Quotas(attempts)
        self._turn = _turn(attempts)
        self._bounds = BoundsOfJobs(attempts)
        self._unsure = _unsure(attempts)
        self._known: dict[int, Split] = {}

    def split(self, job: int) -> Split:
        """Split the completion time of a job that is done."""
        if job not in self._known:
            self._known[job] = self._split(job)
        return self._known[job]

    def _split(self, job: int) -> Split:
        a, split = self.attempts, Split()
        bounds = self._bounds.job_bounds(job)
        for link in chain(a, job):
            placed, start, end = (float(v[link.row]) for v in (a.placed_s, a.start_s, a.end_s))
            split.seconds[RUNNING if a.is_whole[link.row] else AGAIN] += end - start
            if start > placed:
                split.seconds[LAG] += start - placed
            begin, stage = link.ready_s, int(a.stage[link.row])
            if start > begin:
                split.stages[stage] += start - begin
            begins = min(self._gang_begins(job, link), placed)
            if begins > begin:
                n = int(a.columns.job_min_tasks[job])
                self._wait(split, job, link, bounds, (begin, begins), n)
            if placed > max(begins, begin):
                self._wait(split, job, link, bounds, (max(begins, begin), placed), 1)
        return split

    def _gang_begins(self, job: int, link: Link) -> float:
        """Return when a gang gets its room, of an attempt that waits for that; -inf for others."""
        a = self.attempts
        if a.columns.job_min_tasks[job] < 2 or link.after in (PARENT, PARTNER):
            return -np.inf
        placed = a.placed_s[a.rows_of(job)]
        return float(placed[placed >= link.ready_s].min())

    def _wait(
        self,
        split: Split,
        job: int,
        link: Link,
        bounds: Bounds,
        span: tuple[float, float],
        n: int,
    ) -> None:
        """Split a wait for room for `n` slots."""
        stage = int(self.attempts.stage[link.row])
        request = self._room.request(job, stage, n)
        steps = self._room.steps(request)
        released, opened = self._back(job, link)
        shared = (*self._shares.use(job), *self._quotas.use(job), *self._caps.use(job))
        domain = self._room.domain_steps(request) if request.level >= 0 else steps[-1]
        curves = [*steps, domain, *bounds, *shared, self._unsure]
        times = grid(curves, (released, opened), *span)
        begins_s, spans = times[:-1], np.diff(times)
        short = _short(steps, request, begins_s)
        is_unsure = self._unsure.values_at(begins_s) > 0
        if n > 1 and _is_unequal(self.attempts, job):
            is_unsure[:] = True
            short[:] *= int(steps[-2].values[0]) >= n  # the empty machines hold other slots
        untold = DEVICE_PARTS if _has_parts(self.attempts) else GANG_SLOTS
        reason = np.where(is_unsure, untold, self._turn).astype(object)
        demand = np.array(request.demand) * n
        reason[self._caps.is_over(job, demand, begins_s) & ~is_unsure] = CAP
        reason[(domain.values_at(begins_s) < n) & ~is_unsure] = DOMAIN
        reason[steps[-1].values_at(begins_s) < n] = CLOSED
        for bits in np.unique(short[short > 0]).tolist():
            reason[short == bits] = self._shortage(bits)
        reason[self._quotas.is_over(job, demand, begins_s)] = QUOTA
        reason[self._shares.is_over(job, demand, begins_s)] = SHARE
        running, started = bounds.running.values_at(begins_s), bounds.started.values_at(begins_s)
        reason[_binds(bounds.limit.values_at(begins_s), running)] = LIMIT
        reason[_binds(bounds.gate.values_at(begins_s), started)] = PILOTS
        reason[begins_s < opened] = LAG
        reason[begins_s < released] = UNRELEASED
        for name in dict.fromkeys(reason.tolist()):
            split.seconds[name] += float(spans[reason == name].sum())
        self._behind(split, job, request, (times, reason, short))

    def _behind(
        self,
        split: Split,
        job: int,
        request: Request,
        pieces: tuple[F8, NDArray[np.object_], I8],
    ) -> None:
        """Share the pieces between the jobs in front."""
        times, reason, short = pieces
        a, host = self.attempts, self._room.may_host(request)
        has_no_room = np.isin(
            reason, [PIECES, DOMAIN, *map(self._shortage, np.unique(short).tolist())]
        )
        for bits in np.unique(short[has_no_room]).tolist():
            mask = has_no_room & (short == bits)
            weight = _weight(bits, request)
            fronts.add(split.behind, fronts.holders(a, job, host, weight, times, mask))
        if (reason == SHARE).any():
            rows = self._shares.organisation[a.job] == self._shares.organisation[job]
            weight = _weight(0, request)
            sharing = fronts.holders(a, job, host, weight, times, reason == SHARE, rows)
            fronts.add(split.behind, sharing)
        for name, counted in ((CAP, self._caps), (QUOTA, self._quotas)):
            if (reason == name).any():
                rows = counted.members(job)[a.job]
                every, weight = np.ones(len(host), np.bool_), _weight(0, request)
                holding = fronts.holders(a, job, every, weight, times, reason == name, rows)
                fronts.add(split.behind, holding)
        fronts.add(split.behind, fronts.next_placed(a, job, times, np.isin(reason, TURNS)))

    def _back(self, job: int, link: Link) -> tuple[float, float]:
        """Return when a job is released, and when the stage of an attempt opens; -inf if before."""
        run, released, opened = self.attempts.run, -np.inf, -np.inf
        if link.after == SUBMISSION and run.job_eligible is not None:
            released = float(run.job_eligible[job])
        if link.after == PARENT:
            stage = int(self.attempts.stage[link.row])
            lag_s = run.cluster.stage_lag_s + float(run.workload.columns.stage_lag[stage])
            opened = link.ready_s + lag_s
        return released, opened

    def _shortage(self, bits: int) -> str:
        """Return the reason of a shortage of some resources, as bits from 1 on; 0 is none alone."""
        names = [name for r, name in enumerate(self.attempts.resources) if bits >> (r + 1) & 1]
        words = ["whole machine" if name == PARTS else name for name in names]
        return f"no {' and '.join(sorted(words))}" if words else PIECES


def _short(steps: tuple[Steps, ...], request: Request, begins_s: F8) -> I8:
    """Return which resources are short for a request, as bits from 1 on.

    0: it has room. 1: none is short by itself.
    """
    *alone, together, _ = steps
    short = (together.values_at(begins_s) < request.n).astype(np.int64)
    for r, curve in enumerate(alone):
        short += (curve.values_at(begins_s) < request.n).astype(np.int64) << (r + 1)
    return short


def _weight(bits: int, request: Request) -> Mask:
    """Return the resources whose holders are in front: the short ones, else all asked for."""
    resources = range(len(request.demand))
    short = np.array([bool(bits >> (r + 1) & 1) for r in resources])
    return short if short.any() else np.array(request.demand) > 0


def _binds(bound: I8, n: I8) -> Mask:
    binds: Mask = (bound < NO_LIMIT) & (n >= bound)
    return binds


def _is_unequal(a: Attempts, job: int) -> bool:
    """Tell whether the stages of a job differ in demand or machines: its gang has unequal slots."""
    stages = slice(*a.columns.job_stage0[job : job + 2].tolist())
    demand, classes = a.demand[stages], a.columns.stage_runs_on[stages]
    return bool((demand != demand[0]).any() or (classes != classes[0]).any())


def _turn(a: Attempts) -> str:
    """Return the reason of a wait while there is room, by what the policy does for the first."""
    plan = a.captured.plan
    if plan.replan is not None or plan.reservations > 0:
        return RESERVED
    if plan.fit in (Fit.STRICT, Fit.PER_CLASS) and a.run.cluster.queue_mode != "quota":
        return BLOCKED
    return ORDER


def _has_parts(a: Attempts) -> bool:
    """Tell whether tasks take parts of devices."""
    columns, cluster = a.columns, a.run.cluster
    if not cluster.devices or cluster.devices not in columns.resources:
        return False
    device = columns.resources.index(cluster.devices)
    demand = columns.stage_demand[:, device] * columns.quantum[device]
    return bool((demand % 1 > 0).any())


def _unsure(a: Attempts) -> Steps:
    """Return whether the room of a run is not fully known, over time.

    Which slots a gang holds for no task is not recorded, nor the parts of devices.
    """
    columns = a.columns
    is_known = simple_gangs(columns, a.job, a.placed_s, a.end_s, a.reason)
    is_unknown = (columns.job_min_tasks > 1) & ~is_known & (np.diff(a.job0) > 0)
    rows = [a.rows_of(job) for job in np.flatnonzero(is_unknown).tolist()]
    begin = [float(a.placed_s[own].min()) for own in rows]
    end = [float(a.end_s[own].max()) for own in rows]
    if _has_parts(a):
        begin, end = [-np.inf], [np.inf]
    ones = np.ones(len(begin), np.int64)
    return from_changes(np.array(begin, np.float64), np.array(end, np.float64), ones)
