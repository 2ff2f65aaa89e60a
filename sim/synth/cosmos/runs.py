"""Runs of recurring programs over four weeks: when each starts and ends, and what it reads.

With when in the day and the week things happen (`hours`), and the last runs of a program that are
there (`Finished`), as ad hoc jobs have them too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8, Mask, ranges
from sim.base.random import Stream, stream
from sim.synth.cosmos.workflows import WEEK_S, Flows

QUIET, BUSY = 0.4, 8.0
"""Of the busiest hour, what happens at any; and how narrow the busy hours are: six hours away from
the busiest e^-BUSY of the rest happens. Calibrated on how often requests exceed 40 % of the
cluster, and on user priorities (docs/wing_workload.md)."""
BUSIEST_H = 10.0

WEEKEND = 0.7
"""Ad hoc jobs on a day of the weekend, of those on a weekday; not published."""
_DAY_S = 86_400.0


def daily_offset(period_s: F8, rng: Stream) -> F8:
    """Draw when within their period workflows start, most of the daily ones in busy hours."""
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
    """Draw times in so many weeks from 0, ascending: more by day, and on weekdays."""
    weight = np.array([1.0, 1.0, 1.0, 1.0, 1.0, WEEKEND, WEEKEND])
    day = rng.choice(7, size=n, p=weight / weight.sum()) + 7 * rng.integers(weeks, size=n)
    return np.sort(day * _DAY_S + hours(n, rng) * 3600.0)


class Finished:
    """The runs of each program in the order in which they end."""

    def __init__(self, program: I8, finish_s: F8, n_programs: int) -> None:
        self.order = np.lexsort((finish_s, program))
        self.finish_s = finish_s[self.order]
        self.first = np.searchsorted(program[self.order], np.arange(n_programs + 1))

    def last(self, program: I8, by_s: F8, back: I8) -> I8:
        """Return the run of each program that ended as the last by a time, or `back` before it."""
        low, high = self.first[program], self.first[program + 1]
        begin = low.copy()
        while True:  # all queries halve their range at once
            open_ = low < high
            if not open_.any():
                break
            middle = (low + high) // 2
            there = open_ & (self.finish_s[np.minimum(middle, len(self.finish_s) - 1)] <= by_s)
            low = np.where(there, middle + 1, low)
            high = np.where(open_ & ~there, middle, high)
        at = low - 1 - back
        return np.where(at >= begin, self.order[np.maximum(at, 0)], -1)


def distinct(up: I8, down: I8, hard: Mask) -> tuple[I8, I8, Mask]:
    """Return the pairs that name a run, each once, by `down` and `up`."""
    known = np.flatnonzero(up >= 0)
    order = known[np.lexsort((up[known], down[known]))]
    up, down = up[order], down[order]
    new = np.ones(len(up), dtype=bool)
    new[1:] = (up[1:] != up[:-1]) | (down[1:] != down[:-1])
    return up[new], down[new], hard[order][new]


BEGIN_S, END_S = -2 * WEEK_S, 2 * WEEK_S
"""The four weeks; 0 is where the third begins."""
MEDIAN_S, SPREAD = 800.0, 1.8
"""Of the run times of daily programs; longer ones have longer runs, by the power 0.4."""
LONGEST = 0.3
"""Run time at most, of the period; and eight hours."""
NOISE = (-1.6, 0.8)
"""Mean and spread of the logarithm of how much a program's runs differ."""
DRIFT = 0.08
"""How much a program's run time changes from week to week."""
LATE = 0.2
"""How late a workflow that waits for data may start, of its period."""
LAG_S, MOST_LAG_S = 180.0, 840.0
"""From the last input to the job that polls for it: mean, and most (Table 1: 15 minutes)."""
MARGIN = (0.003, 1.6)
"""From the planned end of inputs to a clocked job: median, of the period, and spread. Calibrated
on user priorities alone (docs/wing_workload.md)."""


@dataclass(frozen=True, eq=False)
class Runs:
    """N runs, program by program, each program's by number."""

    program: I8  # which program ran
    submit_s: F8  # when, from the beginning of the third week, and for how long
    duration_s: F8
    lag_s: F8  # from the last input to the submission of a job that polls
    up: I8  # rows that were read, and that read them
    down: I8
    # whether the job can't do without: it reads that program every time, one run or as many as
    # always. Its own last run it can do without, as it would never recover otherwise
    hard: Mask


def draw_runs(flows: Flows, seed: int) -> Runs:
    """Draw the runs of all programs in the four weeks, as if none ever waited for resources."""
    rng = stream(seed, "synth", "cosmos", "runs")
    period_s = flows.period_h * 3600.0
    count = np.rint((END_S - BEGIN_S) / period_s).astype(np.int64)
    begin_s = BEGIN_S + daily_offset(period_s, rng)
    late_s = np.where(flows.blind, 0.0, LATE * period_s)
    flow_first = np.cumsum(count) - count
    flow_row = np.repeat(np.arange(len(count)), count)
    number = np.arange(count.sum()) - flow_first[flow_row]
    base_s = begin_s[flow_row] + number * period_s[flow_row]
    base_s += late_s[flow_row] * rng.beta(2, 3, len(flow_row))

    n_runs = count[flows.flow]
    first = np.cumsum(n_runs) - n_runs
    program = np.repeat(np.arange(len(n_runs)), n_runs)
    base = base_s[flow_first[flows.flow][program] + np.arange(len(program)) - first[program]]
    typical_s, spread = _typical(period_s[flows.flow], rng)
    duration = _durations(typical_s, spread, program, base, period_s[flows.flow], rng)
    lag_s = np.minimum(rng.exponential(LAG_S, len(program)), MOST_LAG_S)
    offset_s = _planned(flows, typical_s * maths.exp(1.5 * spread), period_s, rng)

    made = flows.up != flows.down
    edge = np.flatnonzero(made)
    reads = _reads(flows, edge, first, n_runs, base, rng)
    submit = _submissions(flows, base, offset_s, program, first, duration, lag_s, reads)
    up, down, of = _with_last_runs(flows, reads, first, n_runs, base, rng)
    up, down, of = _there(up, down, of, first, flows.up, submit + duration, submit)
    hard = (flows.optional[of] == 1.0) & made[of]
    far = _from_elsewhere(flows, program, submit, submit + duration, first, n_runs)
    up, down, hard = distinct(
        *(np.concatenate(pair) for pair in zip((up, down, hard), far, strict=True))
    )
    return Runs(program, submit, duration, lag_s, up, down, hard)


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
    most = np.minimum(LONGEST * period_s, 8 * 3600.0)[program]
    return np.clip(typical_s[program] * maths.exp(noise), 10.0, most)


