"""Slots of jobs on several nodes: a log has their sum, so what each node held is a guess."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8, offsets
from sweep.questions.backtest.holdings import Holdings
from sweep.questions.backtest.node_lists import Nodes


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
    node, count = nodes.select(stage)
    use0 = offsets(count)
    row = np.repeat(np.arange(len(count)), count)
    rank = np.arange(len(row)) - use0[row]
    whole, n = use[row], count[row][:, None]
    share = whole // n + (rank[:, None] < whole % n)
    if (count > 1).any() and _is_beyond(begin_s[row], end_s[row], node, share, room):
        _level(begin_s, end_s, use, node, count, share, room)
    return use0, node, share


def _is_beyond(begin_s: F8, end_s: F8, node: I8, share: I8, room: I8) -> bool:
    """Tell whether some node would hold more than its room at some time."""
    time_s = np.concatenate((end_s, begin_s))  # ends first, as the sort is stable
    both = np.concatenate((node, node))
    order = np.lexsort((time_s, both))
    change = np.concatenate((-share, share))[order]
    # what a node holds begins and ends at 0, so one sum goes through all of them
    return bool((np.cumsum(change, axis=0) > room[both[order]]).any())


def _level(begin_s: F8, end_s: F8, use: I8, node: I8, count: I8, share: I8, room: I8) -> None:
    """Replace shares by those with which all nodes hold their uses, or as nearly as can be."""
    use0 = offsets(count)
    for resource in range(use.shape[1]):
        holdings = Holdings(room[:, resource].copy(), np.arange(len(room)))
        for u, part in holdings.replay(begin_s, end_s, use[:, resource], node, count):
            share[use0[u] : use0[u + 1], resource] = part
