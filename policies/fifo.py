"""First in, first out."""

from __future__ import annotations

from dataclasses import dataclass

from policies.base import Policy
from policies.registry import register
from sim.engine.plan import Order, Plan, Queues, World


@register("fifo")
@dataclass(frozen=True)
class Fifo(Policy):
    """Jobs in the order of their submission.

    The baseline that most studies quote speed-ups against, e.g. SLearn (NSDI 2022, §5.1.4).
    """

    def prepare(self, world: World, plan: Plan) -> None:
        """Order the one queue by submission."""
        plan.queues = Queues.make(1, order=Order.FIFO)
