"""Reader of objects of a Kubernetes cluster, as ``kubectl get -o json`` writes them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, Literal

from sim.base.parameters import checked
from sim.base.reading import OnBadRow
from sim.base.reading.objects import read_objects
from sim.base.reading.pod_requests import GPU_QUANTUM
from sim.traces.kubernetes.attempts import DELETED, EVICTED
from sim.traces.kubernetes.groups import Gang, parse_gang, parse_job
from sim.traces.kubernetes.jobs import add_group, group_objects, shared_queues
from sim.traces.kubernetes.pods import Pod, parse_pod
from sim.workload.attempts import FAILED, MAX_SHARE, AttemptLog
from sim.workload.workload import Workload

__all__ = ["read"]

COMMAND: Final = "kubectl get pods,jobs -A -o json"


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
        tasks, and counts by rule ``dropped`` (pods that never ran or had not ended, failed
        attempts, deleted pods that a Job still counts, earlier admissions), ``filled`` (0 s become
        0.5 s) and ``noticed``.

    Raises
    ------
    InputError
        With file, line and rule: "missing file", "not JSON", "wrong line", "wrong type",
        "missing value", "wrong time", "wrong quantity", "number out of range", "no job left".
    """
    log = AttemptLog(path, per_s=1.0)
    log.wasted.add(EVICTED)
    objects = read_objects(
        path,
        COMMAND,
        {
            "Pod": lambda record, notice: parse_pod(record, runs_from, notice),
            "Job": parse_job,
            "Workload": lambda record, notice: parse_gang(record, "Workload", notice),
            "PodGroup": lambda record, notice: parse_gang(record, "PodGroup", notice),
        },
        on_bad_row,
        log.bad,
        log.notice,
    )
    groups = group_objects(
        objects["Pod"], objects["Job"], [*objects["Workload"], *objects["PodGroup"]]
    )
    shared = shared_queues(groups.values())
    for key, group in groups.items():
        add_group(log, key, group, gangs, shared)
    _tell(log, objects["Pod"], objects["Workload"])
    return log.workload("kubernetes", {"cpu": 1e-3, "mem": 2.0**-10, "gpu": GPU_QUANTUM})


def _tell(log: AttemptLog, pods: Sequence[Pod], workloads: Sequence[Gang]) -> None:
    """Warn of what the objects do not hold any more."""
    n_unasked = sum(pod.demand["cpu"] == 0 for pod in pods)
    log.notice("pods without a request for CPUs: they hold none", n_unasked)
    restarts = [pod.restarts for pod in pods if pod.restarts]
    log.notice("pods with containers that were restarted: all tries in one run", len(restarts))
    n_deleted, n_ended = (
        sum(attempt.n_tasks for attempt in log.attempts if attempt.rule in rules)
        for rules in ((DELETED,), (DELETED, FAILED, ""))
    )
    if n_deleted > MAX_SHARE * n_ended:
        log.warnings.append(
            f"{n_deleted:,} of {n_ended:,} pods that ended ({100 * n_deleted / n_ended:.1f} %) are "
            "deleted, and only counted by their Jobs: the log does not tell their work"
        )
    evicted = [gang for gang in workloads if gang.n_evicted]
    if evicted:
        n_known = sum(gang.past_s > 0 for gang in evicted)
        log.warnings.append(
            f"Workloads that were evicted after an admission: {len(evicted):,}, "
            f"{sum(gang.n_evicted for gang in evicted):,} times; the pods of then are deleted, and "
            f"how long they ran is known of {n_known:,} Workloads"
        )
    if len(restarts) > MAX_SHARE * len(pods):
        log.warnings.append(
            f"containers of {len(restarts):,} of {len(pods):,} pods were restarted, "
            f"{sum(restarts):,} times; their failed tries are part of the pods' run times"
        )
