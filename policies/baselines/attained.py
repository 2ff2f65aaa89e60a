"""Least attained service over kinds of machines, normalised by what each is worth to a job."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.baselines.rounds import Round, Rounds, in_order, take
from policies.registry import register
from sim.base.arrays import I8
from sim.engine.plan import World


@register("las_kinds")
@dataclass(frozen=True)
class LasKinds(Rounds):
    """Jobs that have attained the least go first, each on the fastest kind that has room.

    Least attained service in rounds, without a program: service is time, times the speed over that
    of an equal share of all kinds, times the job's part of the cluster. Its order is that of
    Tiresias (Gu et al., NSDI 2019), and its measure that of Gavel (Narayanan et al., OSDI 2020,
    §4.1).

    Attributes
    ----------
    by_speed : bool
        False: a second counts alike on all kinds.
    """

    by_speed: bool = True

    def choose(self, memory: Round, rows: I8, now: float, world: World) -> tuple[I8, I8]:
        """Take jobs in the order of attained service, then of submission."""
        kinds = memory.kinds
        per_s = kinds.share[rows, -1:] * (kinds.worth[rows] if self.by_speed else 1.0)
        attained = (memory.ran_s[rows] * per_s).sum(axis=1)
        has, pairs = kinds.options(rows), []
        for i in np.argsort(attained, kind="stable").tolist():
            j = int(rows[i])
            fastest = np.argsort(-kinds.speed[j], kind="stable").tolist()
            pairs += [(j, c) for c in fastest if has[i, c]]
        return in_order(rows, take(kinds, pairs))
