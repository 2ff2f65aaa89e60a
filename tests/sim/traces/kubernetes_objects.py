"""Objects of Kubernetes, Kueue and Argo as ``kubectl get -o json`` writes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ZERO = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def time(second: float | None) -> str | None:
    """Return a time of the API; None for none."""
    if second is None:
        return None
    return (ZERO + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")


def meta(name: str, created: float = 0, **more: Any) -> dict[str, Any]:
    namespace = more.pop("namespace", "grove")
    return {
        "name": name,
        "namespace": namespace,
        "uid": more.pop("uid", f"uid-{namespace}-{name}"),
        "creationTimestamp": time(created),
        **more,
    }


def owner(kind: str, name: str, api: str = "batch/v1", namespace: str = "grove") -> dict[str, Any]:
    return {
        "apiVersion": api, "kind": kind, "name": name, "uid": f"uid-{namespace}-{name}",
        "controller": True,
    }  # fmt: skip


def container(requests: dict[str, Any] | None = None, **more: str) -> dict[str, Any]:
    """Return a container with these requests."""
    return {"name": "main", "resources": {"requests": {**(requests or {}), **more}}}


def pod(
    name: str,
    start: float | None = 0,
    end: float | None = None,
    *,
    created: float = 0,
    phase: str = "",
    started: float | None = None,
    containers: list[dict[str, Any]] | None = None,
    job: str = "",
    index: int | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return a pod that was scheduled at `start` and ended at `end`, s; None: not."""
    metadata = meta(name, created, **more)
    if job:
        metadata["ownerReferences"] = [owner("Job", job)]
    if index is not None:
        metadata["labels"] = {"batch.kubernetes.io/job-completion-index": str(index)}
    phase = phase or ("Pending" if start is None else "Running" if end is None else "Succeeded")
    conditions = [{"type": "PodScheduled", "status": "False", "lastTransitionTime": time(created)}]
    statuses = []
    if start is not None:
        conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": time(start)}]
        run = {"startedAt": time(start if started is None else started)}
        state = (
            {"running": run} if end is None else {"terminated": {**run, "finishedAt": time(end)}}
        )
        statuses = [{"name": "main", "restartCount": 0, "state": state, "lastState": {}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "containers": containers or [container(cpu="1", memory="1Gi")],
            "nodeName": None if start is None else "node-1",
        },
        "status": {"phase": phase, "conditions": conditions, "containerStatuses": statuses},
    }


def job(
    name: str,
    completions: int | None = 1,
    parallelism: int = 1,
    *,
    created: float = 0,
    indexed: bool = False,
    succeeded: int = 0,
    failed: int = 0,
    condition: str = "Complete",
    **more: Any,
) -> dict[str, Any]:
    spec = {
        "completions": completions,
        "parallelism": parallelism,
        "completionMode": "Indexed" if indexed else "NonIndexed",
        "template": {"spec": {"containers": [container(cpu="1")]}},
    }
    conditions = [{"type": condition, "status": "True"}] if condition else []
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta(name, created, **more),
        "spec": spec,
        "status": {"succeeded": succeeded, "failed": failed, "conditions": conditions},
    }


def workload(
    name: str,
    pod_sets: list[tuple[str, int, dict[str, Any]]],
    *,
    created: float = 0,
    admitted: float | None = None,
    finished: float | None = None,
    owned_by: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": time(second)}
        for kind, second in (("Admitted", admitted), ("Finished", finished))
        if second is not None
    ]
    metadata = meta(name, created, **more)
    if owned_by is not None:
        metadata["ownerReferences"] = [owned_by]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": metadata,
        "spec": {
            "queueName": "gold",
            "podSets": [
                {"name": item, "count": n, "template": {"spec": {"containers": [asks]}}}
                for item, n, asks in pod_sets
            ],
            **(spec or {}),
        },
        "status": {"conditions": conditions, **(status or {})},
    }


def pod_group(name: str, min_member: int, api: str = "scheduling.x-k8s.io/v1alpha1") -> Any:
    spec = {"minMember": min_member}
    return {"apiVersion": api, "kind": "PodGroup", "metadata": meta(name), "spec": spec}


def write(path: Path, *objects: Any) -> Path:
    path.write_text(json.dumps({"apiVersion": "v1", "items": objects, "kind": "List"}, indent=1))
    return path


def node(
    name: str,
    kind: str = "Pod",
    start: float | None = 0,
    end: float | None = None,
    children: tuple[str, ...] = (),
    *,
    phase: str = "Succeeded",
    boundary: str = "w",
    **more: Any,
) -> dict[str, Any]:
    """Return a node of an Argo workflow; ids are names."""
    return {
        "id": name, "name": name, "displayName": name.rpartition(".")[2] or name, "type": kind,
        "phase": phase, "startedAt": time(start), "finishedAt": time(end),
        "children": list(children), "boundaryID": boundary, **more,
    }  # fmt: skip


def workflow(
    *nodes: dict[str, Any],
    name: str = "w",
    phase: str = "Succeeded",
    created: float = 0,
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": meta(name, created, **more),
        "spec": {"entrypoint": "main", **(spec or {})},
        "status": {"phase": phase, "nodes": {item["id"]: item for item in nodes}, **(status or {})},
    }


CLUSTER = (
    job("load", 3, 2, indexed=True, succeeded=2, failed=2),
    pod("a", 10, 70, job="load", index=0),
    pod("b", 10, 30, job="load", phase="Failed", index=1),
    pod("c", 35, 95, job="load", index=1, containers=[container({"nvidia.com/mig-1g.5gb": 2})]),
    pod("d", 0),
    pod_group("g", 2),
    workload(
        "w", [("main", 2, container(cpu="500m", memory="1Gi"))], admitted=5, finished=60,
        status={"accumulatedPastExecutionTimeSeconds": 30},
    ),
)  # fmt: skip
"""Objects of each kind that ``trace=kubernetes`` reads."""
WORKFLOW = workflow(
    node("w", "DAG", 0, 300, ("w.wash",), boundary=""),
    node("w.wash", "Pod", 0, 60, ("w.cut",), resourcesDuration={"cpu": 60, "memory": 120}),
    node("w.cut", "Retry", 60, 200, ("w.cut(0)", "w.cut(1)", "w.press")),
    node("w.cut(0)", "Pod", 60, 120, phase="Failed"),
    node("w.cut(1)", "Pod", 130, 200, ("w.press",), templateName="cut"),
    node("w.press", "Pod", 200, 300, daemoned=True),
    node("w.gift", "Skipped", 300, 300, phase="Omitted"),
    node("w.onExit", "Pod", 300, 310, boundary=""),
    spec={"templates": [{"name": "cut", "container": container(cpu="2")}]},
)
"""A workflow with nodes of many kinds: a Retry, a daemon, one that was omitted, an exit handler."""
