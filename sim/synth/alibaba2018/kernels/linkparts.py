"""Parts of `sim.synth.alibaba2018.kernels.link`; stages are counted within their job."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.jit import jit
from sim.synth.alibaba2018.kernels.chance import below, draw, uniform

IDLE_TREE, IDLE_OTHER, IDLE_LATE, SCATTER, FAR, FAR_IDLE = 0, 1, 2, 3, 4, 5
"""Rows of `weight`: chance that a stage is idle, in a tree, in another job, and on such a one's
last level but one; how likely it is chosen for a further child on the next level, or further
down; chance that an idle stage of no tree has a child further down, where it can (first entry).
Columns: stages of no, one, and several parents on the level before."""

TRIES = 32
"""How often a draw that is turned down is repeated."""


@jit
def choose_idle(
    begin: int,
    end: int,
    tree: bool,
    late: bool,
    n_in: I8,
    on_path: I8,
    weight: F8,
    busy: I8,
    idle: I8,
    n_idle: int,
    random: I8,
) -> tuple[int, int]:
    """Fill `busy` with the stages that get children on the next level; append others to `idle`.

    In a tree none of the last level but one (`late`) is idle. If no path through all levels would
    go on, the first stage on one that stays idle is called back. Returns the two counts.
    """
    may_rest = not (tree and late)
    row = IDLE_TREE if tree else IDLE_LATE if late else IDLE_OTHER
    n_busy = 0
    path_goes_on = False
    called = -1
    for s in range(begin, end):
        if may_rest and uniform(random) < weight[row, min(n_in[s], 2)]:
            if on_path[s] == 1 and called < 0:
                called = n_idle
            idle[n_idle] = s
            n_idle += 1
        else:
            path_goes_on = path_goes_on or on_path[s] == 1
            busy[n_busy] = s
            n_busy += 1
    if not path_goes_on:
        busy[n_busy] = idle[called]
        n_busy += 1
        n_idle -= 1
        for k in range(called, n_idle):
            idle[k] = idle[k + 1]
    return n_busy, n_idle


@jit
def some_join(busy: I8, n_busy: int, n_in: I8) -> int:
    """Return 1 if one of the first stages of `busy` has several parents, else 0."""
    found = 0
    for k in range(n_busy):
        if n_in[busy[k]] > 1:
            found = 1
    return found


@jit
def link_near(
    edges: I4,
    n_edges: int,
    parents: I8,
    children: I8,
    n_in: I8,
    weight: F8,
    partner: I8,
    random: I8,
) -> int:
    """Append as few edges as leave neither a parent nor a child alone; return the new count."""
    n_parents, n_children = len(parents), len(children)
    if n_parents >= n_children:
        for k in range(n_parents):
            partner[k] = k if k < n_children else partner[below(k, random)]
            edges[0, n_edges + k] = parents[k]
            edges[1, n_edges + k] = children[partner[k]]
        return n_edges + n_parents
    heaviest = max(weight[SCATTER, 0], weight[SCATTER, 1], weight[SCATTER, 2])
    for k in range(n_children):
        pick = k
        if k >= n_parents:
            for _ in range(TRIES):
                pick = partner[below(k, random)]
                w = weight[SCATTER, min(n_in[parents[pick]], 2)]
                if uniform(random) * heaviest <= w:
                    break
        partner[k] = pick
        edges[0, n_edges + k] = parents[pick]
        edges[1, n_edges + k] = children[k]
    return n_edges + n_children


@jit
def weighted(stages: I8, n: int, n_in: I8, weight: F8, row: int, random: I8) -> int:
    """Draw a place among the first `n` stages, weighted by how many parents they have."""
    heaviest = max(weight[row, 0], weight[row, 1], weight[row, 2])
    k = 0
    for _ in range(TRIES):
        k = below(n, random)
        if uniform(random) * heaviest <= weight[row, min(n_in[stages[k]], 2)]:
            break
    return k


@jit
def far_child(
    order: I8, level0: I8, n_joined: I8, level: int, n_levels: int, span: I8, random: I8
) -> int:
    """Draw a child, with parents of its own, two levels or more below `level`."""
    last = n_levels - 1
    to = min(last, level + draw(span, 0, 0, last - level, uniform(random)))
    child: int = order[level0[to] + below(n_joined[to], random)]
    return child


@jit
def is_tree(edges: I4, begin: int, end: int, n_stages: int, state_count: I8) -> bool:
    """Say whether every stage of a job but one has exactly one child."""
    if end - begin != n_stages - 1:
        return False
    for s in range(n_stages):
        state_count[s] = 0
    one_each = True
    for e in range(begin, end):
        state_count[edges[0, e]] += 1
        one_each = one_each and state_count[edges[0, e]] == 1
    return one_each


@jit
def is_known(edges: I4, begin: int, end: int, parent: int, child: int) -> bool:
    """Say whether one of the edges from `begin` up to `end` is this one."""
    known = False
    for e in range(begin, end):
        known = known or (edges[0, e] == parent and edges[1, e] == child)
    return known


@jit
def with_room(edges: I4, n_edges: int, more: int) -> I4:
    """Return `edges`, or a larger copy, with room for `more`."""
    if n_edges + more <= edges.shape[1]:
        return edges
    larger = np.empty((2, 2 * (n_edges + more)), dtype=np.int32)
    larger[:, :n_edges] = edges[:, :n_edges]
    return larger


@jit
def sort_edges(edges: I4, begin: int, end: int, stage: int, next_stage: int, out_edge0: I8) -> None:
    """Sort a job's edges by parent, then child; count them by parent; make children global rows."""
    n = next_stage - stage
    for column in (1, 0):
        place = np.zeros(n + 1, dtype=np.int64)
        for e in range(begin, end):
            place[edges[column, e] + 1] += 1
        if column == 0:
            out_edge0[stage + 1 : next_stage + 1] = place[1:]
        for s in range(n):
            place[s + 1] += place[s]
        old = edges[:, begin:end].copy()
        for e in range(end - begin):
            to = begin + place[old[column, e]]
            place[old[column, e]] += 1
            edges[0, to] = old[0, e]
            edges[1, to] = old[1, e]
    for e in range(begin, end):
        edges[1, e] += stage
