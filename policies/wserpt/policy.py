"""Weighted shortest expected remaining processing time, of parts (WSERPT)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from policies.base import Policy
from policies.knows import Knows
from policies.registry import register
from policies.wing.lineage.worth import COLUMNS
from policies.wserpt import offers
from policies.wserpt import placement as placing
from policies.wserpt.deadlines import RecordedRuns, Urgency, UrgencyName
from policies.wserpt.order import OrderName, make_order
from policies.wserpt.placement import PlacementName
from policies.wserpt.sizes import SizesName, make_sizes, source
from policies.wserpt.worth import (
    Ageing,
    Decaying,
    Worth,
    WorthName,
    aggregate_value,
    own_value,
    priority,
)
from sim.base.arrays import F8, I8
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
        Worth of a job (`policies.wserpt.worth`). "auto": "decaying" if the history has values.
    urgency : float
        Weight of tardiness beside completion times, for jobs with deadlines; 0 for none.
    urgency_by : {"model", "slack"}
        Need of a job with recorded runs: "model", by run of Jockey's C(p, a); "slack", as of all
        others, its longest expected path or its work over the cluster.
    lookahead : float
        Slack, in what the job needs at least, at which urgency falls to 1/e.
    late : float
        Urgency of a run of the model that would be late anyway, where 1 is that of one in time.
    order : {"path", "given", "dagps"}
        Order inside a job: the longest expected path first, that of the rows, or DAGPS's.
    placement : {"auto", "strict", "skip", "hold", "pack", "reserve"}
        Placement (`policies.wserpt.placement`). "auto": "hold" if tasks demand several resources.
    m : float
        Weight of remaining work in scores of "pack", as in DAGPS.
    ageing : float
        Guard for the tail: a job is worth this much more for each mean completion time that it has
        waited (`policies.wserpt.worth.Ageing`); 0 for none.
    refresh_s : float
        Least time between refinements, s; they are at least a twentieth of the mean completion time
        apart, or of the mean age of unfinished jobs.
    first_guess_s : float
        Expected task duration before any stage has finished, s.
    """

    sizes: SizesName = "both"
    worth: WorthName = "auto"
    urgency: NotNegative = 150.0
    urgency_by: UrgencyName = "model"
    lookahead: Positive = 2.0
    late: NotNegative = 0.1
    order: OrderName = "path"
    placement: PlacementName = "auto"
    m: Annotated[float, Between(0, 1e6)] = 0.3
    ageing: NotNegative = 0.1
    refresh_s: Annotated[float, Between(1e-3, 1e12)] = 10.0
    first_guess_s: Annotated[float, Between(1e-9, 1e12)] = 30.0

    own_columns: ClassVar[tuple[str, ...]] = COLUMNS

    @property
    def events(self) -> Event:  # type: ignore[override]
        """Arrivals and ticks; the ends of pilots, if there may be any."""
        events = Event.JOB_ARRIVED | Event.TIMER
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
        tiers = [0, 1] if self.samples and self.placement != "reserve" else [0]
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
            name = "decaying" if offers.past_values(world) else "one"
        if name == "priority":
            factors.append(priority(world))
        elif name == "own":
            factors.append(own_value(world))
        elif name == "aggregate":
            factors.append(aggregate_value(world, plan))
        elif name == "decaying":
            factors.append(Decaying(world))
        if self.urgency > 0 and offers.deadlines(world):
            runs = RecordedRuns(world, self.late) if self.urgency_by == "model" else None
            factors.append(Urgency(world, plan, self.urgency, self.lookahead, runs))
        if self.ageing > 0:
            factors.append(Ageing(world, self.ageing))
        return factors


TICKS = 20
"""Refinements in the mean completion time, or the mean age of the waiting jobs, at most."""

_ARRIVED, _TASKS_DONE = int(Event.JOB_ARRIVED), int(Event.TASKS_DONE)


