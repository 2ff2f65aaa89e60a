"""Runs of recurring programs over four weeks: start, end and reads of each.

Ad hoc jobs share two parts of it: the distribution of times over the day and the week (`hours`),
and the search for a program's last finished runs (`FinishedRuns`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from policies.wing.cosmos.workflows import WEEK_S, Workflows
from sim.base import maths
from sim.base.arrays import F8, I8, Mask, ranges
from sim.base.random import Stream, stream

QUIET, BUSY = 0.4, 8.0
"""Base rate at any hour, relative to the peak of the busy hours; and the narrowness of that peak,
which falls to e^-BUSY six hours from it. Calibrated on how often requests exceed 40 % of the
cluster, and on user priorities (docs/wing_workload.md)."""
BUSIEST_H = 10.0

WEEKEND = 0.7
"""Ad hoc jobs on a day of the weekend, relative to a weekday; not published."""
_DAY_S = 86_400.0


def daily_offset(period_s: F8, rng: Stream) -> F8:
    """Draw the start of workflows within their period, mostly in busy hours for daily ones."""
    hour = hours(len(period_s), rng)
    day = np.floor(rng.random(len(period_s)) * np.maximum(period_s / _DAY_S, 1.0))
    return (day * _DAY_S + hour * 3600.0) % period_s


def hours(n: int, rng: Stream) -> F8:
    """Draw hours of the day with density QUIET + e^(BUSY (cos(2π (h - busiest) / 24) - 1))."""
    grid = np.linspace(0.0, 24.0, 1441)
    middle = 0.5 * (grid[1:] + grid[:-1]) - BUSIEST_H
    angle = 2 * np.pi / 24.0 * middle + 0.5 * np.pi
    density = QUIET + maths.exp(BUSY * (maths.sin(angle) - 1.0))
    below = np.concatenate([[0.0], np.cumsum(density)])
    out: F8 = maths.interp(rng.random(n) * below[-1], below, grid)
    return out


def ad_hoc_times(n: int, weeks: int, rng: Stream) -> F8:
    """Draw n ascending times in `weeks` weeks from 0: more by day, and on weekdays."""
    weight = np.array([1.0, 1.0, 1.0, 1.0, 1.0, WEEKEND, WEEKEND])
    day = rng.choice(7, size=n, p=weight / weight.sum()) + 7 * rng.integers(weeks, size=n)
    return np.sort(day * _DAY_S + hours(n, rng) * 3600.0)


class FinishedRuns:
    """Runs of each program in order of their end, to look up the last ones before a time."""

    def __init__(self, program: I8, finish_s: F8, n_programs: int) -> None:
        self.order = np.lexsort((finish_s, program))
        self.finish_s = finish_s[self.order]
        self.first = np.searchsorted(program[self.order], np.arange(n_programs + 1))

    def last_before(self, program: I8, time_s: F8, back: I8) -> I8:
        """Return programs' last run that ended by a time, or `back` runs before; -1 for none."""
        low, high = self.first[program], self.first[program + 1]
        begin = low.copy()
        while True:  # all queries halve their range at once
            unresolved = low < high
            if not unresolved.any():
                break
            middle = (low + high) // 2
            is_finished = unresolved & (
                self.finish_s[np.minimum(middle, len(self.finish_s) - 1)] <= time_s
            )
            low = np.where(is_finished, middle + 1, low)
            high = np.where(unresolved & ~is_finished, middle, high)
        position = low - 1 - back
        return np.where(position >= begin, self.order[np.maximum(position, 0)], -1)


def distinct_edges(up: I8, down: I8, hard: Mask) -> tuple[I8, I8, Mask]:
    """Drop duplicate edges and those without a run (`up` < 0); sort by `down`, then `up`."""
    edges = np.flatnonzero(up >= 0)
    order = edges[np.lexsort((up[edges], down[edges]))]
    up, down = up[order], down[order]
    new = np.ones(len(up), dtype=bool)
    new[1:] = (up[1:] != up[:-1]) | (down[1:] != down[:-1])
    return up[new], down[new], hard[order][new]


BEGIN_S, END_S = -2 * WEEK_S, 2 * WEEK_S
"""The four weeks; the third begins at 0."""
MEDIAN_S, SPREAD = 800.0, 1.8
"""Run times of daily programs: median and spread; they grow with the period to the power 0.4."""
LONGEST = 0.3
"""Maximum run time as a share of the period; it is also at most eight hours."""
NOISE = (-1.6, 0.8)
"""Mean and spread, over programs, of the logarithm of the variation between a program's runs."""
DRIFT = 0.08
"""Spread of a program's change of run time from week to week."""
LATE = 0.2
"""Maximum delay of a workflow that waits for data, as a share of its period."""
LAG_S, MAX_LAG_S = 180.0, 840.0
"""Lag from the last input to the job that polls for it: mean and maximum (Table 1: 15 minutes)."""
MARGIN = (0.003, 1.6)
"""Margin from the planned end of inputs to a job that starts by the clock: median, as a share of
the period, and spread. Calibrated on user priorities alone (docs/wing_workload.md)."""


