"""Least attained service, by multi-level feedback queues."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from policies.levels import Levels
from policies.registry import register
from sim.engine.plan import Plan, World


@register("las")
@dataclass(frozen=True)
class LeastAttainedService(Levels):
    """Jobs sink through queues as they are served; higher queues have greater weights.

    A job enters queue 0 and leaves queue q for q + 1 once its tasks have run for
    ``first_threshold_s · growth^q`` seconds in all; the last queue keeps what reaches it. Inside a
    queue jobs come first, served first: no size needs to be known. The queues are those of
    `policies.levels.Levels`; the discipline is that of Aalo and Kairos, which SLearn (NSDI 2022,
    §5.1.3) compares itself to as LAS.
    """

    def prepare(self, world: World, plan: Plan) -> None:
        """Set up the queues; the kernel moves the jobs."""
        level = np.arange(self.queues)
        plan.queues = replace(
            self.make_queues(),
            demote_at=self.thresholds_s,
            demote_to=np.where(level + 1 < self.queues, level + 1, -1).astype(np.int32),
        )
