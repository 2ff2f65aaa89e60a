"""Reader of objects of a Kubernetes cluster, as ``kubectl get -o json`` writes them."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapreplace
from itertools import pairwise
from operator import attrgetter
from typing import Final, Literal

from sim.base.parameters import checked
from sim.base.reading import OnBadRow
from sim.base.reading.objects import Meta, read_objects
from sim.base.reading.pod_requests import GPU_QUANTUM
from sim.traces.kubernetes.objects import Owner, Pod, parse_gang, parse_job, parse_pod
from sim.traces.sites.now import NO_LIMIT_S
from sim.workload.attempts import (
    FAILED,
    MAX_SHARE,
    RUNNING,
    WAITING,
    Attempt,
    AttemptLog,
    LoggedJob,
    rule_of,
)
from sim.workload.schema import NOW
from sim.workload.workload import Workload

__all__ = ["read"]

COMMAND: Final = "kubectl get pods,jobs -A -o json"
DELETED: Final = "pods that their Job counts, but that are deleted"
EVICTED: Final = "earlier admissions of a Workload, which was evicted"
Key = tuple[str, str]


@dataclass(slots=True)
class _Group:
    """Objects that make one job; a Workload or PodGroup is before Jobs."""

    owners: list[Owner] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)

    def metas(self) -> list[Meta]:
        """Return what all of them have, in the order in which they are asked for columns."""
        return [*(owner.meta for owner in self.owners), *(pod.meta for pod in self.pods)]

    def jobs(self) -> dict[str, Owner]:
        """Return the Jobs by uid."""
        return {owner.meta.uid: owner for owner in self.owners if owner.kind == "Job"}

    def is_over(self) -> bool:
        """Tell whether nothing of the job goes on."""
        jobs = self.jobs()
        states = [job.is_over for job in jobs.values()]
        states += [pod.is_over for pod in self.pods if pod.job not in jobs]
        gang_is_over = any(owner.is_over for owner in self.owners if owner.kind != "Job")
        return gang_is_over or (bool(states) and all(states))


@checked
def read(
    path: str | os.PathLike[str],
    *,
    on_bad_row: OnBadRow = "error",
    gangs: Literal["indexed", "parallel", "none"] = "indexed",
    runs_from: Literal["scheduled", "started"] = "scheduled",
) -> Workload:
    """Read pods, and the Jobs, PodGroups and Workloads of Kueue that make several of them one job.

    A pod is a task, which demands its effective requests: ``cpu`` in cores, ``mem`` in GiB and
    ``gpu`` (devices of any vendor; slices by MIG are parts of one). It lasts from its scheduling to
    the end of its last container. Any pod without such an owner is a job of its own. A job is
    submitted when the first of its objects was created. Its queue is that of Kueue or Volcano, else
    the namespace, which is also its user; a queue of a namespace is called ``namespace/queue``
    where another namespace has one of that name. Its priority is that of the Workload, else of the
    pods.

    A Job with fewer places than completions (``parallelism``) has a stage for each round: a task
    waits for the one that ran before it in its place. Failed pods that a Job replaced are earlier
    attempts. A Workload without pods lasts from its admission to its end, with the requests of its
    sets of pods.

    Parameters
    ----------
    path : path-like
        A file of JSON, plain or compressed, or a folder of such files (``*.json``, ``*.json.gz``,
        ``*.jsonl``): lists, single objects, or objects one after the other. Of an object that is
        given several times the latest state counts.
    on_bad_row : {"error", "skip"}
        Objects with missing or invalid fields: raise, or drop and count.
    gangs : {"indexed", "parallel", "none"}
        Jobs that no PodGroup or Workload makes a gang, but that are taken for one: those with
        indexed completions, all with a ``parallelism``, or none, which makes PodGroups and
        Workloads none, too.
    runs_from : {"scheduled", "started"}
        Begin of a task: its pod holds its requests from its scheduling on; its first container
        starts when images are there.

    Returns
    -------
    Workload
        ``recorded_start_s`` and ``recorded_finish_s`` of ``jobs``, ``stages`` and ``tasks``;
        ``node_list`` of ``stages``; ``requested_s``, the deadline of a Job, pod or Workload.
        ``meta["report"]`` has the account (`sim.base.reading.account`), in which attempts are
        tasks; failed ones, pods that a Job still counts, but that are deleted, and earlier
        admissions are left out.

    Raises
    ------
    InputError
        With file, line and rule: "missing file", "not JSON", "wrong line", "wrong type",
        "missing value", "wrong time", "wrong quantity", "number out of range", "no job left".
    """
    return read_jobs(path, on_bad_row=on_bad_row, gangs=gangs, runs_from=runs_from)


def read_jobs(
    path: str | os.PathLike[str],
    *,
    on_bad_row: OnBadRow = "error",
    gangs: Literal["indexed", "parallel", "none"] = "indexed",
    runs_from: Literal["scheduled", "started"] = "scheduled",
    name: str = "kubernetes",
    other_kinds: Collection[str] = (),
    now_s: float | None = None,
) -> Workload:
    """Read jobs as `read` does, for the format `name`; `other_kinds` of objects it reads itself.

    With `now_s`, s since 1970, Workloads that run or wait are jobs, too. Times that are not known
    yet lie after ``meta["now_s"]``, which is `now_s`, or the last time of any object.
    """
    log = AttemptLog(path, per_s=1.0)
    log.wasted.add(EVICTED)
    objects = read_objects(
        path,
        COMMAND,
        {
            "Pod": lambda record, notice: parse_pod(record, runs_from, notice),
            "Job": lambda record, _: parse_job(record, gangs),
            "Workload": lambda record, notice: parse_gang(record, "Workload", notice),
            "PodGroup": lambda record, notice: parse_gang(record, "PodGroup", notice),
        },
        on_bad_row,
        log.bad,
        log.notice,
        other_kinds,
    )
    pods = sorted(objects["Pod"], key=attrgetter("turn"))
    groups = _groups(pods, [*objects["Workload"], *objects["PodGroup"]], objects["Job"])
    metas = [meta for group in groups.values() for meta in group.metas() if meta.is_local]
    n_spaces = Counter(queue for queue, _ in {(meta.queue, meta.namespace) for meta in metas})
    for key, group in groups.items():
        job = log.jobs["/".join(key)] = _job(group, gangs, n_spaces)
        log.attempts += [
            replace(attempt, job="/".join(key))
            for attempt in _attempts(group, job)
            if attempt.n_tasks
        ]
        if key[0] == "PodGroup" and not group.owners:
            log.notice("pod groups that are not among the objects: their pods start one by one")
        if key[0] == "Pod" and group.pods[0].meta.owner_kind:
            log.notice(f"pods of a {group.pods[0].meta.owner_kind}: a job each")
    log.warnings += _warnings(log.attempts, pods, objects["Workload"])
    quantum = {"cpu": 1e-3, "mem": 2.0**-10, "gpu": GPU_QUANTUM}
    if now_s is None:
        return log.workload(name, quantum)
    times_s = [time_s for item in log.attempts for time_s in (item.start, item.end)]
    times_s += [job.submit for job in log.jobs.values()]
    now_s = max([now_s, *(time_s for time_s in times_s if math.isfinite(time_s))])
    log.attempts = [_open(item, log.jobs[item.job], now_s) for item in log.attempts]
    workload = log.workload(name, quantum)
    return workload.with_meta({NOW: now_s - float(workload.meta["offset_s"])})


def _open(attempt: Attempt, job: LoggedJob, now_s: float) -> Attempt:
    """Return the attempt of a Workload that goes on as a task that starts or ends after now.

    Pods of it that have ended hold nothing any more.
    """
    goes_on = attempt.rule in (RUNNING, WAITING) and math.isnan(attempt.end)
    if not goes_on or not attempt.job.startswith("Workload/"):
        return attempt
    start_s = now_s + 1.0 if math.isnan(attempt.start) else attempt.start
    limit_s = job.requested_s if math.isfinite(job.requested_s) else NO_LIMIT_S
    end_s = max(start_s + limit_s, now_s + 2.0)
    return replace(attempt, rule="", start=start_s, end=end_s)


def _groups(
    pods: Sequence[Pod], gangs: Sequence[Owner], jobs: Sequence[Owner]
) -> dict[Key, _Group]:
    """Group objects by what makes several pods one job.

    That is a Workload, else a PodGroup, else a Job; any other pod is a job of its own.
    """
    job_of = {job.meta.uid: job for job in jobs}
    groups = {(gang.kind, gang.meta.place): _Group([gang]) for gang in gangs}
    owned = {
        uid: ("Workload", gang.meta.place)
        for gang in gangs
        for uid in gang.meta.owners
        if uid and gang.kind == "Workload"
    }
    key_of_job: dict[str, Key] = {}
    for pod in pods:
        meta, job = pod.meta, job_of.get(pod.meta.owner)
        uids = (meta.uid, meta.owner, "" if job is None else job.meta.owner)
        key = next((owned[uid] for uid in uids if uid in owned), None)
        if pod.workload:
            key = ("Workload", f"{meta.namespace}/{pod.workload}")
        elif key is None and pod.pod_group:
            key = ("PodGroup", f"{meta.namespace}/{pod.pod_group}")
        key = key or (("Job", pod.job) if pod.job else ("Pod", meta.uid))
        key_of_job.setdefault(meta.owner, key)
        groups.setdefault(key, _Group()).pods.append(pod)
    for uid, job in job_of.items():
        key = key_of_job.get(uid) or owned.get(uid) or owned.get(job.meta.owner) or ("Job", uid)
        groups.setdefault(key, _Group()).owners.append(job)
    return dict(sorted(groups.items()))


def _job(group: _Group, gangs: str, n_spaces: Counter[str]) -> LoggedJob:
    """Return the job of a group; `n_spaces` counts the namespaces with a queue of each name."""
    metas, jobs = group.metas(), [*group.jobs().values()]
    queue = next((meta.queue for meta in metas if meta.queue), metas[0].namespace)
    is_alone = len(group.owners) == 1
    gang = [item for item in group.owners if item.is_gang and (is_alone or item.kind != "Job")]
    size = max([0, *(item.size for item in gang), *(pod.group_size for pod in group.pods)])
    priorities = [meta.priority for meta in metas if not math.isnan(meta.priority)]
    return LoggedJob(
        job_id=(jobs[0].meta if len(jobs) == 1 else metas[0]).place,
        submit=min(meta.created_s for meta in metas),
        template=next((meta.template for meta in metas if meta.template), ""),
        user=metas[0].namespace,
        queue=f"{metas[0].namespace}/{queue}" if n_spaces[queue] > 1 else queue,
        priority=next(iter(priorities), 0.0),
        requested_s=min(meta.limit_s for meta in metas),
        min_tasks=size if size > 1 and gangs != "none" else 0,
    )


def _attempts(group: _Group, logged: LoggedJob) -> Iterator[Attempt]:
    """Yield an attempt for each pod, each set of pods without any, and for what is gone.

    Tasks of a Job wait for the one that ran before in their place: edges go to `logged`.
    """
    is_over, jobs = group.is_over(), group.jobs()
    parts: dict[str, list[Pod]] = {}
    for pod in group.pods:
        parts.setdefault(pod.job, []).append(pod)
    for uid, pods in parts.items():
        job = jobs.get(uid)
        tasks = _last_tries(job, pods) if is_over else []
        yield from _tasks(job, tasks, logged, is_only=len(jobs) == 1)
        counted = {pod.meta.uid for pod in tasks}
        for pod in pods:
            if pod.meta.uid not in counted:
                has_started, ends = not math.isnan(pod.attempt.start), (is_over, pod.is_over)
                is_past = all(ends) if has_started else any(ends)
                yield replace(pod.attempt, rule=rule_of(has_started, is_past, pod.has_times))
    gangs = [owner for owner in group.owners if owner.kind != "Job" and owner.attempts]
    sets = [attempt for owner in gangs or group.owners for attempt in owner.attempts]
    for attempt in () if group.pods else sets:
        yield replace(attempt, rule=rule_of(not math.isnan(attempt.start), is_over))
    n_known = sum(pod.is_over for pod in group.pods)
    n_known = n_known if group.pods else sum(attempt.n_tasks for attempt in sets)
    n_gone = sum(job.n_ended for job in jobs.values()) - n_known
    if n_gone > 0:
        yield Attempt("", "", math.nan, math.nan, {}, DELETED, n_gone)
    for owner in gangs:
        if owner.past_s > 0:
            for attempt in owner.attempts:
                yield replace(attempt, start=0.0, end=owner.past_s, rule=EVICTED)


def _last_tries(job: Owner | None, pods: Sequence[Pod]) -> list[Pod]:
    """Return the pods that count: of several tries at a task the successful, else the last."""
    tries: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.has_times:
            tries.setdefault(pod.index or ("" if pod.job else pod.meta.name), []).append(pod)
    tasks = []
    for place, ran in tries.items():
        n_done = sum(pod.succeeded for pod in ran)
        n = 1 if place else n_done + (not n_done if job is None else job.n_missing)
        tasks += sorted(ran, key=attrgetter("succeeded"))[max(len(ran) - n, 0) :]
    return sorted(tasks, key=attrgetter("turn"))


def _tasks(
    job: Owner | None, pods: Sequence[Pod], logged: LoggedJob, is_only: bool
) -> Iterator[Attempt]:
    """Yield the tasks of a Job: a stage for each round, if it has fewer places than pods."""
    is_uniform = all(pod.attempt.demand == pods[0].attempt.demand for pod in pods)
    n_places = min(job.size, len(pods)) if job is not None and is_uniform else len(pods)
    rounds: list[list[Pod]] = [[] for _ in range(n_places)]
    free = [(-math.inf, place) for place in range(n_places)]
    for pod in pods:
        place = free[0][1]
        rounds[place].append(pod)
        heapreplace(free, (pod.attempt.end, place))
    for turn, ran in enumerate(sorted(rounds, key=len, reverse=True)):
        name = (ran if job is None else pods)[0].attempt.stage or "pods"
        if job is not None and not is_only:
            name = job.meta.name
        names = [name, *(f"{name}, round {rank}" for rank in range(2, len(ran) + 1))]
        logged.edges += [(*pair, "one_to_one") for pair in pairwise(names)]
        for pod, stage in zip(ran, names, strict=True):
            yield replace(pod.attempt, stage=stage, turn=turn)


def _warnings(
    attempts: Sequence[Attempt], pods: Sequence[Pod], workloads: Sequence[Owner]
) -> Iterator[str]:
    """Say what the objects do not hold any more."""
    n_deleted, n_ended = (
        sum(attempt.n_tasks for attempt in attempts if attempt.rule in rules)
        for rules in ((DELETED,), (DELETED, FAILED, ""))
    )
    if n_deleted > MAX_SHARE * n_ended:
        yield (
            f"{n_deleted:,} of {n_ended:,} pods that ended ({100 * n_deleted / n_ended:.1f} %) are "
            "deleted, and only counted by their Jobs: the log does not tell their work"
        )
    evicted = [gang for gang in workloads if gang.n_evicted]
    if evicted:
        n_known = sum(gang.past_s > 0 for gang in evicted)
        yield (
            f"Workloads that were evicted after an admission: {len(evicted):,}, "
            f"{sum(gang.n_evicted for gang in evicted):,} times; the pods of then are deleted, and "
            f"how long they ran is known of {n_known:,} Workloads"
        )
    restarts = [pod.restarts for pod in pods if pod.restarts]
    if len(restarts) > MAX_SHARE * len(pods):
        yield (
            f"containers of {len(restarts):,} of {len(pods):,} pods were restarted, "
            f"{sum(restarts):,} times; their failed tries are part of the pods' run times"
        )
