"""Edges between the levels of DAGs: the improved variant of Algorithm 2's edge step.

Tian et al., SoCC 2019, §7.2, lines 9 to 12, give all stages of a level as many children, drawn
alike from the next level. Here fitted tables say how many stages have children, how many have
parents, who shares them, and which edges go further down. Parts are in
`sim.synth.alibaba2018.kernels.linkparts`.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.jit import jit
from sim.synth.alibaba2018.kernels.chance import below, draw, shuffle, uniform
from sim.synth.alibaba2018.kernels.linkparts import (
    FAR,
    FAR_IDLE,
    SCATTER,
    TRIES,
    choose_idle,
    far_child,
    is_known,
    is_tree,
    link_near,
    some_join,
    sort_edges,
    weighted,
    with_room,
)
from sim.synth.alibaba2018.kernels.spread import TREE

FULL = 1000
"""Tables of shares count in thousandths."""


@jit
def link(
    stage0: I8, size0: I8, size: I8, shape: I8, book: I8, weight: F8, state_random: I8
) -> tuple[I8, I4]:
    """Draw the edges of each job; its stages ascend with their levels.

    From each level to the next: some stages stay idle. The others are linked with a number of the
    next level's so that none is left alone: where there are more parents, each child gets one and
    every other parent takes the child of a random one before it; where there are more children,
    it is the other way round. Jobs that are no trees get surplus edges among those. At last, idle
    stages may get a child further down, and so may others in jobs that are no trees. A path
    through all levels is kept, so that the critical path is as long as there are levels. A job
    that was to be no tree, and came out as one, is drawn again.
    """
    n_jobs = len(shape)
    widest = 1
    for j in range(n_jobs):
        widest = max(widest, stage0[j + 1] - stage0[j])
    work = np.empty((9, widest + 1), dtype=np.int64)
    edge0 = np.zeros(stage0[n_jobs] + 1, dtype=np.int64)
    edges = np.empty((2, 2 * stage0[n_jobs] + 64), dtype=np.int32)
    n_edges = 0
    for j in range(n_jobs):
        begin = n_edges
        sizes = size[size0[j] : size0[j + 1]]
        tree = shape[j] == TREE
        for _ in range(TRIES):
            edges, n_edges = link_job(
                edges, begin, sizes, tree, book, weight, work, state_random[j]
            )
            if tree or not is_tree(edges, begin, n_edges, stage0[j + 1] - stage0[j], work[0]):
                break
        sort_edges(edges, begin, n_edges, stage0[j], stage0[j + 1], edge0)
    for s in range(stage0[n_jobs]):
        edge0[s + 1] += edge0[s]
    return edge0, edges[1, :n_edges].copy()


@jit
def link_job(
    edges: I4,
    n_edges: int,
    sizes: I8,
    tree: bool,
    book: I8,
    weight: F8,
    state_work: I8,
    random: I8,
) -> tuple[I4, int]:
    """Append the edges of one job; return the edges, perhaps in a larger array, and how many."""
    surplus, far, span = book[book[4] : book[5]], book[book[5] : book[6]], book[book[6] :]
    n_in, on_path = state_work[0], state_work[1]  # parents on the level before; ends a full path
    level, level0 = state_work[2], state_work[3]
    order, n_joined = state_work[4], state_work[5]  # stages by level, those with parents first
    busy, idle, partner = state_work[6], state_work[7], state_work[8]
    n_levels = len(sizes)
    level0[0] = 0
    for i in range(n_levels):
        level0[i + 1] = level0[i] + sizes[i]
        for s in range(level0[i], level0[i + 1]):
            n_in[s] = 0
            on_path[s] = 1 if i == 0 else 0
            level[s] = i
            order[s] = s
    n_idle = 0
    for i in range(n_levels - 1):
        middle = level0[i + 1]
        n_next = sizes[i + 1]
        n_busy, n_idle = choose_idle(
            level0[i], middle, tree, i == n_levels - 2, n_in, on_path, weight, busy, idle, n_idle,
            random,
        )  # fmt: skip
        most = min(n_busy, n_next) if tree else n_next
        n_children = 1
        if most > 1:
            kind = 0 if tree else 1 if i == 0 else 2 + some_join(busy, n_busy, n_in)
            joined = book[book[kind] : book[kind + 1]]
            share = draw(joined, n_busy, n_next, FULL, uniform(random))
            n_children += (share * (most - 1) + FULL // 2) // FULL
        n_joined[i + 1] = n_children
        room = n_busy * n_children - max(n_busy, n_children)
        n_surplus = 0
        if room > 0 and not tree:
            share = draw(surplus, room, 0, FULL, uniform(random))
            n_surplus = (share * room + FULL // 2) // FULL
        shuffle(busy, 0, n_busy, n_busy, random)
        shuffle(order, middle, middle + n_next, n_children, random)
        edges = with_room(edges, n_edges, max(n_busy, n_children) + n_surplus)
        near = n_edges
        children = order[middle : middle + n_children]
        n_edges = link_near(edges, n_edges, busy[:n_busy], children, n_in, weight, partner, random)
        for _ in range(n_surplus):
            for _ in range(TRIES):
                s = busy[weighted(busy, n_busy, n_in, weight, SCATTER, random)]
                child = children[below(n_children, random)]
                if not is_known(edges, near, n_edges, s, child):
                    edges[0, n_edges], edges[1, n_edges] = s, child
                    n_edges += 1
                    break
        for e in range(near, n_edges):
            n_in[edges[1, e]] += 1
            if on_path[edges[0, e]] == 1:
                on_path[edges[1, e]] = 1
    n_far = 0
    if not tree and n_levels > 2:
        n_far = draw(far, level0[n_levels], 0, 2**31, uniform(random))
    edges = with_room(edges, n_edges, n_idle + n_far)
    far_edge = n_edges
    for k in range(n_idle):
        i = level[idle[k]]
        if i < n_levels - 2 and (tree or uniform(random) < weight[FAR_IDLE, 0]):
            edges[0, n_edges] = idle[k]
            edges[1, n_edges] = far_child(order, level0, n_joined, i, n_levels, span, random)
            n_edges += 1
    for _ in range(n_far):
        for _ in range(TRIES):
            s = order[weighted(order, level0[n_levels - 2], n_in, weight, FAR, random)]
            child = far_child(order, level0, n_joined, level[s], n_levels, span, random)
            if not is_known(edges, far_edge, n_edges, s, child):
                edges[0, n_edges], edges[1, n_edges] = s, child
                n_edges += 1
                break
    return edges, n_edges
