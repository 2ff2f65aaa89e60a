"""Jobs of a workload, made of the objects of Kubernetes that belong together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import attrgetter

from sim.traces.kubernetes.attempts import PodAttempts
from sim.traces.kubernetes.groups import Gang, Group, Job
from sim.traces.kubernetes.pods import Pod
from sim.workload.attempts import AttemptLog, LoggedJob

Key = tuple[str, str]


def group_objects(
    pods: Iterable[Pod], jobs: Iterable[Job], gangs: Iterable[Gang]
) -> dict[Key, Group]:
    """Group objects by what makes several pods one job.

    That is a Workload, else a PodGroup, else a Job; any other pod is a job of its own.
    """
    job_of = {job.meta.uid: job for job in jobs}
    groups = {(gang.kind, gang.meta.place): Group(gang=gang) for gang in gangs}
    owned = {
        owner: key
        for key, group in groups.items()
        if group.gang is not None and group.gang.kind == "Workload"
        for owner in group.gang.meta.owners
        if owner
    }
    key_of_job: dict[str, Key] = {}
    for pod in sorted(pods, key=attrgetter("turn")):
        job = job_of.get(pod.meta.owner)
        uids = (pod.meta.uid, pod.meta.owner, "" if job is None else job.meta.owner)
        if pod.workload:
            key = ("Workload", f"{pod.meta.namespace}/{pod.workload}")
        elif {*uids} & owned.keys():
            key = next(owned[uid] for uid in uids if uid in owned)
        elif pod.pod_group:
            key = ("PodGroup", f"{pod.meta.namespace}/{pod.pod_group}")
        elif pod.meta.owner_kind == "batch/Job":
            key = ("Job", pod.meta.owner)
        else:
            key = ("Pod", pod.meta.uid)
        key_of_job.setdefault(pod.meta.owner, key)
        groups.setdefault(key, Group()).pods.append(pod)
    for uid, job in sorted(job_of.items()):
        key = key_of_job.get(uid) or owned.get(uid) or owned.get(job.meta.owner) or ("Job", uid)
        groups.setdefault(key, Group()).jobs.append(job)
    return dict(sorted(groups.items()))


def shared_queues(groups: Iterable[Group]) -> set[str]:
    """Return the names that queues of several namespaces have."""
    spaces: dict[str, set[str]] = {}
    for group in groups:
        for meta in group.metas():
            if meta.is_local:
                spaces.setdefault(meta.queue, set()).add(meta.namespace)
    return {queue for queue, names in spaces.items() if len(names) > 1}


def add_group(log: AttemptLog, key: Key, group: Group, gangs: str, shared: set[str]) -> None:
    """Add a job and its attempts to the log; `shared` are names of several queues."""
    text, metas = "/".join(key), group.metas()
    is_named = len(group.jobs) == 1
    queue = next((meta.queue for meta in metas if meta.queue), metas[0].namespace)
    priority = [meta.priority for meta in metas if not math.isnan(meta.priority)]
    limit_s = min(meta.limit_s for meta in metas)
    log.jobs[text] = LoggedJob(
        job_id=group.jobs[0].meta.place if is_named else metas[0].place,
        submit=min(meta.created_s for meta in metas),
        template=next((meta.template for meta in metas if meta.template), ""),
        user=metas[0].namespace,
        queue=f"{metas[0].namespace}/{queue}" if queue in shared else queue,
        priority=priority[0] if priority else 0.0,
        requested_s=limit_s if math.isfinite(limit_s) else math.nan,
        min_tasks=_gang_size(group, gangs),
    )
    attempts = PodAttempts(text, group)
    log.attempts += attempts.make()
    log.jobs[text].edges = attempts.edges
    if key[0] == "PodGroup" and group.gang is None:
        log.notice("pod groups that are not among the objects: their pods start one by one")
    if key[0] == "Pod" and metas[0].owner_kind:
        log.notice(f"pods of a {metas[0].owner_kind}: a job each")


def _gang_size(group: Group, gangs: str) -> int:
    """Return the number of tasks that start together; 0 for none."""
    size = 0
    if group.gang is not None:
        size = group.gang.min_tasks
    elif len(group.jobs) == 1 and (group.jobs[0].is_indexed or gangs == "parallel"):
        size = group.jobs[0].n_needed
    size = max(size, max((pod.group_size for pod in group.pods), default=0))
    return size if size > 1 and gangs != "none" else 0
