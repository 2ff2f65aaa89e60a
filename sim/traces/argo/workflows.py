"""Workflows: their pods as attempts at tasks, with what these request."""

from __future__ import annotations

import base64
import math
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from sim.base.reading import BadLineError, json_field, parse_json
from sim.base.reading.objects import Meta, parse_meta
from sim.base.reading.pod_requests import pod_demand
from sim.traces.argo.nodes import Graph, Node, parse_nodes
from sim.workload.attempts import FAILED, NEVER_RAN, RUNNING, WAITING, Attempt, LoggedJob

OFFLOADED: Final = "workflows whose nodes are in a database: argo get -o json has them"
_OVER: Final = ("Succeeded", "Failed", "Error")
_GROUPS: Final = ("DAG", "Steps", "StepGroup", "TaskGroup", "Retry", "Container")
_MAX_BYTES: Final = 1 << 28
_MIB_OF_MEMORY: Final = 100
"""Unit of memory in ``resourcesDuration``."""


@dataclass(slots=True)
class Workflow:
    """A workflow: a job and its attempts.

    Attributes
    ----------
    noticed : dict of str to int
        Counts of nodes without a pod of their own, by rule.
    n_daemon_edges : int
        Dependencies that are left out (`sim.traces.argo.nodes.Graph`).
    """

    meta: Meta
    version: tuple[Any, ...]
    job: LoggedJob
    attempts: list[Attempt] = field(default_factory=list)
    noticed: dict[str, int] = field(default_factory=dict)
    n_daemon_edges: int = 0


def parse_workflow(record: Any) -> Workflow:
    """Parse a workflow."""
    meta = parse_meta(record)
    nodes = parse_nodes(_node_records(record))
    is_over = json_field(record, "status.phase", str) in _OVER
    parent = json_field(record, "spec.workflowTemplateRef.name", str)
    job = LoggedJob(
        job_id=meta.place,
        submit=meta.created_s,
        template=f"{meta.namespace}/{parent}" if parent else meta.template,
        user=meta.namespace,
        queue=meta.queue or meta.namespace,
        priority=0.0 if math.isnan(meta.priority) else meta.priority,
        requested_s=meta.limit_s if math.isfinite(meta.limit_s) else math.nan,
    )
    flow = Workflow(meta, (*meta.version, is_over, len(nodes)), job)
    if not nodes and json_field(record, "status.offloadNodeStatusVersion", str):
        flow.attempts.append(Attempt(meta.uid, "", math.nan, math.nan, {}, OFFLOADED))
        return flow
    templates = _templates(record)
    for node in nodes.values():
        node.is_daemon |= json_field(_template(node, templates), "daemon", bool)
    graph = Graph(nodes)
    pods = {key: node for key, node in nodes.items() if node.has_pod}
    labels = Counter(node.label for node in pods.values())
    name_of = {
        key: node.label if labels[node.label] == 1 else node.name for key, node in pods.items()
    }
    tasks = set()
    for key, node in pods.items():
        rule = _rule(node, is_over, key in graph.lost)
        if not rule and node.end_s >= node.start_s:
            tasks.add(key)
        demand = _demand(node, _template(node, templates), flow)
        host = json_field(node.record, "hostNodeName", str)
        flow.attempts.append(
            Attempt(meta.uid, name_of[key], node.start_s, node.end_s, demand, rule, 1, host)
        )
    job.edges = [(name_of[a], name_of[b], "barrier") for a, b in graph.edges(tasks)]
    flow.n_daemon_edges = graph.n_daemon_edges
    for node in nodes.values():
        if not node.has_pod and node.type not in _GROUPS:
            state = "remembered" if node.type == "Pod" else node.phase or "unknown"
            _count(flow, f"nodes without a pod: {node.type or 'unknown'}, {state}")
    if not flow.attempts:
        rule = NEVER_RAN if is_over else WAITING
        flow.attempts.append(Attempt(meta.uid, "", math.nan, math.nan, {}, rule))
    return flow


def _rule(node: Node, is_over: bool, is_lost: bool) -> str:
    """Return why a pod becomes no task; "" if it does."""
    if node.phase == "Pending":
        return NEVER_RAN if is_over else WAITING
    if not is_over:
        return RUNNING
    return FAILED if is_lost else ""


def _node_records(record: Any) -> dict[str, Any]:
    """Return the nodes of a workflow, also where Argo has compressed them."""
    packed = json_field(record, "status.compressedNodes", str)
    if not packed:
        return json_field(record, "status.nodes", dict)
    try:
        unpack = zlib.decompressobj(31)
        text = unpack.decompress(base64.b64decode(packed), _MAX_BYTES)
        return json_field({"nodes": parse_json(text)}, "nodes", dict)
    except (ValueError, zlib.error) as error:
        problem = f"status.compressedNodes can't be unpacked ({error})"
        raise BadLineError("wrong type", problem) from None


def _templates(record: Any) -> dict[str, Any]:
    """Return the templates by their names, and by those that nodes of other workflows' have."""
    lists = ("spec.templates", "status.storedWorkflowTemplateSpec.templates")
    templates = {
        json_field(item, "name", str): item
        for name in lists
        for item in json_field(record, name, list)
    }
    return {**json_field(record, "status.storedTemplates", dict), **templates}


def _template(node: Node, templates: dict[str, Any]) -> Any:
    """Return the template of a node; empty if it is not known."""
    scope, name, other, theirs = (
        json_field(node.record, key, str)
        for key in ("templateScope", "templateName", "templateRef.name", "templateRef.template")
    )
    names = [f"namespaced/{other}/{theirs}", f"cluster/{other}/{theirs}"] if other else []
    names += [f"{scope}/{name}", name]
    return next((templates[item] for item in names if item in templates), {})


def _demand(node: Node, template: Any, flow: Workflow) -> dict[str, float]:
    """Return what a pod requests; of CPUs, NaN if neither template nor Argo's estimate tells."""
    main = [json_field(template, name, dict) for name in ("container", "script")]
    spec = {
        "initContainers": json_field(template, "initContainers", list),
        "containers": [
            *main,
            *json_field(template, "containerSet.containers", list),
            *json_field(template, "sidecars", list),
        ],
    }
    used = dict(json_field(node.record, "resourcesDuration", dict))
    if "memory" in used:
        used["memory"] = f"{json_field(used, 'memory', float) * _MIB_OF_MEMORY:f}Mi"
    run_s = node.end_s - node.start_s
    estimate = pod_demand({"containers": [{"resources": {"requests": used}}]}, _silent)
    requested = pod_demand(spec, lambda rule: _count(flow, rule))
    demand = {
        name: requested.get(name) or (estimate.get(name, 0.0) / run_s if run_s > 0 else 0.0)
        for name in requested | estimate
    }
    return {**demand, "cpu": demand["cpu"] or math.nan}


def _count(flow: Workflow, rule: str) -> None:
    flow.noticed[rule] = flow.noticed.get(rule, 0) + 1


def _silent(rule: str) -> None:
    """Count nothing: the same is counted of the template."""
