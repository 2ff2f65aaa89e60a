"""Jobs of a site: Workloads in ClusterQueues, on the nodes of the flavors that they may use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.errors import InputError
from sim.base.reading import OnBadRow, json_field
from sim.base.reading.objects import conditions_of, since
from sim.traces.kubernetes import read_jobs
from sim.traces.kueue_site.nodes import Node, tolerates
from sim.traces.kueue_site.objects import KINDS, Raw
from sim.traces.kueue_site.topology import levels_asked
from sim.traces.sites.notes import Notes
from sim.traces.sites.now import with_open_jobs
from sim.traces.sites.pseudonyms import Pseudonyms
from sim.transforms.parts import rebuild
from sim.workload.node_names import NODE_LIST
from sim.workload.schema import NOW, RECORDED, RUNS_ON, TOPOLOGY_PREFERRED, TOPOLOGY_REQUIRED
from sim.workload.tables import column_or_default, names, values
from sim.workload.workload import Workload

HOST = "kubernetes.io/hostname"
_AFFINITY = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"


@dataclass(frozen=True)
class PodSet:
    """A set of pods of a Workload.

    Attributes
    ----------
    name : str
    selector : mapping of str to set of str
        Values of the labels that its nodes must have.
    tolerations : sequence
    resources : set of str
        Resources that it requests, by Kubernetes' names.
    """

    name: str
    selector: Mapping[str, set[str]]
    tolerations: Sequence[Any]
    resources: set[str]


class Jobs:
    """Workloads of a site by the names under which jobs are known, with their sets of pods."""

    def __init__(self, objects: Mapping[str, Sequence[Raw]], notes: Notes) -> None:
        self._notes = notes
        self._queues = {queue.name: queue for queue in objects["ClusterQueue"]}
        self._flavors = {flavor.name: flavor for flavor in objects["ResourceFlavor"]}
        self._workloads = objects["Workload"]
        self._local = {
            (item.meta.namespace, item.name): item.text("spec.clusterQueue")
            for item in objects["LocalQueue"]
        }
        for item in objects["Workload"]:  # of local queues that are gone
            admitted = item.text("status.admission.clusterQueue")
            if admitted:
                self._local.setdefault((item.meta.namespace, item.meta.queue), admitted)

    @cached_property
    def rows(self) -> dict[str, list[Any]]:
        """Sets of pods, as they are, by namespace and name of the Workload, and of its owner."""
        by_place: dict[str, list[Any]] = {}
        for item in self._workloads:
            by_place |= dict.fromkeys(_places(item), item.rows("spec.podSets"))
        return by_place

    @cached_property
    def pod_sets(self) -> dict[str, list[PodSet]]:
        """Sets of pods by namespace and name of the Workload, and of its owner."""
        return {place: [self._pod_set(row) for row in rows] for place, rows in self.rows.items()}

    def has_open(self) -> bool:
        """Tell whether a Workload runs or waits; note those that wait with quota."""
        is_any = False
        for item in self._workloads:
            since_s = {
                kind: since(conditions_of(item.record), kind, "True")
                for kind in ("QuotaReserved", "Admitted", "Finished")
            }
            if not math.isnan(since_s["Finished"]):
                continue
            is_any = True
            if math.isnan(since_s["Admitted"]) and not math.isnan(since_s["QuotaReserved"]):
                self._notes.add(
                    "Workload", f"{item.name} has quota and is not admitted",
                    "it waits for admission checks; here for quota",
                )  # fmt: skip
        return is_any

    @cached_property
    def inactive(self) -> set[str]:
        """Namespaces and names of Workloads that do not wait for admission, and of their owners."""
        is_active = [item.mapping("spec").get("active", True) for item in self._workloads]
        pairs = zip(self._workloads, is_active, strict=True)
        return {place for item, active in pairs if active is False for place in _places(item)}

    @property
    def used_labels(self) -> list[str]:
        """Labels that pods ask for and that no flavor has, but for names of nodes."""
        flavor_labels = {
            key for item in self._flavors.values() for key in item.mapping("spec.nodeLabels")
        }
        sets = [pod_set for pod_sets in self.pod_sets.values() for pod_set in pod_sets]
        pod_labels = {key for pod_set in sets for key in pod_set.selector}
        if HOST in pod_labels:
            self._notes.add("Workload", f"a selector of {HOST}", "pods run on any node that suits")
        return sorted(pod_labels - flavor_labels - {HOST})

    def cluster_queue(self, namespace: str, queue: str) -> str:
        """Return the ClusterQueue of a local queue; the local queue's name if it is unknown."""
        local = queue.removeprefix(f"{namespace}/")
        known = self._local.get((namespace, local))
        if known:
            return known
        self._notes.add(
            "LocalQueue", f"{namespace}/{local} is missing", "its jobs have a queue without a quota"
        )
        return local

    def classes(self, pod_set: PodSet, queue: str, nodes: Sequence[Node]) -> set[str]:
        """Return the classes of nodes on which a set of pods of a ClusterQueue may run."""
        groups = self._queues[queue].groups if queue in self._queues else []
        chosen = [
            {name for name in flavors if self._suits(pod_set, name)}
            for resources, flavors in groups
            if pod_set.resources & {*resources}
        ]
        return {
            node.machine_class
            for node in nodes
            if all(flavors & {*node.flavors} for flavors in chosen)
            and all(value in pod_set.selector.get(key, {value}) for key, value in node.labels)
            and all(
                key in dict(node.labels) or key == HOST or self._is_of_flavor(key)
                for key in pod_set.selector
            )
        }

    def _is_of_flavor(self, key: str) -> bool:
        return any(key in item.mapping("spec.nodeLabels") for item in self._flavors.values())

    def _suits(self, pod_set: PodSet, flavor: str) -> bool:
        """Tell whether a set of pods may use a flavor, by labels and taints."""
        if flavor not in self._flavors:
            return False
        item = self._flavors[flavor]
        labels = item.mapping("spec.nodeLabels")
        if any(str(labels[key]) not in pod_set.selector.get(key, {str(labels[key])})
               for key in labels):  # fmt: skip
            return False
        tolerations = [*pod_set.tolerations, *item.rows("spec.tolerations")]
        return tolerates(item.rows("spec.nodeTaints"), tolerations)

    def _pod_set(self, row: Any) -> PodSet:
        spec = json_field(row, "template.spec", dict)
        if isinstance(row, Mapping) and row.get("minCount"):
            self._notes.add("Workload", "minCount", "partial admission is not simulated")
        selector = {
            str(key): {str(value)} for key, value in json_field(spec, "nodeSelector", dict).items()
        }
        terms = json_field(spec, _AFFINITY, list)
        for expression in json_field(terms[0], "matchExpressions", list) if len(terms) == 1 else []:
            if json_field(expression, "operator", str) == "In":
                key = json_field(expression, "key", str)
                selector[key] = {str(value) for value in json_field(expression, "values", list)}
            else:
                self._notes.add("Workload", "node affinity but by In", "pods run without it")
        if len(terms) > 1:
            self._notes.add("Workload", "several terms of node affinity", "pods run without it")
        resources = {
            str(name)
            for key in ("initContainers", "containers")
            for container in json_field(spec, key, list)
            for kind in ("requests", "limits")
            for name in json_field(container, f"resources.{kind}", dict)
        }
        name = json_field(row, "name", str) or "main"
        return PodSet(name, selector, json_field(spec, "tolerations", list), resources)


