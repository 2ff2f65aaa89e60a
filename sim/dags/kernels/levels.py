"""Orders of stages by the DAG alone, and the width of its partial order.

The orders are by the labels of Coffman and Graham and by levels of strip packing; the width is the
size of the largest set of stages that can run at one time. Stages and edges are passed as in
`sim.workload.kernels.paths`.
"""

from __future__ import annotations

import math

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.jit import jit

BITS = 62
"""Bits in a word of a set: each positive in an int64, and their sums too."""


@jit
def widths(
    job_stage0: I8, order: I8, edge0: I8, edge_child: I4, n_parents: I8, level: I4, out_width: I8
) -> None:
    """Compute the size of the largest antichain of each job (Dilworth, by matching).

    If each stage of a job has at most one child, its width is the number of stages without parents:
    these are an antichain, and the paths from them, cut where they meet, cover the job with as many
    chains. The same holds with parents and children exchanged. The width of any other job is the
    number of stages less the maximum matching in the transitive closure (Fulkerson).
    """
    position = np.empty(len(order), np.int64)
    for j in range(len(out_width)):
        begin, end = job_stage0[j], job_stage0[j + 1]
        n = end - begin
        n_sources, n_sinks, max_parents, max_children = 0, 0, 0, 0
        for s in range(begin, end):
            n_children = edge0[s + 1] - edge0[s]
            n_sources += n_parents[s] == 0
            n_sinks += n_children == 0
            max_parents = max(max_parents, n_parents[s])
            max_children = max(max_children, n_children)
        if max_children <= 1:
            out_width[j] = n_sources
            continue
        if max_parents <= 1:
            out_width[j] = n_sinks
            continue
        on_level = np.zeros(n, np.int64)
        min_width = max(n_sources, n_sinks)
        for i in range(n):
            position[order[begin + i]] = i
            on_level[level[begin + i] - 1] += 1
            min_width = max(min_width, on_level[level[begin + i] - 1])
        reach = _closure(order[begin:end], edge0, edge_child, position)
        out_width[j] = n - _matching(reach, n - min_width)


