"""A published policy of GPU clusters, in the vocabulary that any package has.

Heterogeneity-aware order and placement (the shape of Gavel: Narayanan et al., OSDI 2020).
`tests/policies/test_peers.py` has examples by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies import Knows, Policy
from sim.plan import Choice, Machine, Plan, World


@dataclass(frozen=True)
class SensitiveFirst(Policy):
    """The jobs that lose most on slow machines first, each on the fastest that has room.

    A greedy assignment for the largest sum of normalised throughputs, which Gavel finds by a linear
    program, and realises in rounds (`policies.baselines.max_min`). Here a job keeps its machines.

    Attributes
    ----------
    by_speed : bool
        False: first come, first served, and placement alone looks at speeds.
    """

    fit: str = "skip"  # type: ignore[assignment]
    by_speed: bool = True
    knows = Knows()

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each job by its least speed over its greatest."""
        plan.choice = Choice(Machine.FASTEST)
        if self.by_speed:
            speed = world.columns.stage_speed[world.columns.job_stage0[:-1]]
            speed = np.column_stack([speed, np.ones(len(speed))])  # of classes without a column
            plan.set_jobs(key=speed.min(axis=1) / speed.max(axis=1))
