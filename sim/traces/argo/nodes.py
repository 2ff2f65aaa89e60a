"""Nodes of an Argo workflow: which pods are its tasks, and which of them wait for which.

Source: Argo Workflows, ``pkg/apis/workflow/v1alpha1/workflow_types.go`` (NodeStatus), and
``workflow/controller`` (``getOutboundNodes``, ``runOnExitNode``: how nodes become children).

``children`` lead from a group (DAG, Steps, StepGroup, TaskGroup) to what it begins with, from a
Retry to its attempts, and from what ends to what follows. So a pod waits for the pods behind all of
these; only what follows a Retry waits for its last attempt, and an exit handler for all of the node
whose exit it handles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError
from typing import Any, Final

from sim.base.acyclic import direct_parents
from sim.base.reading import BadLineError, json_field
from sim.base.reading.objects import time_of

_HOOKS: Final = (".onExit", ".hooks.")
_INSIDE: Final = (".", "[", "(")
NO_POD: Final = ("Skipped", "Omitted")


@dataclass(slots=True)
class Node:
    """A node of a workflow."""

    id: str
    name: str
    label: str
    type: str
    phase: str
    start_s: float
    end_s: float
    boundary: str
    children: list[str]
    has_pod: bool
    record: dict[str, Any]
    is_daemon: bool = False

    def holds(self, other: Node) -> bool:
        """Tell whether another node is this one or one inside it, by its name."""
        begins = other.name.startswith(self.name)
        rest = other.name[len(self.name) :]
        return begins and (not rest or rest.startswith(_INSIDE))


def parse_nodes(records: Mapping[str, Any]) -> dict[str, Node]:
    """Parse the nodes of a workflow, by id."""
    nodes = {}
    for key, record in records.items():
        name, kind, phase = (json_field(record, text, str) for text in ("name", "type", "phase"))
        is_remembered = json_field(record, "memoizationStatus.hit", bool)
        nodes[key] = Node(
            id=key,
            name=name or key,
            label=json_field(record, "displayName", str) or name or key,
            type=kind,
            phase=phase,
            start_s=time_of(record, "startedAt"),
            end_s=time_of(record, "finishedAt"),
            boundary=json_field(record, "boundaryID", str),
            children=[str(child) for child in json_field(record, "children", list)],
            has_pod=kind == "Pod" and phase not in NO_POD and not is_remembered,
            record=record,
            is_daemon=json_field(record, "daemoned", bool),
        )
    return nodes


class Graph:
    """Precedence between the pods of a workflow.

    Parameters
    ----------
    nodes : mapping of str to Node

    Attributes
    ----------
    lost : set of str
        Attempts before the last one of a Retry, and what is inside them.
    n_daemon_edges : int
        Dependencies on a daemon, which goes on beside what follows it.
    """

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        self.nodes = nodes
        self._last: dict[str, Node] = {}  # attempt of each Retry
        retried: set[str] = set()
        for node in nodes.values():
            tries = sorted(self._attempts(node), key=lambda attempt: (_number(attempt), attempt.id))
            if tries:
                self._last[node.id] = tries[-1]
                retried |= {attempt.id for attempt in tries[:-1]}
        self.lost = {key for key in nodes if self._boundaries(key) & retried}
        self.n_daemon_edges = 0

    def edges(self, tasks: set[str]) -> set[tuple[str, str]]:
        """Return the dependencies between the pods that are tasks, none that others imply.

        Raises
        ------
        BadLineError
            If nodes wait for each other.
        """
        parents: dict[str, set[str]] = {key: set() for key in self.nodes}
        for parent, child in self._precedence():
            parents[child].add(parent)
        daemons = {key for key, node in self.nodes.items() if node.has_pod and node.is_daemon}
        try:
            direct = direct_parents(parents, tasks - daemons)
        except CycleError as error:
            names = ", ".join(self.nodes[key].name for key in error.args[1][:4])
            text = f"nodes of the workflow are children of each other: {names}"
            raise BadLineError("cycle", text) from None
        self.n_daemon_edges = sum(len(parents[key] & daemons) for key in parents)
        return {(parent, child) for child in tasks for parent in direct[child]}

    def _precedence(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of nodes of which the second waits for the first, or is inside it."""
        has_parent: set[str] = set()
        for node in self.nodes.values():
            attempts = {attempt.id for attempt in self._attempts(node)}
            for child in (self.nodes[key] for key in node.children if key in self.nodes):
                has_parent.add(child.id)
                if node.id in self._last and child.id not in attempts:
                    yield from self._after(self._last[node.id], child)
                elif child.name.removeprefix(node.name).startswith(_HOOKS):
                    yield from self._after(node, child)
                else:
                    yield node.id, child.id
        for child in self.nodes.values():
            if child.id not in has_parent and child.name.endswith(_HOOKS[0]):
                name = child.name.removesuffix(_HOOKS[0])
                for node in self.nodes.values():
                    if node.name == name:
                        yield from self._after(node, child)

    def _after(self, node: Node, child: Node) -> Iterator[tuple[str, str]]:
        """Yield pairs of each node inside `node` and the child, which waits for them all."""
        inside = (node,) if node.has_pod else self.nodes.values()
        for other in inside:
            if node.holds(other) and not child.holds(other):
                yield other.id, child.id

    def _attempts(self, node: Node) -> Iterator[Node]:
        if node.type == "Retry":
            for child in (self.nodes[key] for key in node.children if key in self.nodes):
                if child.name.startswith(f"{node.name}(") and child.name.endswith(")"):
                    yield child

    def _boundaries(self, key: str) -> set[str]:
        """Return a node and those that it is inside of."""
        keys: set[str] = set()
        while key in self.nodes and key not in keys:
            keys.add(key)
            key = self.nodes[key].boundary
        return keys


def _number(attempt: Node) -> int:
    """Return the number in ``name(2)``; -1 if there is none."""
    text = attempt.name[:-1].rpartition("(")[2]
    return int(text) if text.isdecimal() and len(text) < 10 else -1