@jit
def _closure(order, edge0, edge_child, position):
    # Row i: the set of positions in the order that the stage at position i has a path to.
    n = len(order)
    reach = np.zeros((n, (n + BITS - 1) // BITS), np.int64)
    for i in range(n - 1, -1, -1):
        s = order[i]
        for e in range(edge0[s], edge0[s + 1]):
            c = position[edge_child[e]]
            for w in range(c // BITS, reach.shape[1]):
                reach[i, w] |= reach[c, w]
            reach[i, c // BITS] |= 1 << (c % BITS)
    return reach


@jit
def _matching(reach, max_size):
    # Size of the maximum matching of positions to positions they reach, at most `max_size`.
    n, n_words = reach.shape
    above = np.full(n, -1, np.int64)  # the position matched to this one, which it reaches
    below = np.full(n, -1, np.int64)  # the position that this one is matched to and reaches
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
    via = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)
    unseen = np.empty(n_words, np.int64)
    for root in range(n):
        if size == max_size:
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
                    via[k] = i
                    if above[k] < 0:
                        end = k
                    else:
                        queue[tail] = above[k]
                        tail += 1
        if end >= 0:
            size += 1
        while end >= 0:
            i = via[end]
            above[end] = i
            below[i], end = end, below[i]
    return size


@jit
def coffman_graham_labels(job_stage0: I8, order: I8, edge0: I8, edge_child: I4) -> I4:
    """Label the stages of each job by the lexicographic order of their children's labels.

    Labels go from 0 up, children before parents. Of the stages whose children all have labels, the
    next label goes to the stage whose children's labels, in descending order, are lexicographically
    first (ties: the highest row). Edges that a longer path implies are ignored. (Coffman and
    Graham, *Optimal scheduling for two-processor systems*, Acta Informatica 1, 1972, §2.)
    """
    n_stages = len(order)
    label = np.full(n_stages, -1, np.int32)
    position = np.empty(n_stages, np.int64)
    n_waiting = np.zeros(n_stages, np.int64)  # children without a label
    n_known = np.zeros(n_stages, np.int64)
    known = np.empty(len(edge_child), np.int32)  # labels of each stage's children, ascending
    parent0 = np.zeros(n_stages + 1, np.int64)
    for j in range(len(job_stage0) - 1):
        begin, end = job_stage0[j], job_stage0[j + 1]
        n = end - begin
        for i in range(n):
            position[order[begin + i]] = i
        reach = _closure(order[begin:end], edge0, edge_child, position)
        needed = np.zeros(edge0[end] - edge0[begin], np.bool_)
        for s in range(begin, end):
            for e in range(edge0[s], edge0[s + 1]):
                target = position[edge_child[e]]
                implied = False
                for other in range(edge0[s], edge0[s + 1]):
                    sibling = position[edge_child[other]]
                    implied |= (reach[sibling, target // BITS] >> (target % BITS)) & 1 == 1
                needed[e - edge0[begin]] = not implied
                n_waiting[s] += not implied
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
        for new_label in range(n):
            best = -1
            for s in range(begin, end):
                if label[s] >= 0 or n_waiting[s] > 0:
                    continue
                if best < 0 or not _precedes(known, edge0, n_known, best, s):
                    best = s
            label[best] = new_label
            for p in range(parent0[best] - parent0[begin], parent0[best + 1] - parent0[begin]):
                s = parents[p]
                known[edge0[s] + n_known[s]] = new_label
                n_known[s] += 1
                n_waiting[s] -= 1
    return label


@jit
def _precedes(known, edge0, n_known, a, b):
    """Compare the descending labels of the children of `a` and `b` lexicographically."""
    for i in range(min(n_known[a], n_known[b])):
        x = known[edge0[a] + n_known[a] - 1 - i]
        y = known[edge0[b] + n_known[b] - 1 - i]
        if x != y:
            return x < y
    return n_known[a] < n_known[b]


@jit
def strip_levels(job_stage0: I8, order: I8, edge0: I8, edge_child: I4, height: F8) -> I4:
    """Partition the stages of each job into levels, so that every edge leads to a later level.

    Without resource limits each stage runs as soon as its parents have ended. The stages that run
    across the middle of this schedule are independent of each other: they are one level; the stages
    that end before it and those that begin after it are partitioned recursively. (Augustine,
    Banerjee and Irani, *Strip packing with precedence constraints and strip packing with release
    times*, SPAA 2006: divide and conquer.) If all durations are 0, every stage counts the same.
    """
    n_stages = len(order)
    row = order.copy()
    sorted_row = np.empty(n_stages, np.int64)
    group = np.zeros(n_stages, np.int64)
    begin_s = np.empty(n_stages, np.float64)
    level = np.zeros(n_stages, np.int32)
    begins = np.zeros(n_stages, np.bool_)  # by position in `row`
    stack = np.empty((2 * n_stages + 2, 2), np.int64)
    n_groups = 0
    for j in range(len(job_stage0) - 1):
        stack[0, 0], stack[0, 1] = job_stage0[j], job_stage0[j + 1]
        n_stack = 1
        while n_stack > 0:
            n_stack -= 1
            low, high = stack[n_stack, 0], stack[n_stack, 1]
            if low == high:
                continue
            n_groups += 1
            makespan = 0.0
            unit = 0.0
            while makespan == 0.0:
                for i in range(low, high):
                    group[row[i]] = n_groups
                    begin_s[row[i]] = 0.0
                for i in range(low, high):
                    s = row[i]
                    end_s = begin_s[s] + height[s] + unit
                    makespan = max(makespan, end_s)
                    for e in range(edge0[s], edge0[s + 1]):
                        c = edge_child[e]
                        if group[c] == n_groups:
                            begin_s[c] = max(begin_s[c], end_s)
                if makespan == 0.0:
                    unit = 1.0
            cut = np.array([low, low, low, low])  # begins of the parts before, across, after
            for side in range(3):
                position = cut[side]
                for i in range(low, high):
                    s = row[i]
                    if _side(begin_s[s], begin_s[s] + height[s] + unit, makespan / 2) == side:
                        sorted_row[position] = s
                        position += 1
                cut[side + 1] = position
            row[low:high] = sorted_row[low:high]
            begins[cut[1]] = True
            stack[n_stack, 0], stack[n_stack, 1] = low, cut[1]
            stack[n_stack + 1, 0], stack[n_stack + 1, 1] = cut[2], high
            n_stack += 2
        current = -1
        for i in range(job_stage0[j], job_stage0[j + 1]):
            current += begins[i]
            level[row[i]] = current
    return level


@jit
def _side(begin, end, middle):
    """Return 0 if an interval ends before the middle, 2 if it begins after it, else 1."""
    if end <= middle:
        return 0
    return 2 if begin >= middle else 1
