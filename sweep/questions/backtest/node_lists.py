"""Nodes on which stages ran, from Slurm's node lists (``n[1-4,7],m3``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import I8, offsets
from sim.workload.node_names import NODE_LIST, expand
from sim.workload.workload import Workload


@dataclass(frozen=True)
class Nodes:
    """Pairs of a stage and a node, by stage; nodes are numbered.

    Attributes
    ----------
    stage, node : (P,) int64
    count : (G,) int64
        Nodes of each stage.
    names : tuple of str
        Names of the N nodes.
    """

    stage: I8
    node: I8
    count: I8
    names: tuple[str, ...]

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.names)

    def select(self, stage: I8) -> tuple[I8, I8]:
        """Return the nodes of some stages, those of one after those of another; and their number.

        Parameters
        ----------
        stage : (U,) int64
        """
        count = self.count[stage]
        row = np.repeat(np.arange(len(count)), count)
        rank = np.arange(len(row)) - offsets(count)[row]
        return self.node[offsets(self.count)[stage][row] + rank], count


def named_nodes(workload: Workload) -> Nodes | None:
    """Return the nodes of each stage; None if none is named."""
    if NODE_LIST not in workload.stages.column_names:
        return None
    number: dict[str, int] = {}
    lists = [
        [number.setdefault(name, len(number)) for name in expand(text or "")]
        for text in workload.stages[NODE_LIST].to_pylist()
    ]
    if not number:
        return None
    count = np.array([len(nodes) for nodes in lists])
    node = np.array([node for nodes in lists for node in nodes], np.int64)
    return Nodes(np.repeat(np.arange(len(count)), count), node, count, tuple(number))
