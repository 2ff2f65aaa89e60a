"""Stages of records: a task for each CPU, or a task for each node with the node's share.

CPUs and GPUs are whole. Where they do not divide evenly among a job's nodes, some nodes have one
more, and are a stage of their own. A job that was resized is a gang of its largest size: the CPUs,
or nodes, that it had for a part of the time are stages that last so long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.base.losses import kind_of
from sim.base.reading import Account, count_rule
from sim.traces.sacct.clock import Times
from sim.traces.sacct.resources import Resources
from sim.traces.swf import ZERO_BECOMES_S

CPUS_UNKNOWN = "CPUs unknown: 1"
ZERO = f"0 s becomes {ZERO_BECOMES_S} s"
RESIZED = "a resized job: all nodes as its largest"
KINDS = {"cpus": ("cpu",), "nodes": ("cpu", "mem", "gpu")}
"""Resources that a task demands, by the option ``tasks``."""


@dataclass(frozen=True, eq=False)
class Stages:
    """Stages of records, by record.

    Attributes
    ----------
    record : (S,) int64
        Row of the record.
    n_tasks : (S,) int64
    run_s, start_s, finish_s : (S,) float64
        Run time of each task; when the stage really began and ended.
    demand : dict of str to (S,) float64
        Demand of a task by resource.
    """

    record: I8
    n_tasks: I8
    run_s: F8
    start_s: F8
    finish_s: F8
    demand: Mapping[str, F8]

    def take(self, rows: I8) -> Stages:
        """Return some stages."""
        return Stages(
            self.record[rows],
            self.n_tasks[rows],
            self.run_s[rows],
            self.start_s[rows],
            self.finish_s[rows],
            {kind: column[rows] for kind, column in self.demand.items()},
        )


def known_resources(resources: Resources, tasks: str, filled: dict[str, int]) -> Resources:
    """Return the resources with defaults for those that are unknown, which are counted."""
    unknown = np.isnan(resources.cpus)
    count_rule(filled, CPUS_UNKNOWN, unknown)
    if tasks == "cpus":
        return replace(resources, cpus=np.where(unknown, 1.0, resources.cpus))
    count_rule(filled, "nodes unknown: 1", np.isnan(resources.nodes))
    count_rule(filled, "memory unknown: 0", np.isnan(resources.mem_gib))
    nodes = np.where(np.isnan(resources.nodes), 1.0, resources.nodes)
    cpus = np.where(unknown, nodes, resources.cpus)
    count_rule(filled, "more nodes than CPUs: as many", nodes > cpus)
    gpus, mem_gib = np.nan_to_num(resources.gpus), np.nan_to_num(resources.mem_gib)
    return replace(resources, cpus=cpus, nodes=np.minimum(nodes, cpus), gpus=gpus, mem_gib=mem_gib)


def make_stages(
    times: Times, resources: Resources, was_unknown: Mask, run: I8, tasks: str, account: Account,
    filled: dict[str, int],
) -> Stages:  # fmt: skip
    """Make the stages of K records, and enter what this changes into the account.

    Parameters
    ----------
    times, resources
        Of each record; nothing is unknown.
    was_unknown : (K,) bool
        Its CPUs are a default.
    run : (K,) int64
        Row of the first record of the same run: a resized job has several. These alone have stages.
    """
    amounts = _amounts(resources, tasks)
    unknown_s = times.run_s * was_unknown
    account.change(CPUS_UNKNOWN, cpu_s=-float(np.sum(resources.cpus * unknown_s)))
    is_zero = times.run_s == 0
    count_rule(filled, ZERO, is_zero)
    for kind, amount in amounts.items():
        added = float(np.sum(amount[is_zero])) * ZERO_BECOMES_S
        account.change(ZERO, **{kind_of(kind): -added})
    times = replace(times, run_s=np.where(is_zero, ZERO_BECOMES_S, times.run_s))
    n_parts = np.bincount(run, minlength=len(run))
    whole = np.flatnonzero(n_parts == 1)
    split = _per_cpu if tasks == "cpus" else _per_node
    stages = split(times.take(whole), resources.take(whole), whole)
    resized = []
    for first in np.flatnonzero(n_parts > 1):
        rows = np.flatnonzero(run == first)
        part = _resized(times.take(rows), resources.take(rows), int(first), tasks, account)
        resized.append(part)
    if not resized:
        return stages
    return _concatenated([stages, *resized])


def _amounts(resources: Resources, tasks: str) -> dict[str, F8]:
    columns = {"cpu": resources.cpus, "mem": resources.mem_gib, "gpu": resources.gpus}
    return {kind: columns[kind] for kind in KINDS[tasks]}


def _per_cpu(times: Times, resources: Resources, record: I8) -> Stages:
    demand = {"cpu": np.ones(len(record))}
    n_tasks = resources.cpus.astype(np.int64)
    return Stages(record, n_tasks, times.run_s, times.start_s, times.finish_s, demand)


def _per_node(times: Times, resources: Resources, record: I8) -> Stages:
    """Make up to three stages of a record: of the nodes with one more CPU, GPU, or both."""
    nodes, cpus, gpus = (
        column.astype(np.int64) for column in (resources.nodes, resources.cpus, resources.gpus)
    )
    few, many = np.sort([cpus % nodes, gpus % nodes], axis=0)
    end = np.column_stack([few, many, nodes])
    n_tasks = np.diff(end, axis=1, prepend=0)
    row, position = np.nonzero(n_tasks)
    node = end[row, position] - 1  # the last node of the stage
    demand = {
        "cpu": cpus[row] // nodes[row] + (node < (cpus % nodes)[row]),
        "mem": (resources.mem_gib / nodes)[row],
        "gpu": gpus[row] // nodes[row] + (node < (gpus % nodes)[row]),
    }
    return Stages(
        record[row],
        n_tasks[row, position],
        times.run_s[row],
        times.start_s[row],
        times.finish_s[row],
        {kind: column.astype(np.float64) for kind, column in demand.items()},
    )


def _resized(
    times: Times, resources: Resources, record: int, tasks: str, account: Account
) -> Stages:
    """Make the stages of a job with a record for each size: of what it had at least so long."""
    amounts = _amounts(resources, tasks)
    width, demand = resources.cpus, {"cpu": 1.0}
    if tasks == "nodes":
        width = resources.nodes
        demand = {kind: float(np.max(amount / width)) for kind, amount in amounts.items()}
        demand |= {kind: float(np.ceil(demand[kind])) for kind in ("cpu", "gpu")}
    for kind, amount in amounts.items():
        recorded = float(np.sum(amount * times.run_s))
        simulated = float(np.sum(width * times.run_s)) * demand[kind]
        account.change(RESIZED, **{kind_of(kind): recorded - simulated})
    sizes = np.unique(width)
    had = width[None, :] >= sizes[:, None]
    n = len(sizes)
    return Stages(
        np.full(n, record),
        np.diff(sizes, prepend=0.0).astype(np.int64),
        (had * times.run_s).sum(axis=1),
        np.where(had, times.start_s, np.inf).min(axis=1),
        np.where(had, times.finish_s, -np.inf).max(axis=1),
        {kind: np.full(n, value) for kind, value in demand.items()},
    )


def _concatenated(parts: list[Stages]) -> Stages:
    joined = Stages(
        np.concatenate([part.record for part in parts]),
        np.concatenate([part.n_tasks for part in parts]),
        np.concatenate([part.run_s for part in parts]),
        np.concatenate([part.start_s for part in parts]),
        np.concatenate([part.finish_s for part in parts]),
        {kind: np.concatenate([p.demand[kind] for p in parts]) for kind in parts[0].demand},
    )
    return joined.take(np.argsort(joined.record, kind="stable"))


def stages_table(stages: Stages, job: I8, zero_s: float) -> dict[str, Any]:
    """Return the columns of the table of stages; times are counted from `zero_s`."""
    return {
        "job": job,
        "n_tasks": stages.n_tasks,
        "duration_s": stages.run_s,
        "recorded_start_s": stages.start_s - zero_s,
        "recorded_finish_s": stages.finish_s - zero_s,
        **{f"demand_{kind}": column for kind, column in stages.demand.items()},
    }
