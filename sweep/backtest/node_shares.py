"""Slots of jobs on several nodes: a log has their sum, so what each node held is a guess."""

from __future__ import annotations

import heapq

import numpy as np

from sim.base.arrays import F8, I8, offsets
from sweep.backtest.node_lists import Nodes


def least_size(begin_s: F8, end_s: F8, slots: I8, stage: I8, nodes: Nodes) -> tuple[int, bool]:
    """Return the least size of equal nodes on which all uses may have run, and if it is a guess.

    Three numbers are certain: the peak of uses of one node alone, that of all uses over all nodes,
    and, when a use of several nodes begins, its slots and those of single-node uses on its nodes,
    over these nodes. The size is the largest; it is a guess if the first is smaller.

    Parameters
    ----------
    begin_s, end_s : (U,) float64
        Uses.
    slots : (U,) int64
    stage : (U,) int64
        Row of each use in `nodes`.
    """
    count = nodes.count[stage]
    first = offsets(nodes.count)[:-1][stage]
    order = np.lexsort((np.arange(len(begin_s)), begin_s))
    alone = np.zeros(nodes.n_nodes, np.int64)  # slots of uses of one node
    running: list[tuple[float, int]] = []
    total = most_alone = most_total = most_group = 0
    for use in order.tolist():
        while running and running[0][0] <= begin_s[use]:
            ended = heapq.heappop(running)[1]
            total -= int(slots[ended])
            if count[ended] == 1:
                alone[nodes.node[first[ended]]] -= slots[ended]
        total += int(slots[use])
        heapq.heappush(running, (float(end_s[use]), use))
        on_nodes = nodes.node[first[use] : first[use] + count[use]]
        if count[use] == 1:
            alone[on_nodes[0]] += slots[use]
            most_alone = max(most_alone, int(alone[on_nodes[0]]))
        else:
            group = int(alone[on_nodes].sum() + slots[use])
            most_group = max(most_group, -(-group // int(count[use])))
        most_total = max(most_total, -(-total // nodes.n_nodes))
    size = max(most_alone, most_total, most_group)
    return size, size > most_alone


def shares(begin_s: F8, end_s: F8, use: I8, stage: I8, nodes: Nodes, room: I8) -> tuple[I8, I8, I8]:
    """Share uses out over their nodes: evenly, but none beyond its room while others have some.

    Parameters
    ----------
    use : (U, R) int64
        Room of each use, in quanta.
    room : (N, R) int64
        Room of each node.

    Returns
    -------
    use0 : (U+1,) int64
        The pairs of use u are ``use0[u]`` to ``use0[u+1]``.
    node : (P,) int64
    share : (P, R) int64
    """
    count = nodes.count[stage]
    use0 = offsets(count)
    row = np.repeat(np.arange(len(count)), count)
    rank = np.arange(len(row)) - use0[row]
    node = nodes.node[offsets(nodes.count)[:-1][stage][row] + rank]
    whole, n = use[row], count[row][:, None]
    share = whole // n + (rank[:, None] < whole % n)
    if (count > 1).any() and _is_beyond(begin_s[row], end_s[row], node, share, room):
        _level(begin_s, end_s, use0, node, share, room)
    return use0, node, share


def _is_beyond(begin_s: F8, end_s: F8, node: I8, share: I8, room: I8) -> bool:
    """Tell whether some node would hold more than its room at some time."""
    time_s = np.concatenate((end_s, begin_s))  # ends first, as the sort is stable
    both = np.concatenate((node, node))
    order = np.lexsort((time_s, both))
    change = np.concatenate((-share, share))[order]
    # what a node holds begins and ends at 0, so one sum goes through all of them
    return bool((np.cumsum(change, axis=0) > room[both[order]]).any())


def _level(begin_s: F8, end_s: F8, use0: I8, node: I8, share: I8, room: I8) -> None:
    """Move shares from nodes without room to others of the same use, in the order of begins."""
    free = room.copy()
    running: list[tuple[float, int]] = []
    for use in np.argsort(begin_s, kind="stable").tolist():
        while running and running[0][0] <= begin_s[use]:
            _, ended = heapq.heappop(running)
            pairs = slice(use0[ended], use0[ended + 1])
            free[node[pairs]] += share[pairs]
        pairs = slice(use0[use], use0[use + 1])
        on_nodes = node[pairs]
        over = np.maximum(share[pairs] - np.maximum(free[on_nodes], 0), 0)
        if over.any():
            share[pairs] -= over
            for resource, left in enumerate(over.sum(axis=0).tolist()):
                _spread(share[pairs][:, resource], free[on_nodes][:, resource], left)
        free[on_nodes] -= share[pairs]
        heapq.heappush(running, (float(end_s[use]), use))


def _spread(share: I8, free: I8, left: int) -> None:
    """Add `left` to shares that have room, as evenly as they can take it; the rest to all."""
    while left > 0:
        spare = np.flatnonzero(free - share > 0)
        if not len(spare):
            share += left // len(share) + (np.arange(len(share)) < left % len(share))
            return
        more = np.minimum(free[spare] - share[spare], max(left // len(spare), 1))
        more = np.minimum(more, np.maximum(left - (np.cumsum(more) - more), 0))
        share[spare] += more
        left -= int(more.sum())