def _places(workload: Raw) -> list[str]:
    """Return the namespace and name of a Workload, and of each of its owners."""
    owners = workload.rows("metadata.ownerReferences")
    names_of = [workload.name, *(json_field(owner, "name", str) for owner in owners)]
    return [f"{workload.meta.namespace}/{name}" for name in names_of if name]


def read_site_jobs(
    path: Path, jobs: Jobs, nodes: Sequence[Node], levels: Sequence[str], notes: Notes,
    pseudonyms: Pseudonyms, on_bad_row: OnBadRow, now_s: float | None = None,
) -> Workload | None:  # fmt: skip
    """Read the jobs; None if none has ended. `levels`: those of the cluster's topology.

    With `now_s`, s since 1970, those that run or wait, too, without their unknown times.
    """
    try:
        workload = read_jobs(
            path, on_bad_row=on_bad_row, name="kueue_site", other_kinds=KINDS, now_s=now_s
        )
    except InputError as error:
        if error.rule != "no job left":
            raise
        notes.add("missing", "Workloads that ended", "there are no jobs")
        return None
    if now_s is not None:
        workload = _open_jobs(workload, jobs, notes)
    table = workload.jobs
    ids = table["job_id"].to_pylist()
    spaces = [names(table, "user")[code] for code in values(table, "user").tolist()]
    local = [names(table, "queue")[code] for code in values(table, "queue").tolist()]
    queues = [jobs.cluster_queue(*pair) for pair in zip(spaces, local, strict=True)]
    stages = workload.stages
    stage_names = [names(stages, "name")[c] for c in values(stages, "name").tolist()] if (
        pa.types.is_dictionary(stages.schema.field("name").type)
    ) else stages["name"].to_pylist()  # fmt: skip
    runs_on = [
        _runs_on(jobs, jobs.pod_sets.get(ids[job], []), stage, queues[job], nodes, notes)
        for job, stage in zip(values(stages, "job").tolist(), stage_names, strict=True)
    ]
    if any(runs_on):
        stages = _with_text(stages, RUNS_ON.name, runs_on)
    pairs = [levels_asked(jobs.rows.get(name, []), levels, notes) for name in ids]
    for k, level in enumerate((TOPOLOGY_REQUIRED, TOPOLOGY_PREFERRED)):
        if any(pair[k] for pair in pairs):
            table = _with_text(table, level.name, [pair[k] for pair in pairs])
    alias = pseudonyms.alias
    for column, texts in {
        "queue": queues,
        "user": [alias("user", text) for text in spaces],
        "template": [
            alias("job", names(table, "template")[code])
            for code in values(table, "template").tolist()
        ],
    }.items():
        table = _with_text(table, column, texts)
    column = pa.array([alias("job", text) for text in ids], pa.string())
    table = table.set_column(table.column_names.index("job_id"), "job_id", column)
    return rebuild(workload, None, jobs=table, stages=stages, validate=True)


