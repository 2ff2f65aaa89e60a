"""Pairs that repeat, each once."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.jit import jit


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
