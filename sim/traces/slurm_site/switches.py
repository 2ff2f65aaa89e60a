"""Switches above the nodes of a site as levels of domains, and the level that jobs ask for.

Source: the manuals https://slurm.schedmd.com/topology.conf.html and sbatch.html (``--switches``),
and https://slurm.schedmd.com/topology.html. Under ``topology/tree`` a job goes to the lowest switch
that can satisfy it, and there to leaf switches by best fit: it prefers one leaf. Never held against
a real site.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sim.traces.slurm_site.folder import TOPOLOGY, Folder
from sim.traces.slurm_site.hosts import expand
from sim.traces.slurm_site.machines import Node
from sim.workload.node_names import fold

TREE = "topology/tree"
LEAF = "leaf"
"""Level of the leaf switches; those above are ``switch2``, ``switch3`` and so on."""
_BLIND = "nodes are chosen without regard to switches"
_SWITCHES = re.compile(r"(?:^|\s)--switches[ =](\d+)(@\S+)?")


def topology_of(folder: Folder, nodes: Sequence[Node]) -> dict[str, Any] | None:
    """Return ``cluster.topology``; None if the site has none that is simulated, which is noted."""
    plugin = folder.conf.options.get("topologyplugin", "").lower()
    has_conf = "slurm.conf" in folder.files
    if (folder.path / "topology.yaml").is_file():
        folder.notes.add("missing", "topology.yaml is not read", _BLIND)
        return None
    if not folder.switches:
        if plugin == TREE:
            folder.notes.add("missing", TOPOLOGY, _BLIND)
        return None
    if plugin != TREE and has_conf:
        folder.notes.add(TOPOLOGY, f"TopologyPlugin is {plugin or 'not set'}", _BLIND)
        return None
    parents, leaf_of = _tree(folder)
    unknown = [node.name for node in nodes if node.name not in leaf_of]
    if unknown:
        folder.notes.add(
            TOPOLOGY,
            f"nodes below no switch: {fold(unknown)[:80]}",
            "each as below a leaf of its own",
        )
    path_of = {node.name: _upwards(leaf_of.get(node.name, node.name), parents) for node in nodes}
    n_levels = max((len(path) for path in path_of.values()), default=0)
    levels: dict[str, Any] = {}
    for height in reversed(range(n_levels)):
        domains: dict[str, list[str]] = {}
        for name, path in path_of.items():
            # a leaf below a higher switch stands for those that it lacks
            up = height - (n_levels - len(path))
            domains.setdefault(path[max(up, 0)], []).append(name)
        if len(domains) > 1:
            level = f"switch{height + 1}" if height else LEAF
            levels[level] = {"nodes": {switch: fold(own) for switch, own in domains.items()}}
    roots = {path[-1] for path in path_of.values()} - {*unknown}
    if len(roots) > 1:
        folder.notes.add(TOPOLOGY, "several trees", "a job may have nodes of several")
    return {"levels": levels, "preferred": [*levels][-1]} if levels else None


def preferred_levels(
    folder: Folder, commands: Sequence[str], topology: Mapping[str, Any] | None
) -> list[str]:
    """Return the level that each job prefers by ``--switches``; "" for what all do."""
    matches = {command: _SWITCHES.search(command) for command in dict.fromkeys(commands)}
    requests = {command: match for command, match in matches.items() if match}
    if not topology:
        if requests:
            folder.notes.add("jobs", "--switches", _BLIND)
        return [""] * len(commands)
    for match in requests.values():
        if match[1] == "1":
            folder.notes.add(
                "jobs", "--switches=1",
                "a job does not wait for one switch if it fits below several: no time to wait",
            )  # fmt: skip
        else:
            folder.notes.add("jobs", "--switches above 1", "such a job prefers one leaf, as all do")
    single = {command for command, match in requests.items() if match[1] == "1"}
    return [str(topology["preferred"]) if command in single else "" for command in commands]


def _tree(folder: Folder) -> tuple[dict[str, str], dict[str, str]]:
    """Return the switch above each switch, and the leaf switch of each node."""
    parents: dict[str, str] = {}
    leaf_of: dict[str, str] = {}
    for record in folder.switches:
        switch = record.get("switchname", "")
        if not switch:
            folder.notes.add(TOPOLOGY, f"{' '.join(record)[:80]}", "no SwitchName: not read")
            continue
        for name in expand(record.get("switches", "")):
            parents.setdefault(name, switch)
        for name in expand(record.get("nodes", "")):
            if leaf_of.setdefault(name, switch) != switch:
                folder.notes.add(
                    TOPOLOGY, f"{name} is below {leaf_of[name]} and {switch}", "the first counts"
                )
    return parents, leaf_of


def _upwards(leaf: str, parents: Mapping[str, str]) -> list[str]:
    """Return a leaf and the switches above it; a circle ends where it closes."""
    path = [leaf]
    while (above := parents.get(path[-1])) and above not in path:
        path.append(above)
    return path
