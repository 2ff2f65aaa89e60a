"""Orders of stages that look at the DAG alone, and the width of the partial order.

The orders are by the labels of Coffman and Graham and by levels of strip packing; the width is the
largest set of stages that may run at one time. Stages and edges are passed as in
`sim.workload.kernels.paths`.
"""

from __future__ import annotations

import math

import numpy as np

from sim.base.arrays import F8, I4, I8
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


@jit
def coffman_graham_labels(job_stage0: I8, order: I8, edge0: I8, edge_child: I4) -> I4:
    """Label the stages of each job by the lexicographic order of their children's labels.

    Labels go from 0 up, children before parents: of the stages all of whose children have one,
    the next label goes to that whose children's labels, in falling order, come first in the
    dictionary (ties: the highest row). Edges that a longer path implies are left out. (Coffman and
    Graham, *Optimal scheduling for two-processor systems*, Acta Informatica 1, 1972, §2.)
    """
    n_stages = len(order)
    label = np.full(n_stages, -1, np.int32)
    place = np.empty(n_stages, np.int64)
    waits = np.zeros(n_stages, np.int64)  # children without a label
    n_known = np.zeros(n_stages, np.int64)
    known = np.empty(len(edge_child), np.int32)  # labels of each stage's children, rising
    parent0 = np.zeros(n_stages + 1, np.int64)
    for j in range(len(job_stage0) - 1):
        begin, end = job_stage0[j], job_stage0[j + 1]
        n = end - begin
        for i in range(n):
            place[order[begin + i]] = i
        reach = _closure(order[begin:end], edge0, edge_child, place)
        needed = np.zeros(edge0[end] - edge0[begin], np.bool_)
        for s in range(begin, end):
            for e in range(edge0[s], edge0[s + 1]):
                to = place[edge_child[e]]
                implied = False
                for other in range(edge0[s], edge0[s + 1]):
                    by = place[edge_child[other]]
                    implied |= (reach[by, to // BITS] >> (to % BITS)) & 1 == 1
                needed[e - edge0[begin]] = not implied
                waits[s] += not implied
                parent0[edge_child[e] + 1] += not implied
        for s in range(begin, end):
            parent0[s + 1] += parent0[s]
        parents = np.empty(parent0[end] - parent0[begin], np.int32)
        filled = np.zeros(n, np.int64)
        for s in range(begin, end):
            for e in range(edge0[s], edge0[s + 1]):
                if needed[e - edge0[begin]]:
                    c = edge_child[e]
                    parents[parent0[c] - parent0[begin] + filled[c - begin]] = s
                    filled[c - begin] += 1
        for following in range(n):
            best = -1
            for s in range(begin, end):
                if label[s] >= 0 or waits[s] > 0:
                    continue
                if best < 0 or not _goes_before(known, edge0, n_known, best, s):
                    best = s
            label[best] = following
            for p in range(parent0[best] - parent0[begin], parent0[best + 1] - parent0[begin]):
                s = parents[p]
                known[edge0[s] + n_known[s]] = following
                n_known[s] += 1
                waits[s] -= 1
    return label


@jit
def _goes_before(known, edge0, n_known, a, b):
    """Whether the falling labels known of stage `a` come before those of `b` in the dictionary."""
    for i in range(min(n_known[a], n_known[b])):
        x = known[edge0[a] + n_known[a] - 1 - i]
        y = known[edge0[b] + n_known[b] - 1 - i]
        if x != y:
            return x < y
    return n_known[a] < n_known[b]


@jit
def strip_levels(job_stage0: I8, order: I8, edge0: I8, edge_child: I4, height: F8) -> I4:
    """Part the stages of each job into levels, so that every edge leads to a later level.

    With unlimited room each stage runs as soon as its parents have ended. Those that run across
    the middle of the time that this takes wait for none of each other: they are a level, what
    ends before it and what begins behind it are parted in the same way. (Augustine, Banerjee and
    Irani, *Strip packing with precedence constraints and strip packing with release times*,
    SPAA 2006: divide and conquer.) Where nothing takes any time, every stage counts the same.
    """
    n_stages = len(order)
    row = order.copy()
    aside = np.empty(n_stages, np.int64)
    group = np.zeros(n_stages, np.int64)
    begin_s = np.empty(n_stages, np.float64)
    level = np.zeros(n_stages, np.int32)
    begins = np.zeros(n_stages, np.bool_)  # by place in `row`
    todo = np.empty((2 * n_stages + 2, 2), np.int64)
    n_groups = 0
    for j in range(len(job_stage0) - 1):
        todo[0, 0], todo[0, 1] = job_stage0[j], job_stage0[j + 1]
        n_todo = 1
        while n_todo > 0:
            n_todo -= 1
            low, high = todo[n_todo, 0], todo[n_todo, 1]
            if low == high:
                continue
            n_groups += 1
            whole = 0.0
            unit = 0.0
            while whole == 0.0:
                for i in range(low, high):
                    group[row[i]] = n_groups
                    begin_s[row[i]] = 0.0
                for i in range(low, high):
                    s = row[i]
                    end_s = begin_s[s] + height[s] + unit
                    whole = max(whole, end_s)
                    for e in range(edge0[s], edge0[s + 1]):
                        c = edge_child[e]
                        if group[c] == n_groups:
                            begin_s[c] = max(begin_s[c], end_s)
                if whole == 0.0:
                    unit = 1.0
            cut = np.array([low, low, low, low])  # begins of what is below, across, above
            for side in range(3):
                at = cut[side]
                for i in range(low, high):
                    s = row[i]
                    if _side(begin_s[s], begin_s[s] + height[s] + unit, whole / 2) == side:
                        aside[at] = s
                        at += 1
                cut[side + 1] = at
            row[low:high] = aside[low:high]
            begins[cut[1]] = True
            todo[n_todo, 0], todo[n_todo, 1] = low, cut[1]
            todo[n_todo + 1, 0], todo[n_todo + 1, 1] = cut[2], high
            n_todo += 2
        now = -1
        for i in range(job_stage0[j], job_stage0[j + 1]):
            now += begins[i]
            level[row[i]] = now
    return level


@jit
def _side(begin, end, middle):
    """Tell what ends before the middle (0) and what begins behind it (2) from what runs across."""
    if end <= middle:
        return 0
    return 2 if begin >= middle else 1
