"""Priorities of jobs: users mostly keep the priority of the script from which they started."""

from __future__ import annotations

import numpy as np

from policies.wing.cosmos.workflows import Workflows
from sim.base import maths
from sim.base.arrays import F8, I8, Mask, ranks
from sim.base.random import Stream, stream
from sim.published import numbers

_PAPER = numbers("wing")["priorities"]
HIGH_AD_HOC, INVERTED_TEMPLATES = _PAPER["adhoc_above"], _PAPER["templates_inverted"]
INVERTED_JOBS = _PAPER["jobs_on_lower"]


INHERITED = 0.7
"""Share of workflows with the priority of an earlier one of the organisation; an assumption
(§2.2)."""
SLOW = 1.0
"""Preference for slow workflows among the programs that are raised above their inputs: these have
few jobs for their number of programs."""
PARTS = (1.0, 0.75, 0.5, 0.35, 0.25, 0.18, 0.12)
"""Tried shares of programs that may be raised: the smaller, the more workflows are affected."""
HIGHEST = 1000
STEP = 10
"""Priorities are whole multiples of the step, from one step to the highest."""


def draw_priorities(
    workflows: Workflows, program: I8, organisation: I8, up: I8, down: I8, submit_s: F8, seed: int
) -> F8:
    """Draw a priority for each job; see `policies.wing.cosmos.month.Month`.

    A program gets the highest priority of its consumers, if that is above its workflow's; then some
    consumers are raised above their inputs.
    """
    rng = stream(seed, "synth", "cosmos", "priorities")
    program_priority = _workflow_priorities(workflows, rng)[workflows.workflow]
    recurring = program >= 0
    is_recurring_edge = recurring[up] & recurring[down]
    pair = np.unique(
        program[up[is_recurring_edge]] * len(program_priority) + program[down[is_recurring_edge]]
    )
    producer, consumer = pair // len(program_priority), pair % len(program_priority)
    producer, consumer = producer[producer != consumer], consumer[producer != consumer]
    lifted = program_priority.copy()
    while True:
        previous = lifted.copy()
        np.maximum.at(lifted, producer, lifted[consumer])
        if (lifted == previous).all():
            break
    ticket = rng.random(len(program_priority))
    above = lifted.copy()  # priority of a program that is raised: above all that it reads
    np.maximum.at(above, consumer, lifted[producer])
    above += STEP * (1 + np.floor(rng.random(len(program_priority)) * 20))
    dice = rng.random((2, len(program)))
    best, min_error = np.zeros(0), np.inf
    for part in PARTS:
        lateness = SLOW * maths.log(168.0 / workflows.period_h) + rng.random(
            len(workflows.organisation)
        )
        turn = ranks(lateness)[workflows.workflow]
        candidates = np.unique(consumer[ticket[consumer] < part])
        candidates = candidates[np.lexsort((ticket[candidates], turn[candidates]))]
        raised = _raise_programs(candidates, above, lifted, producer, consumer)
        priority = np.where(recurring, raised[program], 0.0)
        priority = np.where(
            recurring, priority, _ad_hoc_priorities(recurring, organisation, priority, dice)
        )
        depends_on_lower = np.zeros(len(program), dtype=bool)
        depends_on_lower[down[priority[up] < priority[down]]] = True
        inverted = len(np.unique(producer[raised[producer] < raised[consumer]])) / len(
            program_priority
        )
        error = abs(depends_on_lower.mean() - INVERTED_JOBS) + abs(inverted - INVERTED_TEMPLATES)
        if error < min_error:
            best, min_error = priority, float(error)
    return best


def _workflow_priorities(workflows: Workflows, rng: Stream) -> F8:
    new_priority = STEP * rng.integers(10, HIGHEST // STEP - 9, size=len(workflows.organisation))
    inherits = rng.random(len(new_priority)) < INHERITED
    pick = rng.random(len(new_priority))
    priority = new_priority.astype(np.float64)
    order = np.argsort(workflows.organisation, kind="stable")
    owner = workflows.organisation[order]
    start = np.searchsorted(owner, owner, "left")
    for i, row in enumerate(order):
        if inherits[row] and i > start[i]:
            priority[row] = priority[order[start[i] + int(pick[row] * (i - start[i]))]]
    return priority


def _raise_programs(candidates: I8, above: F8, priority: F8, producer: I8, consumer: I8) -> F8:
    """Raise the first of `candidates` until enough programs have a consumer above themselves."""
    n_target = round(INVERTED_TEMPLATES * len(priority))
    low, high = 0, len(candidates)
    while True:
        n = (low + high) // 2
        raised = priority.copy()
        raised[candidates[:n]] = above[candidates[:n]]
        if low >= high:
            return raised
        n_raised = len(np.unique(producer[raised[producer] < raised[consumer]]))
        low, high = (n + 1, high) if n_raised < n_target else (low, n)


def _ad_hoc_priorities(recurring: Mask, organisation: I8, priority: F8, dice: F8) -> F8:
    """Draw priorities of ad hoc jobs, `HIGH_AD_HOC` of them above their queue's recurring mean."""
    n = int(organisation.max()) + 1
    total = np.bincount(organisation[recurring], priority[recurring], n)
    count = np.bincount(organisation[recurring], minlength=n)
    mean = np.where(count > 0, total / np.maximum(count, 1), HIGHEST / 2)[organisation]
    step = np.floor(mean / STEP)
    high = step + 1 + np.floor(dice[1] * np.maximum(HIGHEST / STEP - step, 1))
    low = np.maximum(1, np.floor(dice[1] * step))
    ad_hoc_priority: F8 = STEP * np.where(dice[0] < HIGH_AD_HOC, high, low)
    return ad_hoc_priority
