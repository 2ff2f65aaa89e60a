"""Attribute a failure to a node or to the policy. Pure bookkeeping, without Ray."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweep.store.cell import CellResult

MAX_NODE_FAILURES = 3
"""Cells that fail on a node and succeed on another, from which the node is excluded."""

_FailureKind = tuple[str, str, str]


@dataclass
class FailureTracker:
    """Failed cells by node.

    A cell that fails is tried once on another node. If it succeeds there, the failure is the first
    node's. If it fails there too, it is the policy's, and so is the next failure of that kind.
    """

    # by key: node and message of the first failure
    _first_failures: dict[str, tuple[str, str]] = field(default_factory=dict)
    _policy_failures: set[_FailureKind] = field(default_factory=set)
    # by node: keys and messages of its failures
    _node_failures: dict[str, dict[str, str]] = field(default_factory=dict)

    def must_retry(self, result: CellResult, policy: str, has_other_node: bool) -> bool:
        """Record the outcome of a cell; tell whether to try it on another node."""
        first_failure = self._first_failures.pop(result.key, None)
        if result.error is None:
            if first_failure is not None and first_failure[0] != result.node:
                self._node_failures.setdefault(first_failure[0], {})[result.key] = first_failure[1]
            return False
        failure_kind = (policy, result.error["stage"], result.error["type"])
        if first_failure is not None:
            if first_failure[0] != result.node:
                self._policy_failures.add(failure_kind)
            return False
        if not result.node or not has_other_node or failure_kind in self._policy_failures:
            return False
        text = f"{result.error['type']}: {result.error['message']}"
        self._first_failures[result.key] = (result.node, text)
        return True

    def failed_node(self, key: str) -> str:
        """Return the node on which a cell failed that is to be tried on another; empty if none."""
        return self._first_failures.get(key, ("", ""))[0]

    def pop_bad_nodes(self) -> dict[str, str]:
        """Return the nodes that failed too many cells, each once, with the last message."""
        bad = {
            node: cells
            for node, cells in self._node_failures.items()
            if len(cells) >= MAX_NODE_FAILURES
        }
        for node in bad:
            del self._node_failures[node]
        return {node: list(cells.values())[-1] for node, cells in bad.items()}
