"""Shortest remaining processing time."""

from __future__ import annotations

from dataclasses import dataclass

from policies.base import Policy
from policies.registry import register
from sim.engine.plan import Order, Plan, Queues, World


@register("srpt")
@dataclass(frozen=True)
class ShortestRemainingFirst(Policy):
    """Jobs in the order of the true work of their unfinished tasks; running tasks go on.

    Schrage's rule (A proof of the optimality of the shortest remaining processing time
    discipline, 1968) as cluster schedulers use it: preemption at the ends of tasks.
    """

    def prepare(self, world: World, plan: Plan) -> None:
        """Let the kernel keep the order, which moves with every task."""
        plan.queues = Queues.make(1, order=Order.REMAINING)
