"""Common pool: elastic jobs give to waiting ones what they have above their least width."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.elastic.shares import SLACK, Jobs, Widths
from policies.registry import register
from sim.base.arrays import I8
from sim.engine.plan import Batch, Plan


@register("common_pool")
@dataclass(frozen=True)
class CommonPool(Widths):
    """Waiting jobs start with their least width, in room that others give back for them.

    Min-Common-Pool of the schedulers published for ElastiSim (Özden et al., ICPP 2022; Zojer,
    Posner and Özden, arXiv 2602.17318): for each job that waits, in order, elastic jobs shrink,
    those with most places above their least first, if that suffices. What is free then goes to
    those with fewest above it, to each as much as it takes. There free places do not count towards
    a job for which others shrink, and it starts once they have; here they count, and it starts at
    once.
    """

    def share(self, jobs: Jobs, rows: I8, batch: Batch, plan: Plan) -> None:
        """Shrink for the jobs that wait, then grow."""
        width = jobs.world.view["running"][rows].astype(np.int64)
        cost, low, high = jobs.cost[rows], jobs.low[rows], jobs.high[rows]
        stretches = jobs.is_elastic[rows] & (width > 0)
        left = 1.0 - float((cost * width).sum())
        for i in np.flatnonzero(width == 0).tolist():
            above = np.where(stretches, width - low, 0)
            needed = cost[i] * low[i] - left
            if needed > float((cost * above).sum()) + SLACK:
                break
            for k in np.argsort(-above, kind="stable").tolist():
                if needed <= SLACK or above[k] == 0:
                    break
                n = min(int(above[k]), int(np.ceil(needed / cost[k] - SLACK)))
                width[k] -= n
                needed -= n * cost[k]
            left = max(0.0, -needed)
        grows = np.flatnonzero(stretches & (cost > 0) & (width < high))
        for k in grows[np.argsort((width - low)[grows], kind="stable")].tolist():
            if left <= SLACK:
                break
            taken = max(min(int(high[k] - width[k]), int(left / cost[k] + SLACK)), 0)
            width[k] += taken
            left -= taken * cost[k]
        jobs.set_widths(plan, rows[stretches], width[stretches])
