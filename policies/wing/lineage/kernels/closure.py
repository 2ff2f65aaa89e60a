"""Rows of a DAG's transitive closure: all paths from some sources, aggregated over a semiring.

Nodes are numbered topologically: every edge leads to a higher number.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8, U1, Mask
from sim.base.jit import jit, part

PLUS_TIMES, MAX_PLUS, MAX_TIMES, MIN_PLUS, MAX_MIN = range(5)
"""Semirings, named OVER-PATHS_ALONG-A-PATH: `MAX_PLUS` adds along paths, takes their maximum."""
ONE, ZERO = (1.0, 0.0, 1.0, 0.0, np.inf), (0.0, -np.inf, 0.0, np.inf, -np.inf)
"""Identities, by semiring: the weight of the path without edges, and that of no path at all."""

LANES = 8
"""Sources served by one pass over the nodes."""


@part
def semiring_product(semiring: int, a: float, b: float) -> float:
    """Combine the weights of two legs of a path."""
    if semiring in (PLUS_TIMES, MAX_TIMES):
        return a * b
    if semiring == MAX_MIN:
        return min(a, b)
    return a + b


@part
def semiring_sum(semiring: int, a: float, b: float) -> float:
    """Combine the weights of two paths between the same nodes."""
    if semiring == PLUS_TIMES:
        return a + b
    if semiring == MIN_PLUS:
        return min(a, b)
    return max(a, b)


@jit
def reach_rows(
    out0: I8,
    child: I4,
    weight: F8,
    semiring: int,
    source: I4,
    begin: int,
    end: I4,
    submit_s: F8,
    cut_s: F8,
    row0: I8,
    out_node: I4,
    out_weight: F8,
    budget: int,
    over_budget: Mask,
) -> int:
    """Write closure rows for `source[begin:]` until the buffers are full; return the next index.

    One depth-first search from a source gives a topological order of the nodes it reaches. Then
    each node passes its weight on to its children. The result is the closure's row: by
    distributivity b = w ⊕ b ⊗ w, and on a DAG this has one solution. A source that reaches more
    than `budget` nodes is marked in `over_budget` and gets an empty row.
    """
    n = len(out0) - 1
    seen = np.full(n, -1, np.int32)
    total = np.zeros(n)
    stack = np.empty(budget + 1, np.int32)
    next_edge = np.empty(budget + 1, np.int64)
    post = np.empty(budget + 1, np.int32)
    n_written = row0[begin]
    for i in range(begin, len(source)):
        s, stop = source[i], end[i]
        n_post, depth, n_seen = 0, 0, 1
        stack[0], next_edge[0], seen[s] = s, out0[s], i
        while depth >= 0:
            node = stack[depth]
            e = next_edge[depth]
            if e < out0[node + 1] and child[e] < stop:
                next_edge[depth] = e + 1
                successor = child[e]
                if seen[successor] != i:
                    if n_seen == budget:
                        break
                    seen[successor] = i
                    n_seen += 1
                    depth += 1
                    stack[depth], next_edge[depth] = successor, out0[successor]
            else:
                post[n_post] = node
                n_post += 1
                depth -= 1
        if depth >= 0:
            over_budget[i] = True
            row0[i + 1] = n_written
            continue
        if n_written + n_post - 1 > len(out_node):
            return i
        for e in range(out0[s], out0[s + 1]):  # seen: i once reached, -2 - i once weighted
            successor = child[e]
            if successor >= stop:
                break
            if seen[successor] == i:
                seen[successor] = -2 - i
                total[successor] = weight[e]
            else:
                total[successor] = semiring_sum(semiring, total[successor], weight[e])
        for k in range(n_post - 2, -1, -1):
            node = post[k]
            node_weight = total[node]
            for e in range(out0[node], out0[node + 1]):
                successor = child[e]
                if successor >= stop:
                    break
                w = semiring_product(semiring, node_weight, weight[e])
                if seen[successor] == i:
                    seen[successor] = -2 - i
                    total[successor] = w
                else:
                    total[successor] = semiring_sum(semiring, total[successor], w)
            if submit_s[node] <= cut_s[i]:
                out_node[n_written] = node
                out_weight[n_written] = node_weight
                n_written += 1
        row0[i + 1] = n_written
    return len(source)


@jit
def lane_totals(
    in0: I8, parent: I4, weight: F8, semiring: int, source: I4, end: int, total: F8, reached: U1
) -> None:
    """Compute the rows of up to `LANES` sources in one pass over all nodes up to `end`."""
    empty_path, no_path = ONE[semiring], ZERO[semiring]
    first = source[0]
    t = np.empty(LANES)
    lane = 0
    for node in range(first, end):
        bits = 0
        for e in range(in0[node], in0[node + 1]):
            p = parent[e]
            if p < first or reached[p] == 0:
                continue
            if bits == 0:
                for k in range(LANES):
                    t[k] = no_path
            bits |= reached[p]
            w = weight[e]
            if semiring == PLUS_TIMES:
                for k in range(LANES):
                    t[k] += total[p, k] * w
            elif semiring == MAX_PLUS:
                for k in range(LANES):
                    t[k] = max(t[k], total[p, k] + w)
            elif semiring == MAX_TIMES:
                for k in range(LANES):
                    t[k] = max(t[k], total[p, k] * w)
            elif semiring == MIN_PLUS:
                for k in range(LANES):
                    t[k] = min(t[k], total[p, k] + w)
            else:
                for k in range(LANES):
                    t[k] = max(t[k], min(total[p, k], w))
        is_source = lane < len(source) and source[lane] == node
        if bits == 0 and is_source:
            for k in range(LANES):
                t[k] = no_path
        if is_source:
            t[lane] = empty_path
            bits |= 1 << lane
            lane += 1
        reached[node] = bits
        if bits != 0:
            for k in range(LANES):
                total[node, k] = t[k]


@jit
def lane_rows(
    source: I4,
    end: int,
    submit_s: F8,
    cut_s: F8,
    total: F8,
    reached: U1,
    row0: I8,
    out_node: I4,
    out_weight: F8,
) -> None:
    """Write the totals of `lane_totals` as closure rows; `lane_counts` returns their ``row0``."""
    position = row0.copy()
    for node in range(source[0] + 1, end):
        bits = reached[node]
        if bits == 0:
            continue
        for k in range(len(source)):
            if (bits >> k) & 1 and node != source[k] and submit_s[node] <= cut_s[k]:
                out_node[position[k]] = node
                out_weight[position[k]] = total[node, k]
                position[k] += 1


@jit
def lane_counts(source: I4, end: int, submit_s: F8, cut_s: F8, reached: U1) -> I8:
    """Count each lane's pairs within its cut-off; return the first index of each row, (S + 1,)."""
    row0 = np.zeros(len(source) + 1, np.int64)
    for node in range(source[0] + 1, end):
        bits = reached[node]
        if bits == 0:
            continue
        for k in range(len(source)):
            if (bits >> k) & 1 and node != source[k] and submit_s[node] <= cut_s[k]:
                row0[k + 1] += 1
    for k in range(len(source)):
        row0[k + 1] += row0[k]
    return row0


