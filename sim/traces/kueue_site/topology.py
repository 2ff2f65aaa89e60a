"""Topology of a site of Kueue: domains of nodes by their labels, and the levels that pods ask for.

Source: Kueue's API, ``kueue.x-k8s.io/v1beta1`` and ``v1beta2`` (Topology, ``spec.levels`` from the
widest to the narrowest; ResourceFlavor, ``spec.topologyName``; Workload,
``spec.podSets[].topologyRequest``), and its page *Topology Aware Scheduling*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sim.base.reading import json_field
from sim.traces.kueue_site.nodes import Node
from sim.traces.kueue_site.objects import Raw
from sim.traces.sites.notes import Notes

REQUESTS = ("required", "preferred")
_NO_EFFECT = "nodes are chosen without regard to topology"


def topology_of(
    objects: Mapping[str, Sequence[Raw]], nodes: Sequence[Node], notes: Notes
) -> dict[str, Any] | None:
    """Return ``cluster.topology``, levels named by their labels; None for none.

    Nodes without a label of a level, as those of a flavor without a topology, are each in a domain
    of their own. Of several topologies the first that a flavor names counts.
    """
    known = {item.name: item for item in objects["Topology"]}
    used = dict.fromkeys(
        filter(None, (f.text("spec.topologyName") for f in objects["ResourceFlavor"]))
    )
    for name in [name for name in used if name not in known]:
        notes.add("ResourceFlavor", f"topologyName {name}, which is missing", _NO_EFFECT)
    names = [name for name in used if name in known]
    if not names or not nodes:
        return None
    for name in names[1:]:
        notes.add("Topology", f"{name} beside {names[0]}", _NO_EFFECT)
    rows = known[names[0]].rows("spec.levels")
    levels = [label for row in rows if (label := json_field(row, "nodeLabel", str))]
    labels = {item.name: item.mapping("metadata.labels") for item in objects["Node"]}
    path: dict[str, tuple[str, ...]] = {node.name: () for node in nodes}
    by_level: dict[str, Any] = {}
    for level in levels:
        domains: dict[tuple[str, ...], list[str]] = {}
        for node in nodes:
            value = labels.get(node.name, {}).get(level)
            path[node.name] += (node.name if value is None else str(value),)
            domains.setdefault(path[node.name], []).append(node.name)
        by_level[level] = {"nodes": {"/".join(key): ",".join(own) for key, own in domains.items()}}
    return {"levels": by_level, "preferred": None} if by_level else None


def levels_asked(rows: Sequence[Any], levels: Sequence[str], notes: Notes) -> tuple[str, str]:
    """Return the levels that the pods of a Workload require and prefer; "" for none.

    :param rows: Its sets of pods.
    :param levels: Those of the cluster.
    """
    requests = [json_field(row, "topologyRequest", dict) for row in rows]
    pairs = {
        tuple(json_field(request, name, str) for name in REQUESTS)
        for request in requests
        if any(request.get(name) for name in REQUESTS)
    }
    if not pairs:
        return "", ""
    if len(requests) > 1:
        notes.add("Workload", "topologyRequest of one of several sets of pods", "holds for all")
    required, preferred = min(pairs)
    for level in filter(None, (required, preferred)):
        if level not in levels:
            notes.add("Workload", f"topologyRequest of {level}, which no topology has", _NO_EFFECT)
    return required if required in levels else "", preferred if preferred in levels else ""
