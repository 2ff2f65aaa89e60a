"""The control law (§4.3): which allocation a job gets next, given what is left under each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from policies.jockey.utility import Utility
from sim.base.arrays import F8


@dataclass(frozen=True)
class Law:
    """The constants of the control law."""

    slack: float = 1.2  # s: what predictions are multiplied by
    hysteresis: float = 0.2  # α: how much of the way to the raw allocation is gone each period
    # d: how much earlier than the deadline a job is to finish, and how far it must be behind
    # before it gets more, s
    dead_zone_s: float = 180.0


def raw_allocation(
    law: Law, utility: Utility, deadline_s: float, elapsed_s: float, left_s: F8
) -> int:
    """Return A^r, the fewest tokens of greatest utility U(t_r + S C(p, a) + D)."""
    return 1 + int(np.argmax(_shifted(law, utility, deadline_s, elapsed_s, left_s)))


def behind_s(
    law: Law, utility: Utility, deadline_s: float, elapsed_s: float, left_s: F8, tokens: float
) -> float:
    """Return how far a job with so many tokens is behind schedule, s; negative if ahead.

    The schedule is the latest finish of greatest utility, by the utility shifted left by D: d - D,
    whether any allocation gets there or not.
    """
    held = min(max(math.ceil(tokens - 1e-9), 1), len(left_s))
    late = elapsed_s + law.slack * left_s[held - 1] - deadline_s
    return float(late - (utility.latest(float(utility.value[0])) - law.dead_zone_s))


def next_allocation(law: Law, previous: float, raw: int, behind: float) -> float:
    """Return A_t = A_{t-1} + α (A^r - A_{t-1}); raised only if at least D behind."""
    if raw > previous and behind < law.dead_zone_s:
        return previous
    return previous + law.hysteresis * (raw - previous)


def whole_tokens(allocation: float) -> int:
    """Return an allocation in whole tokens: rounded up, but for the last bit of a sum."""
    return math.ceil(allocation - 1e-9)


def _shifted(law: Law, utility: Utility, deadline_s: float, elapsed_s: float, left_s: F8) -> F8:
    late = elapsed_s + law.slack * left_s - deadline_s
    return utility(late + law.dead_zone_s)
