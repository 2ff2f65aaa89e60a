"""The user's priorities."""

from __future__ import annotations

from dataclasses import dataclass

from policies.base import Policy
from policies.registry import register
from sim.engine.plan import Plan, World


@register("priority")
@dataclass(frozen=True)
class Priority(Policy):
    """Jobs by their users' priority, highest first; among equals first come, first served.

    PRIO of Wing (OSDI 2020, §6): where the cluster has queues, each queue (organisation) orders
    its own jobs so, inside its own share.
    """

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each job by its negative priority; the kernel breaks ties by row."""
        plan.set_jobs(key=-world.columns.job_priority)
