"""Pods, and the Jobs, PodGroups and Workloads that make several of them one job.

Source: the API reference of Kubernetes (``v1`` Pod, ``batch/v1`` Job), of Kueue
(``kueue.x-k8s.io`` Workload, labels and annotations), and of scheduler-plugins and Volcano
(PodGroup).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

from sim.base.reading import json_field
from sim.base.reading.objects import (
    Meta,
    Notice,
    conditions_of,
    count_of,
    first_mark,
    marks_of,
    number_of,
    parse_meta,
    since,
    time_of,
)
from sim.base.reading.pod_requests import pod_demand
from sim.workload.attempts import Attempt

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
_STATES: Final = ("state.running", "state.terminated", "lastState.terminated")


@dataclass(slots=True)
class Pod:
    """A pod, as an attempt whose stage is its set of pods, and whose job is not known yet.

    `job` is the uid of its Job, `index` its completion index there; "" for none.
    """

    meta: Meta
    version: tuple[Any, ...]
    attempt: Attempt
    is_over: bool
    succeeded: bool
    restarts: int
    job: str
    index: str
    workload: str
    pod_group: str
    group_size: int

    @property
    def has_times(self) -> bool:
        """True if it ended, and not before its start."""
        return self.attempt.end >= self.attempt.start

    @property
    def turn(self) -> tuple[bool, float, str, str]:
        """Order among pods: by start, those without one last."""
        start_s = self.attempt.start
        is_last = math.isnan(start_s)
        return is_last, 0.0 if is_last else start_s, self.meta.place, self.meta.uid


@dataclass(slots=True)
class Owner:
    """A Job, a PodGroup or a Workload.

    Attributes
    ----------
    size : int
        Number of its pods that start together, or run at a time.
    is_gang : bool
        They start together.
    attempts : list of Attempt
        Its sets of pods, if none of their pods are known.
    n_ended, n_missing : int
        Of a Job: pods that ended, deleted ones too; completions without a success.
    past_s, n_evicted : float, int
        Of a Workload: time in earlier admissions, and how many of them ended early.
    """

    kind: str
    meta: Meta
    version: tuple[Any, ...]
    is_over: bool
    size: int
    is_gang: bool
    attempts: list[Attempt] = field(default_factory=list)
    n_ended: int = 0
    n_missing: int = 0
    past_s: float = 0.0
    n_evicted: int = 0


def parse_pod(record: Any, runs_from: str, notice: Notice) -> Pod:
    """Parse a pod; `runs_from` is ``scheduled``, or ``started`` for its first container."""
    meta, conditions, marks = parse_meta(record), conditions_of(record), marks_of(record)
    phase, node = json_field(record, "status.phase", str), json_field(record, "spec.nodeName", str)
    start_s = since(conditions, "PodScheduled", "True")
    if math.isnan(start_s) and node:
        start_s = time_of(record, "status.startTime")
        notice("scheduling time unknown: that at which the node knew the pod")
    names = ("status.containerStatuses", "status.initContainerStatuses")
    containers = [item for name in names for item in json_field(record, name, list)]
    started_s, finished_s = (
        [time_of(item, f"{state}.{key}") for item in containers for state in _STATES]
        for key in ("startedAt", "finishedAt")
    )
    if runs_from == "started":
        start_s = min(filter(math.isfinite, started_s), default=start_s)
    is_over, end_s = phase in ("Succeeded", "Failed"), math.nan
    if is_over:
        end_s = max(filter(math.isfinite, finished_s), default=math.nan)
        if math.isnan(end_s):
            end_s = since(conditions, "DisruptionTarget", "True")
            end_s = since(conditions, "Ready", "False") if math.isnan(end_s) else end_s
            notice("end of containers unknown: that at which the pod was not ready, if known")
    demand = pod_demand(json_field(record, "spec", dict), notice)
    if not demand["cpu"]:
        notice("pods without a request for CPUs: they hold none")
    restarts = sum(count_of(container, "restartCount", 0) for container in containers)
    if restarts:
        notice("pods with containers that were restarted: all tries in one run")
    return Pod(
        meta=meta,
        version=(*meta.version, is_over, not math.isnan(start_s)),
        attempt=Attempt("", first_mark(marks, _POD_SET), start_s, end_s, demand, node=node),
        is_over=is_over,
        succeeded=phase == "Succeeded",
        restarts=restarts,
        job=meta.owner if meta.owner_kind == "batch/Job" else "",
        index=first_mark(marks, _INDEX),
        workload=first_mark(marks, _WORKLOADS),
        pod_group=first_mark(marks, _POD_GROUPS),
        group_size=int(size) if (size := first_mark(marks, _GROUP_SIZES)[:7]).isdecimal() else 0,
    )


def parse_job(record: Any, gangs: str) -> Owner:
    """Parse a Job; it is over if it says so, or has as many successes as it needs.

    `gangs` is the kind of Jobs that are gangs: ``indexed``, or ``parallel`` for all.
    """
    meta, conditions = parse_meta(record), conditions_of(record)
    n_done, n_failed = (count_of(record, f"status.{key}", 0) for key in ("succeeded", "failed"))
    completions = count_of(record, "spec.completions", 0)
    parallelism = max(count_of(record, "spec.parallelism", 1), 1)
    is_over = any(conditions.get(name, ("", 0))[0] == "True" for name in ("Complete", "Failed"))
    is_over |= time_of(record, "status.completionTime") > 0 or 0 < completions <= n_done
    is_indexed = json_field(record, "spec.completionMode", str) == "Indexed"
    size, n_ended = min(parallelism, completions or parallelism), n_done + n_failed
    unknown = Attempt("", "", math.nan, math.nan, {}, n_tasks=size)
    return Owner(
        kind="Job",
        meta=meta,
        version=(*meta.version, is_over, n_ended),
        is_over=is_over,
        size=size,
        is_gang=is_indexed or gangs == "parallel",
        attempts=[] if n_ended else [unknown],
        n_ended=n_ended,
        n_missing=max((completions or parallelism) - n_done, 0),
    )


def parse_gang(record: Any, kind: str, notice: Notice) -> Owner:
    """Parse a PodGroup, or a Workload with its sets of pods and its admission."""
    meta, conditions = parse_meta(record), conditions_of(record)
    words = ("Execution", "Exexcution")  # as beta versions spelt it
    past_s = max(
        number_of(record, f"status.accumulatedPast{word}TimeSeconds", 0.0) for word in words
    )
    start_s, end_s = (since(conditions, item, "True") for item in ("Admitted", "Finished"))
    is_over = not math.isnan(end_s)
    if math.isnan(start_s) and past_s > 0 and is_over:  # some versions withdraw it at its end
        start_s, past_s = end_s - past_s, 0.0
    admitted = {  # fewer than asked for, maybe
        json_field(item, "name", str): count_of(item, "count", 0)
        for item in json_field(record, "status.admission.podSetAssignments", list)
    }
    attempts = [
        Attempt(
            "", name := json_field(item, "name", str), start_s, end_s,
            pod_demand(json_field(item, "template.spec", dict), notice),
            n_tasks=admitted.get(name) or count_of(item, "count", 1),
        )
        for item in json_field(record, "spec.podSets", list)
    ]  # fmt: skip
    n_least = count_of(record, "spec.minMember", 0)
    evictions = json_field(record, "status.schedulingStats.evictions", list)
    return Owner(
        kind=kind,
        meta=meta,
        version=(*meta.version, is_over, not math.isnan(start_s)),
        is_over=is_over,
        size=sum(attempt.n_tasks for attempt in attempts) if attempts else n_least,
        is_gang=True,
        attempts=attempts,
        past_s=past_s,
        n_evicted=sum(count_of(item, "count", 1) for item in evictions),
    )
