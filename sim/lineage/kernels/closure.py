"""All paths of a DAG from some sources, aggregated over a semiring: rows of its closure.

Nodes are numbered topologically: every edge leads to a higher number.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I4, I8, U1, Mask
from sim.base.jit import jit, part

PLUS_TIMES, MAX_PLUS, MAX_TIMES, MIN_PLUS, MAX_MIN = range(5)
"""Semirings: over paths, then along a path."""
ONE, ZERO = (1.0, 0.0, 1.0, 0.0, np.inf), (0.0, -np.inf, 0.0, np.inf, -np.inf)
"""By semiring, the weight of no step, and that of no path."""

LANES = 8
"""Sources that one pass over the nodes serves."""


@part
def along(semiring: int, a: float, b: float) -> float:
    """Combine the weights of two legs of a path."""
    if semiring in (PLUS_TIMES, MAX_TIMES):
        return a * b
    if semiring == MAX_MIN:
        return min(a, b)
    return a + b


@part
def over(semiring: int, a: float, b: float) -> float:
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
    down: I4,
    wt: F8,
    budget: int,
    over_budget: Mask,
) -> int:
    """Write the rows of `source` from `begin` on, as many as there is room for.

    A row is solved in one pass over what its source reaches: depth first for a topological order,
    then each node hands its weight on. That is the closure's row: by distributivity
    b = w ⊕ b ⊗ w, and on a DAG this has one solution.
    """
    n = len(out0) - 1
    seen = np.full(n, -1, np.int32)
    total = np.zeros(n)
    stack = np.empty(budget + 1, np.int32)
    at = np.empty(budget + 1, np.int64)
    post = np.empty(budget + 1, np.int32)
    filled = row0[begin]
    for i in range(begin, len(source)):
        s, stop = source[i], end[i]
        n_post, depth, n_seen = 0, 0, 1
        stack[0], at[0], seen[s] = s, out0[s], i
        while depth >= 0:
            node = stack[depth]
            e = at[depth]
            if e < out0[node + 1] and child[e] < stop:
                at[depth] = e + 1
                other = child[e]
                if seen[other] != i:
                    if n_seen == budget:
                        break
                    seen[other] = i
                    n_seen += 1
                    depth += 1
                    stack[depth], at[depth] = other, out0[other]
            else:
                post[n_post] = node
                n_post += 1
                depth -= 1
        if depth >= 0:
            over_budget[i] = True
            row0[i + 1] = filled
            continue
        if filled + n_post - 1 > len(down):
            return i
        for e in range(out0[s], out0[s + 1]):  # seen: i once reached, -2 - i once weighted
            other = child[e]
            if other >= stop:
                break
            if seen[other] == i:
                seen[other] = -2 - i
                total[other] = weight[e]
            else:
                total[other] = over(semiring, total[other], weight[e])
        for k in range(n_post - 2, -1, -1):
            node = post[k]
            mine = total[node]
            for e in range(out0[node], out0[node + 1]):
                other = child[e]
                if other >= stop:
                    break
                w = along(semiring, mine, weight[e])
                if seen[other] == i:
                    seen[other] = -2 - i
                    total[other] = w
                else:
                    total[other] = over(semiring, total[other], w)
            if submit_s[node] <= cut_s[i]:
                down[filled] = node
                wt[filled] = mine
                filled += 1
        row0[i + 1] = filled
    return len(source)


@jit
def lane_totals(
    in0: I8, parent: I4, weight: F8, semiring: int, source: I4, end: int, total: F8, reached: U1
) -> None:
    """Solve the rows of up to `LANES` sources in one pass over all nodes between."""
    one, zero = ONE[semiring], ZERO[semiring]
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
                    t[k] = zero
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
                t[k] = zero
        if is_source:
            t[lane] = one
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
    down: I4,
    wt: F8,
) -> None:
    """Write what `lane_totals` found as rows; ``row0`` is given by `lane_counts`."""
    at = row0.copy()
    for node in range(source[0] + 1, end):
        bits = reached[node]
        if bits == 0:
            continue
        for k in range(len(source)):
            if (bits >> k) & 1 and node != source[k] and submit_s[node] <= cut_s[k]:
                down[at[k]] = node
                wt[at[k]] = total[node, k]
                at[k] += 1


@jit
def lane_counts(source: I4, end: int, submit_s: F8, cut_s: F8, reached: U1) -> I8:
    """Count the pairs of each lane that count; return where each row begins, (S + 1,) int64."""
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
    down: I4,
    wt: F8,
    max_hops: int,
) -> int:
    """Do as `reach_rows`, of paths of at most `max_hops` edges: hop after hop."""
    n = len(out0) - 1
    seen = np.full(n, -1, np.int32)
    total = np.zeros(n)
    found = np.empty(n, np.int32)
    fresh = np.full(n, -1, np.int64)
    here, there = np.empty(n, np.int32), np.empty(n, np.int32)
    now, later = np.zeros(n), np.zeros(n)
    stamp = 0
    filled = row0[begin]
    for i in range(begin, len(source)):
        stop = end[i]
        n_found, n_here = 0, 0
        for e in range(out0[source[i]], out0[source[i] + 1]):
            other = child[e]
            if other >= stop:
                break
            if seen[other] != i:
                seen[other] = i
                found[n_found] = other
                here[n_here] = other
                n_found += 1
                n_here += 1
                total[other] = weight[e]
                now[other] = weight[e]
            else:
                total[other] = over(semiring, total[other], weight[e])
                now[other] = total[other]
        hops = 1
        while n_here > 0 and hops < max_hops:
            n_there = 0
            stamp += 1
            for k in range(n_here):
                node = here[k]
                for e in range(out0[node], out0[node + 1]):
                    other = child[e]
                    if other >= stop:
                        break
                    w = along(semiring, now[node], weight[e])
                    if fresh[other] != stamp:
                        fresh[other] = stamp
                        there[n_there] = other
                        n_there += 1
                        later[other] = w
                    else:
                        later[other] = over(semiring, later[other], w)
            for k in range(n_there):
                node = there[k]
                if seen[node] != i:
                    seen[node] = i
                    found[n_found] = node
                    n_found += 1
                    total[node] = later[node]
                else:
                    total[node] = over(semiring, total[node], later[node])
            here, there = there, here
            now, later = later, now
            n_here = n_there
            hops += 1
        if filled + n_found > len(down):
            return i
        for k in range(n_found):
            if submit_s[found[k]] <= cut_s[i]:
                down[filled] = found[k]
                wt[filled] = total[found[k]]
                filled += 1
        row0[i + 1] = filled
    return len(source)
