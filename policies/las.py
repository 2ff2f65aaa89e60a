"""Least attained service, by multi-level feedback queues."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from policies.base import Policy
from policies.registry import register
from sim.errors import InputError
from sim.plan import Order, Plan, Queues, World


@register("las")
@dataclass(frozen=True)
class LeastAttainedService(Policy):
    """Jobs sink through queues as they are served; higher queues have greater weights.

    A job enters queue 0 and leaves queue q for q + 1 once its tasks have run for
    ``first_threshold_s · growth^q`` seconds in all; the last queue keeps what reaches it. Room
    goes to the queue with the least use over weight, which keeps long jobs from starving, and
    inside a queue first come, first served: no size needs to be known. The queues are those of
    the scheduler GS in SLearn (NSDI 2022, §5.1.1), the parameters its §5.1.4 (10^6 ms, 10, 10,
    10); the discipline that of Aalo and Kairos, which SLearn compares itself to as LAS.

    Attributes
    ----------
    first_threshold_s : float
        Attained service at which a job leaves the first queue, task seconds.
    growth : float
        Each threshold over the one before.
    queues : int
        Number of queues.
    weight_decay : float
        Each queue's weight over that of the next.
    """

    first_threshold_s: float = 1000.0
    growth: float = 10.0
    queues: int = 10
    weight_decay: float = 10.0

    def __post_init__(self) -> None:
        """Raise InputError on a parameter out of its range."""
        if not 0 < self.first_threshold_s < math.inf:
            raise InputError(
                f"policy las: first_threshold_s must be positive, not {self.first_threshold_s!r}"
            )
        for name in ("growth", "weight_decay"):
            if not 1 <= getattr(self, name) < math.inf:
                raise InputError(
                    f"policy las: {name} must be at least 1, not {getattr(self, name)!r}"
                )
        if not 1 <= self.queues <= 1000:
            raise InputError(f"policy las: queues must be 1 to 1000, not {self.queues!r}")

    def prepare(self, world: World, plan: Plan) -> None:
        """Set up the queues; the kernel moves the jobs."""
        level = np.arange(self.queues)
        demote_at = self.first_threshold_s * self.growth ** level.astype(np.float64)
        demote_at[-1] = np.inf
        plan.queues = Queues.make(
            self.queues,
            weight=self.weight_decay ** -level.astype(np.float64),
            order=Order.FIFO,
            demote_at=demote_at,
            demote_to=np.where(level + 1 < self.queues, level + 1, -1),
        )
