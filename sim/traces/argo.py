"""Reader of Argo workflows, as ``kubectl get workflow -o json`` writes them.

Source: Argo Workflows, ``pkg/apis/workflow/v1alpha1/workflow_types.go`` (NodeStatus), and
``workflow/controller`` (``getOutboundNodes``, ``runOnExitNode``: how nodes become children).
"""

from __future__ import annotations

import base64
import math
import os
import re
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError
from typing import Any, Final

from sim.base.acyclic import direct_parents
from sim.base.parameters import checked
from sim.base.reading import BadLineError, OnBadRow, json_field, parse_json
from sim.base.reading.objects import Meta, Notice, parse_meta, read_objects, time_of
from sim.base.reading.pod_requests import GPU_QUANTUM, pod_demand
from sim.workload.attempts import Attempt, AttemptLog, LoggedJob, rule_of
from sim.workload.workload import Workload

__all__ = ["read"]

COMMAND: Final = "kubectl get workflows -A -o json"
OFFLOADED: Final = "workflows whose nodes are in a database: argo get -o json has them"
ON_DAEMON: Final = "dependencies on a daemon, which goes on beside what waits for it"
_OVER: Final = ("Succeeded", "Failed", "Error")
_GROUPS: Final = ("DAG", "Steps", "StepGroup", "TaskGroup", "Retry", "Container")
_REMEMBERED: Final = "remembered"
_NO_POD: Final = ("Skipped", "Omitted", _REMEMBERED)
_EXIT: Final = ".onExit"
_HOOKS: Final = (_EXIT, ".hooks.")
_INSIDE = re.compile(r"[.\[(]")  # between the name of a node and that of a node inside it
_MAX_BYTES: Final = 1 << 28
_MIB_OF_MEMORY: Final = 100  # unit of memory in resourcesDuration


@dataclass(slots=True)
class _Node:
    """A node of a workflow."""

    name: str
    label: str
    type: str
    phase: str
    start_s: float
    end_s: float
    children: list[str]
    has_pod: bool
    is_daemon: bool
    demand: dict[str, float]
    host: str


@dataclass(slots=True)
class _Workflow:
    """A workflow: a job and its attempts."""

    meta: Meta
    version: tuple[Any, ...]
    job: LoggedJob
    attempts: list[Attempt]


@checked
def read(path: str | os.PathLike[str], *, on_bad_row: OnBadRow = "error") -> Workload:
    """Read workflows: each is a job, and each of its pods a stage of one task.

    A pod lasts from the creation of its node to the end of its containers, so its wait for a place
    is a part of it (``trace=kubernetes`` reads the pods themselves, as long as they are there). It
    demands what its template requests (``cpu`` in cores, ``mem`` in GiB, ``gpu``); what that does
    not say follows from ``resourcesDuration``, which Argo estimates; without either it demands one
    CPU.

    Groups (DAG, Steps, Retry, ...) only hold pods, which wait for each other through them. The
    last attempt of a Retry is a stage, earlier ones are lost work. An exit handler waits for all of
    the workflow. A daemon is a stage that no other waits for. Pauses (Suspend), requests by HTTP
    and plug-ins have no pod of their own; what waits for them waits for what they wait for.

    The queue and the user are the namespace, the template is the WorkflowTemplate, the CronWorkflow
    or the prefix of generated names.

    Parameters
    ----------
    path : path-like
        A file of JSON, plain or compressed, or a folder of such files: lists, single workflows, or
        one after the other. Of a workflow that is given several times the latest state counts.
    on_bad_row : {"error", "skip"}
        Workflows with missing or invalid fields: raise, or drop and count.

    Returns
    -------
    Workload
        ``recorded_start_s`` and ``recorded_finish_s`` of jobs and stages, ``node_list`` of
        ``stages``, ``requested_s`` (the workflow's deadline). ``meta["report"]`` has the account
        (`sim.base.reading.account`), in which attempts are tasks, and counts by rule.

    Raises
    ------
    InputError
        With file, line and rule: "missing file", "not JSON", "wrong line", "wrong type",
        "missing value", "wrong time", "wrong quantity", "number out of range", "cycle",
        "no job left".
    """
    log, kinds = AttemptLog(path, per_s=1.0), {"Workflow": _parse}
    for flow in read_objects(path, COMMAND, kinds, on_bad_row, log.bad, log.notice)["Workflow"]:
        log.jobs[flow.meta.uid] = flow.job
        log.attempts += flow.attempts
    return log.workload("argo", {"cpu": 1e-3, "mem": 2.0**-10, "gpu": GPU_QUANTUM})


def _parse(record: Any, notice: Notice) -> _Workflow:
    meta, nodes = parse_meta(record), _nodes(record, notice)
    is_over = json_field(record, "status.phase", str) in _OVER
    parent = json_field(record, "spec.workflowTemplateRef.name", str)
    job = LoggedJob(
        job_id=meta.place,
        submit=meta.created_s,
        template=f"{meta.namespace}/{parent}" if parent else meta.template,
        user=meta.namespace,
        queue=meta.queue or meta.namespace,
        priority=meta.priority,
        requested_s=meta.limit_s,
    )
    parents, lost = _precedence(nodes)
    labels = Counter(node.label for node in nodes.values() if node.has_pod)
    names, attempts, tasks = dict[str, str](), list[Attempt](), set[str]()
    for key, node in nodes.items():
        if node.has_pod:
            rule = rule_of(node.phase != "Pending", is_over, key in lost)
            names[key] = node.label if labels[node.label] == 1 else node.name
            if not rule and node.end_s >= node.start_s:
                tasks.add(key)
            times = (node.start_s, node.end_s)
            attempts.append(Attempt(meta.uid, names[key], *times, node.demand, rule, 1, node.host))
        elif node.type not in _GROUPS:
            notice(f"nodes without a pod: {node.type or 'unknown'}, {node.phase or 'unknown'}")
    if not attempts:
        is_away = json_field(record, "status.offloadNodeStatusVersion", str)
        rule = OFFLOADED if is_away else rule_of(False, is_over)
        attempts.append(Attempt(meta.uid, "", math.nan, math.nan, {}, rule))
    daemons = {key for key, node in nodes.items() if node.has_pod and node.is_daemon}
    try:
        direct = direct_parents(parents, tasks - daemons)
    except CycleError as error:
        cycle = ", ".join(nodes[key].name for key in error.args[1][:4])
        text = f"nodes of the workflow are children of each other: {cycle}"
        raise BadLineError("cycle", text) from None
    job.edges = [(names[a], names[b], "barrier") for b in tasks for a in direct[b]]
    job.edges_left_out = {ON_DAEMON: sum(len(before & daemons) for before in parents.values())}
    return _Workflow(meta, (*meta.version, is_over, len(nodes)), job, attempts)


