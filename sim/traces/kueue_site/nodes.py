"""Nodes of a site by flavor, and the classes on which pods may run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sim.base.reading import json_field
from sim.traces.kueue_site.objects import Raw
from sim.traces.sites.notes import Notes
from sim.workload.node_names import fold

Labels = Mapping[str, Any]


@dataclass(frozen=True)
class Node:
    """A node.

    Attributes
    ----------
    name : str
    cpus, gpus, mem_gib : float
        Amounts that it may allocate.
    flavors : tuple of str
        Flavors whose labels it has.
    labels : tuple of (str, str)
        Those of its labels that pods ask for.
    machine_class : str
        Name of its kind: nodes of one class have the same flavors and labels.
    is_closed : bool
        It is cordoned or not ready now.
    """

    name: str
    cpus: float
    mem_gib: float
    gpus: float
    flavors: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    machine_class: str
    is_closed: bool = False


def nodes_of(
    nodes: Sequence[Raw], flavors: Sequence[Raw], used_labels: Sequence[str], notes: Notes
) -> list[Node]:
    """Return the nodes, those of the first flavor first.

    Parameters
    ----------
    used_labels : sequence of str
        Labels that pods ask for, beyond those of flavors.
    """
    labels_by_flavor = {item.name: item.mapping("spec.nodeLabels") for item in flavors}
    rows = []
    for node in nodes:
        lacking = [name for name in ("cpu", "mem") if not node.amounts.get(name, 0.0) > 0]
        if lacking:
            without = " and ".join(lacking).replace("mem", "memory")
            notes.add("Node", f"{node.name} has no {without} to allocate", "it is left out")
            continue
        labels = node.mapping("metadata.labels")
        own = tuple(
            name for name, selector in labels_by_flavor.items() if matches(labels, selector)
        )
        if not own and flavors:
            notes.add("Node", f"{node.name} is of no flavor", "no job runs there")
        shown = tuple((key, str(labels[key])) for key in used_labels if key in labels)
        rows.append((own, shown, node))
    names = _class_names([(own, shown) for own, shown, _ in rows])
    order = {name: rank for rank, name in enumerate(labels_by_flavor)}
    ordered = [
        Node(
            node.name, _whole(node.amounts.get("cpu", 0.0)), node.amounts.get("mem", 0.0),
            _devices(node, notes), own, shown, names[own, shown], _is_closed(node, notes),
        )
        for own, shown, node in rows
    ]  # fmt: skip
    ordered.sort(key=lambda node: order.get(node.flavors[0], 0) if node.flavors else len(order))
    return ordered


def matches(labels: Labels, selector: Labels) -> bool:
    """Tell whether labels have all of a selector's values."""
    return all(str(labels.get(key)) == str(value) for key, value in selector.items())


def kinds(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """Return the kinds of machines for ``cluster.shape``, in the order of the nodes."""
    rows: list[dict[str, Any]] = []
    names: list[list[str]] = []
    for node in nodes:
        row: dict[str, Any] = {"class": node.machine_class, "count": 1, "cpu": node.cpus}
        row["mem"] = node.mem_gib
        if node.gpus:
            row["devices"] = {"gpu": node.gpus}
        if rows and {**rows[-1], "count": 1} == row:
            rows[-1]["count"] += 1
            names[-1].append(node.name)
        else:
            rows.append(row)
            names.append([node.name])
    return [row | {"nodes": fold(own)} for row, own in zip(rows, names, strict=True)]


def tolerates(taints: Sequence[Any], tolerations: Sequence[Any]) -> bool:
    """Tell whether pods with these tolerations may run on nodes with these taints."""
    return all(
        json_field(taint, "effect", str) == "PreferNoSchedule"
        or any(_covers(toleration, taint) for toleration in tolerations)
        for taint in taints
    )


def _covers(toleration: Any, taint: Any) -> bool:
    key, effect, operator = (
        json_field(toleration, name, str) for name in ("key", "effect", "operator")
    )
    if effect and effect != json_field(taint, "effect", str):
        return False
    if key and key != json_field(taint, "key", str):
        return False
    if operator == "Exists":
        return True
    return bool(key) and json_field(toleration, "value", str) == json_field(taint, "value", str)


def _class_names(
    pairs: Sequence[tuple[tuple[str, ...], tuple[tuple[str, str], ...]]],
) -> dict[tuple[tuple[str, ...], tuple[tuple[str, str], ...]], str]:
    """Name each pair of flavors and labels: the flavors, and a number if they have several."""
    names: dict[tuple[tuple[str, ...], tuple[tuple[str, str], ...]], str] = {}
    for flavors, labels in dict.fromkeys(pairs):
        name = "+".join(flavors) or "none"
        taken = sum(other == name or other.startswith(f"{name}#") for other in names.values())
        names[flavors, labels] = f"{name}#{taken + 1}" if taken else name
    return names


def _devices(node: Raw, notes: Notes) -> float:
    gpus = node.amounts.get("gpu", 0.0)
    if gpus != round(gpus):
        notes.add("Node", f"{node.name}: {gpus:g} GPUs", "rounded to whole ones")
    return float(round(gpus))


def _whole(cpus: float) -> float:
    return float(int(cpus)) if cpus == int(cpus) else cpus


def _is_closed(node: Raw, notes: Notes) -> bool:
    """Tell whether a node takes no pods now, which is noted."""
    states = ["is cordoned now"] * bool(json_field(node.record, "spec.unschedulable", bool))
    for condition in node.rows("status.conditions"):
        is_ready = json_field(condition, "type", str) == "Ready"
        if is_ready and json_field(condition, "status", str) != "True":
            states.append("is not ready now")
    for state in states:
        notes.add(
            "Node", f"{node.name} {state}",
            "simulated as up throughout, and from now on as closed for a month",
        )  # fmt: skip
    return bool(states)
