"""Attempts at the tasks of one job: its pods, and what is known of those that are gone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from heapq import heapreplace
from operator import attrgetter
from typing import Final

from sim.traces.kubernetes.groups import Group, Job
from sim.traces.kubernetes.pods import ENDED, Pod
from sim.workload.attempts import FAILED, NEVER_RAN, RUNNING, WAITING, Attempt

DELETED: Final = "pods that their Job counts, but that are deleted"
EVICTED: Final = "earlier admissions of a Workload, which was evicted"


class PodAttempts:
    """Attempts of one job, and the edges between its stages.

    Attributes
    ----------
    edges : list of (str, str, str)
        Parent, child and kind; `make` adds them.
    """

    def __init__(self, key: str, group: Group) -> None:
        self.key, self.group = key, group
        self.edges: list[tuple[str, str, str]] = []

    def make(self) -> list[Attempt]:
        """Return an attempt for each pod, each set of pods without any, and each deleted pod."""
        group, gang = self.group, self.group.gang
        attempts = self._with_pods() if group.pods else self._without_pods()
        n_known = sum(pod.state == ENDED for pod in group.pods)
        if not group.pods:
            n_known = sum(attempt.n_tasks for attempt in attempts)
        n_deleted = sum(job.n_ended for job in group.jobs) - n_known
        if n_deleted > 0:
            attempts.append(Attempt(self.key, "", math.nan, math.nan, {}, DELETED, n_deleted))
        if gang is not None and gang.past_s > 0:
            attempts += [
                Attempt(
                    self.key, pod_set.name, 0.0, gang.past_s, pod_set.demand, EVICTED, pod_set.count
                )
                for pod_set in gang.pod_sets
                if pod_set.count
            ]
        return attempts

    def _without_pods(self) -> list[Attempt]:
        gang, attempts = self.group.gang, list[Attempt]()
        if gang is not None and gang.pod_sets:
            is_over, has_run = self.group.is_over(), not math.isnan(gang.admitted_s)
            rule = ("" if is_over else RUNNING) if has_run else NEVER_RAN if is_over else WAITING
            return [
                Attempt(
                    self.key, pod_set.name, gang.admitted_s,
                    gang.finished_s, pod_set.demand, rule, pod_set.count,
                )
                for pod_set in gang.pod_sets
                if pod_set.count
            ]  # fmt: skip
        for job in self.group.jobs:
            if not job.n_ended:
                rule = NEVER_RAN if job.is_over else WAITING
                attempts.append(
                    Attempt(self.key, "", math.nan, math.nan, {}, rule, max(job.n_needed, 1))
                )
        return attempts

    def _with_pods(self) -> list[Attempt]:
        group = self.group
        tasks: dict[str, list[Pod]] = {}  # by uid, for each Job
        jobs = {job.meta.uid: job for job in group.jobs}
        is_over = group.is_over()
        if is_over:
            for uid, pods in _by_owner(group.pods).items():
                tasks[uid] = _final(jobs.get(uid), pods)
        chosen = {pod.meta.uid for pods in tasks.values() for pod in pods}
        attempts = [
            self._attempt(pod, _rule(pod, is_over), "")
            for pod in group.pods
            if pod.meta.uid not in chosen
        ]
        for uid, pods in tasks.items():
            attempts += self._tasks(jobs.get(uid), pods)
        return attempts

    def _tasks(self, job: Job | None, pods: Sequence[Pod]) -> list[Attempt]:
        """Return the tasks; those of a Job wait for the one that ran before in their place."""
        name = job.meta.name if job is not None and len(self.group.jobs) > 1 else ""
        is_uniform = all(pod.demand == pods[0].demand for pod in pods)
        if job is None or job.n_needed >= len(pods) or not is_uniform:
            return [self._attempt(pod, "", name or pod.pod_set or "pods") for pod in pods]
        name = name or pods[0].pod_set or "pods"
        attempts = []
        for turn, lane in enumerate(_lanes(pods, job.n_needed)):
            for rank, pod in enumerate(lane):
                stage = f"{name}, round {rank + 1}" if rank else name
                attempts.append(self._attempt(pod, "", stage, turn))
                if rank and not turn:
                    self.edges.append((attempts[-2].stage, stage, "one_to_one"))
        return attempts

    def _attempt(self, pod: Pod, rule: str, stage: str, turn: int = 0) -> Attempt:
        return Attempt(self.key, stage, pod.start_s, pod.end_s, pod.demand, rule, 1, pod.node, turn)


def _rule(pod: Pod, is_over: bool) -> str:
    """Return why a pod is no task; "" if its times are in doubt (`sim.workload.attempts`)."""
    if math.isnan(pod.start_s):
        return NEVER_RAN if is_over or pod.state == ENDED else WAITING
    if not is_over or pod.state != ENDED:
        return RUNNING
    return FAILED if pod.has_times else ""


def _by_owner(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Return the pods of each Job, and under "" the others."""
    parts: dict[str, list[Pod]] = {}
    for pod in pods:
        owner = pod.meta.owner if pod.meta.owner_kind == "batch/Job" else ""
        parts.setdefault(owner, []).append(pod)
    return parts


def _final(job: Job | None, pods: Sequence[Pod]) -> list[Pod]:
    """Return the pods that count: of several attempts the successful, else the last."""
    ran = [pod for pod in pods if pod.has_times]
    if pods[0].meta.owner_kind != "batch/Job" or (job is not None and job.is_indexed):
        last: dict[str, Pod] = {}
        for pod in ran:
            slot = pod.index or pod.meta.name
            if slot not in last or pod.succeeded >= last[slot].succeeded:
                last[slot] = pod
        return sorted(last.values(), key=attrgetter("turn"))
    done, failed = ([p for p in ran if p.succeeded is state] for state in (True, False))
    n_left = 1 if job is None else (job.completions or job.parallelism) - job.n_succeeded
    n_failed = max(n_left - (len(done) if job is None else 0), 0)
    return sorted([*done, *failed[max(len(failed) - n_failed, 0) :]], key=attrgetter("turn"))


def _lanes(pods: Sequence[Pod], n: int) -> list[list[Pod]]:
    """Return the pods that followed each other in each of `n` places, the most first."""
    lanes: list[list[Pod]] = [[] for _ in range(n)]
    free = [(-math.inf, place) for place in range(n)]
    for pod in pods:
        _, place = free[0]
        lanes[place].append(pod)
        heapreplace(free, (pod.end_s, place))
    return sorted(lanes, key=len, reverse=True)