@jit
def hop_rows(
    out0: I8,
    child: I4,
    weight: F8,
    semiring: int,
    source: I4,
    begin: int,
    end: I4,
    submit_s: F8,
    cut_s: F8,
    row0: I8,
    out_node: I4,
    out_weight: F8,
    max_hops: int,
) -> int:
    """Write closure rows as `reach_rows` does, for paths of at most `max_hops` edges."""
    n = len(out0) - 1
    seen = np.full(n, -1, np.int32)
    total = np.zeros(n)
    reached = np.empty(n, np.int32)
    last_hop = np.full(n, -1, np.int64)
    frontier, next_frontier = np.empty(n, np.int32), np.empty(n, np.int32)
    frontier_weight, next_weight = np.zeros(n), np.zeros(n)
    hop_id = 0
    n_written = row0[begin]
    for i in range(begin, len(source)):
        stop = end[i]
        n_reached, n_frontier = 0, 0
        for e in range(out0[source[i]], out0[source[i] + 1]):
            successor = child[e]
            if successor >= stop:
                break
            if seen[successor] != i:
                seen[successor] = i
                reached[n_reached] = successor
                frontier[n_frontier] = successor
                n_reached += 1
                n_frontier += 1
                total[successor] = weight[e]
                frontier_weight[successor] = weight[e]
            else:
                total[successor] = semiring_sum(semiring, total[successor], weight[e])
                frontier_weight[successor] = total[successor]
        hops = 1
        while n_frontier > 0 and hops < max_hops:
            n_next = 0
            hop_id += 1
            for k in range(n_frontier):
                node = frontier[k]
                for e in range(out0[node], out0[node + 1]):
                    successor = child[e]
                    if successor >= stop:
                        break
                    w = semiring_product(semiring, frontier_weight[node], weight[e])
                    if last_hop[successor] != hop_id:
                        last_hop[successor] = hop_id
                        next_frontier[n_next] = successor
                        n_next += 1
                        next_weight[successor] = w
                    else:
                        next_weight[successor] = semiring_sum(semiring, next_weight[successor], w)
            for k in range(n_next):
                node = next_frontier[k]
                if seen[node] != i:
                    seen[node] = i
                    reached[n_reached] = node
                    n_reached += 1
                    total[node] = next_weight[node]
                else:
                    total[node] = semiring_sum(semiring, total[node], next_weight[node])
            frontier, next_frontier = next_frontier, frontier
            frontier_weight, next_weight = next_weight, frontier_weight
            n_frontier = n_next
            hops += 1
        if n_written + n_reached > len(out_node):
            return i
        for k in range(n_reached):
            if submit_s[reached[k]] <= cut_s[i]:
                out_node[n_written] = reached[k]
                out_weight[n_written] = total[reached[k]]
                n_written += 1
        row0[i + 1] = n_written
    return len(source)
