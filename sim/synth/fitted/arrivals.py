"""Arrivals of jobs: a block bootstrap of a workload's arrival times.

A moving-block bootstrap (Künsch, *The jackknife and the bootstrap for general stationary
observations*, Annals of Statistics 17, 1989) of times, not of intervals: a block holds the arrivals
in a window of fixed length, so that rates, bursts and lulls shorter than it are preserved. Blocks
keep their time of the week, of the day, or their minute, if a workload is long enough.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8, ranges
from sim.base.random import stream
from sim.synth.fitted.tables import Arrivals

HOUR_S, DAY_S = 3_600.0, 86_400.0
SCALES = ((28 * DAY_S, 7 * DAY_S, 7 * DAY_S), (3 * DAY_S, DAY_S, DAY_S), (HOUR_S, HOUR_S, HOUR_S))
"""Minimum length of a workload, with the length of its blocks and the clock that they keep.

The reasons are in ``docs/decisions/0027-fitted-workloads.md``."""


def fit_arrivals(submit_s: F8) -> Arrivals | None:
    """Return the arrivals of a workload; None if it is shorter than an hour."""
    span_s = float(submit_s[-1] - submit_s[0])
    for min_span_s, block_s, clock_s in SCALES:
        if span_s >= min_span_s:
            return Arrivals(block_s, clock_s, np.round(np.diff(submit_s), 6))
    return None


def draw_arrivals(arrivals: Arrivals, n: int, seed: int) -> F8:
    """Draw the arrivals of `n` jobs, ascending from 0; a longer draw begins with the same ones."""
    return draw_rows(arrivals, n, seed)[1]


def draw_rows(arrivals: Arrivals, n: int, seed: int, near: float = np.inf) -> tuple[I8, F8]:
    """Draw the rows of `n` jobs of the fitted workload, and their arrival times, (n,) each.

    Windows are moved by at most about `near` turns of the clock from their original time.
    """
    arrival_s = np.concatenate([[0.0], np.cumsum(arrivals.interval_s)])
    n_turns = 16
    while True:
        first, last, shift_s = _blocks(arrivals, arrival_s, n_turns, seed, near)
        if (last - first).sum() >= n:
            break
        n_turns *= 2
    row = ranges(first, last)
    shifted_s = (arrival_s[row] + np.repeat(shift_s, last - first))[:n]
    return row[:n], np.round(shifted_s - shifted_s[0], 6)


def _blocks(
    arrivals: Arrivals, arrival_s: F8, n_turns: int, seed: int, near: float
) -> tuple[I8, I8, F8]:
    """Choose a window for each block of `n_turns` turns of the clock, counted from the first job.

    The candidates begin whole turns of the clock sooner or later. Each is used once before any is
    repeated, in random order (a balanced bootstrap), so that a long draw does not differ from the
    workload by chance. With `near` windows stay near their original time, and with them the rise
    and fall over months (a local block bootstrap: Paparoditis and Politis, C. R. Acad. Sci. Paris
    335, 2002). Returns the first job in each window, the first after it, and its delay.
    """
    block_s, clock_s = arrivals.block_s, arrivals.clock_s
    phases_s = np.arange(round(clock_s / block_s)) * block_s
    from_s = np.empty((n_turns, len(phases_s)))
    for p, phase_s in enumerate(phases_s.tolist()):
        n = max(int((arrival_s[-1] - block_s - phase_s) // clock_s) + 1, 1)
        random = stream(seed, "synth", "alibaba2018", "blocks", str(p))
        turns = [
            random.permutation(n)
            if near == np.inf
            else np.argsort(np.arange(n) + near * random.random(n), kind="stable")
            for _ in range(-(-n_turns // n))
        ]
        from_s[:, p] = phase_s + np.concatenate(turns)[:n_turns] * clock_s
    to_s = np.arange(n_turns)[:, None] * clock_s + phases_s
    first = np.searchsorted(arrival_s, from_s.ravel(), side="left")
    last = np.searchsorted(arrival_s, from_s.ravel() + block_s, side="left")
    return first, last, (to_s - from_s).ravel()
