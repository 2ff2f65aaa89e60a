"""Build a workload from the records of Slurm's allocations."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4, I8, Mask
from sim.base.reading import Account, BadRows, count_rule, no_job_left, resolution_s, valid_rows
from sim.traces.sacct import sentences
from sim.traces.sacct.amounts import open_account
from sim.traces.sacct.arrays import array_columns, find_arrays
from sim.traces.sacct.clock import clock_sentence, elapsed_sentence
from sim.traces.sacct.columns import Log, take, take_rows
from sim.traces.sacct.dependencies import read_dependencies
from sim.traces.sacct.groups import group
from sim.traces.sacct.identity import PREEMPTED, REQUEUED, SHARED
from sim.traces.sacct.jobs import OF_JOBS, Jobs, jobs_table, sort_jobs
from sim.traces.sacct.options import Options
from sim.traces.sacct.ran import RUNNING
from sim.traces.sacct.released import find_releases
from sim.traces.sacct.requeued import run_columns
from sim.traces.sacct.resources import gpu_models, licence_counts
from sim.traces.sacct.selection import NOT_COMPLETED, Selection, select
from sim.traces.sacct.stages import Stages, known_resources, make_stages, stages_table
from sim.workload.amounts import with_account
from sim.workload.node_names import NODE_LIST, NODE_TASKS
from sim.workload.schema import HELD_PREFIX, LICENSE_PREFIX, N_NODES, RUNS_ON
from sim.workload.workload import Workload

THROTTLED = "array with a limit on its running elements (%): not read, as it is one job"
LOGGED = "field of sacct: "
"""Prefix of columns of ``jobs`` that are as in the log."""
GPU_TYPES = "GPU models: not read into runs_on; trace.gpu_types=true"


def build_workload(
    path: str | os.PathLike[str], name: str, log: Log, bad: BadRows, options: Options,
    passed: Sequence[str] = (),
) -> Workload:  # fmt: skip
    """Build the workload of a log's records; see the options of `sim.traces.sacct.read`.

    Parameters
    ----------
    path : path-like
        The log, for messages.
    name : str
        Name of the workload.
    log : dict
        Columns by the names of ``sacct``'s fields; ``JobID``, ``Submit``, ``Start`` and one of
        ``End``, ``Elapsed`` and ``ElapsedRaw`` are required.
    bad : dict
        Counts of bad rows by rule.
    passed : sequence of str
        Columns of texts that become columns of ``jobs``, `LOGGED` before their names.

    Raises
    ------
    InputError
        If no job is left.
    """
    report: dict[str, Any] = {"rows": len(log["JobID"]) + sum(bad.values()), "bad_rows": bad}
    report |= {"dropped": {}, "filled": {}, "noticed": {}}
    dropped, filled, noticed = (report[kind] for kind in ("dropped", "filled", "noticed"))
    chosen = select(log, options.state, dropped)
    del log
    if not len(chosen.rows):
        valid_rows(chosen.rules, dropped)
        raise no_job_left(path, {**bad, **dropped})
    count_rule(noticed, SHARED, chosen.is_shared)
    arrays = find_arrays(chosen, chosen.first_run.eligible_s, noticed)
    groups = group(chosen, arrays, options, noticed)
    dependencies = read_dependencies(chosen, groups)
    released = find_releases(chosen, groups, arrays, dependencies)
    jobs, old_row = sort_jobs(chosen, groups, released, options.release)
    is_one = arrays.is_throttled & groups.is_array[arrays.rows]
    count_rule(noticed, THROTTLED, np.bincount(arrays.key[is_one]) > 0)
    account = open_account(chosen, chosen.heads[groups.first], bad, options.tasks)
    account.keep(chosen.rules, dropped, (NOT_COMPLETED,), wasted=(PREEMPTED, REQUEUED))
    dependencies.enter(account)
    stages = _make_stages(chosen, jobs, options.tasks, account, filled)
    stage_job = jobs.job[stages.record]
    n_tasks = np.bincount(stage_job, weights=stages.n_tasks).astype(np.int64)
    is_gang = options.gang & ~jobs.is_array
    if options.gpu_types:
        is_gang &= n_tasks > 1  # a task that asks for a class starts alone, as one without a gang
    licences = licence_counts(chosen.head_log)
    account.warnings += _warnings(chosen, jobs, stages, stage_job, is_gang, filled, licences)
    zero_s = float(jobs.submit_s[0])
    head_log = take(
        {name: chosen.head_log[name] for name in OF_JOBS if name in chosen.head_log}, jobs.head
    )
    workload = Workload.from_tables(
        jobs={
            **jobs_table(jobs, head_log, options.queue, filled, noticed),
            "min_tasks": np.where(is_gang, n_tasks, 0),
            **_n_nodes(chosen, jobs),
            **{
                LICENSE_PREFIX + name: _in_all(number.astype(np.float64), jobs)
                for name, number in licences.items()
            },
            **run_columns(chosen, jobs),
            **array_columns(arrays, chosen.head_log, jobs.head, jobs.is_array),
            **{
                LOGGED + column: take_rows(chosen.head_log[column], jobs.head).fill_null("")
                for column in passed
                if column in chosen.head_log
            },
        },
        stages={
            **stages_table(stages, stage_job, zero_s),
            **_nodes(chosen.head_log, stages.record),
            **_held_amounts(chosen, stages, options.tasks),
            **_gpu_models(chosen.head_log, stages, options, noticed),
        },
        job_edges=dependencies.edges(old_row),
        meta={
            "name": name,
            "quantum": {kind: 1e-6 if kind == "mem" else 1.0 for kind in stages.demand},
            "offset_s": zero_s,
            "resolution_s": _resolution_s(chosen),
            "report": {**report, "jobs": len(jobs.head)},
        },
    )
    return with_account(workload, account, bad)


def _make_stages(
    chosen: Selection, jobs: Jobs, tasks: str, account: Account, filled: dict[str, int]
) -> Stages:
    """Make the stages by job; ``record`` is a row of `Selection.heads`."""
    rows = chosen.rows
    resources = chosen.resources.take(rows)
    was_unknown = np.isnan(resources.cpus)
    resources = known_resources(resources, tasks, filled)
    run = np.searchsorted(rows, chosen.runs.first_part[rows])
    stages = make_stages(
        chosen.times.take(rows), resources, was_unknown, run, tasks, account, filled
    )
    stages = replace(stages, record=np.searchsorted(chosen.heads, rows[stages.record]))
    return stages.take(np.argsort(jobs.job[stages.record], kind="stable"))


def _warnings(
    chosen: Selection, jobs: Jobs, stages: Stages, stage_job: I8, is_gang: Mask,
    filled: dict[str, int], licences: Mapping[str, I8],
) -> list[str]:  # fmt: skip
    """Return what a user must know of the log, a sentence each."""
    cpu_s = chosen.resources.cpus * np.maximum(chosen.times.run_s, 0.0)
    n_jobs = chosen.n_jobs(chosen.heads[jobs.head])
    return [
        *clock_sentence(chosen.times, chosen.has_elapsed, filled),
        *elapsed_sentence(chosen.times),
        *sentences.clusters(chosen.head_log),
        *sentences.censored(chosen.rules[RUNNING], n_jobs, cpu_s),
        *sentences.licences(
            licences, chosen.times.start_s[chosen.heads], chosen.finish_s, jobs.job
        ),
    ]


def _resolution_s(chosen: Selection) -> float:
    times = chosen.times.take(chosen.rows)
    return resolution_s(times.submit_s, times.start_s, times.finish_s)


def _n_nodes(chosen: Selection, jobs: Jobs) -> dict[str, Any]:
    """Return the number of nodes of each job, 0 if unknown, if the log has any."""
    nodes = np.nan_to_num(chosen.resources.nodes[chosen.heads])
    if not nodes.any():
        return {}
    return {N_NODES.name: _in_all(nodes, jobs)}


def _in_all(number: F8, jobs: Jobs) -> I4:
    """Return a number of each job, from those of its records.

    Of all parts of a heterogeneous job, which start together; of one element of an array.
    """
    parts = np.bincount(jobs.job, number, len(jobs.head))
    return np.where(jobs.is_array, number[jobs.head], parts).astype(np.int32)


def _nodes(log: Log, record: I8) -> dict[str, Any]:
    """Return the nodes of each stage, as Slurm writes them (``n[1-4,7]``), if the log has them.

    And the tasks on some of them, if a reader knows these.
    """
    if "NodeList" not in log:
        return {}
    columns = {NODE_LIST: "NodeList", NODE_TASKS: NODE_TASKS}
    return {
        column: take_rows(log[name], record).fill_null("")
        for column, name in columns.items()
        if name in log
    }


def _held_amounts(chosen: Selection, stages: Stages, tasks: str) -> dict[str, Any]:
    """Return the GPUs and memory (GiB) that stages held in all, if tasks do not demand them.

    Nothing simulates them; an audit of the log goes by them where it names nodes.
    """
    if tasks != "cpus" or "NodeList" not in chosen.head_log:
        return {}
    head = chosen.resources.take(chosen.heads)
    n_tasks = np.bincount(stages.record, weights=stages.n_tasks, minlength=len(chosen.heads))
    share = stages.n_tasks / n_tasks[stages.record]  # of the stages of a resized job
    amounts = {"gpu": np.nan_to_num(head.gpus), "mem": np.nan_to_num(head.mem_gib)}
    return {
        f"{HELD_PREFIX}{kind}": amount[stages.record] * share
        for kind, amount in amounts.items()
        if amount.any()
    }


def _gpu_models(
    log: Log, stages: Stages, options: Options, noticed: dict[str, int]
) -> dict[str, Any]:
    """Return the models of GPUs that each stage had, if the log tells and tasks take GPUs."""
    models = gpu_models(log) if options.tasks == "nodes" else None
    if models is None:
        return {}
    code, names = models
    stage_code = np.where(stages.demand["gpu"] > 0, code[stages.record], names.index(""))
    column = pa.DictionaryArray.from_arrays(pa.array(stage_code, pa.int32()), names)
    if options.gpu_types:
        return {RUNS_ON.name: column}
    count_rule(noticed, GPU_TYPES, code != names.index(""))
    return {"gpu_type": column}
