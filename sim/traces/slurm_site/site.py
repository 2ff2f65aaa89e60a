"""A site: its jobs, its cluster and its scheduler's options, from a folder of exports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sim.base.errors import InputError
from sim.base.reading import OnBadRow
from sim.traces.sacct.options import Release, State
from sim.traces.sites.now import close, startable
from sim.traces.sites.pseudonyms import Pseudonyms
from sim.traces.sites.site import Site
from sim.traces.slurm_site.folder import FILES, Folder, read_folder
from sim.traces.slurm_site.jobs import read_jobs
from sim.traces.slurm_site.limits import accounts_above, limits_of
from sim.traces.slurm_site.machines import Node, kinds, nodes_of
from sim.traces.slurm_site.now import queue_file, read_now
from sim.traces.slurm_site.options import note_options
from sim.traces.slurm_site.partitions import default_partition, partitions_of, rules_of
from sim.traces.slurm_site.policy import kills_invalid_dependencies, policy_of
from sim.traces.slurm_site.slurm_conf import Record
from sim.traces.slurm_site.switches import topology_of
from sim.traces.slurm_site.windows import outages_of, reservations_of
from sim.workload.schema import LICENSE_PREFIX, NOW
from sim.workload.workload import Workload


def recognises(path: Path) -> bool:
    """Tell whether a folder has files of a site of Slurm."""
    return any(file.name.startswith(tuple(FILES)) for file in path.glob("*"))


def read_site(
    path: Path,
    *,
    on_bad_row: OnBadRow = "error",
    state: State = "all",
    release: Release = "eligible",
    pseudonyms: Pseudonyms | None = None,
    begin_s: float = 0.0,
) -> Site:
    """Read a folder of exports; see `sim.traces.slurm_site.read`.

    Times of the cluster count from `begin_s` after the first submission.
    """
    folder = read_folder(path, pseudonyms)
    partitions = partitions_of(folder)
    nodes = nodes_of(folder, partitions)
    note_options(folder)
    has_mem = _counts_memory(folder)
    workload = None
    if "sacct.txt" in folder.files:
        workload = read_jobs(
            folder, nodes, partitions, on_bad_row=on_bad_row, state=state, release=release,
            has_mem=has_mem,
        )  # fmt: skip
    cluster = _cluster(folder, nodes, partitions, workload, has_mem=has_mem, begin_s=begin_s)
    policy = policy_of(folder, partitions)
    if workload is not None:
        policy["clock_s"] = (float(workload.meta["offset_s"]) + begin_s) % 3600.0
    notes = [*folder.notes.lines]
    return Site("Slurm", workload, cluster, policy, nodes, notes, _COMMENTS, "sacct.txt")


def with_queue(site: Site, path: Path, pseudonyms: Pseudonyms | None) -> Site:
    """Return a site that was read from a folder with the queue that is in it; as it is without.

    Without a file of the queue the accounting's own jobs that had not ended are one.
    """
    folder = read_folder(path, pseudonyms)
    partitions = partitions_of(folder)
    nodes = nodes_of(folder, partitions)
    has_mem = _counts_memory(folder)

    def read(source: Folder) -> Workload:
        return read_jobs(
            source, nodes, partitions, on_bad_row="error", state="all", release="eligible",
            has_mem=has_mem,
        )  # fmt: skip

    try:
        queue = read_now(folder, read)
    except InputError as error:
        if queue_file(path) is not None:
            raise
        note = f"jobs that had not ended are left out: {error.message}"
        return replace(site, notes=[*site.notes, note])
    if queue is None:
        return site
    cluster = _cluster(folder, nodes, partitions, queue, has_mem=has_mem, begin_s=0.0)
    states = [folder.nodes.get(node.name, {}).get("state", "").upper() for node in nodes]
    is_closed = [any(word in state for word in ("DOWN", "DRAIN", "FAIL")) for state in states]
    close(cluster, np.flatnonzero(is_closed).tolist(), float(queue.meta[NOW]))
    source = "squeue" if queue_file(path) else "sacct.txt"
    queue = startable(queue, cluster, folder.notes, source)
    notes = [*dict.fromkeys([*site.notes, *folder.notes.lines])]
    if queue is None:
        return replace(site, notes=notes)
    return replace(site, queue=queue, queue_cluster=cluster, notes=notes)


def _counts_memory(folder: Folder) -> bool:
    """Tell whether memory is allocated: not if the site's configuration says otherwise."""
    text = folder.conf.options.get("selecttypeparameters", "")
    counts = "slurm.conf" not in folder.files or "memory" in text.lower()
    if not counts:
        folder.notes.add(
            "slurm.conf", f"SelectTypeParameters={text or 'none'}",
            "memory is not counted, as in Slurm",
        )  # fmt: skip
    return counts


def _cluster(
    folder: Folder, nodes: list[Node], partitions: Mapping[str, Record],
    workload: Workload | None, *, has_mem: bool, begin_s: float,
) -> dict[str, Any]:  # fmt: skip
    options = folder.conf.options
    whole = options.get("selecttype", "") == "select/linear"
    machines = {node.name: i for i, node in enumerate(nodes)}
    rules = rules_of(partitions, whole_nodes=whole)
    has_gpus = any(node.gpus for node in nodes)
    limits = limits_of(folder, partitions, has_mem=has_mem, has_gpus=has_gpus)
    columns = {"qos", "account", *(row["of"] for row in limits)}
    if workload is not None:
        columns = {*workload.jobs.column_names}
    cluster: dict[str, Any] = {
        "shape": kinds(nodes, default_partition(partitions), has_mem=has_mem),
        "count": 1,
        "partitions": rules,
        "limits": [row for row in limits if _columns_of(row) <= columns],
        "accounts": accounts_above(folder),
        "topology": topology_of(folder, nodes),
        "enforce_limits": True,
        "unmet_dependencies": "fail" if kills_invalid_dependencies(folder) else "wait",
    }
    if workload is not None:
        zero_s = float(workload.meta["offset_s"]) + begin_s
        cluster["outages"] = outages_of(folder, machines, zero_s)
        cluster["reservations"] = reservations_of(folder, machines, zero_s)
    return {key: value for key, value in cluster.items() if value not in ([], {}, None)}


def _columns_of(row: Mapping[str, Any]) -> set[str]:
    """Return the optional columns of jobs that a limit goes by."""
    licences = {row["of"]} if row["of"].startswith(LICENSE_PREFIX) else set()
    return {*row.get("by", ()), *row.get("where", ()), *licences} - {"user", "queue"}


_COMMENTS = {
    "defaults": "The cluster of a site of Slurm.",
    "shape": "Kinds of nodes, those of the least weight first.",
    "partitions": "Rules of partitions.",
    "limits": "Limits of QOS and associations.",
    "accounts": "The account above each account.",
    "topology": "Switches above nodes, the widest level first.",
    "enforce_limits": "Jobs end at their limits.",
    "outages": "Drains and outages, s after the first submission.",
    "reservations": "Advance reservations and maintenance, s after the first submission.",
}
