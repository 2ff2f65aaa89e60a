"""Compiled loops behind `sim.bounds`: parts and paths of jobs, and packing at one instant.

`sim.workload.kernels.paths` says how DAGs are passed. A *configuration* is a multiset of tasks that
one machine can run at once: within its capacity in every resource, no more tasks of a stage than it
has, and no two stages of which one waits for all of the other. Weights are *valid* when no
configuration weighs more than 1.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I1, I4, I8, Mask
from sim.base.jit import jit


@jit
def part_starts(
    order: I8, job_stage0: I8, edge0: I8, edge_child: I4, edge_kind: I1, stage_task0: I8
) -> Mask:
    """Find the cuts that split each job into totally ordered parts.

    A cut is a position in the order such that every task after it waits for every task before it.
    In any topological order, the stages before a cut are a prefix; so each prefix is tested.
    Call *sinks* the stages of a prefix some of whose tasks no other of its stages waits for, and
    *sources* the stages behind it some of whose tasks wait for none of the others there. There is
    a cut exactly where every source is a barrier child of every sink. (A one-to-one edge makes
    all tasks of the child wait when the child has no more tasks than the parent, and all of the
    parent's waited for when it has no fewer.) All prefixes are counted in one pass, by intervals.
    """
    n_stages = order.shape[0]
    position = np.empty(n_stages, np.int64)
    for i in range(n_stages):
        position[order[i]] = i
    covered = np.full(n_stages, n_stages, np.int64)  # first position of a child that waits for all
    gated = np.full(n_stages, -1, np.int64)  # last position of a parent that all wait for
    for s in range(n_stages):
        n = stage_task0[s + 1] - stage_task0[s]
        for e in range(edge0[s], edge0[s + 1]):
            child = edge_child[e]
            n_child = stage_task0[child + 1] - stage_task0[child]
            if edge_kind[e] == 0 or n_child >= n:
                covered[s] = min(covered[s], position[child])
            if edge_kind[e] == 0 or n_child <= n:
                gated[child] = max(gated[child], position[s])
    # Differences over positions i, of counts for the prefix that ends before position i.
    sinks = np.zeros(n_stages + 1, np.int64)
    sources = np.zeros(n_stages + 1, np.int64)
    joined = np.zeros(n_stages + 1, np.int64)
    for j in range(job_stage0.shape[0] - 1):
        first, last = job_stage0[j], job_stage0[j + 1]
        for s in range(first, last):
            sinks[position[s] + 1] += 1
            sinks[min(covered[s], last - 1) + 1] -= 1
            sources[max(gated[s], first - 1) + 1] += 1
            sources[position[s] + 1] -= 1
            previous = -1
            for e in range(edge0[s], edge0[s + 1]):
                child = edge_child[e]
                if edge_kind[e] == 0 and child != previous:
                    previous = child
                    begin = max(position[s], gated[child]) + 1
                    end = min(covered[s], position[child]) + 1
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
                earliest_end = all_start[s, k] + stage_min[s]
                some_start[child, k] = max(some_start[child, k], earliest_end)
                if n_child <= n:
                    all_start[child, k] = max(all_start[child, k], earliest_end)
                if n_child >= n:
                    some_start[child, k] = max(some_start[child, k], end[s, k])
    return end[:, 1].copy()


MAX_COPIES = 16
"""A stage of which more tasks than this fit one machine is not lifted: it packs almost fluidly."""

MAX_NODES = 400
"""Limit of search nodes for one maximum; beyond, the caller takes the trivial, valid bound."""

_MIN_WEIGHT = 1e-9


@jit
def fitting(room: I8, demand: I8, limit: int) -> int:
    """Count the tasks of `demand` (R,) that fit in `room` (R,), at most `limit`."""
    n = limit
    for r in range(room.shape[0]):
        if demand[r] > 0:
            n = min(n, room[r] // demand[r])
    return n


@jit
def stage_waves(stage_run0: I8, run_task0: I8, run_duration: F8, slots: I8) -> F8:
    """Bound the time in which each stage can run whole when few of its tasks run at once.

    At most K tasks at once means K slots (an interval graph is perfect). Of the jK + 1 longest
    tasks some slot runs j + 1, and these last no less than the j + 1 shortest of them. The arrays
    are of `sim.workload.runs`; only stages with several waves of unlike tasks are expanded.
    """
    out = np.zeros(slots.shape[0], np.float64)
    for s in range(slots.shape[0]):
        first, last = stage_run0[s], stage_run0[s + 1]
        n, k = run_task0[last] - run_task0[first], slots[s]
        low, high = run_duration[first:last].min(), run_duration[first:last].max()
        out[s] = max(high, low * ((n + k - 1) // k))
        if n <= k or low == high:
            continue
        longest = np.empty(n, np.float64)
        for i in range(first, last):
            begin, end = run_task0[i] - run_task0[first], run_task0[i + 1] - run_task0[first]
            longest[begin:end] = run_duration[i]
        longest = np.sort(longest)[::-1]
        total = longest.sum()
        out[s] = max(out[s], total / k)
        for j in range(1, (n - 1) // k + 1):
            out[s] = max(out[s], longest[j * k - j : j * k + 1].sum())
    return out


@jit
def heaviest(
    room: I8, items: I8, n_items: int, demand: I8, n_tasks: I8, weight: F8, exclusive: Mask
) -> float:
    """Return the greatest weight of a configuration in `room`, by depth-first search."""
    n_resources = room.shape[0]
    taken = np.zeros(n_items + 1, np.int64)
    free = np.zeros((n_items + 1, n_resources), np.int64)
    value = np.zeros(n_items + 1, np.float64)
    max_rest = np.zeros(n_items + 1, np.float64)  # bound of the weight of the levels from here on
    for i in range(n_items - 1, -1, -1):
        s = items[i]
        max_rest[i] = max_rest[i + 1] + weight[s] * fitting(room, demand[s], n_tasks[s])
    free[0] = room
    best, level, n_nodes, entering = 0.0, 0, 0, True
    while level >= 0:
        if entering:
            if level == n_items or value[level] + max_rest[level] <= best:
                best = max(best, value[level])
                level -= 1
                entering = False
                continue
            s = items[level]
            taken[level] = fitting(free[level], demand[s], n_tasks[s])
            for i in range(level):
                if taken[i] > 0 and exclusive[items[i], s]:
                    taken[level] = 0
        elif taken[level] == 0:
            level -= 1
            continue
        else:
            taken[level] -= 1
        n_nodes += 1
        if n_nodes > MAX_NODES:
            return np.inf
        s = items[level]
        for r in range(n_resources):
            free[level + 1, r] = free[level, r] - taken[level] * demand[s, r]
        value[level + 1] = value[level] + taken[level] * weight[s]
        level += 1
        entering = True
    return best


@jit
def lift(order: I8, demand: I8, n_tasks: I8, exclusive: Mask, room: I8) -> F8:
    """Make valid weights by sequential lifting.

    The first stage of `order` weighs 1 over the number of its tasks that fit. Each next stage t
    gets the largest weight that keeps the weights valid: the least, over j tasks of t beside the
    heaviest configuration Z(j) of the stages before it, of (1 - Z(j)) / j.
    """
    weight = np.zeros(demand.shape[0], np.float64)
    items = np.zeros(order.shape[0], np.int64)
    n_items = 0
    left = np.zeros(room.shape[0], np.int64)
    for i in range(order.shape[0]):
        t = order[i]
        k = fitting(room, demand[t], n_tasks[t])
        if k < 1 or k > MAX_COPIES:
            continue
        beside = np.zeros(order.shape[0], np.int64)
        n_beside = 0
        for j in range(n_items):
            if not exclusive[items[j], t]:
                beside[n_beside] = items[j]
                n_beside += 1
        min_weight = 1.0
        for j in range(1, k + 1):
            for r in range(room.shape[0]):
                left[r] = room[r] - j * demand[t, r]
            heaviest_beside = heaviest(left, beside, n_beside, demand, n_tasks, weight, exclusive)
            min_weight = min(min_weight, (1.0 - heaviest_beside) / j)
            if min_weight < _MIN_WEIGHT:
                break
        if min_weight >= _MIN_WEIGHT:
            weight[t] = min_weight
            items[n_items] = t
            n_items += 1
    return weight


@jit
def lifted_energy(
    demand: I8, n_tasks: I8, work: F8, exclusive: Mask, shapes: I8, count: I8, n_seeds: int
) -> F8:
    """Compute the work of stages by several valid weights, each lifted from another stage."""
    n_stages, n_shapes = work.shape[0], count.shape[0]
    by_work = np.argsort(-work, kind="mergesort")
    order = np.empty(n_stages, np.int64)
    everything = np.arange(n_stages)
    n = min(n_seeds, n_stages)
    energy = np.zeros((n, n_stages), np.float64)
    for i in range(n):
        order[0] = by_work[i]
        order[1 : i + 1] = by_work[:i]
        order[i + 1 :] = by_work[i + 1 :]
        weight = lift(order, demand, n_tasks, exclusive, shapes[0])
        total_weight = 0.0
        for h in range(n_shapes):
            max_weight = 1.0
            if 0 < h < 4:
                max_weight = min(
                    max_weight,
                    heaviest(shapes[h], everything, n_stages, demand, n_tasks, weight, exclusive),
                )
            total_weight += count[h] * max_weight
        for s in range(n_stages):
            energy[i, s] = weight[s] * work[s] / total_weight
    return energy
