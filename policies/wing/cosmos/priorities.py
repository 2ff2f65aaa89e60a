"""Priorities of jobs: users mostly keep the priority of the script from which they started."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.wing.cosmos.workflows import WEEK_S, Workflows
from sim.base import maths
from sim.base.arrays import F8, I8, Mask, ranks
from sim.base.random import Stream, stream
from sim.published import numbers

_PAPER = numbers("wing")["priorities"]
_IMPORTANT = numbers("wing")["important"]
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


TUNINGS = 4
"""Times that priorities of important programs are set to a rank among those of the others, which
they change."""


@dataclass(frozen=True, eq=False)
class Important:
    """I programs whose jobs are of most value, and where their priorities rank."""

    program: I8
    organisation: I8
    rank: F8
    """Wanted rank of their priority among the jobs of their queue, from 0 to 1."""


_NONE = Important(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))


def draw_priorities(
    workflows: Workflows,
    program: I8,
    organisation: I8,
    up: I8,
    down: I8,
    submit_s: F8,
    seed: int,
    value: F8 | None = None,
) -> F8:
    """Draw a priority for each job; see `policies.wing.cosmos.month.Month`.

    A program gets the highest priority of its consumers, if that is above its workflow's; then some
    consumers are raised above their inputs. With the aggregate `value` of jobs, those of important
    programs rank as §4.3 has it (`draw_important`), and neither rise.
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
    ticket = rng.random(len(program_priority))
    steps = STEP * (1 + np.floor(rng.random(len(program_priority)) * 20))
    dice = rng.random((2, len(program)))
    in_week = (submit_s >= 0) & (submit_s < WEEK_S)
    important, fixed = _NONE, np.zeros(len(program_priority), dtype=bool)
    if value is not None:
        readers = np.bincount(program[up[recurring[up]]], minlength=len(program_priority))
        important = draw_important(
            workflows, value[in_week], program[in_week], organisation[in_week], readers, seed
        )
        fixed[important.program] = True

    def job_priorities(by_program: F8) -> F8:
        priority = np.where(recurring, by_program[program], 0.0)
        return np.where(
            recurring, priority, _ad_hoc_priorities(recurring, organisation, priority, dice)
        )

    def tune(by_program: F8) -> None:
        by_program[important.program] = _at_rank(
            important, job_priorities(by_program)[in_week], organisation[in_week]
        )

    lifted = _lift(program_priority, producer, consumer, fixed)
    n_tunings = TUNINGS if value is not None else 0
    for _ in range(n_tunings):
        tune(lifted)
        lifted = _lift(np.where(fixed, lifted, program_priority), producer, consumer, fixed)
    above = lifted.copy()  # priority of a program that is raised: above all that it reads
    np.maximum.at(above, consumer, lifted[producer])
    above += steps
    best, min_error = np.zeros(0), np.inf
    for part in PARTS:
        lateness = SLOW * maths.log(168.0 / workflows.period_h) + rng.random(
            len(workflows.organisation)
        )
        turn = ranks(lateness)[workflows.workflow]
        candidates = np.unique(consumer[(ticket[consumer] < part) & ~fixed[consumer]])
        candidates = candidates[np.lexsort((ticket[candidates], turn[candidates]))]
        raised = _raise_programs(candidates, above, lifted, producer, consumer)
        for _ in range(n_tunings):
            tune(raised)
        priority = job_priorities(raised)
        depends_on_lower = np.zeros(len(program), dtype=bool)
        depends_on_lower[down[priority[up] < priority[down]]] = True
        inverted = len(np.unique(producer[raised[producer] < raised[consumer]])) / len(
            program_priority
        )
        error = abs(depends_on_lower.mean() - INVERTED_JOBS) + abs(inverted - INVERTED_TEMPLATES)
        if error < min_error:
            best, min_error = priority, float(error)
    return best