@dataclass(frozen=True, eq=False)
class Runs:
    """N runs, program by program, each program's in order."""

    program: I8
    submit_s: F8  # from the beginning of the third week
    duration_s: F8
    lag_s: F8  # from the last input to the submission of a job that polls
    up: I8  # rows that are read
    down: I8  # rows that read them
    # hard inputs: the job reads that program every time, and always as many runs of it. Its own
    # last run is never hard, as the program would never recover from a failure otherwise
    hard: Mask


def draw_runs(workflows: Workflows, seed: int) -> Runs:
    """Draw the runs of all programs in the four weeks, as if none ever waited for resources."""
    rng = stream(seed, "synth", "cosmos", "runs")
    period_s = workflows.period_h * 3600.0
    count = np.rint((END_S - BEGIN_S) / period_s).astype(np.int64)
    begin_s = BEGIN_S + daily_offset(period_s, rng)
    late_s = np.where(workflows.blind, 0.0, LATE * period_s)
    flow_first = np.cumsum(count) - count
    flow_row = np.repeat(np.arange(len(count)), count)
    number = np.arange(count.sum()) - flow_first[flow_row]
    base_s = begin_s[flow_row] + number * period_s[flow_row]
    base_s += late_s[flow_row] * rng.beta(2, 3, len(flow_row))

    n_runs = count[workflows.workflow]
    first = np.cumsum(n_runs) - n_runs
    program = np.repeat(np.arange(len(n_runs)), n_runs)
    base_run_s = base_s[
        flow_first[workflows.workflow][program] + np.arange(len(program)) - first[program]
    ]
    typical_s, spread = _typical(period_s[workflows.workflow], rng)
    duration_s = _durations(
        typical_s, spread, program, base_run_s, period_s[workflows.workflow], rng
    )
    lag_s = np.minimum(rng.exponential(LAG_S, len(program)), MAX_LAG_S)
    offset_s = _planned_starts(workflows, typical_s * maths.exp(1.5 * spread), period_s, rng)

    is_other = workflows.up != workflows.down
    edge = np.flatnonzero(is_other)
    reads = _reads(workflows, edge, first, n_runs, base_run_s, rng)
    submit_s = _submissions(
        workflows, base_run_s, offset_s, program, first, duration_s, lag_s, reads
    )
    up, down, read = _add_own_last_runs(workflows, reads, first, n_runs, base_run_s, rng)
    up, down, read = _replace_late_inputs(
        up, down, read, first, workflows.up, submit_s + duration_s, submit_s
    )
    hard = (workflows.optional[read] == 1.0) & is_other[read]
    cross = _cross_reads(workflows, program, submit_s, submit_s + duration_s, first, n_runs)
    up, down, hard = distinct_edges(
        *(np.concatenate(pair) for pair in zip((up, down, hard), cross, strict=True))
    )
    return Runs(program, submit_s, duration_s, lag_s, up, down, hard)


def _typical(period_s: F8, rng: Stream) -> tuple[F8, F8]:
    typical = (
        MEDIAN_S
        * maths.power(period_s / 86_400.0, 0.4)
        * maths.exp(SPREAD * rng.normal(size=len(period_s)))
    )
    spread = np.minimum(maths.exp(NOISE[0] + NOISE[1] * rng.normal(size=len(period_s))), 1.0)
    return np.clip(typical, 20.0, np.minimum(0.5 * LONGEST * period_s, 4 * 3600.0)), spread


