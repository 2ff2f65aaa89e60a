"""Jobs that come back at a steady interval (Tian et al., SoCC 2019, §6.2)."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8

PERIODS_S = {"15 min": 900.0, "1 h": 3_600.0, "1 day": 86_400.0}
"""The three common periods of production jobs that the paper tries."""

TOLERANCE = 0.05
"""How far an interval may be from its period, as a share of it."""

LEAST = 3
"""Fewest jobs of a group: two intervals that are alike."""


def periodic_groups(submit_s: F8, kind: I8, period_s: float) -> I8:
    """Find groups of jobs of one kind of which each comes a period after the one before.

    A job is followed by the first job of its kind, not yet in a group, that comes within 5 % of a
    period after it. Taking jobs in the order of their submission, chains of at least three become
    groups; no job is in two of them.
    """
    order = np.lexsort((submit_s, kind))
    group = np.full(len(order), -1, np.int64)
    first, last = _windows(submit_s[order], kind[order], period_s)
    free = list(range(len(order) + 1))  # next place that is in no group, found by following
    place = np.full(len(order), -1, np.int64)
    n_groups = 0
    for begin in np.flatnonzero(last > first).tolist():
        if place[begin] >= 0:
            continue
        chain = [begin]
        while True:
            at = _next_free(free, int(first[chain[-1]]))
            if at >= last[chain[-1]]:
                break
            chain.append(at)
        if len(chain) >= LEAST:
            for at in chain:
                place[at] = n_groups
                free[at] = at + 1
            n_groups += 1
    group[order] = place
    return group


def _windows(submit_s: F8, kind: I8, period_s: float) -> tuple[I8, I8]:
    """Return the places, first and one past the last, of the jobs that could follow each job."""
    n = len(submit_s)
    first, last = np.zeros(n, np.int64), np.zeros(n, np.int64)
    cuts = np.flatnonzero(np.diff(kind)) + 1
    for begin, end in zip([0, *cuts.tolist()], [*cuts.tolist(), n], strict=True):
        if end - begin >= LEAST:
            times_s = submit_s[begin:end]
            early, late = (1 - TOLERANCE) * period_s, (1 + TOLERANCE) * period_s
            first[begin:end] = begin + np.searchsorted(times_s, times_s + early, side="left")
            last[begin:end] = begin + np.searchsorted(times_s, times_s + late, side="right")
    return first, last


def _next_free(free: list[int], at: int) -> int:
    """Follow `free` from `at` to a place that leads to itself, and shorten the way."""
    end = at
    while free[end] != end:
        end = free[end]
    while free[at] != end:
        free[at], at = end, free[at]
    return end
