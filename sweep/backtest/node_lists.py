"""Nodes on which stages ran, from Slurm's node lists (``n[1-4,7],m3``)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np

from sim.base.arrays import I8, Mask
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
    n_nodes : int
    """

    stage: I8
    node: I8
    count: I8
    n_nodes: int

    def only(self, is_inside: Mask) -> Nodes:
        """Return the pairs with some of the nodes, numbered anew."""
        number = np.cumsum(is_inside) - 1
        is_left = is_inside[self.node]
        count = np.bincount(self.stage[is_left], minlength=len(self.count))
        return Nodes(self.stage[is_left], number[self.node[is_left]], count, int(is_inside.sum()))


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
    return Nodes(np.repeat(np.arange(len(count)), count), node, count, len(number))


@cache
def expand(text: str) -> tuple[str, ...]:
    """Return the names of a list; none of a text of another form.

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
    return tuple(names) if end == len(text) else ()
