"""A site of Kueue: its jobs, its cluster and its scheduler's options, from a folder of objects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from sim.base.errors import InputError
from sim.base.reading import OnBadRow, read_text
from sim.base.reading.json_records import json_files
from sim.base.reading.objects import time_of
from sim.base.reading.text import BadLineError
from sim.cluster.cluster import Cluster
from sim.cluster.fits import check_fits
from sim.traces.kueue_site.jobs import Jobs, read_site_jobs
from sim.traces.kueue_site.nodes import Node, kinds, nodes_of
from sim.traces.kueue_site.objects import COMMAND, Raw, read_site_objects
from sim.traces.kueue_site.policy import policy_of
from sim.traces.kueue_site.quotas import quotas_of
from sim.traces.kueue_site.topology import topology_of
from sim.traces.sites.notes import Notes
from sim.traces.sites.now import close, startable
from sim.traces.sites.pseudonyms import Pseudonyms
from sim.traces.sites.site import Site
from sim.workload.schema import NOW
from sim.workload.workload import Workload

UNTRIED = "by Kueue's documentation alone: never held against a real site"


def recognises(path: Path) -> bool:
    """Tell whether a folder has a file of JSON with a ClusterQueue."""
    try:
        files = json_files(path)
    except InputError:
        return False
    return any('"ClusterQueue' in read_text(file) for file in files)


def read_site(
    path: Path, *, on_bad_row: OnBadRow = "error", pseudonyms: Pseudonyms | None = None
) -> Site:
    """Read a folder of objects; see `sim.traces.kueue_site.read`.

    Raises
    ------
    InputError
        If it has no ClusterQueue, or of an object's content.
    """
    with _errors_name(path):
        return _read(path, on_bad_row, pseudonyms or Pseudonyms())


def with_queue(site: Site, path: Path, pseudonyms: Pseudonyms | None) -> Site:
    """Return a site that was read from a folder with the Workloads that run and wait in it.

    Now is the last time of any object, as nodes tell one every few minutes.

    Raises
    ------
    InputError
        Of an object's content.
    """
    with _errors_name(path):
        return _with_queue(site, path, pseudonyms or Pseudonyms())


@contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    """Let errors within name the folder, where they name no file."""
    try:
        yield
    except BadLineError as error:
        raise InputError(str(error), file=path, rule=error.rule) from error
    except InputError as error:
        if error.file is not None:
            raise
        raise InputError(error.message, file=path, rule=error.rule) from error


def _with_queue(site: Site, path: Path, pseudonyms: Pseudonyms) -> Site:
    notes = Notes()
    parts = _Parts.read(path, notes, "error")
    if not parts.jobs.has_open():
        return site
    queue = parts.workload(path, notes, pseudonyms, "error", parts.now_s)
    if queue is None:  # those that are open have no set of pods
        return site
    cluster = parts.cluster(queue, notes)
    closed = [i for i, node in enumerate(parts.nodes) if node.is_closed]
    close(cluster, closed, float(queue.meta[NOW]))
    queue = startable(queue, cluster, notes, "Workload")
    notes_of_both = [*dict.fromkeys([*site.notes, *notes.lines])]
    if queue is None:
        return replace(site, notes=notes_of_both)
    return replace(site, queue=queue, queue_cluster=cluster, notes=notes_of_both)


def _read(path: Path, on_bad_row: OnBadRow, pseudonyms: Pseudonyms) -> Site:
    notes = Notes()
    notes.add("all", "Kueue", UNTRIED)
    parts = _Parts.read(path, notes, on_bad_row)
    workload = parts.workload(path, notes, pseudonyms, on_bad_row)
    cluster, policy = (
        parts.cluster(workload, notes),
        policy_of(parts.objects["ClusterQueue"], notes),
    )
    return Site(
        f"Kueue, {UNTRIED}", workload, cluster, policy, parts.nodes, [*notes.lines], _COMMENTS,
        "Workloads", (f"This twin is {UNTRIED}.",),
    )  # fmt: skip


@dataclass(frozen=True)
class _Parts:
    """Objects of a site, with its jobs, nodes and topology."""

    objects: Mapping[str, Sequence[Raw]]
    jobs: Jobs
    nodes: Sequence[Node]
    topology: dict[str, Any] | None

    @classmethod
    def read(cls, path: Path, notes: Notes, on_bad_row: OnBadRow) -> _Parts:
        """Read the objects, and note which kinds are missing."""
        objects = read_site_objects(path, notes, on_bad_row)
        queues = objects["ClusterQueue"]
        if not queues:
            text = f"there is no ClusterQueue; write the folder with {COMMAND}"
            raise InputError(text, file=path, rule="no quotas")
        for kind, loss in {
            "Node": "jobs wait for quotas alone, on one machine of all nominal quotas",
            "ResourceFlavor": "jobs run on any node",
            "LocalQueue": "ClusterQueues of jobs that were never admitted are unknown",
        }.items():
            if not objects[kind]:
                notes.add("missing", kind, loss)
        _note_flavors(queues, objects["ResourceFlavor"], notes)
        jobs = Jobs(objects, notes)
        flavors = _in_order(queues, objects["ResourceFlavor"])
        nodes = nodes_of(objects["Node"], flavors, jobs.used_labels, notes)
        return cls(objects, jobs, nodes, topology_of(objects, nodes, notes))

    def workload(
        self, path: Path, notes: Notes, pseudonyms: Pseudonyms, on_bad_row: OnBadRow,
        now_s: float | None = None,
    ) -> Workload | None:  # fmt: skip
        """Read the jobs that ended; with `now_s` those that run and wait, too."""
        levels = [*self.topology["levels"]] if self.topology else []
        return read_site_jobs(
            path, self.jobs, self.nodes, levels, notes, pseudonyms, on_bad_row, now_s
        )

    def cluster(self, workload: Workload | None, notes: Notes) -> dict[str, Any]:
        """Return the options of the cluster."""
        queues, cohorts = self.objects["ClusterQueue"], self.objects["Cohort"]
        quotas = quotas_of(queues, cohorts, self.nodes, notes)
        cluster = _cluster(self.nodes, quotas, workload, notes)
        why = "" if workload is None else _misfit(workload, cluster)
        if why:
            rest = Notes()
            sums = _cluster(self.nodes, quotas_of(queues, cohorts, (), rest), workload, rest)
            if workload is not None and not _misfit(workload, sums):
                notes.add("ClusterQueue", f"by flavor {why}", "quotas of flavors are added up")
                cluster = sums
        return cluster | ({"topology": self.topology} if self.topology else {})

    @property
    def now_s(self) -> float:
        """Last time of any object, s since 1970."""
        keys = ("lastTransitionTime", "lastHeartbeatTime", "lastProbeTime")
        times_s = [
            time_of(row, key)
            for items in self.objects.values()
            for item in items
            for row in item.rows("status.conditions")
            for key in keys
        ]
        created_s = [item.meta.created_s for items in self.objects.values() for item in items]
        return float(np.nanmax([*created_s, *times_s]))


def _cluster(
    nodes: Sequence[Node],
    quotas: dict[str, dict[str, Any]],
    workload: Workload | None,
    notes: Notes,
) -> dict[str, Any]:
    shape = kinds(nodes) or [_all_quotas(quotas)]
    resources = {name for kind in shape for name in (*kind, *kind.get("devices", ()))}
    quotas = {name: _quota_of(row, name, resources, notes) for name, row in quotas.items()}
    cluster: dict[str, Any] = {"shape": shape, "count": 1, "quotas": quotas}
    if workload is not None and np.isfinite(workload.columns.job_requested).any():
        cluster["enforce_limits"] = True
    return cluster


def _misfit(workload: Workload, cluster: Mapping[str, Any]) -> str:
    """Return why a job that ran would never run in a cluster with such quotas; "" if all would."""
    try:
        check_fits(workload, Cluster.mixed(cluster["shape"]).with_quotas(cluster["quotas"]))
    except InputError as error:
        return error.message
    return ""


def _quota_of(
    row: dict[str, Any], queue: str, resources: Collection[str], notes: Notes
) -> dict[str, Any]:
    """Return a quota without resources that no node has, which are noted."""
    amounts = {key: value for key, value in row.items() if isinstance(value, Mapping)}
    for name in sorted({*chain(*amounts.values())} - {*resources}):
        notes.add(
            "ClusterQueue", f"{queue}'s quota of {name}", "no node has any, so it is left out"
        )
    return row | {
        key: {name: amount for name, amount in value.items() if name in resources}
        for key, value in amounts.items()
    }


def _all_quotas(quotas: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return one machine with all nominal quotas."""
    total: dict[str, float] = {}
    for row in quotas.values():
        for name, amount in row["nominal"].items():
            total[name] = total.get(name, 0.0) + amount
    machine = {name: amount for name, amount in total.items() if amount > 0}
    if not machine:
        raise InputError(
            "there is no node, and no ClusterQueue has a nominal quota, so nothing can run; write "
            f"the folder with {COMMAND}",
            rule="no quotas",
        )
    return {"count": 1, **machine}


def _in_order(queues: Sequence[Raw], flavors: Sequence[Raw]) -> list[Raw]:
    """Return the flavors in the order in which queues try them."""
    tried = dict.fromkeys(name for queue in queues for _, names in queue.groups for name in names)
    rank = {name: n for n, name in enumerate(tried)}
    return sorted(flavors, key=lambda item: (rank.get(item.name, len(rank)), item.name))


def _note_flavors(queues: Sequence[Raw], flavors: Sequence[Raw], notes: Notes) -> None:
    known = {item.name for item in flavors}
    for queue in queues:
        for name in queue.quotas:
            if flavors and name not in known:
                notes.add(
                    "ResourceFlavor", f"{name} of {queue.name} is missing",
                    "its quota counts, and it has no node",
                )  # fmt: skip


_COMMENTS = {
    "defaults": f"The cluster of a site of Kueue, {UNTRIED}.",
    "shape": "Kinds of nodes, those of the first flavor first; a class is a flavor, or several.",
    "quotas": "ClusterQueues, and the Cohorts above them.",
    "topology": "Domains of nodes by the labels of a Topology, the widest level first.",
    "enforce_limits": "Jobs end at their maximum execution time.",
}
