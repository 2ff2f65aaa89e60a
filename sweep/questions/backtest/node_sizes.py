"""Sizes of a log's nodes: the least on which its jobs can have run.

These are the jobs of `sweep.questions.backtest.holdings`. Each node is sized by what ran there.
Nodes of one kind are alike: like names, and nearly as much in use at most.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I8, Mask, offsets
from sweep.questions.backtest.holdings import Holdings
from sweep.questions.backtest.node_lists import Nodes

_LAST_NUMBER = re.compile(r"\d+(?=\D*$)")
MOST_ABOVE_FIRST, MOST_ABOVE = 2, 4
"""A node is taken to be as large as a kind of less than so many times the most that was in use on
it: of the first resource, and of others, such as memory, which jobs seldom fill."""


@dataclass(frozen=True)
class NodeSizes:
    """Least sizes of N nodes, in the unit of the uses.

    Attributes
    ----------
    size : (N,) int64
    kind : (N,) int64
        Kinds, numbered: nodes that are taken to be alike.
    is_spread : bool
        They depend on how jobs on several nodes are shared out, which is a guess.
    n_alike : int
        Nodes on which less was ever in use: they are taken to be like others of their name.
    """

    size: I8
    kind: I8
    is_spread: bool
    n_alike: int


def least_sizes(
    begin_s: F8, end_s: F8, use: I8, stage: I8, nodes: Nodes, within: I8 | None = None
) -> NodeSizes:
    """Compute the least sizes of nodes on which all uses fit at any time.

    A node is as large as what uses of it alone had at one time, or as others of its kind
    (`kinds_of_nodes`); and large enough, with the other nodes, for the uses of several.

    Parameters
    ----------
    begin_s, end_s : (U,) float64
        Uses, each longer than 0 s.
    use : (U,) int64
        Room of each use.
    stage : (U,) int64
        Row of each use in `nodes`; each has a node.
    within : (N,) int64, optional
        Kinds by a resource before: only nodes of one of them may be alike. By default nodes of like
        names may be.
    """
    node, count = nodes.select(stage)
    first = offsets(count)[:-1]
    alone = np.flatnonzero(count == 1)
    peak = _peaks(begin_s[alone], end_s[alone], node[first[alone]], use[alone], nodes.n_nodes)
    is_known = np.bincount(node[first[alone]], minlength=nodes.n_nodes) > 0
    if within is None:
        kind, size = kinds_of_nodes(peak, is_known, families(nodes.names))
    else:
        kind, size = kinds_of_nodes(peak, is_known, within, MOST_ABOVE, only_largest=True)
    holdings = Holdings(size, kind)
    for _ in holdings.replay(begin_s, end_s, use, node, count):
        pass
    n_alike = int((np.maximum(peak, holdings.peak) < holdings.size).sum())
    return NodeSizes(holdings.size, kind, holdings.is_spread, n_alike)


def kinds_of_nodes(
    peak: I8,
    is_known: Mask,
    group: I8,
    most_above: int = MOST_ABOVE_FIRST,
    *,
    only_largest: bool = False,
) -> tuple[I8, I8]:
    """Return the kind of each node, numbered, and the size of its kind, (N,) int64 each.

    The size of a kind is the largest peak of its group, or one that several nodes of the group
    have. A node is of the smallest kind that is as large as its peak, and less than `most_above`
    times as large; the largest of those for which there is none is a kind of its own. Of nodes that
    no job had alone nothing is known: they are of the only kind of their group, or, if it has
    several, a kind of their own, at first as large as the smallest.

    Parameters
    ----------
    peak : (N,) int64
        Most that uses of the node alone had at one time.
    is_known : (N,) bool
        Some use had the node alone.
    group : (N,) int64
        Nodes that may be alike.
    only_largest : bool
        That several nodes have a peak is no sign of a size.

    Examples
    --------
    >>> peak, group = np.array([14, 16, 16, 24, 32, 64]), np.zeros(6, np.int64)
    >>> kinds_of_nodes(peak, peak > 0, group)[1].tolist()
    [16, 16, 16, 32, 32, 64]
    """
    size, is_own = peak.copy(), np.zeros(len(peak), dtype=bool)
    for number in np.unique(group):
        members = np.flatnonzero(group == number)
        known = members[is_known[members]]
        if not len(known):
            continue
        peaks, n_nodes = np.unique(peak[known], return_counts=True)
        is_kind = (n_nodes > 1) & (not only_largest)
        kind_size = peaks.copy()
        above = peaks[-1]
        for i in range(len(peaks) - 1, -1, -1):
            if is_kind[i] or above >= most_above * peaks[i]:
                above = peaks[i]
            kind_size[i] = above
        size[known] = kind_size[np.searchsorted(peaks, peak[known])]
        size[members[~is_known[members]]] = size[known].min()
        is_own[members] = ~is_known[members] & (len(np.unique(size[known])) > 1)
    kind = np.unique(np.stack([group, size, is_own]), axis=1, return_inverse=True)[1]
    return kind.reshape(-1), size


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
