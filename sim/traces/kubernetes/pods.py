"""Pods: the time in which they held their requests, and what they belong to.

Source: the API reference of Kubernetes (``v1`` Pod), and the labels and annotations of Kueue,
scheduler-plugins and Volcano.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from sim.base.reading import json_field
from sim.base.reading.objects import (
    Meta,
    Notice,
    conditions_of,
    count_of,
    first_mark,
    marks_of,
    parse_meta,
    since,
    time_of,
)
from sim.base.reading.pod_requests import pod_demand

ENDED, RUNS, WAITS = "ended", "runs", "waits"
_POD_GROUPS: Final = (
    "scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name", "scheduling.k8s.io/group-name",
)  # fmt: skip
_GROUP_SIZES: Final = (
    "kueue.x-k8s.io/pod-group-total-count", "pod-group.scheduling.sigs.k8s.io/min-available",
)  # fmt: skip
_WORKLOADS: Final = ("kueue.x-k8s.io/workload", "kueue.x-k8s.io/pod-group-name")
_INDEX: Final = ("batch.kubernetes.io/job-completion-index",)
_POD_SET: Final = ("kueue.x-k8s.io/podset",)


@dataclass(slots=True)
class Pod:
    """A pod, and the time in which it held its requests."""

    meta: Meta
    state: str
    succeeded: bool
    start_s: float
    end_s: float
    demand: dict[str, float]
    node: str
    restarts: int
    index: str  # completion index in an indexed Job
    pod_set: str
    pod_group: str
    group_size: int
    workload: str

    @property
    def version(self) -> tuple[Any, ...]:
        """Order among states of the same pod."""
        return *self.meta.version, (WAITS, RUNS, ENDED).index(self.state)

    @property
    def has_times(self) -> bool:
        """True if it ended, and not before its start."""
        return self.end_s >= self.start_s

    @property
    def turn(self) -> tuple[float, str, str]:
        """Order among pods: by start, those without one last."""
        start_s = math.inf if math.isnan(self.start_s) else self.start_s
        return start_s, self.meta.place, self.meta.uid


def parse_pod(record: Any, runs_from: str, notice: Notice) -> Pod:
    """Parse a pod; `runs_from` is ``scheduled``, or ``started`` for its first container."""
    conditions, marks = conditions_of(record), marks_of(record)
    phase, node = json_field(record, "status.phase", str), json_field(record, "spec.nodeName", str)
    start_s = since(conditions, "PodScheduled", "True")
    if math.isnan(start_s) and node:
        start_s = time_of(record, "status.startTime")
        notice("scheduling time unknown: that at which the node knew the pod")
    containers = [
        *json_field(record, "status.containerStatuses", list),
        *json_field(record, "status.initContainerStatuses", list),
    ]
    if runs_from == "started":
        start_s = min(_times(containers, "startedAt"), default=start_s)
    is_over = phase in ("Succeeded", "Failed")
    end_s = max(_times(containers, "finishedAt"), default=math.nan)
    if is_over and math.isnan(end_s):
        end_s = since(conditions, "DisruptionTarget", "True")
        end_s = since(conditions, "Ready", "False") if math.isnan(end_s) else end_s
        notice("end of containers unknown: that at which the pod was not ready, if known")
    return Pod(
        meta=parse_meta(record),
        state=ENDED if is_over else WAITS if math.isnan(start_s) else RUNS,
        succeeded=phase == "Succeeded",
        start_s=start_s,
        end_s=end_s if is_over else math.nan,
        demand=pod_demand(json_field(record, "spec", dict), notice),
        node=node,
        restarts=sum(count_of(container, "restartCount", 0) for container in containers),
        index=first_mark(marks, _INDEX),
        pod_set=first_mark(marks, _POD_SET),
        pod_group=first_mark(marks, _POD_GROUPS),
        group_size=int(size) if (size := first_mark(marks, _GROUP_SIZES)[:7]).isdecimal() else 0,
        workload=first_mark(marks, _WORKLOADS),
    )


def _times(containers: list[Any], key: str) -> Iterator[float]:
    """Yield times of what runs or has ended in containers, at the last try and the one before."""
    for container in containers:
        for state in ("state.running", "state.terminated", "lastState.terminated"):
            time_s = time_of(container, f"{state}.{key}")
            if not math.isnan(time_s):
                yield time_s
