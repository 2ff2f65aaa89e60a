"""Nodes on which stages ran, from Slurm's node lists (``n[1-4,7],m3``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np

from sim.base.arrays import I8, offsets
from sim.workload.workload import Workload

NODE_LIST = "node_list"
"""Column of ``stages``."""
MAX_NODES = 100_000
"""Largest number of nodes that one list may name; a longer one is unknown."""
_LIST = re.compile(r"([^,\[\]]+)(?:\[([\d,-]+)\])?(?:,|$)")


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


@cache
def expand(text: str) -> tuple[str, ...]:
    """Return the names of a list, each once; none of a text of another form.

    >>> expand("n[1-3,07],m")
    ('n1', 'n2', 'n3', 'n07', 'm')
    """
    names: list[str] = []
    end = 0
    for match in _LIST.finditer(text):
        if match.start() != end:
            return ()
        end = match.end()
        prefix, ranges = match.groups()
        for part in (ranges or "").split(","):
            first, _, last = part.partition("-")
            if not part:
                names.append(prefix)
                continue
            if not first.isdigit() or not (last or first).isdigit():
                return ()
            numbers = range(int(first), int(last or first) + 1)
            if len(names) + len(numbers) > MAX_NODES:
                return ()
            names += [f"{prefix}{n:0{len(first)}d}" for n in numbers]
    return tuple(dict.fromkeys(names)) if end == len(text) else ()
