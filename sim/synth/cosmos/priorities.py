"""What priorities users give: mostly those of the script that they started from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.base.random import stream
from sim.published import numbers
from sim.synth.cosmos.flows import Flows

_PAPER = numbers("wing")["priorities"]
HIGH_AD_HOC, INVERTED_TEMPLATES = _PAPER["adhoc_above"], _PAPER["templates_inverted"]
INVERTED_JOBS = _PAPER["jobs_on_lower"]

INHERITED = 0.7
"""Workflows whose priority is that of an earlier one of the organisation; an assumption (§2.2)."""

HIGHEST = 1000
STEP = 10
"""Priorities are whole multiples of the step, from one step to the highest."""


def draw_priorities(
    flows: Flows, program: I8, organisation: I8, up: I8, down: I8, submit_s: F8, seed: int
) -> F8:
    """Draw a priority for each job; see `sim.synth.cosmos.month.Month`.

    A program gets its workflow's priority, or that of its highest consumer if that is higher. Then
    some are set below a consumer: as many programs as are inverted, chosen so that as many jobs
    depend on a lower one as is published.
    """
    rng = stream(seed, "synth", "cosmos", "priorities")
    own = _workflows(flows, rng)[flows.flow]
    recurring = program >= 0
    both = recurring[up] & recurring[down]
    pair = np.unique(program[up[both]] * len(own) + program[down[both]])
    a, b = pair // len(own), pair % len(own)
    a, b = a[a != b], b[a != b]
    lifted = own.copy()
    while True:
        before = lifted.copy()
        np.maximum.at(lifted, a, lifted[b])
        if (lifted == before).all():
            break
    recurrence = Consumers(a, b, lifted, flows.flow, rng.random(len(own)), rng.random(len(own)))
    dice = rng.random((2, len(program)))
    low, high = 0.0, 1.0
    best, least = np.zeros(0), np.inf
    for _ in range(8):
        part = (low + high) / 2
        found = recurrence.raised(part, rng.permutation(len(flows.organisation)))
        priority = np.where(recurring, found[program], 0.0)
        priority = np.where(recurring, priority, _ad_hoc(recurring, organisation, priority, dice))
        behind = np.zeros(len(program), dtype=bool)
        behind[down[priority[up] < priority[down]]] = True
        off = float(behind.mean()) - INVERTED_JOBS
        if abs(off) < least:
            best, least = priority, abs(off)
        low, high = (low, part) if off > 0 else (part, high)
    return best


def _workflows(flows: Flows, rng: np.random.Generator) -> F8:
    fresh = STEP * rng.integers(10, HIGHEST // STEP - 9, size=len(flows.organisation))
    copies = rng.random(len(fresh)) < INHERITED
    pick = rng.random(len(fresh))
    out = fresh.astype(np.float64)
    order = np.argsort(flows.organisation, kind="stable")
    owner = flows.organisation[order]
    start = np.searchsorted(owner, owner, "left")
    for i, row in enumerate(order):
        if copies[row] and i > start[i]:
            out[row] = out[order[start[i] + int(pick[row] * (i - start[i]))]]
    return out


@dataclass(frozen=True, eq=False)
class Consumers:
    """Programs that read others, ``b`` of ``a``, in some order within their workflows."""

    a: I8
    b: I8
    priority: F8
    flow: I8
    ticket: F8
    above: F8

    def raised(self, part: float, order: I8) -> F8:
        """Raise so many consumers of some workflows above what they read.

        As many workflows, in `order`, as it takes until enough programs have a consumer above.
        """
        wanted = round(INVERTED_TEMPLATES * len(self.priority))
        may = np.unique(self.b[self.ticket[self.b] < part])
        may = may[np.lexsort((self.ticket[may], np.argsort(order)[self.flow[may]]))]
        above = self.priority.copy()
        np.maximum.at(above, self.b, self.priority[self.a])
        above += STEP * (1 + np.floor(self.above * 20))
        low, high = 0, len(may)
        while True:
            n = (low + high) // 2
            found = self.priority.copy()
            found[may[:n]] = above[may[:n]]
            if low >= high:
                return found
            got = len(np.unique(self.a[found[self.a] < found[self.b]]))
            low, high = (n + 1, high) if got < wanted else (low, n)


def _ad_hoc(recurring: Mask, organisation: I8, priority: F8, dice: F8) -> F8:
    """Give so many ad hoc jobs a priority above their queue's average recurring job."""
    n = int(organisation.max()) + 1
    total = np.bincount(organisation[recurring], priority[recurring], n)
    count = np.bincount(organisation[recurring], minlength=n)
    mean = np.where(count > 0, total / np.maximum(count, 1), HIGHEST / 2)[organisation]
    step = np.floor(mean / STEP)
    high = step + 1 + np.floor(dice[1] * np.maximum(HIGHEST / STEP - step, 1))
    low = np.maximum(1, np.floor(dice[1] * step))
    out: F8 = STEP * np.where(dice[0] < HIGH_AD_HOC, high, low)
    return out
