"""Groups of pods that are one job: Jobs, PodGroups and Workloads of Kueue.

Source: the API reference of Kubernetes (``batch/v1`` Job), of Kueue (``kueue.x-k8s.io`` Workload),
and of scheduler-plugins and Volcano (PodGroup).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from sim.base.reading import json_field
from sim.base.reading.objects import (
    Meta,
    Notice,
    conditions_of,
    count_of,
    number_of,
    parse_meta,
    since,
    time_of,
)
from sim.base.reading.pod_requests import pod_demand
from sim.traces.kubernetes.pods import ENDED, Pod


@dataclass(slots=True)
class PodSet:
    """A number of like pods."""

    name: str
    count: int
    demand: dict[str, float]


@dataclass(slots=True)
class Job:
    """A Job. `n_ended` counts its pods that ended, deleted ones too; `completions` 0 is unknown."""

    meta: Meta
    parallelism: int
    completions: int
    is_indexed: bool
    is_over: bool
    n_succeeded: int
    n_ended: int

    @property
    def version(self) -> tuple[Any, ...]:
        """Order among states of the same Job."""
        return *self.meta.version, self.is_over, self.n_ended

    @property
    def n_needed(self) -> int:
        """Number of pods that run at a time, at most."""
        return min(self.parallelism, self.completions or self.parallelism)


@dataclass(slots=True)
class Gang:
    """A PodGroup, or a Workload with its sets of pods and its admission."""

    kind: str
    meta: Meta
    min_tasks: int
    pod_sets: list[PodSet]
    admitted_s: float
    finished_s: float
    past_s: float  # in earlier admissions, if their time is known
    n_evicted: int

    @property
    def version(self) -> tuple[Any, ...]:
        """Order among states of the same object."""
        known = (self.finished_s == self.finished_s, self.admitted_s == self.admitted_s)
        return *self.meta.version, *known


@dataclass(slots=True)
class Group:
    """Objects that make one job."""

    pods: list[Pod] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    gang: Gang | None = None

    def metas(self) -> list[Meta]:
        """Return what all of them have, in the order in which they are asked for columns."""
        gang = [] if self.gang is None else [self.gang.meta]
        return [*gang, *(job.meta for job in self.jobs), *(pod.meta for pod in self.pods)]

    def is_over(self) -> bool:
        """Tell whether nothing of the job goes on."""
        if self.gang is not None and not math.isnan(self.gang.finished_s):
            return True
        uids = {job.meta.uid for job in self.jobs}
        alone = [pod for pod in self.pods if pod.meta.owner not in uids]
        is_over = all(job.is_over for job in self.jobs) and all(p.state == ENDED for p in alone)
        return is_over and bool(self.pods or self.jobs)


def parse_job(record: Any, notice: Notice) -> Job:
    """Parse a Job; it is over if it says so, or has as many successes as it needs."""
    conditions = conditions_of(record)
    succeeded, failed = (count_of(record, f"status.{key}", 0) for key in ("succeeded", "failed"))
    completions = count_of(record, "spec.completions", 0)
    is_over = any(conditions.get(name, ("", 0))[0] == "True" for name in ("Complete", "Failed"))
    is_over |= time_of(record, "status.completionTime") > 0
    return Job(
        meta=parse_meta(record),
        parallelism=max(count_of(record, "spec.parallelism", 1), 1),
        completions=completions,
        is_indexed=json_field(record, "spec.completionMode", str) == "Indexed",
        is_over=is_over or 0 < completions <= succeeded,
        n_succeeded=succeeded,
        n_ended=succeeded + failed,
    )


def parse_gang(record: Any, kind: str, notice: Notice) -> Gang:
    """Parse a PodGroup or a Workload."""
    conditions, sets = conditions_of(record), json_field(record, "spec.podSets", list)
    pod_sets = [
        PodSet(
            json_field(item, "name", str), count_of(item, "count", 1),
            pod_demand(json_field(item, "template.spec", dict), notice),
        )
        for item in sets
    ]  # fmt: skip
    needed = [
        count_of(item, "minCount", pod_set.count)
        for item, pod_set in zip(sets, pod_sets, strict=True)
    ]
    words = ("Execution", "Exexcution")  # as beta versions spelt it
    past_s = max(
        number_of(record, f"status.accumulatedPast{word}TimeSeconds", 0.0) for word in words
    )
    admitted_s, finished_s = (since(conditions, item, "True") for item in ("Admitted", "Finished"))
    if math.isnan(admitted_s) and past_s > 0:  # some versions withdraw an admission at its end
        admitted_s = finished_s - past_s
        past_s = past_s if math.isnan(admitted_s) else 0.0
    evictions = json_field(record, "status.schedulingStats.evictions", list)
    return Gang(
        kind=kind,
        meta=parse_meta(record),
        min_tasks=sum(needed) if sets else count_of(record, "spec.minMember", 0),
        pod_sets=pod_sets,
        admitted_s=admitted_s,
        finished_s=finished_s,
        past_s=past_s,
        n_evicted=sum(count_of(item, "count", 1) for item in evictions),
    )
