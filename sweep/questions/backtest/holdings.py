"""Room that the jobs of a log hold on its nodes, by a flow from jobs to nodes.

Of a job on several nodes a log tells that it had some of each, and what it had of all together. So
at each instant such jobs are shared out over their nodes so that they fit; where none fits, the
nodes that are too small together are enlarged, as evenly as can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from sim.base.arrays import F8, I8, offsets

LEAST = 1
"""Room that a use has of each of its nodes, if it has as much: a job on a node has a CPU of it."""


@dataclass
class Holdings:
    """Room that running uses hold on N nodes.

    A use of several nodes holds `LEAST` of each; the rest of it moves between its nodes, to make
    room for others.

    Attributes
    ----------
    size : (N,) int64
        Room of each node; it grows where it is not enough.
    family : (N,) int64
        Nodes of a family grow together.
    peak : (N,) int64
        Most that was held at one time.
    is_spread : bool
        Some nodes grew for uses of several, which may have had more of others.
    """

    size: I8
    family: I8
    is_spread: bool = False
    peak: I8 = field(init=False)
    _free: I8 = field(init=False)
    _nodes: dict[int, I8] = field(default_factory=dict)  # of each running use of several nodes
    _rest: dict[int, I8] = field(default_factory=dict)  # what of it can move, by node
    _on_node: dict[int, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with free nodes."""
        self._free, self.peak = self.size.copy(), np.zeros_like(self.size)

    def replay(
        self, begin_s: F8, end_s: F8, use: I8, node: I8, count: I8
    ) -> Iterator[tuple[int, I8]]:
        """Let all uses begin and end; yield each that ends, with what it held of its nodes then.

        Uses of one node are left out where no use of several ever is.

        Parameters
        ----------
        begin_s, end_s : (U,) float64
        use : (U,) int64
            Room of each use.
        node : (P,) int64
            Nodes of each use, those of one use after those of another.
        count : (U,) int64
            Their number.
        """
        first = offsets(count)
        is_shared = np.zeros(len(self.size), bool)
        is_shared[node[np.repeat(count > 1, count)]] = True
        rows = np.unique(np.repeat(np.arange(len(count)), count)[is_shared[node]])
        time_s = np.concatenate((end_s[rows], begin_s[rows]))  # ends first, as the sort is stable
        for event in np.argsort(time_s, kind="stable").tolist():
            is_begin, row = divmod(event, len(rows))
            u = int(rows[row])
            nodes = node[first[u] : first[u + 1]]
            if is_begin:
                self.begin(u, nodes, int(use[u]))
            else:
                yield u, self.end(u, nodes, int(use[u]))

    def begin(self, use: int, nodes: I8, amount: int) -> None:
        """Let a use begin on its nodes."""
        fixed = _fixed(nodes, amount)
        self._free[nodes] -= fixed
        if len(nodes) > 1:
            self._nodes[use], self._rest[use] = nodes, np.zeros(len(nodes), np.int64)
            for node in nodes.tolist():
                self._on_node.setdefault(node, set()).add(use)
        for node in nodes[self._free[nodes] < 0].tolist():
            self._relieve(node)
        self._place(use, amount - fixed * len(nodes))
        self._note_peak(nodes)

    def end(self, use: int, nodes: I8, amount: int) -> I8:
        """Let a use end; return what it held of its nodes, (K,) int64."""
        share = np.full(len(nodes), _fixed(nodes, amount), np.int64)
        if len(nodes) > 1:
            share += self._rest.pop(use)
            for node in self._nodes.pop(use).tolist():
                self._on_node[node].discard(use)
        self._free[nodes] += share
        return share

    def _relieve(self, node: int) -> None:
        """Make room on a node of which more is held than it has: move uses, or enlarge it."""
        moved = []
        for use in sorted(self._on_node.get(node, ())):
            place = int(np.flatnonzero(self._nodes[use] == node)[0])
            amount = min(int(self._rest[use][place]), max(-int(self._free[node]), 0))
            self._rest[use][place] -= amount
            self._free[node] += amount
            moved.append((use, amount))
        if self._free[node] < 0:
            self._enlarge(np.array([node]), -int(self._free[node]))
        for use, amount in moved:
            self._place(use, amount)

    def _place(self, use: int, left: int) -> None:
        """Share out what is left of a use over its nodes, and make room where there is none."""
        while left > 0:
            nodes = self._nodes[use]
            more = np.zeros(len(nodes), np.int64)
            left = _spread(more, np.maximum(self._free[nodes], 0), left)
            self._rest[use] += more
            self._free[nodes] -= more
            self._note_peak(nodes[more > 0])
            if left:
                left -= self._move_others(use, left)

    def _move_others(self, use: int, left: int) -> int:
        """Move other uses so that one has more of its nodes; return how much.

        Searched is the nearest node with room, from use to node to each other use that can leave
        it. Without one, the nodes reached are full of uses that have no other, and are enlarged.
        """
        reached_from: dict[int, tuple[int, int]] = {use: (-1, -1)}  # a use, and the node shared
        queue = [use]
        for current in queue:
            for node in self._nodes[current].tolist():
                if self._free[node] > 0:
                    return self._shift(reached_from, current, node, left)
                for other in sorted(self._on_node[node] - reached_from.keys()):
                    if self._movable(other, node) > 0:
                        reached_from[other] = (current, node)
                        queue.append(other)
        self.is_spread = True
        self._enlarge(np.unique(np.concatenate([self._nodes[reached] for reached in queue])), left)
        return 0

    def _shift(
        self, reached_from: dict[int, tuple[int, int]], use: int, node: int, left: int
    ) -> int:
        """Move what can be along the uses that led to a node with room; return how much."""
        moves: list[tuple[int, int, int]] = []  # a use, the node that it leaves, the one it enters
        amount, enters = min(left, int(self._free[node])), node
        while reached_from[use][0] >= 0:
            before, leaves = reached_from[use]
            moves.append((use, leaves, enters))
            amount = min(amount, self._movable(use, leaves))
            use, enters = before, leaves
        for moved, leaves, to in moves:
            self._rest[moved][self._nodes[moved] == leaves] -= amount
            self._rest[moved][self._nodes[moved] == to] += amount
        self._rest[use][self._nodes[use] == enters] += amount
        self._free[node] -= amount
        self._note_peak(np.array([node]))
        return amount

    def _note_peak(self, nodes: I8) -> None:
        self.peak[nodes] = np.maximum(self.peak[nodes], self.size[nodes] - self._free[nodes])

    def _movable(self, use: int, node: int) -> int:
        """Return what of a use can leave a node."""
        return int(self._rest[use][self._nodes[use] == node][0])

    def _enlarge(self, nodes: I8, more: int) -> None:
        """Enlarge nodes by `more` together: the smallest first, and each with its family."""
        size = np.sort(self.size[nodes])
        lacking = size * np.arange(1, len(size) + 1) - np.cumsum(size)  # of all up to each, to it
        n = int(np.searchsorted(lacking, more))
        level = int(-(-(more + size[:n].sum()) // n))
        grows = np.isin(self.family, self.family[nodes[self.size[nodes] < level]])
        larger = np.where(grows, np.maximum(self.size, level), self.size)
        self._free += larger - self.size
        self.size = larger


def _fixed(nodes: I8, amount: int) -> int:
    """Return what of each of its nodes a use can't leave."""
    return amount if len(nodes) == 1 else min(LEAST, amount // len(nodes))


def _spread(share: I8, free: I8, left: int) -> int:
    """Add `left` to shares that have room, as evenly as they can take it; return what is over.

    Parameters
    ----------
    share : (P,) int64, overwritten
    free : (P,) int64
        Room for each share.
    """
    while left > 0:
        spare = np.flatnonzero(free - share > 0)
        if not len(spare):
            break
        more = np.minimum(free[spare] - share[spare], max(left // len(spare), 1))
        more = np.minimum(more, np.maximum(left - (np.cumsum(more) - more), 0))
        share[spare] += more
        left -= int(more.sum())
    return left