def draw_important(
    workflows: Workflows, value: F8, program: I8, organisation: I8, readers: I8, seed: int
) -> Important:
    """Draw where priorities of the most valued programs rank, from the jobs of a week (§4.3).

    Programs are important whose jobs are, in the mean, among the share ``top`` of all by value.
    Of each six, four have a priority that ranks in their queue as their value does; one, of those
    with the least value, up to ``above`` higher; and one ``below`` lower, of those that the fewest
    jobs read, as few jobs depend on one of lower priority.
    """
    n = len(workflows.workflow)
    recurring = program >= 0
    runs = np.bincount(program[recurring], minlength=n)

    def mean_rank(group: I8) -> F8:
        rank = group_ranks(value, group)[recurring]
        return np.bincount(program[recurring], rank, n) / np.maximum(runs, 1)

    among_all, in_queue = mean_rank(np.zeros(len(value), dtype=np.int64)), mean_rank(organisation)
    rows = np.flatnonzero((runs > 0) & (among_all >= 1 - _IMPORTANT["top"]))
    rng = stream(seed, "synth", "cosmos", "important")
    ticket, excess = rng.random((2, len(rows)))
    n_each = len(rows) / _IMPORTANT["templates"]
    rank = in_queue[rows]
    lower = np.zeros(len(rows), dtype=bool)
    lower[np.lexsort((ticket, readers[rows]))[: round(n_each * _IMPORTANT["n_below"])]] = True
    higher = np.zeros(len(rows), dtype=bool)
    by_rank = np.flatnonzero(~lower)[np.argsort(rank[~lower], kind="stable")]
    higher[by_rank[: round(n_each * _IMPORTANT["n_above"])]] = True
    low, high = _IMPORTANT["within"], _IMPORTANT["above"]
    rank = rank + np.where(higher, low + (high - low) * excess, 0.0)
    rank -= np.where(lower, _IMPORTANT["below"], 0.0)
    return Important(
        rows, workflows.organisation[workflows.workflow[rows]], np.clip(rank, 0.0, 1.0)
    )


def group_ranks(values: F8, group: I8) -> F8:
    """Rank values within their group from 0 to 1; equal ones share the mean of their ranks."""
    order = np.lexsort((values, group))
    sorted_values, sorted_group = values[order], group[order]
    is_first = np.ones(len(values), dtype=bool)
    is_first[1:] = (sorted_values[1:] != sorted_values[:-1]) | (
        sorted_group[1:] != sorted_group[:-1]
    )
    tie = np.cumsum(is_first) - 1
    begin = np.append(np.flatnonzero(is_first), len(values))
    middle = (begin[tie] + begin[tie + 1]) / 2
    middle -= np.searchsorted(sorted_group, sorted_group)
    rank = np.empty(len(values))
    rank[order] = middle / np.bincount(group)[sorted_group]
    return rank


def _at_rank(important: Important, priority: F8, organisation: I8) -> F8:
    """Return the priority whose rank in the queue is nearest to each important program's."""
    level = np.rint(priority / STEP).astype(np.int64)
    n_levels = int(level.max(initial=1)) + 1
    result = np.zeros(len(important.program))
    for owner in np.unique(important.organisation):
        count = np.bincount(level[organisation == owner], minlength=n_levels)
        middle = (np.cumsum(count) - count / 2) / max(count.sum(), 1)
        rows = np.flatnonzero(important.organisation == owner)
        distance = np.abs(middle[1:, None] - important.rank[rows])
        result[rows] = STEP * (1 + distance.argmin(axis=0))
    return result


def _lift(priority: F8, producer: I8, consumer: I8, fixed: Mask) -> F8:
    """Lift each program to the highest priority of its consumers, but those that are `fixed`."""
    lifted = priority.copy()
    while True:
        previous = lifted.copy()
        np.maximum.at(lifted, producer, lifted[consumer])
        lifted = np.where(fixed, priority, lifted)
        if (lifted == previous).all():
            return lifted


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
