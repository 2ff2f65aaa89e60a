"""Placement of the tasks of large workloads: nodes that have the workload first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweep.execution.on_ray.nodes import Node


def choose(
    nodes: Mapping[str, Node], n_placed: Mapping[str, int], having: Collection[str], memory: int
) -> str:
    """Return the node with the fewest tasks a slot; of several, one that has the workload.

    A node without it builds it, so that it gets a task only once each slot of the others has one
    more. Slots are a node's CPUs, or fewer if each task reserves `memory`, bytes. Empty if no node
    has a slot.
    """
    slots = {key: n_slots(node, memory) for key, node in nodes.items()}

    def load(key: str) -> tuple[int, bool, float, str]:
        n = n_placed.get(key, 0)
        return n // slots[key], key not in having, n / slots[key], key

    return min((key for key in nodes if slots[key]), key=load, default="")


def enough(nodes: Mapping[str, Node], n_cells: int) -> list[str]:
    """Return the nodes whose slots begin so many cells at once; none if one node does."""
    n_left, chosen = n_cells, []
    for key, node in sorted(nodes.items(), key=lambda item: (-int(item[1].n_cpus), item[0])):
        if n_left > 0 and node.n_cpus >= 1:
            chosen.append(key)
            n_left -= int(node.n_cpus)
    return chosen if len(chosen) > 1 else []


def n_slots(node: Node, memory: int) -> int:
    """Return the number of tasks that a node runs at once if each reserves `memory`, bytes."""
    n_cpus = int(node.n_cpus)
    return min(n_cpus, int(node.memory // memory)) if memory else n_cpus
