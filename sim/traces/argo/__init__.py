"""Reader of Argo workflows, as ``kubectl get workflow -o json`` writes them."""

from __future__ import annotations

import os
from typing import Final

from sim.base.parameters import checked
from sim.base.reading import OnBadRow
from sim.base.reading.objects import read_objects
from sim.base.reading.pod_requests import GPU_QUANTUM
from sim.traces.argo.workflows import parse_workflow
from sim.workload.attempts import AttemptLog
from sim.workload.workload import Workload

__all__ = ["read"]

COMMAND: Final = "kubectl get workflows -A -o json"


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
        (`sim.base.reading.account`), in which attempts are tasks, and counts by rule ``dropped``
        (earlier attempts, pods that never ran or of workflows that had not ended), ``filled``
        (CPUs unknown, 0 s become 0.5 s) and ``noticed`` (nodes without a pod).

    Raises
    ------
    InputError
        With file, line and rule: "missing file", "not JSON", "wrong line", "wrong type",
        "missing value", "wrong time", "wrong quantity", "number out of range", "cycle",
        "no job left".
    """
    log = AttemptLog(path, per_s=1.0)
    parsers = {"Workflow": parse_workflow}
    for flow in read_objects(path, COMMAND, parsers, on_bad_row, log.bad, log.notice)["Workflow"]:
        log.jobs[flow.meta.uid] = flow.job
        log.attempts += flow.attempts
        for rule, n in flow.noticed.items():
            log.notice(rule, n)
        if flow.n_daemon_edges:
            rule = "dependencies on a daemon, which goes on beside what waits for it"
            n_earlier = log.edges_left_out.get(rule, 0)
            log.edges_left_out[rule] = n_earlier + flow.n_daemon_edges
    return log.workload("argo", {"cpu": 1e-3, "mem": 2.0**-10, "gpu": GPU_QUANTUM})
