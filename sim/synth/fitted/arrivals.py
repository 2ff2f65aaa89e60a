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
from sim.synth.fitted.tables import Arrivals

HOUR_S, DAY_S = 3_600.0, 86_400.0
SCALES = ((28 * DAY_S, 7 * DAY_S, 7 * DAY_S), (3 * DAY_S, DAY_S, DAY_S), (HOUR_S, HOUR_S, HOUR_S))
"""Of a workload as long as this at least: how long blocks are, and the clock that they keep.

The reasons are in ``docs/decisions/0027-fitted-workloads.md``."""


def fit_arrivals(submit_s: F8) -> Arrivals | None:
    """Keep when jobs came; nothing of jobs that all came within an hour."""
    span_s = float(submit_s[-1] - submit_s[0])
    for least_s, block_s, clock_s in SCALES:
        if span_s >= least_s:
            return Arrivals(block_s, clock_s, np.round(np.diff(submit_s), 6))
    return None


def draw_arrivals(arrivals: Arrivals, n: int, seed: int) -> F8:
    """Draw when `n` jobs come, ascending from 0; of more, the first are the same."""
    return draw_rows(arrivals, n, seed)[1]


def draw_rows(arrivals: Arrivals, n: int, seed: int, near: float = np.inf) -> tuple[I8, F8]:
    """Draw when `n` jobs come, and which of those that were fitted came then, (n,) each.

    Windows are moved by at most about `near` turns of the clock from when they were.
    """
    came_s = np.concatenate([[0.0], np.cumsum(arrivals.interval_s)])
    n_turns = 16
    while True:
        first, last, shift_s = _blocks(arrivals, came_s, n_turns, seed, near)
        if (last - first).sum() >= n:
            break
        n_turns *= 2
    row = ranges(first, last)
    at_s = (came_s[row] + np.repeat(shift_s, last - first))[:n]
    return row[:n], np.round(at_s - at_s[0], 6)


def _blocks(
    arrivals: Arrivals, came_s: F8, n_turns: int, seed: int, near: float
) -> tuple[I8, I8, F8]:
    """Choose a window for each block of some turns of the clock, counted from the first job.

    Each window that begins whole turns sooner or later comes once before any comes again, in random
    order (a balanced bootstrap), so that a long draw differs by no luck from the workload. With
    `near` windows keep about their places, and with them the rise and fall of months (a local block
    bootstrap: Paparoditis and Politis, C. R. Acad. Sci. Paris 335, 2002). Returns the first job in
    each window, the first after it, and its delay.
    """
    block_s, clock_s = arrivals.block_s, arrivals.clock_s
    phases_s = np.arange(round(clock_s / block_s)) * block_s
    from_s = np.empty((n_turns, len(phases_s)))
    for p, phase_s in enumerate(phases_s.tolist()):
        n = max(int((came_s[-1] - block_s - phase_s) // clock_s) + 1, 1)
        random = stream(seed, "synth", "alibaba2018", "blocks", str(p))
        turns = [
            random.permutation(n)
            if near == np.inf
            else np.argsort(np.arange(n) + near * random.random(n), kind="stable")
            for _ in range(-(-n_turns // n))
        ]
        from_s[:, p] = phase_s + np.concatenate(turns)[:n_turns] * clock_s
    to_s = np.arange(n_turns)[:, None] * clock_s + phases_s
    first = np.searchsorted(came_s, from_s.ravel(), side="left")
    last = np.searchsorted(came_s, from_s.ravel() + block_s, side="left")
    return first, last, (to_s - from_s).ravel()
