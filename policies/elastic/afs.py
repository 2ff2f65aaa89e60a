"""AFS: places go to the shorter of two jobs unless the longer one gains more by them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from policies.elastic.shares import SLACK, Jobs, Widths
from policies.knows import Knows
from policies.registry import register
from sim.base.arrays import F8, I8
from sim.engine.plan import Batch, Plan, World


@dataclass
class Remaining(Jobs):
    """Jobs with the work that is left of them, s at the greatest width."""

    left_s: F8 = field(default_factory=lambda: np.zeros(0))
    now: float = 0.0


@register("afs")
@dataclass(frozen=True)
class Afs(Widths):
    """Elastic sharing by comparisons of pairs, of the jobs' remaining times and gains.

    Hwang et al., *Elastic resource sharing for distributed deep learning*, NSDI 2021, AFS-L: of two
    jobs the next place goes to the one that ends first, a, unless (p'(b) - p(b)) / p'(b) exceeds
    (p'(a) - p(a)) / p'(a), with p and p' the throughput now and with one place more. Waiting jobs
    go by their remaining work. Unlike there, a job that runs keeps its least width.
    """

    @property
    def knows(self) -> Knows:
        """Know the durations of jobs."""
        return Knows(durations="true")

    def prepare(self, world: World, plan: Plan) -> Remaining:
        """Order the jobs by their work."""
        jobs = Remaining(**vars(super().prepare(world, plan)))
        jobs.left_s = world.columns.stage_max_s[world.columns.job_stage0[:-1]].copy()
        plan.set_jobs(key=jobs.left_s)
        return jobs

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        """Follow the work that was done, then share the cluster out."""
        assert isinstance(memory, Remaining)
        if not memory.is_elastic.any():
            return
        for j in memory.active:
            width = int(world.view["running"][j])
            pace = memory.pace(j)[width] if memory.is_elastic[j] else float(width > 0)
            memory.left_s[j] = max(0.0, memory.left_s[j] - pace * (batch.now - memory.now))
        memory.now = batch.now
        memory.active.sort(key=lambda j: float(memory.left_s[j]))
        super().react(memory, batch, world, plan)

    def widths(self, jobs: Jobs, rows: I8, left: float) -> I8:
        """Return the widths that comparisons of pairs give, place by place."""
        assert isinstance(jobs, Remaining)
        width = jobs.low[rows].tolist()
        pace = [jobs.pace(j).tolist() if jobs.is_elastic[j] else [] for j in rows.tolist()]
        cost, left_s = jobs.cost[rows].tolist(), jobs.left_s[rows].tolist()
        while True:
            open_to = [
                i for i, row in enumerate(pace)
                if width[i] + 1 < len(row) and cost[i] <= left + SLACK
            ]  # fmt: skip
            if not open_to:
                return np.array(width, np.int64)
            best = open_to[0]
            for i in open_to[1:]:
                ends = {k: left_s[k] / pace[k][width[k]] for k in (best, i)}
                first, last = sorted((best, i), key=ends.__getitem__)
                gain = {k: 1.0 - pace[k][width[k]] / pace[k][width[k] + 1] for k in (first, last)}
                best = last if gain[last] > gain[first] else first
            width[best] += 1
            left -= cost[best]
