"""Jockey's control law (§4.3): which allocation a job gets next, given what is left under each.

It goes by a utility, piecewise linear in how late the job is (§2.2, §5.1). By the same law it is
told whether one more job fits, all those accepted still meeting their deadlines (admission, §1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from sim.base.arrays import F8
from sim.base.errors import InputError

MINUTE_S = 60.0

POINTS = ((0.0, 1.0), (10.0, -1.0), (1000.0, -1000.0))
"""The utility of §5.1: minutes after the deadline, and what finishing then is worth."""

NEVER: Final = 2**31 - 1
"""The need of a job that no allocation lets meet its deadline."""


@dataclass(frozen=True)
class Law:
    """The constants of the control law."""

    slack: float = 1.2  # S: what predictions are multiplied by
    hysteresis: float = 0.2  # α: how much of the way to the raw allocation is gone each period
    # D: how much earlier than the deadline a job is to finish, and how far it must be behind
    # before it gets more, s
    dead_zone_s: float = 180.0


def raw_allocation(
    law: Law, utility: Utility, deadline_s: float, elapsed_s: float, left_s: F8
) -> int:
    """Return A^r, the fewest tokens of greatest utility U(t_r + S C(p, a) + D)."""
    late = elapsed_s + law.slack * left_s - deadline_s
    return 1 + int(np.argmax(utility(late + law.dead_zone_s)))


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


def need(law: Law, deadline_s: float, elapsed_s: float, left_s: F8) -> int:
    """Return the fewest tokens with which a job is predicted to meet its deadline."""
    meets = elapsed_s + law.slack * left_s + law.dead_zone_s <= deadline_s
    return 1 + int(np.argmax(meets)) if meets.any() else NEVER


def fits(needs: Sequence[int], new: int, capacity: int) -> bool:
    """Tell whether a job that needs `new` tokens fits beside those that need `needs`.

    What an accepted job that is late can no longer use counts as the whole capacity.
    """
    return new <= capacity and sum(min(n, capacity) for n in needs) + new <= capacity


@dataclass(frozen=True, eq=False)
class Utility:
    """Utility over lateness; constant before the first point, straight on after the last."""

    late_s: F8  # finish less deadline, s, ascending
    value: F8  # utility there, never rising

    def __call__(self, late_s: ArrayLike) -> F8:
        """Return the utility of finishing so late, s."""
        late = np.asarray(late_s, dtype=np.float64)
        beyond = np.maximum(late - self.late_s[-1], 0.0)
        inside = np.interp(late, self.late_s, self.value)
        return np.asarray(inside + np.where(beyond > 0, beyond * self._slope, 0.0))

    def latest(self, value: float) -> float:
        """Return how late a job may be and still be worth `value`, s; inf if always, -inf never."""
        if value > self.value[0]:
            return -np.inf
        if value <= self.value[-1]:
            gap = value - self.value[-1]
            return float(self.late_s[-1] + gap / self._slope) if self._slope < 0 else np.inf
        i = int(np.flatnonzero(self.value >= value)[-1])
        rise = (value - self.value[i]) / (self.value[i + 1] - self.value[i])
        return float(self.late_s[i] + rise * (self.late_s[i + 1] - self.late_s[i]))

    @property
    def _slope(self) -> float:
        step = self.late_s[-1] - self.late_s[-2]
        return float((self.value[-1] - self.value[-2]) / step)


def utility(points: tuple[tuple[float, ...], ...]) -> Utility:
    """Build a utility from points (minutes after the deadline, utility)."""
    if len(points) < 2 or any(len(point) != 2 for point in points):
        raise InputError(
            "a utility needs at least two points (minutes after the deadline, utility), "
            f"not {points!r}"
        )
    table = np.array(points, dtype=np.float64)
    if not np.isfinite(table).all():
        raise InputError(f"a utility's points must be finite numbers, not {points!r}")
    minutes, value = table.T
    if (np.diff(minutes) <= 0).any():
        raise InputError(f"the times of a utility's points must ascend, not {minutes.tolist()}")
    rising = np.flatnonzero(np.diff(value) > 0)
    if len(rising):
        i = int(rising[0])
        raise InputError(
            f"a utility must never rise: it goes from {value[i]:g} at {minutes[i]:g} min to "
            f"{value[i + 1]:g} at {minutes[i + 1]:g} min after the deadline"
        )
    return Utility(minutes * MINUTE_S, value)
