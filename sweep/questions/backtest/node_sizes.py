"""Sizes of a log's nodes: the least on which its jobs can have run.

These are the jobs of `sweep.questions.backtest.holdings`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I8, offsets
from sweep.questions.backtest.holdings import Holdings
from sweep.questions.backtest.node_lists import Nodes

_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")


@dataclass(frozen=True)
class NodeSizes:
    """Least sizes of N nodes, in the unit of the uses.

    Attributes
    ----------
    size : (N,) int64
    is_spread : bool
        They depend on how jobs on several nodes are shared out, which is a guess.
    n_alike : int
        Nodes on which less was ever in use: they are taken to be like others of their name.
    """

    size: I8
    is_spread: bool
    n_alike: int


def least_sizes(begin_s: F8, end_s: F8, use: I8, stage: I8, nodes: Nodes) -> NodeSizes:
    """Compute the least sizes of nodes on which all uses fit at any time.

    A node is as large as what uses of it alone had at one time, or those of another node of its
    family; and large enough, with the other nodes, for the uses of several.

    Parameters
    ----------
    begin_s, end_s : (U,) float64
        Uses, each longer than 0 s.
    use : (U,) int64
        Room of each use.
    stage : (U,) int64
        Row of each use in `nodes`; each has a node.
    """
    node, count = nodes.select(stage)
    first = offsets(count)[:-1]
    alone = np.flatnonzero(count == 1)
    peak = _peaks(begin_s[alone], end_s[alone], node[first[alone]], use[alone], nodes.n_nodes)
    family = families(nodes.names)
    largest = np.zeros(int(family.max(initial=0)) + 1, np.int64)
    np.maximum.at(largest, family, peak)
    holdings = Holdings(largest[family], family)
    for _ in holdings.replay(begin_s, end_s, use, node, count):
        pass
    n_alike = int((np.maximum(peak, holdings.peak) < holdings.size).sum())
    return NodeSizes(holdings.size, holdings.is_spread, n_alike)


def families(names: tuple[str, ...]) -> I8:
    """Return the family of each node, numbered: its name without its last number, (N,) int64.

    >>> families(("c1", "c07", "rack2-g1", "rack3-g1")).tolist()
    [0, 0, 1, 2]
    """
    number: dict[str, int] = {}
    stems = (_LAST_NUMBER.sub("#", name) for name in names)
    return np.array([number.setdefault(stem, len(number)) for stem in stems], np.int64)


def _peaks(begin_s: F8, end_s: F8, node: I8, use: I8, n_nodes: int) -> I8:
    """Return the most that is in use at one time on each node, (N,); what ends makes room first."""
    both = np.concatenate((node, node))
    time_s = np.concatenate((end_s, begin_s))  # ends first, as the sort is stable
    order = np.lexsort((time_s, both))
    # what a node has in use begins and ends at 0, so one sum goes through all of them
    in_use = np.cumsum(np.concatenate((-use, use))[order])
    peak = np.zeros(n_nodes, np.int64)
    np.maximum.at(peak, both[order], in_use)
    return peak
