"""Weighted shortest expected remaining processing time, of parts (WSERPT)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from policies.base import Policy
from policies.knows import Knows
from policies.registry import register
from policies.wserpt import offers
from policies.wserpt import placement as placing
from policies.wserpt.order import OrderName, make_order
from policies.wserpt.placement import PlacementName
from policies.wserpt.sizes import SizesName, make_sizes, source
from policies.wserpt.worth import (
    Ageing,
    Decaying,
    Urgency,
    Worth,
    WorthName,
    aggregate_value,
    own_value,
    priority,
)
from sim.base.arrays import F8, I4, I8
from sim.base.parameters import Between, NotNegative, Positive
from sim.engine.plan import NO_LIMIT, Batch, Event, Order, Plan, Queues, World


@register("wserpt")
@dataclass(frozen=True)
class WSERPT(Policy):
    """Jobs by worth over expected remaining resource-time, highest first (WSERPT).

    Smith's rule (1956) with what is expected to remain, which for expected sizes minimises the mean
    weighted completion time of a single machine; preemption at the ends of tasks. Sizes, worth, the
    order inside a job and placement are parts, of SLearn (NSDI 2022), Wing (OSDI 2020), DAGPS
    (MSR-TR-2016-19) and Jockey (EuroSys 2012). The defaults decide by what the workload offers
    (`policies.wserpt.offers`), not by its name.

    Attributes
    ----------
    sizes : {"both", "history", "pilots", "profiles", "run", "recorded", "declared", "true"}
        Source of expected task durations (`policies.wserpt.sizes`). "both": history, and pilots of
        wide jobs that history does not know.
    worth : {"auto", "one", "priority", "own", "aggregate", "decaying"}
        Worth of a job (`policies.wserpt.worth`). "auto": aggregate value if the history has values.
    urgency : float
        Weight of tardiness beside completion times, for jobs with deadlines; 0 for none.
    lookahead : float
        Slack, in mean remaining times of the waiting jobs, at which urgency falls to 1/e.
    order : {"path", "given", "dagps"}
        Order inside a job: the longest expected path first, that of the rows, or DAGPS's.
    placement : {"auto", "strict", "skip", "pack", "reserve"}
        Placement (`policies.wserpt.placement`). "auto": "pack" if tasks demand several resources.
    m : float
        Weight of remaining work in packing scores, as in DAGPS.
    ageing : float
        Guard for the tail: a job is worth this much more for each mean completion time that it has
        waited (`policies.wserpt.worth.Ageing`); 0 for none.
    refresh_s : float
        Least time between refinements, s; they are at least a fiftieth of the mean completion time
        apart.
    first_guess_s : float
        Expected task duration before any stage has finished, s.
    """

    sizes: SizesName = "both"
    worth: WorthName = "auto"
    urgency: NotNegative = 10.0
    lookahead: Positive = 2.0
    order: OrderName = "path"
    placement: PlacementName = "auto"
    m: Annotated[float, Between(0, 1e6)] = 0.3
    ageing: NotNegative = 0.1
    refresh_s: Annotated[float, Between(1e-3, 1e12)] = 10.0
    first_guess_s: Annotated[float, Between(1e-9, 1e12)] = 30.0

    @property
    def events(self) -> Event:  # type: ignore[override]
        """Arrivals, ends and ticks; the ends of pilots, if there may be any."""
        events = Event.JOB_ARRIVED | Event.JOB_DONE | Event.TIMER
        return events | Event.TASKS_DONE if self.samples else events

    @property
    def knows(self) -> Knows:
        """Durations from where sizes come from, learnt values, and declared deadlines."""
        is_priority, is_one = self.worth == "priority", self.worth == "one"
        return Knows(
            durations=source(self.sizes),
            values="nothing" if is_one else "declared" if is_priority else "learnt",
            deadlines="declared" if self.urgency > 0 else "nothing",
        )

    @property
    def learns_from(self) -> tuple[str, ...]:
        """Nothing that must be there: it learns from what there is."""
        return ()

    @property
    def samples(self) -> bool:
        """True if jobs may have pilots."""
        return self.sizes in ("both", "pilots")

    def prepare(self, world: World, plan: Plan) -> _RunState:
        """Set up queues, sizes, worth and placement."""
        tiers = [0, 1] if self.samples else [0]
        plan.queues = Queues.make(len(tiers), tier=tiers, order=Order.REMAINING)
        return _RunState(self, world, plan)

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Refine sizes, order new jobs, and weigh them."""
        assert isinstance(memory, _RunState)
        memory.react(batch)

    def factors(self, world: World, plan: Plan) -> list[Worth]:
        """Return the factors of jobs' worth in a run."""
        factors: list[Worth] = []
        name = self.worth
        if name == "auto":
            name = "aggregate" if offers.past_values(world) else "one"
        if name == "priority":
            factors.append(priority(world))
        elif name == "own":
            factors.append(own_value(world))
        elif name == "aggregate":
            factors.append(aggregate_value(world, plan))
        elif name == "decaying":
            factors.append(Decaying(world))
        if self.urgency > 0 and offers.deadlines(world):
            factors.append(Urgency(world, plan, self.urgency, self.lookahead))
        if self.ageing > 0:
            factors.append(Ageing(world, self.ageing))
        return factors


