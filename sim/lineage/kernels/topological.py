"""A topological order that stays as near to the order of rows as edges allow."""

from __future__ import annotations

import heapq

import numpy as np

from sim.base.arrays import I4, I8
from sim.base.jit import jit


@jit
def topological_order(out0: I8, child: I4) -> I4:
    """Return the smallest topological order, read as a word over rows."""
    n = len(out0) - 1
    n_waiting = np.zeros(n, np.int32)
    for e in range(len(child)):
        n_waiting[child[e]] += 1
    ready = [np.int64(0)]
    ready.pop()
    order = np.empty(n, np.int32)
    done = 0
    for start in range(n):
        # Rows below `start` that could be taken have been; the heap holds what waited.
        if n_waiting[start] == 0:
            heapq.heappush(ready, np.int64(start))
        while len(ready) > 0:
            node = heapq.heappop(ready)
            order[done] = node
            done += 1
            for e in range(out0[node], out0[node + 1]):
                other = child[e]
                n_waiting[other] -= 1
                if n_waiting[other] == 0 and other < start:
                    heapq.heappush(ready, np.int64(other))
    return order[:done]
