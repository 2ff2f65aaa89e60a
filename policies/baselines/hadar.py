"""Prices of kinds of machines: a job runs where its utility exceeds the price of its room most."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from policies.baselines.kinds import SLACK, lengths, widths
from policies.baselines.rounds import Round, Rounds, in_order
from policies.knows import Knows
from policies.registry import register
from sim.base.arrays import F8, I8, Mask
from sim.base.maths import power
from sim.engine.plan import Plan, World

BELOW = 4.0
"""The least utility of any job for a room, over the price of what nobody has taken yet."""


@dataclass
class Priced(Round):
    """A round's jobs, with their run times at speed 1, s, and those of several tasks."""

    whole_s: F8 = field(default_factory=lambda: np.zeros(0))
    is_wide: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))


@register("hadar")
@dataclass(frozen=True)
class Hadar(Rounds):
    """In rounds, jobs in the order of submission take what is worth most above its price.

    The idea of Hadar (Sultana et al., *Hadar: heterogeneity-aware optimization-based online
    scheduling for deep learning cluster*, IPDPS 2024; arXiv 2503.10918), a primal-dual method: the
    price of a kind grows with the part of it that is taken, by a power, from below the least
    utility for its room to the greatest. A job's tasks may run on several kinds, at the speed of
    the slowest. The utility is chosen here: one over the completion time that is expected. So are
    the options: one kind, or all of them.
    """

    @property
    def knows(self) -> Knows:
        """Know the durations of jobs."""
        return Knows(durations="true")

    def prepare(self, world: World, plan: Plan) -> Priced:
        """Read the run times."""
        before = super().prepare(world, plan)
        return Priced(**vars(before), whole_s=lengths(world.columns), is_wide=widths(world) > 1)

    def choose(self, memory: Round, rows: I8, now: float, world: World) -> tuple[I8, I8]:
        """Let each job in turn take the option of the greatest utility above its price."""
        assert isinstance(memory, Priced)
        kinds, takes = memory.kinds, memory.kinds.takes
        has = kinds.options(rows) > 0
        has[:, -1] |= memory.is_wide[rows]
        done_s = (memory.ran_s[rows] * kinds.speed[rows]).sum(axis=1)
        left_s = np.maximum(memory.whole_s[rows] - done_s, 0.01 * memory.whole_s[rows])
        run_s = left_s[:, None] / np.where(has, kinds.speed[rows], 1.0)
        age_s = (now - world.view["submit"][rows])[:, None]
        utility = np.where(has, 1.0 / np.maximum(age_s + run_s, SLACK), 0.0)
        need = kinds.share[rows][:, :, None] * takes[None]
        worth = np.where(has, utility / need.sum(axis=2), np.nan)
        low, high = float(np.nanmin(worth)) / BELOW, float(np.nanmax(worth))
        used, chosen = np.zeros(takes.shape[1]), {}
        price = low * power(high / low, used)
        for i, j in enumerate(rows.tolist()):
            gain = utility[i] - (need[i] * price).sum(axis=1)
            fits = has[i] & (used + need[i] <= 1.0 + SLACK).all(axis=1)
            gain = np.where(fits, gain, -np.inf)
            c = int(np.argmax(gain))
            if gain[c] >= -SLACK * utility[i, c] and fits[c]:
                chosen[j] = c
                used += need[i, c]
                price = low * power(high / low, used)
        return in_order(rows, chosen)
