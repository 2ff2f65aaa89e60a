"""Utility of a job by its lateness (Ferguson et al., EuroSys 2012, §5.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sim.base import maths
from sim.base.arrays import F8
from sim.base.errors import InputError

MINUTE_S = 60.0

POINTS = ((0.0, 1.0), (10.0, -1.0), (1000.0, -1000.0))
"""The utility of §5.1: minutes after the deadline, and the utility of finishing then."""


@dataclass(frozen=True, eq=False)
class Utility:
    """Utility over lateness; constant before the first point, straight on after the last."""

    late_s: F8  # finish less deadline, s, ascending
    value: F8  # utility there, never rising

    def __call__(self, late_s: ArrayLike) -> F8:
        """Return the utility at a lateness, s."""
        late = np.asarray(late_s, dtype=np.float64)
        beyond = np.maximum(late - self.late_s[-1], 0.0)
        inside = maths.interp(late, self.late_s, self.value)
        return np.asarray(inside + np.where(beyond > 0, beyond * self.slope, 0.0))

    def latest(self, value: float) -> float:
        """Return the greatest lateness with a utility of `value`, s; inf for any, -inf for none."""
        if value > self.value[0]:
            return -np.inf
        if value <= self.value[-1]:
            gap = value - self.value[-1]
            return float(self.late_s[-1] + gap / self.slope) if self.slope < 0 else np.inf
        i = int(np.flatnonzero(self.value >= value)[-1])
        rise = (value - self.value[i]) / (self.value[i + 1] - self.value[i])
        return float(self.late_s[i] + rise * (self.late_s[i + 1] - self.late_s[i]))

    @property
    def slope(self) -> float:
        """Change of utility a second after the last point."""
        step = self.late_s[-1] - self.late_s[-2]
        return float((self.value[-1] - self.value[-2]) / step)


def utility_curve(points: tuple[tuple[float, ...], ...]) -> Utility:
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
