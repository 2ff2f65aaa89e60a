"""Equal widths: every elastic job has as many places as the others, within its own widths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.elastic.shares import SLACK, Jobs, Widths
from policies.registry import register
from sim.base.arrays import I8


@register("equal_widths")
@dataclass(frozen=True)
class EqualWidths(Widths):
    """All jobs that run have the same width, as far as their least and greatest let them.

    Dynamic equipartition (McCann, Vaswani and Zahorjan, *A dynamic processor allocation policy for
    multiprogrammed shared-memory multiprocessors*, ACM TOCS 1993). Places that are left over after
    the division go to the first jobs.
    """

    def widths(self, jobs: Jobs, rows: I8, left: float) -> I8:
        """Return the greatest equal widths for which there is room."""
        cost, low, high = jobs.cost[rows], jobs.low[rows], jobs.high[rows]
        room = float((cost * low).sum()) + left + SLACK
        level, above = 0, int(high.max()) + 1
        while above - level > 1:
            middle = (level + above) // 2
            fits = float((cost * np.clip(middle, low, high)).sum()) <= room
            level, above = (middle, above) if fits else (level, middle)
        width: I8 = np.clip(level, low, high)
        more = np.flatnonzero(np.clip(level + 1, low, high) > width)
        used = float((cost * width).sum()) + np.cumsum(cost[more])
        width[more[: np.searchsorted(used, room, side="right")]] += 1
        return width
