"""Tasks of jobs as they asked for them: any CPUs, or so many nodes.

Source: https://slurm.schedmd.com/sbatch.html. Without ``--nodes`` Slurm takes the tasks (``-n``)
wherever there is room, so that such a job is a gang of as many tasks. With ``--nodes`` or
``--ntasks-per-node`` it is one of a task for each node, no two of which share one.

How many tasks each node had ``sacct`` tells of the first: the batch script's step (``7.batch``)
runs there, and has all CPUs of the job on that node (https://slurm.schedmd.com/sbatch.html).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.traces.sacct.columns import Log, n_records, numbers
from sim.workload import schema
from sim.workload.node_names import NODE_TASKS
from sim.workload.tables import column_or_default, with_column

NODES_USED, ONE_PER_NODE = "NodesUsed", "OnePerNode"
"""Columns that are added: the nodes of jobs whose tasks may be anywhere, a mark of all others."""
_TASKS = re.compile(r"(?:^|\s)(?:-n\s*|--ntasks[ =])(\d+)(?:\s|$)")
_CPUS = re.compile(r"(?:^|\s)(?:-c\s*|--cpus-per-task[ =])(\d+)(?:\s|$)")
_PER_NODE = re.compile(r"(?:^|\s)--ntasks-per-node[ =]")
_BY_NODE = re.compile(
    r"(?:^|\s)(?:-N\s*\S|--nodes[ =]|--exclusive|--mem[ =]|--gres|--gpus|-G\s*\S|--tres-per)"
)
"""Options that count nodes, or something on each of them."""
_REQUESTED_NODES = re.compile(r"(?:^|,)node=(\d+)(?:,|$)")


def spread_tasks(log: Log) -> None:
    """Give jobs the tasks that they asked for in place of their nodes (``NNodes``)."""
    n = n_records(log)
    if "SubmitLine" not in log or "ReqTRES" not in log or "NNodes" not in log:
        return
    lines, requests = (log[name].fill_null("").to_pylist() for name in ("SubmitLine", "ReqTRES"))
    nodes, cpus = numbers(log, "NNodes"), numbers(log, "AllocCPUS")
    tasks, own, marks = nodes.copy(), [""] * n, [""] * n
    for i, (line, request) in enumerate(zip(lines, requests, strict=True)):
        if not nodes[i] > 0 or not cpus[i] > 0:
            continue
        requested = _REQUESTED_NODES.search(request)
        n_tasks = _free_tasks(
            line, int(requested[1]) if requested else 0, int(nodes[i]), int(cpus[i])
        )
        if n_tasks > 0:
            tasks[i], own[i] = n_tasks, str(int(nodes[i]))
        else:
            marks[i] = "1"
    log[NODE_TASKS] = pa.array(_tasks_of_batch(log, cpus, tasks, own), pa.string())
    log["NNodes"] = tasks
    log[NODES_USED], log[ONE_PER_NODE] = (pa.array(texts, pa.string()) for texts in (own, marks))


def _tasks_of_batch(log: Log, cpus: F8, tasks: F8, own: Sequence[str]) -> list[str]:
    """Return the tasks of such jobs on the node of their batch step; "" if there is none."""
    texts = [""] * n_records(log)
    if "NodeList" not in log:
        return texts
    ids, nodes = (log[name].fill_null("").to_pylist() for name in ("JobID", "NodeList"))
    row = -1  # of the job to which the steps behind it belong
    for i, name in enumerate(ids):
        job, _, step = name.partition(".")
        if not step:
            row = i
        elif step == "batch" and row >= 0 and ids[row] == job and own[row] and cpus[i] > 0:
            a_task = cpus[row] / tasks[row]
            if cpus[i] % a_task == 0:
                texts[row] = f"{nodes[i]}={int(cpus[i] / a_task)}"
    return texts


def _free_tasks(line: str, asked_nodes: int, n_nodes: int, n_cpus: int) -> int:
    """Return the tasks of a job that may be on any nodes; 0 if its nodes are what counts."""
    if asked_nodes > 1 or _BY_NODE.search(line) or _PER_NODE.search(line):
        return 0
    tasks, cpus = _TASKS.search(line), _CPUS.search(line)
    if tasks is None and n_nodes == 1:
        return 0  # its script may ask for a node
    a_task = int(cpus[1]) if cpus else 1
    return n_cpus // a_task if a_task > 0 and n_cpus % a_task == 0 else 0


def with_nodes_used(jobs: pa.Table, used: Sequence[str], marks: Sequence[str]) -> pa.Table:
    """Return the jobs with the nodes that they had, and a mark where no two tasks share one."""
    if any(used):
        nodes = column_or_default(jobs, schema.N_NODES)
        known = [int(text) if text else n for text, n in zip(used, nodes.tolist(), strict=True)]
        jobs = with_column(jobs, schema.N_NODES.name, np.array(known, np.int32))
    is_one = np.array([bool(text) for text in marks])
    return with_column(jobs, schema.ONE_PER_NODE.name, is_one) if is_one.any() else jobs
