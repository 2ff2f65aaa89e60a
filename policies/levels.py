"""Queues of exponentially growing thresholds and falling weights, which several policies share."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from policies.base import Policy
from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.engine.plan import Order, Queues


@dataclass(frozen=True)
class Levels(Policy):
    """The queues of the scheduler GS of SLearn (NSDI 2022, §5.1.1): N of them, FIFO inside.

    Queue q is for jobs of less than ``first_threshold_s · growth^q`` task seconds, the last for
    all others. Room goes to the queue with the least use over weight, which keeps long jobs from
    starving. The defaults are those of §5.2.1: 10^6 ms, 10, 10, 10.
    """

    first_threshold_s: float = 1000.0  # threshold of the first queue, task seconds
    growth: float = 10.0  # each threshold over the one before
    queues: int = 10  # number of queues
    weight_decay: float = 10.0  # each queue's weight over that of the next

    def __post_init__(self) -> None:
        """Raise InputError on a parameter out of its range."""
        if not 0 < self.first_threshold_s < math.inf:
            raise InputError(
                f"policy {self.name}: first_threshold_s must be positive, "
                f"not {self.first_threshold_s!r}"
            )
        for name in ("growth", "weight_decay"):
            if not 1 <= getattr(self, name) < math.inf:
                raise InputError(
                    f"policy {self.name}: {name} must be at least 1, not {getattr(self, name)!r}"
                )
        if not 1 <= self.queues <= 1000:
            raise InputError(f"policy {self.name}: queues must be 1 to 1000, not {self.queues!r}")

    @property
    def thresholds_s(self) -> F8:
        """Sizes from which on a job belongs to the next queue, (N,) task s; inf for the last."""
        level = np.arange(self.queues, dtype=np.float64)
        threshold: F8 = self.first_threshold_s * self.growth**level
        threshold[-1] = np.inf
        return threshold

    def make_queues(self, *, surplus: bool = False) -> Queues:
        """Make the queues, for `Plan.queues`; with `surplus`, one more that takes what is left."""
        weight = self.weight_decay ** -np.arange(self.queues, dtype=np.float64)
        if not surplus:
            return Queues.make(self.queues, weight=weight, order=Order.FIFO)
        tier = [0] * self.queues + [1]
        weight = np.append(weight, 1.0)
        return Queues.make(self.queues + 1, weight=weight, tier=tier, order=Order.FIFO)
