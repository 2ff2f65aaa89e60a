"""Minimum gaps between stages of a DAG: the loops behind ``tight_lb``.

Within a part of a job's order, stages are numbered from 1 by their position; 0 stands for the begin
and g + 1 for the end. Two tables over pairs of stages are built together:

- ``gap[t, s]``: the least time from the last end of t to the first begin of s; -1 unless all
  tasks of s wait for all tasks of t;
- ``lead[t, s]``: the least time from the first begin of t to the first begin of s; -1 unless
  each task of s waits for some task of t.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I1, I4, I8, Mask
from sim.base.jit import jit
from sim.bounds.kernels.bounds import lifted_energy

N_SEEDS = 24
"""Number of packings of a part's stages that are tried
(`sim.bounds.kernels.bounds.lifted_energy`)."""

MAX_NESTED = 40
"""In parts of more stages than this, only gaps from the begin or to the end are closed by work."""

MAX_STAGES = 400
"""Limit of stages of a part for pair-by-pair bounds."""


@jit
def part_bounds(
    order: I8,
    part0: I8,
    edge0: I8,
    edge_child: I4,
    edge_kind: I1,
    stage_task0: I8,
    stage_min: F8,
    stage_whole: F8,
    stage_work: F8,
    load: F8,
    demand: I8,
    shapes: I8,
    count: I8,
) -> F8:
    """Bound the duration of each part from below."""
    position = np.empty(order.shape[0], np.int64)
    for i in range(order.shape[0]):
        position[order[i]] = i
    out = np.zeros(part0.shape[0] - 1, np.float64)
    for p in range(part0.shape[0] - 1):
        first, last = part0[p], part0[p + 1]
        g = last - first
        rows = order[first:last]
        if g == 1:
            out[p] = stage_whole[rows[0]]
            continue
        if g > MAX_STAGES:
            continue
        n_tasks = np.zeros(g, np.int64)
        for i in range(g):
            n_tasks[i] = stage_task0[rows[i] + 1] - stage_task0[rows[i]]
        child0 = np.zeros(g + 1, np.int64)
        for i in range(g):
            for e in range(edge0[rows[i]], edge0[rows[i] + 1]):
                if position[edge_child[e]] < last:
                    child0[i + 1] += 1
            child0[i + 1] += child0[i]
        child = np.zeros(child0[g], np.int64)
        kind = np.zeros(child0[g], np.int64)
        n = 0
        for i in range(g):
            for e in range(edge0[rows[i]], edge0[rows[i] + 1]):
                if position[edge_child[e]] < last:
                    child[n] = position[edge_child[e]] - first
                    kind[n] = edge_kind[e]
                    n += 1
        exclusive = waits_for_all(child0, child, kind, n_tasks)
        lifted = lifted_energy(
            demand[rows], n_tasks, stage_work[rows], exclusive, shapes, count, N_SEEDS
        )
        n_resources = load.shape[1]
        energy = np.zeros((g + 2, n_resources + lifted.shape[0]), np.float64)
        for i in range(g):
            energy[i + 1, :n_resources] = load[rows[i]]
            energy[i + 1, n_resources:] = lifted[:, i]
        out[p] = close_gaps(
            child0, child, kind, n_tasks, stage_min[rows], stage_whole[rows], energy
        )
    return out


@jit
def waits_for_all(child0: I8, child: I8, kind: I8, n_tasks: I8) -> Mask:
    """Find the pairs of stages of which one waits for all of the other."""
    g = n_tasks.shape[0]
    all_wait = np.zeros((g, g), np.bool_)  # all tasks of the column wait for all of the row
    some_wait = np.zeros((g, g), np.bool_)  # all tasks of the column wait for one of the row
    for t in range(g - 1, -1, -1):
        some_wait[t, t] = True
        for e in range(child0[t], child0[t + 1]):
            c = child[e]
            for s in range(c, g):
                if kind[e] == 0:
                    all_wait[t, s] |= some_wait[c, s]
                elif n_tasks[c] >= n_tasks[t]:
                    all_wait[t, s] |= all_wait[c, s]
                if kind[e] == 1 and n_tasks[c] <= n_tasks[t]:
                    some_wait[t, s] |= some_wait[c, s]
        for s in range(t + 1, g):
            some_wait[t, s] |= all_wait[t, s]
    for t in range(g):
        for s in range(t):
            all_wait[t, s] = all_wait[s, t]
    return all_wait


@jit
def close_gaps(
    child0: I8, child: I8, kind: I8, n_tasks: I8, shortest: F8, whole: F8, energy: F8
) -> float:
    """Fill ``gap`` and ``lead``; return the gap from the begin to the end.

    Pairs are taken from the last stage backwards, so that all gaps between two stages are closed
    before the pair is. With B the stages between t and s, which all wait for t and s for them,
    and any subset A of B: gap[t, s] is at least min over A of gap[t, .] + the work of A over the
    parallel capacity + min over A of gap[., s]. The subsets that matter are those of all stages
    with a gap from t and a gap to s of at least some values.
    """
    g = n_tasks.shape[0]
    end = g + 1
    gap = np.full((g + 2, g + 2), -1.0)
    lead = np.full((g + 2, g + 2), -1.0)
    between = np.zeros(g, np.int64)
    head = np.zeros(g, np.float64)
    tail = np.zeros(g, np.float64)
    for t in range(g, -1, -1):
        gap[t, end] = 0.0
        if t == 0:
            for c in range(1, end):
                gap[0, c] = max(gap[0, c], 0.0)
                for s in range(c + 1, end + 1):
                    gap[0, s] = max(gap[0, s], lead[c, s])
        else:
            for e in range(child0[t - 1], child0[t]):
                c = child[e] + 1
                if kind[e] == 0:
                    for s in range(c, end + 1):
                        gap[t, s] = max(gap[t, s], lead[c, s])
                elif n_tasks[c - 1] >= n_tasks[t - 1]:
                    for s in range(c + 1, end + 1):
                        if gap[c, s] >= 0:
                            gap[t, s] = max(gap[t, s], shortest[c - 1] + gap[c, s])
        for s in range(t + 2, end + 1):
            if gap[t, s] < 0:
                continue
            n = 0
            for c in range(t + 1, s):
                if gap[t, c] >= 0:
                    if lead[c, s] >= 0:
                        gap[t, s] = max(gap[t, s], gap[t, c] + lead[c, s])
                    if gap[c, s] >= 0:
                        between[n], head[n], tail[n] = c, gap[t, c], gap[c, s]
                        n += 1
            if n > 1 and (g <= MAX_NESTED or t == 0 or s == end):
                gap[t, s] = by_work(gap[t, s], between[:n], head[:n], tail[:n], energy)
        if t == 0:
            break
        lead[t, t] = 0.0
        for s in range(t + 1, end + 1):
            if gap[t, s] >= 0:
                lead[t, s] = whole[t - 1] + gap[t, s]
        for e in range(child0[t - 1], child0[t]):
            c = child[e] + 1
            if kind[e] == 1 and n_tasks[c - 1] <= n_tasks[t - 1]:
                for s in range(c, end + 1):
                    if lead[c, s] >= 0:
                        lead[t, s] = max(lead[t, s], shortest[t - 1] + lead[c, s])
    total: float = gap[0, end]
    return total


@jit
def by_work(gap: float, between: I8, head: F8, tail: F8, energy: F8) -> float:
    """Raise a gap to head + work + tail of the best subset of the stages between."""
    n, n_measures = between.shape[0], energy.shape[1]
    by_tail = np.argsort(-tail, kind="mergesort")
    used = np.empty(n_measures, np.float64)
    for i in range(n):
        begin = head[i]
        used[:] = 0.0
        for j in range(n):
            c = by_tail[j]
            if head[c] < begin:
                continue
            max_used = 0.0
            for k in range(n_measures):
                used[k] += energy[between[c], k]
                max_used = max(max_used, used[k])
            gap = max(gap, begin + max_used + tail[c])
    return gap