def _durations(typical_s: F8, spread: F8, program: I8, base_s: F8, period_s: F8, rng: Stream) -> F8:
    week = np.clip((base_s - BEGIN_S) // WEEK_S, 0, 3).astype(np.int64)
    drift = np.cumsum(DRIFT * rng.normal(size=(len(typical_s), 4)), axis=1)
    noise = spread[program] * rng.normal(size=len(program)) + drift[program, week]
    max_s = np.minimum(LONGEST * period_s, 8 * 3600.0)[program]
    return np.clip(typical_s[program] * maths.exp(noise), 10.0, max_s)


def _planned_starts(workflows: Workflows, slow_s: F8, period_s: F8, rng: Stream) -> F8:
    """Return the start of programs after their workflow's, when their inputs should exist."""
    period = period_s[workflows.workflow]
    margin = MARGIN[0] * period * maths.exp(MARGIN[1] * rng.normal(size=len(period)))
    margin = np.clip(margin, 60.0, 0.5 * period)
    planned = np.zeros(len(period))
    inner = np.flatnonzero(workflows.up != workflows.down)
    order = inner[np.argsort(workflows.position[workflows.down[inner]], kind="stable")]
    bounds = np.searchsorted(
        workflows.position[workflows.down[order]], np.arange(1, workflows.position.max() + 2)
    )
    for begin, end in pairwise(bounds):
        rows = order[begin:end]
        down, up = workflows.down[rows], workflows.up[rows]
        np.maximum.at(planned, down, planned[up] + slow_s[up])
        later = np.unique(down)
        planned[later] += margin[later]
    return planned


def _reads(
    workflows: Workflows, edge: I8, first: I8, n_runs: I8, base_s: F8, rng: Stream
) -> tuple[I8, I8, I8]:
    """Return rows read, rows that read them, and the read of `workflows`; run by run."""
    count = n_runs[workflows.down[edge]]
    read = np.repeat(edge, count)
    number = ranges(np.zeros(len(edge), dtype=np.int64), count)
    up, down = first[workflows.up[read]] + number, first[workflows.down[read]] + number
    time_share = (base_s[down] - BEGIN_S) / (END_S - BEGIN_S)
    is_made = (time_share >= workflows.read_begin[read]) & (time_share < workflows.read_end[read])
    is_made &= rng.random(len(read)) < workflows.optional[read]
    return up[is_made], down[is_made], read[is_made]


def _submissions(
    workflows: Workflows,
    base_s: F8,
    offset_s: F8,
    program: I8,
    first: I8,
    duration_s: F8,
    lag_s: F8,
    reads: tuple[I8, I8, I8],
) -> F8:
    """Return the submission of each run: by the clock, or once its permanent inputs exist."""
    blind = workflows.blind[workflows.workflow]
    submit_s = base_s + np.where(blind, offset_s, 0.0)[program]
    up, down, read = reads
    waits = (workflows.optional[read] == 1.0) & ~blind[workflows.down[read]]
    up, down = up[waits], down[waits]
    position = workflows.position[program[down]]
    order = np.argsort(position, kind="stable")
    up, down, position = up[order], down[order], position[order]
    bounds = np.searchsorted(position, np.arange(1, int(workflows.position.max()) + 2))
    ready_s = np.full(len(submit_s), -np.inf)
    for begin, end in pairwise(bounds):
        rows = slice(begin, end)
        np.maximum.at(ready_s, down[rows], submit_s[up[rows]] + duration_s[up[rows]])
        ready_rows = np.unique(down[rows])
        submit_s[ready_rows] = np.maximum(
            submit_s[ready_rows], ready_s[ready_rows] + lag_s[ready_rows]
        )
    return submit_s


def _add_own_last_runs(
    workflows: Workflows, reads: tuple[I8, I8, I8], first: I8, n_runs: I8, base_s: F8, rng: Stream
) -> tuple[I8, I8, I8]:
    """Add the reads of a program's own last run."""
    own_reads = np.flatnonzero(workflows.up == workflows.down)
    up, down, read = _reads(workflows, own_reads, first, n_runs, base_s, rng)
    later = up > first[workflows.up[read]]
    up, down, read = up[later] - 1, down[later], read[later]
    pairs = tuple(np.concatenate(pair) for pair in zip(reads, (up, down, read), strict=True))
    return pairs[0], pairs[1], pairs[2]


def _replace_late_inputs(
    up: I8, down: I8, read: I8, first: I8, program_up: I8, finish_s: F8, submit_s: F8
) -> tuple[I8, I8, I8]:
    """Replace inputs that are not finished in time by the run before, or by none."""
    is_early = finish_s[up] > submit_s[down]
    up = np.where(is_early & (up > first[program_up[read]]), up - 1, up)
    is_finished = finish_s[up] <= submit_s[down]
    return up[is_finished], down[is_finished], read[is_finished]


def _cross_reads(
    workflows: Workflows, program: I8, submit_s: F8, finish_s: F8, first: I8, n_runs: I8
) -> tuple[I8, I8, Mask]:
    """Return rows of other workflows' runs, rows that read them, and that these are hard."""
    count = n_runs[workflows.cross_down] * workflows.window
    read = np.repeat(np.arange(len(count)), count)
    number = ranges(np.zeros(len(count), dtype=np.int64), count)
    down = first[workflows.cross_down[read]] + number // workflows.window[read]
    finished = FinishedRuns(program, finish_s, len(workflows.workflow))
    back = number % workflows.window[read]
    return (
        finished.last_before(workflows.cross_up[read], submit_s[down], back),
        down,
        np.ones(len(read), dtype=bool),
    )
