"""Jockey, and its baselines without adaptation or without the simulator (§4.3, §5.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np

from policies.base import Policy, check_ranges
from policies.estimates.profile import Profile
from policies.jockey import control, indicators
from policies.jockey.control import Job, Running, deadline_rows, training_profile
from policies.jockey.model import Amdahl, Effort, Model, predict_progress, simulated_model
from policies.knows import Knows
from policies.registry import register
from sim.base.arrays import F8, I8
from sim.base.parameters import Between, Count
from sim.engine.plan import Batch, Event, Plan, World
from sim.workload.columns import Columns
from sim.workload.utility import POINTS, Utility, utility_curve


@register("jockey")
@dataclass(frozen=True)
class Jockey(Policy):
    """Each job with a deadline gets the fewest tokens that are predicted to meet it.

    Ferguson et al., *Jockey*, EuroSys 2012, §4: every period the job's progress is looked up in the
    distributions C(p, a) of the time left, simulated from earlier runs of its template (the
    workload's ``training``). Its guaranteed tokens (run limit) then move towards the fewest with
    the greatest utility. Tasks beyond them, and jobs without a deadline, run on spare tokens, which
    are shared max-min fairly between jobs.

    Attributes
    ----------
    max_tokens : int
        Maximum number of guaranteed tokens of a job.
    period_s : float
        Time between two updates of a job's allocation, s.
    slack : float
        S: factor on predicted times.
    hysteresis : float
        α: fraction of the step to the raw allocation that is taken each period.
    dead_zone_s : float
        D: margin before the deadline at which a job should finish, and delay behind schedule from
        which on it gets more tokens, s.
    gate : bool
        Raise an allocation only if the job is at least D behind a deadline of d - D, as printed
        (§4.3). If false, the dead zone only shifts the deadline.
    quantile : float
        Quantile of C(p, a) that counts; 1 for the worst case.
    indicator : str
        The progress indicator (`policies.jockey.indicators`).
    waits : bool
        Include the time that tasks waited for tokens in training in Q_s, of ``totalworkWithQ``. If
        false, Q_s is initialisation alone, as in Table 3.
    utility : tuple of (float, float)
        Points (minutes after the deadline, utility), piecewise linear and never rising.
    runs, allocations : int
        Number of simulated runs for each allocation, and number of simulated allocations, of
        C(p, a).
    admission : {"all", "fitting"}
        Accept every job with a deadline, or only one that fits beside those accepted before (§1);
        rejected jobs run on spare tokens.
    spare : bool
        Let jobs with a deadline use spare tokens beyond their own.
    infeasible : {"error", "run"}
        Treatment of a job whose deadline is shorter than its critical path: raise an error, or run
        it.
    """

    max_tokens: Annotated[int, Between(1, 10**6)] = 100
    period_s: float = 60.0
    slack: Annotated[float, Between(1e-3, 1e3)] = 1.2
    hysteresis: Annotated[float, Between(1e-6, 1)] = 0.2
    dead_zone_s: Annotated[float, Between(0, 1e9)] = 180.0
    gate: bool = True
    quantile: Annotated[float, Between(1e-6, 1)] = 1.0
    indicator: indicators.Name = "totalworkWithQ"
    waits: bool = False
    utility: tuple[tuple[float, ...], ...] = POINTS
    runs: Annotated[int, Between(1, 10**5)] = 100
    allocations: Annotated[int, Between(2, 10**4)] = 20
    admission: Literal["all", "fitting"] = "all"
    spare: bool = True
    infeasible: Literal["error", "run"] = "error"

    events = Event.JOB_ARRIVED | Event.TIMER
    adapts: ClassVar[bool] = True  #: True if allocations change while a job runs
    joint: ClassVar[bool] = False  #: True if an arrival or end updates all jobs

    def __post_init__(self) -> None:
        check_ranges(self, period_s=(1e-3, np.inf))
        utility_curve(self.utility)

    @property
    def knows(self) -> Knows:
        """Durations learnt from recorded runs of the template, and declared deadlines."""
        return Knows(durations="learnt", deadlines="declared")

    @cached_property
    def law(self) -> control.Law:
        """The constants of the control law."""
        return control.Law(self.slack, self.hysteresis, self.dead_zone_s, self.gate)

    @cached_property
    def utility_curve(self) -> Utility:
        """Utility over lateness."""
        return utility_curve(self.utility)

    def prepare(self, world: World, plan: Plan) -> Running:
        """Make the model of every job with a deadline."""
        control.set_up_queues(world, plan, self.spare)
        allow_late, jobs = self.infeasible == "run", {}
        for row in deadline_rows(world).tolist():
            profile = training_profile(world.columns, row, self.waits)
            jobs[row] = control.make_job(
                world.columns, row, profile, self.model(profile), allow_late
            )
        return Running(jobs)

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Update the allocations of jobs that arrive or whose period is over."""
        assert isinstance(memory, Running)
        for row in batch.rows(Event.JOB_ARRIVED).tolist():
            if row not in memory.jobs:
                continue
            if self._accepted(memory, row, batch.now, world):
                job = memory.live[row] = memory.jobs[row]
                job.submit_s = job.tick_s = batch.now
            else:
                plan.set_jobs(row, overflow_queue=control.SPARE)
        ended = [row for row in memory.live if not world.view["left"][row]]
        for row in ended:
            del memory.live[row]
        due = [job for job in memory.live.values() if job.tick_s <= batch.now]
        if self.joint and (due or ended):
            due = list(memory.live.values())
        if due:
            self.allocate(memory, due, batch.now, world)
            limits = [control.whole_tokens(job.allocation) for job in due]
            plan.set_jobs(np.array([job.row for job in due], np.int32), run_limit=limits)
            for job in due:
                job.tick_s = batch.now + self.period_s if self.adapts else np.inf
        plan.timer_s = min([job.tick_s for job in memory.live.values()], default=np.inf)

    def allocate(self, memory: Running, due: Sequence[Job], now: float, world: World) -> None:
        """Set the allocation of the jobs that are `due`."""
        for job in due:
            elapsed_s = now - job.submit_s
            deadline_s = job.deadline_at(elapsed_s)
            left_s = job.model.left_s(job.done(world))
            raw = control.raw_allocation(
                self.law, self.utility_curve, deadline_s, elapsed_s, left_s
            )
            job.raw = float(raw)
            if job.allocation == 0.0:
                job.allocation = float(raw)
                continue
            previous = job.allocation
            behind_s = control.behind_s(
                self.law, self.utility_curve, deadline_s, elapsed_s, left_s, previous
            )
            job.allocation = control.next_allocation(self.law, previous, raw, behind_s)

    def raw_allocations(self, memory: Running) -> dict[int, float]:
        """Return the raw allocations of the jobs that run, by row."""
        return {row: job.raw for row, job in memory.live.items()}

    @property
    def _effort(self) -> Effort:
        return Effort(self.runs, self.allocations)

    def model(self, profile: Profile) -> Model:
        """Return the model of a job."""
        args = (profile, self.indicator, self.quantile, self.max_tokens, self._effort)
        return simulated_model(*args)

    def predicted_s(self, columns: Columns, row: int) -> F8:
        """Return the predicted duration of a job with 1 to `max_tokens` tokens, s."""
        profile = training_profile(columns, row, self.waits)
        return self.model(profile).left_s(np.zeros(len(profile.shape.n_tasks)))

    def predict_progress(
        self,
        columns: Columns,
        row: int,
        done: F8,
        tokens: I8,
        names: Sequence[str] | None = None,
    ) -> dict[str, tuple[F8, F8]]:
        """Return progress and time left of a job, s, by indicator (`model.predict_progress`)."""
        profile = training_profile(columns, row, self.waits)
        args = (profile, done, tokens, self.quantile, self.max_tokens, self._effort)
        return predict_progress(*args, names or indicators.NAMES)

    def _accepted(self, memory: Running, row: int, now: float, world: World) -> bool:
        if self.admission == "all":
            return True

        def needed(job: Job, elapsed_s: float) -> int:
            left_s = job.model.left_s(job.done(world))
            deadline_s = job.deadline_at(elapsed_s)
            return int(control.tokens_needed(self.law, deadline_s, elapsed_s, left_s))

        needs = [needed(job, now - job.submit_s) for job in memory.live.values()]
        return control.is_admissible(
            needs, needed(memory.jobs[row], 0.0), control.cluster_tokens(world)
        )


@register("jockey_static")
@dataclass(frozen=True)
class JockeyStatic(Jockey):
    """Jockey without adaptation: the initial tokens until the end (EuroSys 2012, §5.1).

    §5.2 gives it the slack of the others and no dead zone, which serves to dampen changes.

    Attributes
    ----------
    dead_zone_s : float
        Margin before the deadline at which a job should finish, s.
    """

    dead_zone_s: Annotated[float, Between(0, 1e9)] = 0.0

    adapts = False


@register("jockey_amdahl")
@dataclass(frozen=True)
class JockeyAmdahl(Jockey):
    """Jockey without the simulator: the time left is S_t + P_t / a (EuroSys 2012, §4.1)."""

    def model(self, profile: Profile) -> Model:
        """Return the model of a job."""
        return Amdahl(profile, self.max_tokens)


@register("max_allocation")
@dataclass(frozen=True)
class MaxAllocation(Policy):
    """Each job with a deadline is guaranteed the maximum number of tokens from start to end.

    Max allocation of Jockey, EuroSys 2012, §5.1.

    Attributes
    ----------
    max_tokens : int
        Guaranteed tokens of a job.
    spare : bool
        Let jobs with a deadline use spare tokens beyond their own.
    """

    max_tokens: Count = 100
    spare: bool = True

    @property
    def knows(self) -> Knows:
        """Declared deadlines, of which only the existence counts."""
        return Knows(deadlines="declared")

    def prepare(self, world: World, plan: Plan) -> None:
        """Set the run limits."""
        control.set_up_queues(world, plan, self.spare)
        plan.set_jobs(deadline_rows(world), run_limit=self.max_tokens)