class _RunState:
    """State of a run: its parts, and the jobs that have arrived and not ended."""

    def __init__(self, policy: WSERPT, world: World, plan: Plan) -> None:
        self._world, self._view, self._plan = world, world.view, plan
        self._refresh_s, self._reserves = policy.refresh_s, policy.placement == "reserve"
        self._sizes = make_sizes(policy.sizes, world, plan, policy.first_guess_s, policy.refresh_s)
        placement = placing.choose(policy.placement, world)
        placing.place(placement, world, plan, policy.m, policy.held_machines)
        if placement == "pack" and policy.order != "given":
            placing.order_tasks(world.columns, plan, inside_stages=policy.order == "dagps")
        self._order = make_order(policy.order, world)
        self._factors = policy.factors(world, plan)
        self._moving = [factor for factor in self._factors if factor.moves]
        self._samples = policy.samples
        n_jobs = len(world.columns.job_submit)
        self._width = np.bincount(world.columns.stage_job, world.columns.stage_n_tasks, n_jobs)
        self._first = np.ones(n_jobs)  # worth on arrival
        for factor in self._factors:
            self._first *= factor.first
        self._sampling = np.ones(n_jobs)  # tasks over pilots, of jobs whose pilots run
        self._live = np.zeros(0, dtype=np.int64)
        self._arrived: list[int] = []
        self._n_done, self._sum_s, self._age_s = 0, 0.0, 0.0
        if self._factors or self._samples:
            plan.set_jobs(worth=self._first)

    def react(self, batch: Batch) -> None:
        """Refine sizes; order, sample and weigh new jobs; weigh all at ticks."""
        plan, now = self._plan, batch.now
        self._sizes.refresh(batch, plan)
        is_tick = False
        for kind, job in zip(batch.kind.tolist(), batch.row.tolist()):  # noqa: B905  # faster
            if kind == _ARRIVED:
                self._arrive(job, now)
            elif kind == _TASKS_DONE:
                self._sampling[job] = 1.0
                plan.set_jobs(job, start_gate=NO_LIMIT, worth=self._worth_of(job, now))
            else:
                is_tick = True
        if is_tick:
            self._tick(now)
        if math.isinf(plan.timer_s) and (self._arrived or len(self._live)):
            plan.timer_s = now + max(self._refresh_s, self._age_s / TICKS)

    def _arrive(self, job: int, now: float) -> None:
        """Order a new job, and let pilots of one that nobody knows start alone."""
        plan = self._plan
        self._arrived.append(job)
        self._order.arrive(job, plan)
        if self._reserves:
            placing.expect_run_time(job, self._world, plan)
        n_pilots = self._sizes.pilots(job)
        if n_pilots:
            self._sampling[job] = self._width[job] / n_pilots
            plan.set_jobs(job, start_gate=n_pilots, notify_at=n_pilots, overflow_queue=1)
        if n_pilots or any(factor.acts_on(job) for factor in self._moving):
            plan.set_jobs(job, worth=self._worth_of(job, now))

    def _tick(self, now: float) -> None:
        """Take the jobs that have ended, and weigh the others."""
        view = self._view
        live = np.concatenate([self._live, np.array(self._arrived, dtype=np.int64)])
        self._arrived = []
        is_done = view["left"][live] == 0
        done, self._live = live[is_done], live[~is_done & (view["failed"][live] == 0)]
        self._n_done += len(done)
        self._sum_s += float((view["finish"][done] - view["submit"][done]).sum())
        if not len(self._live):
            return
        mean_s = self._sum_s / max(self._n_done, 1)
        self._age_s = max(mean_s, float((now - view["submit"][self._live]).mean()))
        if self._moving:
            for factor in self._moving:
                factor.observe(self._live, mean_s)
            self._plan.set_jobs(self._live, worth=self._worth(self._live, now))

    def _worth_of(self, job: int, now: float) -> float:
        """Return the worth of one job."""
        return float(self._worth(np.array([job]), now)[0])

    def _worth(self, jobs: I8, now: float) -> F8:
        """Return the product of the factors; while pilots run, they alone count as work."""
        worth: F8 = self._sampling[jobs]
        for factor in self._factors:
            worth *= factor.factor(jobs, now)
        return worth
