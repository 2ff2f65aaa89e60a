"""Steps of MLflow's charts: a whole number for each capacity, in the order of the capacities."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

PERCENT = "1 %"
RANK = "rank"
_MAX_STEP = 2**53
"""Charts draw steps as double-precision numbers, which are exact below it."""


@dataclass(frozen=True)
class CapacitySteps:
    """Step of each capacity of a sweep; distinct capacities have distinct steps.

    ``unit`` is the capacity that a step stands for: ``1 %``, or ``0.1 %`` and finer where
    capacities lie so close that they would share a step; ``rank`` if steps number the capacities.
    """

    steps: Mapping[float, int]
    unit: str

    def step(self, capacity: float) -> int:
        """Return the step of a capacity of the sweep."""
        return self.steps[capacity]

    def capacity(self, step: int) -> float:
        """Return the capacity of a step."""
        return next(capacity for capacity, own in self.steps.items() if own == step)

    def describe(self) -> str:
        """Return what a step stands for, as a clause; empty if it is a per cent of capacity."""
        if self.unit == PERCENT:
            return ""
        return f"a step is {self.unit}" if self.unit != RANK else "steps number the capacities"


def capacity_steps(capacities: Iterable[float]) -> CapacitySteps:
    """Give each capacity a step: in per cent, or in the coarsest finer unit that tells them apart.

    Capacities that no unit tells apart with steps below 2^53 are numbered from 1.
    """
    ordered = sorted(capacity for capacity in {*capacities} if math.isfinite(capacity))
    digits = 2  # of a per cent
    while ordered:
        steps = [round(Decimal(repr(capacity)).scaleb(digits)) for capacity in ordered]
        if steps[-1] >= _MAX_STEP:
            break
        if len({*steps}) == len(steps):
            unit = f"{Decimal(1).scaleb(2 - digits):f} %"
            return CapacitySteps(dict(zip(ordered, steps, strict=True)), unit)
        digits += 1
    ranks = {capacity: rank for rank, capacity in enumerate(ordered, start=1)}
    return CapacitySteps(ranks, RANK if ranks else PERCENT)
