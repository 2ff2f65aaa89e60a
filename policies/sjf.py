"""Shortest job first."""

from __future__ import annotations

from dataclasses import dataclass

from policies.base import Policy
from policies.registry import register
from sim.engine.plan import Plan, World


@register("sjf")
@dataclass(frozen=True)
class ShortestJobFirst(Policy):
    """Jobs in the order of their true total size, the sum of their tasks' durations.

    The clairvoyant order that SLearn (NSDI 2022, §5.1.1) approximates with estimates: jobs "are
    ordered based on their total estimated runtime, i.e., mean task runtime × number of tasks".
    """

    def prepare(self, world: World, plan: Plan) -> None:
        """Key each job by its size."""
        plan.set_jobs(key=world.columns.job_work)
