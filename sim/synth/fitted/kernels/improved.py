"""Levels and edges of DAGs: the improved variant of the steps of Tian et al.'s Algorithm 2.

Tian et al., SoCC 2019, §7.2, lines 4 to 8, draw each further stage's level independently. Here they
come in runs over neighbouring levels, and the last level has a separate rule. Lines 9 to 12 give
all stages of a level the same number of children, drawn uniformly from the next level. Here fitted
tables say how many stages have children, how many have parents, how these are shared, and which
edges go further down.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8
from sim.base.jit import jit
from sim.synth.fitted.kernels.chance import below, draw, shuffle, uniform

TREE, NARROW, WIDE = 1, 2, 3
"""Shapes: a gathering tree; another DAG with one stage on its last level; with several."""


@jit
def draw_shapes(n_stages: I8, length: I8, table: I8, state_random: I8, out_shape: I8) -> None:
    """Draw each job's shape, given its stages and the length of its critical path."""
    for j in range(len(length)):
        u = uniform(state_random[j])
        out_shape[j] = draw(table, n_stages[j], length[j], WIDE, u)


@jit
def draw_level_sizes(
    size0: I8, n_stages: I8, shape: I8, ends0: I8, ends: F8, run: F8, state_random: I8, out_size: I8
) -> None:
    """Distribute each job's stages over its levels.

    Every level has one; a WIDE job's last level has another. The others come in runs, which end on
    a drawn level and continue to the level before with chance `run`.
    """
    for j in range(len(shape)):
        random = state_random[j]
        first = size0[j]
        n_levels = size0[j + 1] - first
        left = n_stages[j] - n_levels
        for i in range(n_levels):
            out_size[first + i] = 1
        if shape[j] == WIDE and left > 0:
            out_size[first + n_levels - 1] = 2
            left -= 1
        while left > 0:
            u = uniform(random)
            i = 0
            while ends[ends0[j] + i] <= u:
                i += 1
            out_size[first + i] += 1
            left -= 1
            while left > 0 and i > 0 and uniform(random) < run[j]:
                i -= 1
                out_size[first + i] += 1
                left -= 1


IDLE_TREE, IDLE_OTHER, IDLE_LATE, SCATTER, FAR, FAR_IDLE = 0, 1, 2, 3, 4, 5
"""Rows of `weight`: chance that a stage is idle in a tree, in another job, and on the last level
but one of another job; rates at which it is chosen for a further child on the next level, and
further down; chance that an idle stage outside of trees has a child further down, if possible
(first entry). Columns: stages with no, one, and several parents on the level before."""

