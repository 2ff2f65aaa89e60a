"""Nodes of a site: shapes, features, GPUs, weights and partitions; and the kinds that they form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sim.base.errors import InputError
from sim.traces.slurm_site.folder import Folder
from sim.traces.slurm_site.hosts import expand
from sim.traces.slurm_site.shown import is_set
from sim.traces.slurm_site.slurm_conf import Record, gres_count
from sim.workload.node_names import fold

ALL = "ALL"
SHOWN_NODE = {
    "cputot": "cpus", "realmemory": "realmemory", "gres": "gres", "weight": "weight",
    "availablefeatures": "features", "state": "state", "cpuefctv": "cpuefctv",
    "memspeclimit": "memspeclimit",
}  # fmt: skip
"""Keys of ``scontrol show node``, and those of slurm.conf that they replace."""
_DOWN = ("DOWN", "DRAIN", "FAIL")


@dataclass(frozen=True)
class Node:
    """A node.

    Attributes
    ----------
    name : str
    cpus, gpus : int
    mem_gib : float
    features : frozenset of str
    gpu_types : frozenset of str
        Models of its GPUs, as jobs name them (``gres/gpu:a100``).
    weight : int
        Slurm takes nodes of the least weight first.
    partitions : tuple of str
    machine_class : str
        Name of its kind: nodes of one class have one shape, features, GPU models and weight.
    """

    name: str
    cpus: int
    gpus: int
    mem_gib: float
    features: frozenset[str]
    gpu_types: frozenset[str]
    weight: int
    partitions: tuple[str, ...]
    machine_class: str = ""


def nodes_of(folder: Folder, partitions: Mapping[str, Record]) -> list[Node]:
    """Return the nodes by weight, then in the order of the configuration.

    Raises
    ------
    InputError
        If a node's numbers are none, or no node is left.
    """
    records = {name: dict(record) for name, record in folder.conf.nodes.items()}
    for name, shown in folder.nodes.items():
        known = {SHOWN_NODE[key]: text for key, text in shown.items() if key in SHOWN_NODE}
        records[name] = {**records.get(name, {}), **known}
    members = _partition_members(folder, partitions, records)
    nodes = []
    for name, record in records.items():
        state = record.get("state", "").upper()
        if state.startswith("FUTURE"):
            folder.notes.add("nodes", f"{name} State={state}", "left out")
            continue
        if any(word in state for word in _DOWN):
            folder.notes.add(
                "nodes", f"{name} State={state}",
                "it is so now; simulated as up but for the times that events and the log tell",
            )  # fmt: skip
        own = tuple(p for p, names in members.items() if name in names)
        nodes.append(_node(folder, name, record, own))
    if not nodes:
        raise InputError("the site has no node", file=folder.path, rule="no nodes")
    nodes.sort(key=lambda node: node.weight)  # stable
    return _with_classes(nodes)


def _node(folder: Folder, name: str, record: Record, partitions: tuple[str, ...]) -> Node:
    def number(key: str, default: int) -> int:
        text = record.get(key, "")
        if not text or text == "N/A":
            return default
        if not text.isdecimal():
            raise InputError(
                f"node {name}: {key} is {text!r}, no whole number", rule="wrong number"
            )
        return int(text)

    sockets = number("sockets", number("socketsperboard", 1) * number("boards", 1))
    cores = sockets * number("corespersocket", 1)
    cpus = number("cpuefctv", 0) or number("cpus", cores * number("threadspercore", 1))
    if "corespeccount" in record and "cpuefctv" not in record:
        cpus -= number("corespeccount", 0) * number("threadspercore", 1)
    mem_gib = (number("realmemory", 1) - number("memspeclimit", 0)) / 1024
    gpus, types = _gpus(record.get("gres", ""))
    for gres in folder.gres:
        if name in expand(gres.get("nodename", "")) and gres.get("name") == "gpu":
            types |= {gres["type"]} if gres.get("type") and gpus else set()
            if gres_count(gres) > gpus:
                folder.notes.add(
                    "gres.conf", f"{name}: {gres_count(gres)} GPUs",
                    f"slurm.conf has {gpus}, which count",
                )  # fmt: skip
    features = record.get("features", record.get("feature", ""))
    return Node(
        name, cpus, gpus, mem_gib,
        frozenset(filter(is_set, features.split(","))), frozenset(types),
        number("weight", 1), partitions,
    )  # fmt: skip


def _gpus(gres: str) -> tuple[int, set[str]]:
    """Return the GPUs of ``gpu:a100:4(S:0-1),gpu:2,nic:1`` and their models."""
    n, types = 0, set()
    for part in re.sub(r"\([^)]*\)", "", gres).split(","):
        name, *rest = part.split(":")
        if name != "gpu":
            continue
        count = rest.pop() if rest and rest[-1].isdecimal() else "1"
        n += int(count)
        types |= {text for text in rest if text != "no_consume"}
    return n, types


def _partition_members(
    folder: Folder, partitions: Mapping[str, Record], nodes: Mapping[str, Record]
) -> dict[str, set[str]]:
    """Return the nodes of each partition: named, of node sets, or all."""
    sets: dict[str, set[str]] = {}
    for name, record in folder.conf.node_sets.items():
        feature = record.get("feature")
        sets[name] = set(expand(record.get("nodes", ""))) | {
            node
            for node, record_of in nodes.items()
            if feature
            and feature in record_of.get("features", record_of.get("feature", "")).split(",")
        }
    members: dict[str, set[str]] = {}
    for name, record in partitions.items():
        inside: set[str] = set()
        for item in expand(record["nodes"]) if is_set(record.get("nodes")) else []:
            inside |= set(nodes) if item == ALL else sets.get(item, {item})
        for node in sorted(inside - nodes.keys()):
            folder.notes.add("partitions", f"{name} Nodes={node}", "no such node; left out")
        members[name] = inside
    return members


def _with_classes(nodes: list[Node]) -> list[Node]:
    """Name the classes: the letters that the nodes' names begin with, and features if needed."""

    def key(node: Node) -> tuple[Any, ...]:
        return node.cpus, node.gpus, node.mem_gib, node.features, node.gpu_types, node.weight

    def prefix(node: Node) -> str:
        return re.match(r"\D*", node.name)[0].rstrip("-_[") or "node"  # type: ignore[index]

    names: dict[tuple[Any, ...], str] = {}
    first = {key(node): node for node in reversed(nodes)}
    prefixes = [prefix(node) for node in first.values()]
    for shape, node in sorted(first.items(), key=lambda item: nodes.index(item[1])):
        name = prefix(node)
        if prefixes.count(name) > 1:
            name = "-".join([name, *sorted(node.features)])
        taken = sum(other == name or other.startswith(f"{name}#") for other in names.values())
        names[shape] = f"{name}#{taken + 1}" if taken else name
    return [
        Node(
            n.name,
            n.cpus,
            n.gpus,
            n.mem_gib,
            n.features,
            n.gpu_types,
            n.weight,
            n.partitions,
            names[key(n)],
        )
        for n in nodes
    ]


def kinds(nodes: Iterable[Node], default: str, *, has_mem: bool) -> list[dict[str, Any]]:
    """Return the kinds of machines for ``cluster.shape``, in the order of the nodes."""
    rows: list[dict[str, Any]] = []
    names: list[list[str]] = []
    for node in nodes:
        row: dict[str, Any] = {"class": node.machine_class, "count": 1, "cpu": node.cpus}
        if has_mem:
            row["mem"] = node.mem_gib
        if node.gpus:
            row["devices"] = {"gpu": node.gpus}
        if node.weight != 1:
            row["weight"] = node.weight
        row["partitions"] = [p + "*" * (p == default) for p in node.partitions]
        if rows and {**rows[-1], "count": 1} == row:
            rows[-1]["count"] += 1
            names[-1].append(node.name)
        else:
            rows.append(row)
            names.append([node.name])
    return [row | {"nodes": fold(own)} for row, own in zip(rows, names, strict=True)]
