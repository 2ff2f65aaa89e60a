"""An arbiter between jobs with deadlines: beyond the paper, which leaves it open (§1, §4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from policies.jockey.amdahl import serial_s
from policies.jockey.loop import Job, Running
from policies.jockey.model import Simulated
from policies.jockey.pace import Pace
from policies.jockey.policy import Jockey
from policies.jockey.timetable import Choice, best_timetable
from policies.registry import register
from sim.engine.plan import Event, Plan, World


@dataclass(eq=False)
class Paced(Running):
    """The jobs with a deadline, and the work that those which run turn out to need."""

    paces: dict[int, Pace] = field(default_factory=dict)


@register("jockey_arbiter")
@dataclass(frozen=True)
class JockeyArbiter(Jockey):
    """Tokens go to the jobs in which they are worth most: total expected utility is maximised.

    Ferguson et al. (EuroSys 2012, §4.4) plan an arbiter that shifts resources from jobs of low to
    jobs of high expected marginal utility. Here all jobs with a deadline are planned anew each
    period, and when one comes or goes, as rectangles of tokens × time (see `best_timetable`);
    a job holds the tokens of its rectangle once that begins, and runs on spare ones before.

    A job's utility is the mean over the simulated runs in three cases: what is left is as
    predicted, `slack` times as long with the dead zone on top, and both twice over. Predictions are
    stretched by the work that the job turned out to need so far (`policies.jockey.pace`), and are
    never less than the serial work that is left nor all of it over the tokens: C(p, a) is of jobs
    whose tasks kept running, and one whose tokens were taken has none under way. Nothing is
    smoothed, since shares must add up.

    Attributes
    ----------
    total_tokens : int
        How many tokens there are for jobs with a deadline; 0 for as many as the cluster has slots.
    """

    total_tokens: int = 0

    events = Event.JOB_ARRIVED | Event.JOB_DONE | Event.TIMER
    together = True

    def prepare(self, world: World, plan: Plan) -> Paced:
        """Make the model of every job with a deadline."""
        return Paced(super().prepare(world, plan).jobs)

    def allocate(self, memory: Running, due: Sequence[Job], now: float, world: World) -> None:
        """Share the tokens out among all jobs that run."""
        assert isinstance(memory, Paced)
        total = self.total_tokens or int(world.cluster.total[0])
        jobs = [self._choice(memory, job, now, world, total) for job in due]
        due_s = [job.submit_s + job.deadline_at(now - job.submit_s) for job in due]
        least = [float((c.tokens * c.takes_s).min()) for c in jobs]
        orders = [np.argsort(x, kind="stable").tolist() for x in (due_s, least)]
        orders.append(np.argsort([c.late_s.min() for c in jobs])[::-1].tolist())
        plan = best_timetable(jobs, orders, total, self.worth, self.period_s)
        for job, share, start in zip(due, plan.tokens.tolist(), plan.start.tolist(), strict=True):
            job.raw = job.allocation = float(share) if start == 0 else 0.0

    def _choice(self, memory: Paced, job: Job, now: float, world: World, total: int) -> Choice:
        model = job.model
        assert isinstance(model, Simulated)
        elapsed_s = now - job.submit_s
        done = job.done(world)
        pace = memory.paces.setdefault(job.row, Pace(job.profile, now))
        pace.look(now, int(world.view["running"][job.row]))
        work_s = float((1.0 - done) @ job.profile.token_s)
        tokens = np.arange(1, model.max_tokens + 1)
        least_s = np.maximum(serial_s(job.profile, done), work_s / tokens)
        left_s = pace.factor(done) * np.maximum(model.left_by_run_s(done), least_s[:, None])
        grid = model.remaining.tokens
        grid = grid[grid <= total]
        left_s = left_s[grid - 1]
        now_s = elapsed_s - job.deadline_at(elapsed_s)
        cases = [now_s + self.slack**k * left_s + k * self.dead_zone_s for k in range(3)]
        return Choice(grid.astype(np.int64), left_s.mean(axis=1), np.concatenate(cases, axis=1))