def _planned(flows: Flows, slow_s: F8, period_s: F8, rng: Stream) -> F8:
    """Return when clocked programs start after their workflow: once inputs should be there."""
    period = period_s[flows.flow]
    margin = MARGIN[0] * period * maths.exp(MARGIN[1] * rng.normal(size=len(period)))
    margin = np.clip(margin, 60.0, 0.5 * period)
    planned = np.zeros(len(period))
    inner = np.flatnonzero(flows.up != flows.down)
    order = inner[np.argsort(flows.place[flows.down[inner]], kind="stable")]
    bounds = np.searchsorted(flows.place[flows.down[order]], np.arange(1, flows.place.max() + 2))
    for begin, end in pairwise(bounds):
        rows = order[begin:end]
        down, up = flows.down[rows], flows.up[rows]
        np.maximum.at(planned, down, planned[up] + slow_s[up])
        later = np.unique(down)
        planned[later] += margin[later]
    return planned


def _reads(
    flows: Flows, edge: I8, first: I8, n_runs: I8, base_s: F8, rng: Stream
) -> tuple[I8, I8, I8]:
    """Return rows read, rows that read, and the read of `flows` each is of; run for run."""
    count = n_runs[flows.down[edge]]
    of = np.repeat(edge, count)
    number = ranges(np.zeros(len(edge), dtype=np.int64), count)
    up, down = first[flows.up[of]] + number, first[flows.down[of]] + number
    part = (base_s[down] - BEGIN_S) / (END_S - BEGIN_S)
    ok = (part >= flows.born[of]) & (part < flows.dies[of])
    ok &= rng.random(len(of)) < flows.optional[of]
    return up[ok], down[ok], of[ok]


def _submissions(
    flows: Flows,
    base_s: F8,
    offset_s: F8,
    program: I8,
    first: I8,
    duration_s: F8,
    lag_s: F8,
    reads: tuple[I8, I8, I8],
) -> F8:
    """Return when each run is submitted: by the clock, or once what it always reads is there."""
    blind = flows.blind[flows.flow]
    submit = base_s + np.where(blind, offset_s, 0.0)[program]
    up, down, of = reads
    waits = (flows.optional[of] == 1.0) & ~blind[flows.down[of]]
    up, down = up[waits], down[waits]
    place = flows.place[program[down]]
    order = np.argsort(place, kind="stable")
    up, down, place = up[order], down[order], place[order]
    bounds = np.searchsorted(place, np.arange(1, int(flows.place.max()) + 2))
    ready = np.full(len(submit), -np.inf)
    for begin, end in pairwise(bounds):
        rows = slice(begin, end)
        np.maximum.at(ready, down[rows], submit[up[rows]] + duration_s[up[rows]])
        here = np.unique(down[rows])
        submit[here] = np.maximum(submit[here], ready[here] + lag_s[here])
    return submit


def _with_last_runs(
    flows: Flows, reads: tuple[I8, I8, I8], first: I8, n_runs: I8, base_s: F8, rng: Stream
) -> tuple[I8, I8, I8]:
    """Add to the reads those of a program's own last run."""
    itself = np.flatnonzero(flows.up == flows.down)
    up, down, of = _reads(flows, itself, first, n_runs, base_s, rng)
    later = up > first[flows.up[of]]
    up, down, of = up[later] - 1, down[later], of[later]
    out = tuple(np.concatenate(pair) for pair in zip(reads, (up, down, of), strict=True))
    return out[0], out[1], out[2]


def _there(
    up: I8, down: I8, of: I8, first: I8, program_up: I8, finish_s: F8, submit_s: F8
) -> tuple[I8, I8, I8]:
    """Let a run that comes before its input is there read the run before that, or none."""
    early = finish_s[up] > submit_s[down]
    up = np.where(early & (up > first[program_up[of]]), up - 1, up)
    ok = finish_s[up] <= submit_s[down]
    return up[ok], down[ok], of[ok]


def _from_elsewhere(
    flows: Flows, program: I8, submit_s: F8, finish_s: F8, first: I8, n_runs: I8
) -> tuple[I8, I8, Mask]:
    """Return rows of other workflows' runs, rows that read them, and that they must be there."""
    count = n_runs[flows.into] * flows.window
    of = np.repeat(np.arange(len(count)), count)
    at = ranges(np.zeros(len(count), dtype=np.int64), count)
    down = first[flows.into[of]] + at // flows.window[of]
    done = Finished(program, finish_s, len(flows.flow))
    back = at % flows.window[of]
    return done.last(flows.from_[of], submit_s[down], back), down, np.ones(len(of), dtype=bool)
