"""When jobs come: blocks of the times at which those of a workload came.

A moving-block bootstrap (Künsch, *The jackknife and the bootstrap for general stationary
observations*, Annals of Statistics 17, 1989) of times, not of intervals: a block holds what came in
a window of fixed length, so that rates, bursts and lulls shorter than it are kept as they were.
Blocks keep their time of the week, of the day, or their minute, as far as a workload has many.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8, ranges
from sim.base.random import stream
from sim.synth.alibaba2018.tables import Arrivals

HOUR_S, DAY_S = 3_600.0, 86_400.0
SCALES = (
    (28 * DAY_S, 7 * DAY_S, 7 * DAY_S),
    (3 * DAY_S, 3 * HOUR_S, DAY_S),
    (HOUR_S, HOUR_S, HOUR_S),
)
"""Of a workload as long as this at least: how long blocks are, and the clock that they keep.

How they were chosen is told in ``docs/alibaba.md``."""


def fit_arrivals(submit_s: F8) -> Arrivals | None:
    """Keep when jobs came; nothing of jobs that all came within an hour."""
    span_s = float(submit_s[-1] - submit_s[0])
    for least_s, block_s, clock_s in SCALES:
        if span_s >= least_s:
            return Arrivals(np.round(np.diff(submit_s), 6), block_s, clock_s)
    return None


def draw_arrivals(arrivals: Arrivals, n: int, seed: int) -> F8:
    """Draw when `n` jobs come, ascending from 0; of more, the first are the same."""
    came_s = np.concatenate([[0.0], np.cumsum(arrivals.interval_s)])
    n_blocks = 64
    while True:
        uniform = stream(seed, "synth", "alibaba2018", "blocks").random(n_blocks)
        first, last, shift_s = _blocks(arrivals, came_s, uniform)
        if (last - first).sum() >= n:
            break
        n_blocks *= 2
    row = ranges(first, last)
    submit_s: F8 = (came_s[row] + np.repeat(shift_s, last - first))[:n]
    submit_s -= submit_s[0]
    return submit_s


def _blocks(arrivals: Arrivals, came_s: F8, uniform: F8) -> tuple[I8, I8, F8]:
    """Choose a window for each block: the first job in it, the first after it, and its delay.

    Of the windows that begin whole turns of the clock sooner or later, counted from the first job.
    """
    block_s, clock_s = arrivals.block_s, arrivals.clock_s
    to_s = np.arange(len(uniform)) * block_s
    phase_s = to_s % clock_s
    n_turns = np.maximum(np.floor((came_s[-1] - block_s - phase_s) / clock_s) + 1, 1)
    from_s = phase_s + np.floor(uniform * n_turns) * clock_s
    first = np.searchsorted(came_s, from_s, side="left")
    last = np.searchsorted(came_s, from_s + block_s, side="left")
    return first, last, to_s - from_s
