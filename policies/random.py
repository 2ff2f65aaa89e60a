"""Random order."""

from __future__ import annotations

from dataclasses import dataclass

from policies.base import Policy
from policies.registry import register
from sim.engine.plan import Plan, World


@register("random")
@dataclass(frozen=True)
class Random(Policy):
    """Jobs in a random order, and the stages of a job as well, drawn once from the run's seed.

    The baseline that knows nothing and wants nothing (DAGPS, §8.3, Table 5).
    """

    def prepare(self, world: World, plan: Plan) -> None:
        """Key jobs and stages by random permutations."""
        rng = world.rng("policies.random")
        plan.set_jobs(key=rng.permutation(len(world.columns.job_submit)))
        plan.set_stages(key=rng.permutation(len(world.columns.stage_job)))
