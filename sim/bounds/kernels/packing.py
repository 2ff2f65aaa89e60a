"""How much of a set of tasks can run at one instant, and in how many waves a stage runs.

A *configuration* is a multiset of tasks that one machine can run at once: within its capacity in
every resource, no more tasks of a stage than it has, and no two stages of which one waits for all
of the other. Weights are *valid* when no configuration weighs more than 1.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.base.jit import jit

MOST_ALIKE = 16
"""A stage of which more tasks than this fit one machine is not lifted: it packs nearly fluidly."""

MOST_NODES = 400
"""Search nodes for one maximum; beyond, the caller takes the trivial answer, which is valid."""

_LEAST = 1e-9


@jit
def fitting(room: I8, demand: I8, most: int) -> int:
    """Count the tasks of `demand` (R,) that fit in `room` (R,), at most `most`."""
    n = most
    for r in range(room.shape[0]):
        if demand[r] > 0:
            n = min(n, room[r] // demand[r])
    return n


@jit
def stage_waves(stage_task0: I8, task_duration: F8, slots: I8) -> F8:
    """Bound the time in which each stage can run whole when few of its tasks run at once.

    At most K tasks at once means K slots (an interval graph is perfect). Of the jK + 1 longest
    tasks some slot runs j + 1, and these last no less than the j + 1 shortest of them.
    """
    out = np.zeros(slots.shape[0], np.float64)
    for s in range(slots.shape[0]):
        first, last = stage_task0[s], stage_task0[s + 1]
        n, k = last - first, slots[s]
        low, high = task_duration[first], task_duration[first]
        for t in range(first, last):
            low, high = min(low, task_duration[t]), max(high, task_duration[t])
        out[s] = max(high, low * ((n + k - 1) // k))
        if n <= k or low == high:
            continue
        longest = np.sort(task_duration[first:last])[::-1]
        total = longest.sum()
        out[s] = max(out[s], total / k)
        for j in range(1, (n - 1) // k + 1):
            out[s] = max(out[s], longest[j * k - j : j * k + 1].sum())
    return out


@jit
def heaviest(
    room: I8, items: I8, n_items: int, demand: I8, most: I8, weight: F8, apart: Mask
) -> float:
    """Find the greatest weight of a configuration in `room`, by depth-first search."""
    n_resources = room.shape[0]
    taken = np.zeros(n_items + 1, np.int64)
    free = np.zeros((n_items + 1, n_resources), np.int64)
    value = np.zeros(n_items + 1, np.float64)
    rest = np.zeros(n_items + 1, np.float64)  # what the levels from here on can add at most
    for i in range(n_items - 1, -1, -1):
        s = items[i]
        rest[i] = rest[i + 1] + weight[s] * fitting(room, demand[s], most[s])
    free[0] = room
    best, level, n_nodes, entering = 0.0, 0, 0, True
    while level >= 0:
        if entering:
            if level == n_items or value[level] + rest[level] <= best:
                best = max(best, value[level])
                level -= 1
                entering = False
                continue
            s = items[level]
            taken[level] = fitting(free[level], demand[s], most[s])
            for i in range(level):
                if taken[i] > 0 and apart[items[i], s]:
                    taken[level] = 0
        elif taken[level] == 0:
            level -= 1
            continue
        else:
            taken[level] -= 1
        n_nodes += 1
        if n_nodes > MOST_NODES:
            return np.inf
        s = items[level]
        for r in range(n_resources):
            free[level + 1, r] = free[level, r] - taken[level] * demand[s, r]
        value[level + 1] = value[level] + taken[level] * weight[s]
        level += 1
        entering = True
    return best


@jit
def lift(order: I8, demand: I8, most: I8, apart: Mask, room: I8) -> F8:
    """Make valid weights by sequential lifting.

    The first stage of `order` weighs 1 over the number of its tasks that fit. Each next stage t
    is given the most that keeps the weights valid: the least, over j tasks of t beside the
    heaviest configuration Z(j) of the stages before it, of (1 - Z(j)) / j.
    """
    weight = np.zeros(demand.shape[0], np.float64)
    items = np.zeros(order.shape[0], np.int64)
    n_items = 0
    left = np.zeros(room.shape[0], np.int64)
    for i in range(order.shape[0]):
        t = order[i]
        k = fitting(room, demand[t], most[t])
        if k < 1 or k > MOST_ALIKE:
            continue
        beside = np.zeros(order.shape[0], np.int64)
        n_beside = 0
        for j in range(n_items):
            if not apart[items[j], t]:
                beside[n_beside] = items[j]
                n_beside += 1
        least = 1.0
        for j in range(1, k + 1):
            for r in range(room.shape[0]):
                left[r] = room[r] - j * demand[t, r]
            z = heaviest(left, beside, n_beside, demand, most, weight, apart)
            least = min(least, (1.0 - z) / j)
            if least < _LEAST:
                break
        if least >= _LEAST:
            weight[t] = least
            items[n_items] = t
            n_items += 1
    return weight


@jit
def lifted_energy(
    demand: I8, most: I8, work: F8, apart: Mask, shapes: I8, count: I8, n_seeds: int
) -> F8:
    """Measure the work of stages by several valid weights, each lifted from another stage."""
    n_stages, n_shapes = work.shape[0], count.shape[0]
    by_work = np.argsort(-work)
    order = np.empty(n_stages, np.int64)
    everything = np.arange(n_stages)
    n = min(n_seeds, n_stages)
    energy = np.zeros((n, n_stages), np.float64)
    for i in range(n):
        order[0] = by_work[i]
        order[1 : i + 1] = by_work[:i]
        order[i + 1 :] = by_work[i + 1 :]
        weight = lift(order, demand, most, apart, shapes[0])
        at_once = 0.0
        for h in range(n_shapes):
            z = 1.0
            if 0 < h < 4:
                z = min(z, heaviest(shapes[h], everything, n_stages, demand, most, weight, apart))
            at_once += count[h] * z
        for s in range(n_stages):
            energy[i, s] = weight[s] * work[s] / at_once
    return energy
