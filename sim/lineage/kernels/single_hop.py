"""The join of reads and writes: who wrote a file last before somebody took it; pairs, each once."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I1, I4, I8
from sim.base.jit import jit

WRITE = 1
"""Code of the operation that makes a file; all others take it."""

FOUND, NEVER_WRITTEN, TOO_EARLY, TOO_OLD, OWN = range(5)
"""What became of an operation that takes a file; `FOUND` of writes too."""


@jit
def last_writer(
    file0: I8, order: I8, time_s: F8, job: I4, operation: I1, window_s: float
) -> tuple[I4, F8, I1, int]:
    """Join each taking of a file to the latest write strictly before it."""
    n = len(order)
    writer = np.full(n, -1, np.int32)
    written_s = np.full(n, np.nan)
    fate = np.zeros(n, np.int8)
    n_simultaneous = 0
    for f in range(len(file0) - 1):
        first, end = file0[f], file0[f + 1]
        is_written = False
        for i in range(first, end):
            if operation[order[i]] == WRITE:
                is_written = True
                break
        known, known_s = -1, 0.0  # the latest write before the present instant
        latest, latest_s = -1, 0.0  # the latest one, the present instant included
        for i in range(first, end):
            o = order[i]
            now = time_s[o]
            if latest >= 0 and latest_s < now:
                known, known_s = latest, latest_s
            if operation[o] == WRITE:
                if latest >= 0 and latest_s == now and latest != job[o]:
                    n_simultaneous += 1
                latest, latest_s = job[o], now
            elif known < 0:
                fate[o] = TOO_EARLY if is_written else NEVER_WRITTEN
            elif now - known_s > window_s:
                fate[o] = TOO_OLD
            elif known == job[o]:
                fate[o] = OWN
            else:
                writer[o] = known
                written_s[o] = known_s
    return writer, written_s, fate, n_simultaneous


@jit
def distinct_pairs(order: I8, a: I4, b: I4, at_s: F8, of_s: F8, n: I4) -> tuple[I8, I4]:
    """Find the earliest of every group of equal pairs."""
    n_groups = 0
    for i in range(len(order)):
        here = order[i]
        if i == 0 or a[here] != a[order[i - 1]] or b[here] != b[order[i - 1]]:
            n_groups += 1
    first = np.empty(n_groups, np.int64)
    count = np.empty(n_groups, np.int32)
    g = -1
    for i in range(len(order)):
        here = order[i]
        if i == 0 or a[here] != a[order[i - 1]] or b[here] != b[order[i - 1]]:
            g += 1
            first[g] = here
            count[g] = n[here]
        else:
            count[g] += n[here]
            last = first[g]
            if at_s[here] < at_s[last] or (at_s[here] == at_s[last] and of_s[here] < of_s[last]):
                first[g] = here
    return first, count
