"""Whose fault a failed cell is: its node's, or its policy's. Pure bookkeeping, without Ray."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweep.store.cell import CellResult

MOST = 3
"""So many cells that a node fails and another does not, and it is left out."""

_Alike = tuple[str, str, str]


@dataclass
class FailureTracker:
    """What is known of cells that failed, by node.

    A cell that fails is tried once on another node. If it is done there, the first node has failed
    it; if it fails there too, it is the policy's, and so is the next failure of that kind.
    """

    _first: dict[str, tuple[str, str]] = field(default_factory=dict)  # by key: node, message
    _of_policies: set[_Alike] = field(default_factory=set)
    _by_node: dict[str, dict[str, str]] = field(default_factory=dict)  # keys and messages

    def is_tried_elsewhere(self, result: CellResult, policy: str, has_other: bool) -> bool:
        """Note what became of a cell; tell whether it shall be tried on another node."""
        before = self._first.pop(result.key, None)
        if result.error is None:
            if before is not None and before[0] != result.node:
                self._by_node.setdefault(before[0], {})[result.key] = before[1]
            return False
        alike = (policy, result.error["stage"], result.error["type"])
        if before is not None:
            if before[0] != result.node:
                self._of_policies.add(alike)
            return False
        if not result.node or not has_other or alike in self._of_policies:
            return False
        text = f"{result.error['type']}: {result.error['message']}"
        self._first[result.key] = (result.node, text)
        return True

    def failed_on(self, key: str) -> str:
        """Return the node on which a cell failed that is to be tried elsewhere; empty if none."""
        return self._first.get(key, ("", ""))[0]

    def over(self) -> dict[str, str]:
        """Give the nodes that have failed too many cells, and the last message of each; once."""
        found = {node: cells for node, cells in self._by_node.items() if len(cells) >= MOST}
        for node in found:
            del self._by_node[node]
        return {node: list(cells.values())[-1] for node, cells in found.items()}
