"""Compiled loops behind `sim.bounds`; see `sim.workload.kernels.paths` for how DAGs are passed."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I1, I4, I8, Mask
from sim.base.jit import jit


@jit
def part_starts(
    order: I8, job_stage0: I8, edge0: I8, edge_child: I4, edge_kind: I1, stage_task0: I8
) -> Mask:
    """Find where each job splits into totally ordered parts.

    A cut is a place in the order such that every task after it waits for every task before it.
    In any topological order, what comes before a cut is a prefix; so each prefix is looked at.
    Call *sinks* the stages of a prefix some of whose tasks no other of its stages waits for, and
    *sources* the stages behind it some of whose tasks wait for none of the others there. There is
    a cut exactly where every source is a barrier child of every sink. (A one-to-one edge makes
    all tasks of the child wait when the child has no more tasks than the parent, and all of the
    parent's waited for when it has no fewer.) All prefixes are counted in one pass, by intervals.
    """
    n_stages = order.shape[0]
    place = np.empty(n_stages, np.int64)
    for i in range(n_stages):
        place[order[i]] = i
    covered = np.full(n_stages, n_stages, np.int64)  # first place of a child that waits for all
    gated = np.full(n_stages, -1, np.int64)  # last place of a parent that all wait for
    for s in range(n_stages):
        n = stage_task0[s + 1] - stage_task0[s]
        for e in range(edge0[s], edge0[s + 1]):
            child = edge_child[e]
            n_child = stage_task0[child + 1] - stage_task0[child]
            if edge_kind[e] == 0 or n_child >= n:
                covered[s] = min(covered[s], place[child])
            if edge_kind[e] == 0 or n_child <= n:
                gated[child] = max(gated[child], place[s])
    # Differences over places i, of counts for the prefix that ends before place i.
    sinks = np.zeros(n_stages + 1, np.int64)
    sources = np.zeros(n_stages + 1, np.int64)
    joined = np.zeros(n_stages + 1, np.int64)
    for j in range(job_stage0.shape[0] - 1):
        first, last = job_stage0[j], job_stage0[j + 1]
        for s in range(first, last):
            sinks[place[s] + 1] += 1
            sinks[min(covered[s], last - 1) + 1] -= 1
            sources[max(gated[s], first - 1) + 1] += 1
            sources[place[s] + 1] -= 1
            previous = -1
            for e in range(edge0[s], edge0[s + 1]):
                child = edge_child[e]
                if edge_kind[e] == 0 and child != previous:
                    previous = child
                    begin = max(place[s], gated[child]) + 1
                    end = min(covered[s], place[child]) + 1
                    if begin < end:
                        joined[begin] += 1
                        joined[end] -= 1
    starts = np.zeros(n_stages, np.bool_)
    n_sinks, n_sources, n_joined = 0, 0, 0
    for j in range(job_stage0.shape[0] - 1):
        for i in range(job_stage0[j], job_stage0[j + 1]):
            n_sinks += sinks[i]
            n_sources += sources[i]
            n_joined += joined[i]
            starts[i] = i == job_stage0[j] or n_joined == n_sinks * n_sources
    return starts


@jit
def whole_stage_paths(
    order: I8,
    group: I8,
    edge0: I8,
    edge_child: I4,
    edge_kind: I1,
    stage_task0: I8,
    stage_min: F8,
    stage_whole: F8,
) -> F8:
    """Follow paths on which one stage runs whole and each other stage gives its shortest task.

    With barriers only this is ModCP of the DAGPS paper (§6, Fig. 9, 1c) for the paths that end in
    each stage. A one-to-one edge is followed as far as that stays a bound when the two stages
    differ in size: the child's tasks without a partner wait for nothing, and nothing waits for
    the parent's.
    """
    n_stages = order.shape[0]
    # No task of the stage starts before `all_start`; one that does start no earlier than
    # `some_start` exists. Column 0: no stage has run whole; column 1: at most one has.
    all_start = np.zeros((n_stages, 2), np.float64)
    some_start = np.zeros((n_stages, 2), np.float64)
    end = np.zeros((n_stages, 2), np.float64)
    for i in range(n_stages):
        s = order[i]
        n = stage_task0[s + 1] - stage_task0[s]
        for k in range(2):
            end[s, k] = max(all_start[s, k], some_start[s, k]) + stage_min[s]
        end[s, 1] = max(end[s, 1], all_start[s, 0] + stage_whole[s])
        for e in range(edge0[s], edge0[s + 1]):
            child = edge_child[e]
            if group[s] != group[child]:
                continue
            n_child = stage_task0[child + 1] - stage_task0[child]
            for k in range(2):
                if edge_kind[e] == 0:
                    all_start[child, k] = max(all_start[child, k], end[s, k])
                    continue
                each = all_start[s, k] + stage_min[s]
                some_start[child, k] = max(some_start[child, k], each)
                if n_child <= n:
                    all_start[child, k] = max(all_start[child, k], each)
                if n_child >= n:
                    some_start[child, k] = max(some_start[child, k], end[s, k])
    return end[:, 1].copy()
