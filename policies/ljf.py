"""Longest job first."""

from __future__ import annotations

from dataclasses import dataclass

from policies.base import Policy
from policies.registry import register
from sim.engine.plan import Plan, World


@register("ljf")
@dataclass(frozen=True)
class LongestJobFirst(Policy):
    """Jobs in the reverse order of their true total size: the mirror image of ``sjf``.

    Graham's longest processing time rule (Bounds on multiprocessing timing anomalies, 1969), job
    by job: good for the makespan, bad for the mean completion time.
    """

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each job by its negative size."""
        plan.set_jobs(key=-world.columns.job_work)
