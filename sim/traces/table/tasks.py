"""Tasks of a table's jobs: what a row demands, and how it is shared out among tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sim.base.arrays import F8, I8, Mask
from sim.base.errors import InputError
from sim.base.reading import count_rule
from sim.traces.table.forms import MISSING

Tasks = Literal["cpus", "gpus", "nodes", "workers", "job"]
Per = Literal["worker", "job"]
DEMANDS = {"cpu": "cpus", "gpu": "gpus", "mem": "mem"}
"""Resources, and their columns."""
RULES = {"cpu": "CPUs unknown: 1", "gpu": "GPUs unknown: 0", "mem": "memory unknown: 0"}
"""Defaults of demands."""


@dataclass(frozen=True, eq=False)
class Width:
    """Number of tasks of each job, and its demands in all, by resource.

    `unknown` and `unknown_tasks` mark what is filled in; `is_even` is True if all tasks of a job
    are alike.
    """

    n_tasks: I8
    total: Mapping[str, F8]
    unknown: Mapping[str, Mask]
    unknown_tasks: Mask
    is_even: bool


def task_unit_of(
    path: str | os.PathLike[str], columns: Mapping[str, Any], tasks: Tasks | None
) -> Tasks:
    """Return how jobs are cut into tasks: as chosen, or as the table's columns suggest.

    Raises
    ------
    InputError
        If tasks are to be of a column that the table has not.
    """
    if tasks in ("gpus", "nodes", "workers") and tasks not in columns:
        text = f"tasks={tasks} needs a column {tasks}: give trace.columns.{tasks}=NAME"
        raise InputError(text, file=path, rule="missing column")
    if tasks is not None:
        return tasks
    if "workers" in columns:
        return "workers"
    if "gpus" in columns:
        return "nodes" if "nodes" in columns else "job"
    return "cpus"


def demands_of(
    columns: Mapping[str, Any], n_rows: int, task_unit: Tasks, per: Per
) -> dict[str, F8]:
    """Return the demands of each row in all, by resource; NaN where the table does not tell.

    Without a column of CPUs a row has one, unless there are GPUs. Tasks that are CPUs have none.
    `per` is "worker" if demands are those of one worker.
    """
    known = {r: columns[column] for r, column in DEMANDS.items() if column in columns}
    if task_unit == "cpus":
        known.pop("gpu", None)
    if "cpu" not in known and "gpu" not in known:
        known["cpu"] = np.ones(n_rows)
    if per == "worker" and "workers" in columns:
        workers = np.where(np.isnan(columns["workers"]), 1.0, columns["workers"])
        known = {resource: demand * workers for resource, demand in known.items()}
    return known


def width_of(
    columns: Mapping[str, Any],
    demands: Mapping[str, F8],
    task_unit: Tasks,
    per: Per,
    filled: dict[str, int],
) -> Width:
    """Return the width of each job; count in `filled` what is unknown.

    Parameters
    ----------
    columns : mapping of str to array
        The jobs' columns.
    demands : mapping of str to (J,) float64
        Demands in all; those that are NaN become 1 CPU, of each worker where demands are those of
        one, or 0.
    task_unit : str
        How a job is cut into tasks.
    per : str
        "worker" if the table's demands are those of one worker.
    filled : dict of str to int
        Counts by rule.
    """
    ones = np.ones(len(next(iter(demands.values()))))
    workers = columns.get("workers", ones) if per == "worker" else ones
    defaults = {"cpu": np.where(np.isnan(workers), 1.0, workers), "gpu": 0 * ones, "mem": 0 * ones}
    total, unknown = {}, {}
    for resource, demand in demands.items():
        unknown[resource] = np.isnan(demand)
        total[resource] = np.where(unknown[resource], defaults[resource], demand)
        is_filled = unknown[resource] | (DEMANDS[resource] not in columns)
        count_rule(filled, RULES[resource], is_filled)
    n_tasks, unknown_tasks = _n_tasks(columns, total, task_unit)
    count_rule(filled, f"{task_unit} unknown: 1", unknown_tasks)
    is_even = task_unit == "workers" and per == "worker"
    return Width(n_tasks, total, unknown, unknown_tasks, is_even)


def _n_tasks(
    columns: Mapping[str, Any], total: Mapping[str, F8], task_unit: Tasks
) -> tuple[I8, Mask]:
    """Return the number of tasks of each job, and mark those that the table does not tell."""
    ones = np.ones(len(next(iter(total.values()))))
    known = ones > 0
    if task_unit == "job":
        n_tasks = ones
    elif task_unit in ("nodes", "workers"):
        known = columns[task_unit] > 0
        n_tasks = np.where(known, columns[task_unit], ones)
    else:
        demand = total[task_unit[:-1]]
        n_tasks = np.maximum(np.ceil(demand), 1.0)
        if task_unit == "gpus":  # parts of several GPUs stay together
            n_tasks = np.where(demand == np.rint(demand), n_tasks, ones)
    return n_tasks.astype(np.int64), ~known


def stages_of(width: Width, gpu_type: pa.Array | None) -> dict[str, Any]:
    """Return the columns of stages: like tasks of a job are one, so a job has up to three.

    Whole numbers are shared out as whole numbers: of 10 CPUs and 5 GPUs on 4 nodes one task has 3
    and 2, one 3 and 1, two have 2 and 1. Others, and memory, are shared out evenly.
    """
    n = width.n_tasks
    low: dict[str, F8] = {}
    extra: dict[str, I8] = {}
    for resource, total in width.total.items():
        share = total / n
        if resource != "mem" and not width.is_even:
            share = np.where(total == np.rint(total), np.floor(share), share)
            extra[resource] = np.rint(total - share * n).astype(np.int64)
        low[resource] = share
    job, size, begin = _pieces(n, [*extra.values()])
    columns: dict[str, Any] = {"job": job.astype(np.int32), "n_tasks": size}
    for resource, share in low.items():
        more = extra[resource][job] > begin if resource in extra else 0.0
        columns[f"demand_{resource}"] = share[job] + more
    if gpu_type is not None:
        is_any = pc.match_substring_regex(gpu_type, f"^{MISSING}$").fill_null(True)
        types = pc.if_else(is_any, "", gpu_type).take(pa.array(job))
        if "gpu" in low:
            idle = pa.array(columns["demand_gpu"] == 0)
            types = pc.if_else(idle, "", types)
        columns["runs_on"] = types.dictionary_encode()
    return columns


def _pieces(n_tasks: I8, extras: list[I8]) -> tuple[I8, I8, I8]:
    """Cut each job's tasks where the first `extras` of them end, which demand one more.

    Returns the job, the size and the first task of each piece.
    """
    counts = np.array([*extras, 0 * n_tasks])
    if not counts.any():
        return np.arange(len(n_tasks)), n_tasks, 0 * n_tasks
    ends = np.vstack([np.sort(counts, axis=0), n_tasks])
    sizes = np.diff(ends, axis=0, prepend=0)
    job, part = np.nonzero(sizes.T)
    return job, sizes[part, job], ends[part, job] - sizes[part, job]
