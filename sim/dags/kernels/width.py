"""Width of partial orders: the largest set of stages that may run at one time."""

from __future__ import annotations

import math

import numpy as np

from sim.base.arrays import I4, I8
from sim.base.jit import jit

BITS = 62
"""Bits to a word of a set: all of them positive in an int64, their sums too."""


@jit
def widths(
    job_stage0: I8, order: I8, edge0: I8, edge_child: I4, n_parents: I8, level: I4, out_width: I8
) -> None:
    """Find the largest antichain of each job (Dilworth, by matching).

    A job whose stages have at most one child each is as wide as it has stages without parents:
    these are an antichain, and the paths down from them, cut where they meet, cover the job with
    as many chains. The same holds the other way round. Any other job has its stages, less the
    largest matching of stages to later ones, paths counted as edges (Fulkerson).
    """
    place = np.empty(len(order), np.int64)
    for j in range(len(out_width)):
        begin, end = job_stage0[j], job_stage0[j + 1]
        n = end - begin
        n_sources, n_sinks, most_parents, most_children = 0, 0, 0, 0
        for s in range(begin, end):
            n_children = edge0[s + 1] - edge0[s]
            n_sources += n_parents[s] == 0
            n_sinks += n_children == 0
            most_parents = max(most_parents, n_parents[s])
            most_children = max(most_children, n_children)
        if most_children <= 1:
            out_width[j] = n_sources
            continue
        if most_parents <= 1:
            out_width[j] = n_sinks
            continue
        on_level = np.zeros(n, np.int64)
        least = max(n_sources, n_sinks)
        for i in range(n):
            place[order[begin + i]] = i
            on_level[level[begin + i] - 1] += 1
            least = max(least, on_level[level[begin + i] - 1])
        reach = _closure(order[begin:end], edge0, edge_child, place)
        out_width[j] = n - _matching(reach, n - least)


@jit
def _closure(order, edge0, edge_child, place):
    # Row i: the set of the places that the stage on place i of the order has a path to.
    n = len(order)
    reach = np.zeros((n, (n + BITS - 1) // BITS), np.int64)
    for i in range(n - 1, -1, -1):
        s = order[i]
        for e in range(edge0[s], edge0[s + 1]):
            c = place[edge_child[e]]
            for w in range(c // BITS, reach.shape[1]):
                reach[i, w] |= reach[c, w]
            reach[i, c // BITS] |= 1 << (c % BITS)
    return reach


@jit
def _matching(reach, most):
    # Size of the largest matching of places to places they reach; `most` is known to bound it.
    n, n_words = reach.shape
    above = np.full(n, -1, np.int64)  # partner of a place that is reached
    below = np.full(n, -1, np.int64)  # partner of the place that reaches it
    size = 0
    for i in range(n - 1, -1, -1):
        for w in range(i // BITS, n_words):
            rest = reach[i, w]
            while rest and below[i] < 0:
                low = rest & -rest
                rest ^= low
                k = w * BITS + math.frexp(float(low))[1] - 1
                if above[k] < 0:
                    above[k] = i
                    below[i] = k
                    size += 1
    came = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)
    unseen = np.empty(n_words, np.int64)
    for root in range(n):
        if size == most:
            break
        if below[root] >= 0:
            continue
        unseen[:] = (1 << BITS) - 1
        queue[0] = root
        head, tail, end = 0, 1, -1
        while head < tail and end < 0:
            i = queue[head]
            head += 1
            for w in range(i // BITS, n_words):
                rest = reach[i, w] & unseen[w]
                unseen[w] &= ~rest
                while rest and end < 0:
                    low = rest & -rest
                    rest ^= low
                    k = w * BITS + math.frexp(float(low))[1] - 1
                    came[k] = i
                    if above[k] < 0:
                        end = k
                    else:
                        queue[tail] = above[k]
                        tail += 1
        if end >= 0:
            size += 1
        while end >= 0:
            i = came[end]
            above[end] = i
            below[i], end = end, below[i]
    return size
