"""An arbiter between jobs with deadlines: beyond the paper, which leaves it open (§1, §4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policies.jockey.loop import Job, Running
from policies.jockey.model import Simulated
from policies.jockey.policy import Jockey
from policies.jockey.timetable import Choice, best_timetable
from policies.registry import register
from sim.plan import Event, World

F8 = NDArray[np.float64]


@register("jockey_arbiter")
@dataclass(frozen=True)
class JockeyArbiter(Jockey):
    """Tokens go to the jobs in which they are worth most: total expected utility is maximised.

    Ferguson et al. (EuroSys 2012, §4.4) plan an arbiter that shifts resources from jobs of low to
    jobs of high expected marginal utility.

    Attributes
    ----------
    total_tokens : int
        How many tokens there are for jobs with a deadline; 0 for as many as the cluster has slots.
    """

    total_tokens: int = 0

    events = Event.JOB_ARRIVED | Event.JOB_DONE | Event.TIMER
    together = True

    def allocate(self, memory: Running, due: Sequence[Job], now: float, world: World) -> None:
        """Share the tokens out among all jobs that run."""
        total = self.total_tokens or int(world.cluster.total[0])
        jobs = [self._choice(job, now, world, total) for job in due]
        due_s = [job.submit_s + job.deadline_at(now - job.submit_s) for job in due]
        least = [float((c.tokens * c.takes_s).min()) for c in jobs]
        orders = [np.argsort(x, kind="stable").tolist() for x in (due_s, least)]
        orders.append(np.argsort([c.late_s.min() for c in jobs])[::-1].tolist())
        plan = best_timetable(jobs, orders, total, self.worth, self.period_s)
        for job, share, start in zip(due, plan.tokens.tolist(), plan.start.tolist(), strict=True):
            job.raw = job.allocation = float(share) if start == 0 else 0.0

    def _choice(self, job: Job, now: float, world: World, total: int) -> Choice:
        model = job.model
        assert isinstance(model, Simulated)
        elapsed_s = now - job.submit_s
        left_s = model.left_by_run_s(job.done(world))
        grid = model.remaining.tokens
        grid = grid[grid <= total]
        left_s = left_s[grid - 1]
        likely_s = elapsed_s + left_s - job.deadline_at(elapsed_s)
        wary_s = likely_s + (self.slack - 1.0) * left_s + self.dead_zone_s
        return Choice(
            grid.astype(np.int64), left_s.mean(axis=1), np.concatenate([likely_s, wary_s], axis=1)
        )
