"""Max-min fairness over kinds of machines: equal shares of what each kind is worth to a job."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from policies.baselines.fair_shares import shares
from policies.baselines.rounds import Round, Rounds, in_order, take
from policies.registry import register
from sim.base.arrays import F8, I8
from sim.engine.plan import Plan, World


@dataclass
class Owed(Round):
    """A round's jobs, with the share of time that each is to have by each option, and is owed."""

    share: F8 = field(default_factory=lambda: np.zeros((0, 0)))
    owed_s: F8 = field(default_factory=lambda: np.zeros((0, 0)))
    shared_to: tuple[int, ...] = ()


@register("max_min_kinds")
@dataclass(frozen=True)
class MaxMinKinds(Rounds):
    """Least normalised throughput as great as possible, by a linear program, in rounds.

    Gavel's max-min fairness (Narayanan et al., *Heterogeneity-aware cluster scheduling policies for
    deep learning workloads*, OSDI 2020, §4.1): a job's throughput is over that of an equal share of
    all kinds, times its size. At each round those go first that have had the least of their share
    of a kind, in seconds; there, by the quotient of the two, counted anew when shares change.

    Attributes
    ----------
    by_speed : bool
        False: all kinds are equal, which Gavel calls least attained service without regard for
        heterogeneity.
    """

    by_speed: bool = True

    def prepare(self, world: World, plan: Plan) -> Owed:
        """Owe nothing to anybody."""
        before = super().prepare(world, plan)
        zeros = np.zeros_like(before.ran_s)
        return Owed(**vars(before), share=zeros.copy(), owed_s=zeros)

    def choose(self, memory: Round, rows: I8, now: float, world: World) -> tuple[I8, I8]:
        """Take job and kind in the order of the time that is owed, then of shares."""
        assert isinstance(memory, Owed)
        memory.owed_s[rows] -= memory.ran_s[rows]
        memory.ran_s[rows] = 0.0
        if memory.shared_to != (jobs := tuple(rows.tolist())):
            memory.shared_to = jobs
            memory.share[rows] = shares(memory.kinds, rows, by_speed=self.by_speed)
        memory.owed_s[rows] += memory.share[rows] * self.round_s
        owed, share = memory.owed_s[rows], memory.share[rows]
        i, c = np.nonzero(memory.kinds.options(rows))
        first = np.lexsort((i, c, -share[i, c], -owed[i, c]))
        return in_order(rows, take(memory.kinds, [(jobs[i[n]], int(c[n])) for n in first.tolist()]))