TRIES = 32
"""Maximum number of repetitions of a rejected draw."""


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

    In a tree none of the last level but one (`late`) is idle. If all stages on paths through all
    levels would be idle, the first of them is made busy. Returns the two counts.
    """
    can_be_idle = not (tree and late)
    row = IDLE_TREE if tree else IDLE_LATE if late else IDLE_OTHER
    n_busy = 0
    path_continues = False
    recalled = -1
    for s in range(begin, end):
        if can_be_idle and uniform(random) < weight[row, min(n_in[s], 2)]:
            if on_path[s] == 1 and recalled < 0:
                recalled = n_idle
            idle[n_idle] = s
            n_idle += 1
        else:
            path_continues = path_continues or on_path[s] == 1
            busy[n_busy] = s
            n_busy += 1
    if not path_continues:
        busy[n_busy] = idle[recalled]
        n_busy += 1
        n_idle -= 1
        for k in range(recalled, n_idle):
            idle[k] = idle[k + 1]
    return n_busy, n_idle


@jit
def has_join(busy: I8, n_busy: int, n_in: I8) -> int:
    """Return 1 if one of the first `n_busy` stages of `busy` has several parents, else 0."""
    joins = 0
    for k in range(n_busy):
        if n_in[busy[k]] > 1:
            joins = 1
    return joins


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
    """Append the fewest edges that link every parent and every child; return the new count."""
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
def draw_weighted(stages: I8, n: int, n_in: I8, weight: F8, row: int, random: I8) -> int:
    """Draw an index among the first `n` stages, weighted by their number of parents."""
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
    """Draw a child two or more levels below `level`, among stages that already have parents."""
    last = n_levels - 1
    target_level = min(last, level + draw(span, 0, 0, last - level, uniform(random)))
    child: int = order[level0[target_level] + below(n_joined[target_level], random)]
    return child


@jit
def is_tree(edges: I4, begin: int, end: int, n_stages: int, state_count: I8) -> bool:
    """Check that every stage of a job but one has exactly one child."""
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
def has_edge(edges: I4, begin: int, end: int, parent: int, child: int) -> bool:
    """Check if the edge is among those from `begin` up to `end`."""
    exists = False
    for e in range(begin, end):
        exists = exists or (edges[0, e] == parent and edges[1, e] == child)
    return exists


@jit
def with_capacity(edges: I4, n_edges: int, more: int) -> I4:
    """Return `edges`, or a larger copy, with capacity for `more`."""
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
        slot = np.zeros(n + 1, dtype=np.int64)
        for e in range(begin, end):
            slot[edges[column, e] + 1] += 1
        if column == 0:
            out_edge0[stage + 1 : next_stage + 1] = slot[1:]
        for s in range(n):
            slot[s + 1] += slot[s]
        unsorted = edges[:, begin:end].copy()
        for e in range(end - begin):
            index = begin + slot[unsorted[column, e]]
            slot[unsorted[column, e]] += 1
            edges[0, index] = unsorted[0, e]
            edges[1, index] = unsorted[1, e]
    for e in range(begin, end):
        edges[1, e] += stage


FULL = 1000
"""Tables of shares are in thousandths."""


@jit
def link(
    stage0: I8, size0: I8, size: I8, shape: I8, book: I8, weight: F8, state_random: I8
) -> tuple[I8, I4]:
    """Draw the edges of each job; its stages are in order of their levels.

    From each level to the next, some stages stay idle. The others are linked with a number of
    stages of the next level so that each has an edge: where there are more parents, each child gets
    one and every other parent takes the child of a random one before it; where there are more
    children, it is the other way round. Jobs that are no trees get surplus edges among those. Last,
    idle stages may get a child further down, and so may others in jobs that are no trees. A path
    through all levels is kept, so that the critical path is as long as there are levels. A job
    that should not be a tree, but is drawn as one, is drawn again.
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
    edges: I4, n_edges: int, sizes: I8, tree: bool, book: I8, weight: F8, state_work: I8, random: I8
) -> tuple[I4, int]:
    """Append the edges of one job; return the edges, perhaps reallocated, and their number."""
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
        n_max = min(n_busy, n_next) if tree else n_next
        n_children = 1
        if n_max > 1:
            kind = 0 if tree else 1 if i == 0 else 2 + has_join(busy, n_busy, n_in)
            joined = book[book[kind] : book[kind + 1]]
            share = draw(joined, n_busy, n_next, FULL, uniform(random))
            n_children += (share * (n_max - 1) + FULL // 2) // FULL
        n_joined[i + 1] = n_children
        room = n_busy * n_children - max(n_busy, n_children)
        n_surplus = 0
        if room > 0 and not tree:
            share = draw(surplus, room, 0, FULL, uniform(random))
            n_surplus = (share * room + FULL // 2) // FULL
        shuffle(busy, 0, n_busy, n_busy, random)
        shuffle(order, middle, middle + n_next, n_children, random)
        edges = with_capacity(edges, n_edges, max(n_busy, n_children) + n_surplus)
        near = n_edges
        children = order[middle : middle + n_children]
        n_edges = link_near(edges, n_edges, busy[:n_busy], children, n_in, weight, partner, random)
        for _ in range(n_surplus):
            for _ in range(TRIES):
                s = busy[draw_weighted(busy, n_busy, n_in, weight, SCATTER, random)]
                child = children[below(n_children, random)]
                if not has_edge(edges, near, n_edges, s, child):
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
    edges = with_capacity(edges, n_edges, n_idle + n_far)
    far_edge = n_edges
    for k in range(n_idle):
        i = level[idle[k]]
        if i < n_levels - 2 and (tree or uniform(random) < weight[FAR_IDLE, 0]):
            edges[0, n_edges] = idle[k]
            edges[1, n_edges] = far_child(order, level0, n_joined, i, n_levels, span, random)
            n_edges += 1
    for _ in range(n_far):
        for _ in range(TRIES):
            s = order[draw_weighted(order, level0[n_levels - 2], n_in, weight, FAR, random)]
            child = far_child(order, level0, n_joined, level[s], n_levels, span, random)
            if not has_edge(edges, far_edge, n_edges, s, child):
                edges[0, n_edges], edges[1, n_edges] = s, child
                n_edges += 1
                break
    return edges, n_edges