def _open_jobs(workload: Workload, jobs: Jobs, notes: Notes) -> Workload:
    """Return the jobs without times after now, and without those that a person deactivated."""
    now_s = float(workload.meta[NOW])
    start_s, end_s = (column_or_default(workload.jobs, column) for column in RECORDED)
    waits, runs = start_s > now_s, end_s > now_s
    ids = workload.jobs["job_id"].to_pylist()
    columns, lists = workload.columns, [""] * workload.n_stages
    if NODE_LIST in workload.stages.column_names:
        lists = workload.stages[NODE_LIST].to_pylist()
    is_known = [bool(lists[stage]) for stage in columns.job_stage0[:-1].tolist()]
    for row in np.flatnonzero(runs & ~waits).tolist():
        if not is_known[row]:
            notes.add(
                "Workload", f"{ids[row]} runs, and no pod tells where",
                "it starts again; export pods, too",
            )  # fmt: skip
    is_out = np.array([name in jobs.inactive for name in ids]) & runs
    for row in np.flatnonzero(is_out).tolist():
        notes.add("Workload", f"{ids[row]} is not active", "it does not wait in the queue of now")
    return with_open_jobs(workload, waits, runs, now_s).take(~is_out)


def _runs_on(
    jobs: Jobs, pod_sets: Sequence[PodSet], stage: str, queue: str, nodes: Sequence[Node],
    notes: Notes,
) -> str:  # fmt: skip
    """Return the classes of a stage, separated by ``|``; "" for all."""
    if not nodes:
        return ""
    own = [pod_set for pod_set in pod_sets if pod_set.name == stage] or [*pod_sets]
    every = {node.machine_class for node in nodes}
    allowed = set(every)
    for pod_set in own or [PodSet("", {}, (), {"cpu"})]:
        allowed &= jobs.classes(pod_set, queue, nodes)
    if not allowed:
        notes.add("Workload", f"pods of {queue} that suit no node", "they run on any")
    return "" if allowed in (set(), every) else "|".join(sorted(allowed))


def _with_text(table: pa.Table, name: str, texts: Sequence[str]) -> pa.Table:
    column = pa.array(texts, pa.string()).dictionary_encode()
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)
