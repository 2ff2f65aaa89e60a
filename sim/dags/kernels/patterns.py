"""Scatter components of DAGs, and a canonical numbering of their stages, job by job.

Scatter components are found by Algorithm 1 of Tian et al. (SoCC 2019). The numbering is by colour
refinement (Weisfeiler and Leman). Colours are whole numbers below the prime 2^31 − 1, mixed by
polynomials modulo it, so that they depend only on the structure: not on the order of stages, nor on
the machine. Two colours that are equal by chance make a hash coarser and a numbering less
canonical, but never give a wrong answer, as edges are compared in the end.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import I4, I8, Mask
from sim.base.jit import jit


@jit
def find_scatter(
    job_stage0: I8,
    edge0: I8,
    edge_child: I4,
    in0: I8,
    parent: I4,
    max_parents: int,
    min_children: int,
    out_scatter: Mask,
) -> None:
    """Find the stages of each job's scatter component.

    Stages are pruned one at a time in the order of their rows; pruned stages no longer count as
    parents or children. First all stages of more than `max_parents` parents are pruned, then all
    without parents and with less than `min_children` children, and so on until nothing changes.
    """
    n_parents = np.empty(len(out_scatter), np.int64)  # by a loop: np.diff takes seconds to compile
    n_children = np.empty(len(out_scatter), np.int64)
    for s in range(len(out_scatter)):
        n_parents[s] = in0[s + 1] - in0[s]
        n_children[s] = edge0[s + 1] - edge0[s]
        out_scatter[s] = True
    for j in range(len(job_stage0) - 1):
        pruned = True
        while pruned:
            pruned = False
            for rule in range(2):
                for s in range(job_stage0[j], job_stage0[j + 1]):
                    if not out_scatter[s]:
                        continue
                    if rule == 0 and n_parents[s] <= max_parents:
                        continue
                    if rule == 1 and (n_parents[s] > 0 or n_children[s] >= min_children):
                        continue
                    pruned = True
                    out_scatter[s] = False
                    for e in range(edge0[s], edge0[s + 1]):
                        n_parents[edge_child[e]] -= 1
                    for i in range(in0[s], in0[s + 1]):
                        n_children[parent[i]] -= 1


PRIME = 2**31 - 1
ROWS = 2**32


@jit
def canonical_edges(
    job_stage0: I8, edge0: I8, edge_child: I4, in0: I8, parent: I4, out_hash: I8, out_code: I8
) -> None:
    """Hash each job and list its edges under a numbering of the stages by colour.

    While stages of a job share a colour, the first of the smallest such colour gets a new colour
    and the colours are refined again. Jobs of equal lists are isomorphic. The converse holds if
    stages of a colour can always be exchanged, as in trees, but not in general.
    """
    n_stages = len(edge0) - 1
    colour = np.empty(n_stages, np.int64)
    fresh = np.empty(n_stages, np.int64)
    for s in range(n_stages):
        colour[s] = _mix(1009 * (edge0[s + 1] - edge0[s]) + (in0[s + 1] - in0[s]))
    for j in range(len(job_stage0) - 1):
        begin, end = job_stage0[j], job_stage0[j + 1]
        n = end - begin
        order = _refine(begin, end, edge0, edge_child, in0, parent, colour, fresh)
        # once more, as colours that differ from the start do not depend on the edges
        _mix_neighbours(begin, end, edge0, edge_child, in0, parent, colour, fresh)
        first, second = n, edge0[end] - edge0[begin]
        for s in range(begin, end):
            first = (first + _mix(fresh[s] + 1)) % PRIME
            second = (second + _mix(fresh[s] + 2)) % PRIME
        out_hash[j] = first * PRIME + second
        for _ in range(n):
            s = _first_shared(order, colour)
            if s < 0:
                break
            colour[s] = _mix(colour[s] + 3)
            order = _refine(begin, end, edge0, edge_child, in0, parent, colour, fresh)
        _list_edges(order, begin, edge0, in0, parent, out_code[edge0[begin] : edge0[end]])


@jit
def _list_edges(order, begin, edge0, in0, parent, out_code):
    # Children in their new order, each in the next row of its parents: so the codes ascend.
    n = len(order)
    number = np.empty(n, np.int64)
    next_row = np.empty(n, np.int64)
    n_rows = 0
    for i in range(n):
        s = order[i]
        number[s - begin] = i
        next_row[i] = n_rows
        n_rows += edge0[s + 1] - edge0[s]
    for c in range(n):
        for i in range(in0[order[c]], in0[order[c] + 1]):
            p = number[parent[i] - begin]
            out_code[next_row[p]] = p * n + c
            next_row[p] += 1


@jit
def _refine(begin, end, edge0, edge_child, in0, parent, state_colour, state_fresh):
    # Mix each colour with those of its parents and of its children until the number of colours is
    # stable. Returns the rows in ascending order of colour.
    n_colours = 0
    order = np.empty(end - begin, np.int64)
    while True:
        for i in range(end - begin):
            order[i] = state_colour[begin + i] * ROWS + i
        _sort(order)
        for i in range(end - begin):
            order[i] = order[i] % ROWS + begin
        n_before, n_colours = n_colours, 1
        for i in range(1, end - begin):
            n_colours += state_colour[order[i]] != state_colour[order[i - 1]]
        if n_colours == n_before or n_colours == end - begin:
            return order
        _mix_neighbours(begin, end, edge0, edge_child, in0, parent, state_colour, state_fresh)
        for s in range(begin, end):  # a loop, as copying a slice takes seconds to compile
            state_colour[s] = state_fresh[s]


@jit
def _sort(state_values):
    # Shell's sort, as np.sort takes seconds to compile.
    n, gap = len(state_values), 1
    while gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value, k = state_values[i], i
            while k >= gap and state_values[k - gap] > value:
                state_values[k] = state_values[k - gap]
                k -= gap
            state_values[k] = value
        gap //= 3


@jit
def _mix_neighbours(begin, end, edge0, edge_child, in0, parent, colour, out_colour):
    for s in range(begin, end):
        above, below = 0, 0
        for i in range(in0[s], in0[s + 1]):
            above = (above + _mix(colour[parent[i]] + 4)) % PRIME
        for e in range(edge0[s], edge0[s + 1]):
            below = (below + _mix(colour[edge_child[e]] + 5)) % PRIME
        out_colour[s] = _mix((7 * colour[s] + 11 * above + 13 * below) % PRIME)


@jit
def _first_shared(order, colour):
    # The first row of the smallest colour of several rows; -1 if all colours differ.
    for i in range(1, len(order)):
        if colour[order[i]] == colour[order[i - 1]]:
            return order[i - 1]  # the order is stable: rows of one colour ascend
    return -1


@jit
def _mix(x):
    y = (x + 715225739) % PRIME
    return (y * y % PRIME * y + 961748941 * y + 472882049) % PRIME