def _nodes(record: Any, notice: Notice) -> dict[str, _Node]:
    """Return the nodes of a workflow by id, also where Argo has compressed them."""
    records = json_field(record, "status.nodes", dict)
    if packed := json_field(record, "status.compressedNodes", str):
        try:
            text = zlib.decompressobj(31).decompress(base64.b64decode(packed), _MAX_BYTES)
            records = json_field({"nodes": parse_json(text)}, "nodes", dict)
        except (ValueError, zlib.error) as error:
            problem = f"status.compressedNodes can't be unpacked ({error})"
            raise BadLineError("wrong type", problem) from None
    templates = json_field(record, "status.storedTemplates", dict) | {
        json_field(item, "name", str): item
        for name in ("spec.templates", "status.storedWorkflowTemplateSpec.templates")
        for item in json_field(record, name, list)
    }
    return {key: _node(key, item, templates, notice) for key, item in records.items()}


def _node(key: str, record: Any, templates: Mapping[str, Any], notice: Notice) -> _Node:
    name, label, kind, phase, host, scope, own, other, theirs = (
        json_field(record, field, str)
        for field in (
            "name", "displayName", "type", "phase", "hostNodeName",
            "templateScope", "templateName", "templateRef.name", "templateRef.template",
        )
    )  # fmt: skip
    names = [f"namespaced/{other}/{theirs}", f"cluster/{other}/{theirs}", f"{scope}/{own}", own]
    template = next((templates[item] for item in names if item in templates), None)
    if kind == "Pod" and json_field(record, "memoizationStatus.hit", bool):
        phase = _REMEMBERED
    has_pod = kind == "Pod" and phase not in _NO_POD
    start_s, end_s = (time_of(record, field) for field in ("startedAt", "finishedAt"))
    return _Node(
        name=name or key,
        label=label or name or key,
        type=kind,
        phase=phase,
        start_s=start_s,
        end_s=end_s,
        children=[str(child) for child in json_field(record, "children", list)],
        has_pod=has_pod,
        is_daemon=json_field(record, "daemoned", bool) or json_field(template, "daemon", bool),
        demand=_demand(record, template, end_s - start_s, notice) if has_pod else {},
        host=host,
    )


def _demand(record: Any, template: Any, run_s: float, notice: Notice) -> dict[str, float]:
    """Return what a pod requests; of CPUs, NaN if neither template nor Argo's estimate tells."""
    containers = [json_field(template, name, dict) for name in ("container", "script")]
    for name in ("containerSet.containers", "sidecars"):
        containers += json_field(template, name, list)
    used = dict(json_field(record, "resourcesDuration", dict))  # amounts × s
    if "memory" in used:
        used["memory"] = f"{json_field(used, 'memory', float) * _MIB_OF_MEMORY:f}Mi"
    requested = pod_demand({**(template or {}), "containers": containers}, notice)
    estimate = pod_demand({"containers": [{"resources": {"requests": used}}]}, lambda _: None)
    demand = {
        name: requested.get(name) or (estimate.get(name, 0.0) / run_s if run_s > 0 else 0.0)
        for name in requested | estimate
    }
    return {**demand, "cpu": demand["cpu"] or math.nan}


def _precedence(nodes: Mapping[str, _Node]) -> tuple[dict[str, set[str]], set[str]]:
    """Return the nodes before or around each node, and those of attempts before the last.

    ``children`` lead from a group (DAG, Steps, StepGroup, TaskGroup) to what it begins with, from a
    Retry to its attempts, and from what ends to what follows. A child outside of a group waits for
    all inside it, an exit handler for all of the node whose exit it handles.
    """
    inside: dict[str, set[str]] = {}  # a node: itself and those whose names go on behind its name
    for key, node in nodes.items():
        for end in (*(match.start() for match in _INSIDE.finditer(node.name)), None):
            inside.setdefault(node.name[:end], set()).add(key)
    parents, lost = {key: set[str]() for key in nodes}, set[str]()
    for key, node in nodes.items():
        if node.name.endswith(_EXIT):
            handled = node.name.removesuffix(_EXIT)
            parents[key] |= inside.get(handled, set()) - inside[node.name]
        children = [child for child in node.children if child in nodes]
        for child in children:
            name = nodes[child].name
            is_hook = name.removeprefix(node.name).startswith(_HOOKS)
            is_begun = node.has_pod or (child in inside[node.name] and not is_hook)
            parents[child] |= {key} if is_begun else inside[node.name] - inside[name]
        if node.type == "Retry":
            names = [nodes[child].name for child in children]
            tries = [name for name in names if name.startswith(f"{node.name}(")]
            lost.update(*(inside[name] for name in tries[:-1]))
    return parents, lost