TICKS = 50
"""Refinements in a mean completion time, at most."""


class _RunState:
    """State of a run: its parts, and what has finished."""

    def __init__(self, policy: WSERPT, world: World, plan: Plan) -> None:
        columns = world.columns
        self._view, self._plan, self._refresh_s = world.view, plan, policy.refresh_s
        self._sizes = make_sizes(policy.sizes, world, plan, policy.first_guess_s, policy.refresh_s)
        placing.place(placing.choose(policy.placement, world), world, plan, policy.m)
        self._order = make_order(policy.order, world, plan)
        self._factors = policy.factors(world, plan)
        self._moves = any(factor.moves for factor in self._factors)
        self._samples = policy.samples
        n_jobs = len(columns.job_submit)
        self._n_tasks = np.bincount(columns.stage_job, columns.stage_n_tasks, n_jobs)
        self._sampling = np.ones(n_jobs)  # tasks over pilots, of a job whose pilots run
        self._n_done, self._sum_s = 0, 0.0
        if self._factors or self._samples:
            plan.set_jobs(worth=1.0)

    def react(self, batch: Batch) -> None:
        """Take what has finished, refine sizes, order new jobs, and weigh them."""
        plan, now = self._plan, batch.now
        done, arrived = batch.rows(Event.JOB_DONE), batch.rows(Event.JOB_ARRIVED)
        is_tick = bool((batch.kind == int(Event.TIMER)).any())
        if len(done):
            self._count(done)
            is_other = batch.kind != int(Event.JOB_DONE)
            batch = Batch(now, batch.kind[is_other], batch.row[is_other])
        if len(batch.row):
            self._sizes.refresh(batch, plan)
        if len(arrived):
            self._order.arrive(arrived, plan)
        if self._samples:
            self._open(batch.rows(Event.TASKS_DONE), now)
            self._sample(arrived)
        live = self._live() if is_tick else arrived
        if self._factors and self._moves and is_tick:
            self._weigh(live, now)
        elif len(arrived):
            self._weigh(arrived, now)
        if len(live) and not np.isfinite(plan.timer_s):
            mean_s = self._sum_s / max(self._n_done, 1)
            plan.timer_s = now + max(self._refresh_s, mean_s / TICKS)

    def _count(self, done: I4) -> None:
        """Count jobs that have ended, for the mean completion time."""
        self._n_done += len(done)
        self._sum_s += float((self._view["finish"][done] - self._view["submit"][done]).sum())
        for factor in self._factors:
            if isinstance(factor, Ageing):
                factor.mean_s = self._sum_s / self._n_done

    def _sample(self, arrived: I4) -> None:
        """Let new jobs that nobody knows start their pilots alone; the others use surplus room."""
        for job in arrived.tolist():
            n = self._sizes.pilots(job)
            if n:
                self._plan.set_jobs(job, start_gate=n, notify_at=n, overflow_queue=1)
                self._sampling[job] = self._n_tasks[job] / n

    def _open(self, sampled: I4, now: float) -> None:
        """Let the other tasks of jobs start whose pilots have ended."""
        if len(sampled):
            self._sampling[sampled] = 1.0
            self._plan.set_jobs(sampled, start_gate=NO_LIMIT)
            self._weigh(sampled, now)

    def _live(self) -> I8:
        """Return the jobs that have arrived and not ended."""
        view = self._view
        return np.flatnonzero((view["turn"] >= 0) & (view["left"] > 0) & (view["failed"] == 0))

    def _weigh(self, jobs: I4 | I8, now: float) -> None:
        """Set the worth of jobs."""
        if self._factors or self._samples:
            self._plan.set_jobs(jobs, worth=self._worth(jobs, now))

    def _worth(self, jobs: I4 | I8, now: float) -> F8:
        """Return the product of the factors; while pilots run, they alone count as work."""
        worth: F8 = self._sampling[jobs]
        for factor in self._factors:
            worth = worth * factor.factor(jobs, now)
        return worth
