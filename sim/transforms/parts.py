"""Building blocks of transforms: sample and repeat jobs, rebuild a workload, note the transform."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8, Mask, ranges
from sim.base.errors import InputError
from sim.base.random import stream
from sim.dags.graphs import Graphs
from sim.workload.columns import job_n_tasks
from sim.workload.recorded import WITH_RECORDED, drop_recorded
from sim.workload.releases import shift_begins
from sim.workload.runs import Runs
from sim.workload.schema import ARRAY as ARRAY_COLUMNS
from sim.workload.schema import DEPENDENCY_KINDS
from sim.workload.tables import names, take_rows, values, with_column
from sim.workload.transform import take_tasks
from sim.workload.workload import Workload

ARRAY = ARRAY_COLUMNS[0]


def rebuild(
    workload: Workload,
    transform: Mapping[str, object] | None,
    durations: F8 | Runs | None = None,
    validate: bool = False,
    keep_recorded: bool = True,
    **changed: Any,
) -> Workload:
    """Rebuild the workload with some tables or durations changed, and note the transform.

    `durations` are one a stage, (G,) s, or runs of like tasks; ``tasks=`` is a table of them.

    ``keep_recorded=False`` drops when jobs really ran (`sim.workload.recorded`): for transforms
    that move submissions or make other jobs of them.
    """
    if workload.failures.num_rows and "failures" not in changed:
        raise InputError(
            "the workload has task failures, which other transforms would invalidate; apply "
            "fail_tasks after all others"
        )
    names = ("jobs", "stages", "stage_edges", "job_edges", "downloads", "history", "training")
    tables = {name: getattr(workload, name) for name in names} | changed
    if tables.get("tasks") is None:
        if durations is None:
            durations = workload.runs if workload.in_runs else None
        if isinstance(durations, Runs) and durations.one_a_stage:
            durations = durations.duration_s
        if durations is None:
            tables["tasks"] = workload.tasks
        elif isinstance(durations, Runs):
            tables["tasks"] = durations.table()
        else:
            tables["stages"] = tables["stages"].append_column("duration_s", pa.array(durations))
    if not keep_recorded:
        tables |= {name: drop_recorded(tables[name]) for name in WITH_RECORDED if name in tables}
    meta = {**workload.meta}
    if transform is not None:
        meta["transforms"] = [*meta.get("transforms", []), dict(transform)]
    return Workload.from_tables(**tables, meta=meta, validate=validate)


def sample_jobs(n: int, n_out: int, seed: int) -> tuple[I8, Mask]:
    """Sample `n_out` rows of `n` jobs, all equally often, give or take one; mark the copies."""
    n_times, n_more = divmod(n_out, n)
    repeated = np.sort(stream(seed, "knobs", "jobs").permutation(n)[:n_more])
    rows = np.concatenate([np.tile(np.arange(n), n_times), repeated])
    copy = np.arange(len(rows)) >= min(n, n_out)
    order = np.argsort(rows, kind="stable")
    return rows[order], copy[order]


def submission_times(submit_s: F8, rows: I8, copy: Mask, seed: int) -> F8:
    """Return the jobs' own times of submission; copies get a random one before the next job's."""
    next_s = np.append(submit_s[1:], submit_s[-1])
    uniform = stream(seed, "knobs", "times").random(len(rows))
    return submit_s[rows] + copy * uniform * (next_s - submit_s)[rows]


def history_table(
    workload: Workload, rows: I8, finish_s: F8, since_s: float, features: Iterable[str]
) -> dict[str, Any]:
    """Return the history table of some jobs, with times counted from `since_s`.

    `finish_s` has the times of completion, (len(rows),). The table has those of `features` that
    jobs have.
    """
    jobs = take_rows(workload.jobs, rows)
    n_tasks = job_n_tasks(workload)[rows]
    return {
        "submit_s": values(jobs, "submit_s") - since_s,
        "finish_s": finish_s - since_s,
        "n_tasks": n_tasks.astype(np.int32),
        "mean_task_s": workload.columns.job_work[rows] / n_tasks,
        **{name: jobs[name] for name in features if name in jobs.column_names},
    }


def training_table(
    workload: Workload, rows: I8, run: I8, ready_s: F8, task_s: F8
) -> dict[str, Any]:
    """Return the training table (`sim.workload.schema.TRAINING`) of jobs that ran without waiting.

    `rows` are the jobs and `run` the number of each as an earlier run of its template, (n,);
    `ready_s` is when each stage's tasks start, from submission, (G,); `task_s` the duration of each
    task, (T,).
    """
    columns = workload.columns
    first, last = columns.job_stage0[rows], columns.job_stage0[rows + 1]
    stage = ranges(first, last)
    n_tasks = columns.stage_n_tasks[stage]
    task = ranges(columns.stage_task0[stage], columns.stage_task0[stage + 1])
    task_stage = np.repeat(stage, n_tasks)
    job = columns.stage_job[task_stage]
    names_of = names(workload.jobs, "template")
    return {
        "template": [names_of[code] for code in values(workload.jobs, "template")[job].tolist()],
        "run": np.repeat(np.repeat(run, last - first), n_tasks).astype(np.int32),
        "stage": (task_stage - columns.job_stage0[job]).astype(np.int32),
        "task": (task - columns.stage_task0[task_stage]).astype(np.int32),
        "ready_s": ready_s[task_stage],
        "start_s": ready_s[task_stage],
        "finish_s": ready_s[task_stage] + task_s[task],
    }


def ready_without_waiting(workload: Workload, longest_s: F8) -> F8:
    """Return when the inputs of each stage are ready if no task waits, from submission, (G,) s.

    `longest_s` is the duration of each stage's longest task, (G,).
    """
    return stage_ready_s(Graphs.from_workload(workload), longest_s)


def stage_ready_s(graphs: Graphs, longest_s: F8) -> F8:
    """Return when the stages of DAGs are ready if stage g takes ``longest_s[g]``: (G,) s."""
    ready = np.zeros(len(longest_s))
    edge0: I8 = graphs.edge0
    for stage in graphs.order.tolist():
        end_s = ready[stage] + longest_s[stage]
        for child in graphs.edge_child[edge0[stage] : edge0[stage + 1]].tolist():
            ready[child] = max(ready[child], end_s)
    return ready


def repeat_jobs(
    workload: Workload,
    rows: I8,
    copy: Mask,
    submit_s: F8,
    transform: dict[str, object],
    job_edges: pa.Table | None = None,
) -> Workload:
    """Build a workload of the jobs `rows`, some of them several times, at new times.

    `job_edges` are those between the new jobs; None: as those of the originals, which are all among
    the rows.
    """
    graphs = Graphs.from_workload(workload)
    taken = graphs.take(rows)
    stage = ranges(graphs.job_stage0[rows], graphs.job_stage0[rows + 1])
    first_edge = graphs.edge0[graphs.job_stage0]
    edge = ranges(first_edge[rows], first_edge[rows + 1])
    tasks, runs = take_tasks(workload, stage)
    new_row = np.full(workload.n_jobs, -1, dtype=np.int32)
    new_row[rows[~copy]] = np.flatnonzero(~copy)
    jobs = take_rows(workload.jobs, rows)
    jobs = shift_begins(jobs, submit_s - values(jobs, "submit_s"))
    jobs = with_column(jobs, "submit_s", submit_s)
    downloads = workload.downloads
    if job_edges is None:
        job_edges = workload.job_edges
        for key in ("upstream", "downstream"):
            job_edges = with_column(job_edges, key, new_row[values(job_edges, key)])
        job_edges = pa.concat_tables([job_edges, _edges_of_copies(workload, rows, copy)])
    kind = take_rows(workload.stage_edges, edge)["kind"]
    ids = _unique_ids(jobs["job_id"].to_pylist(), copy)
    jobs = _with_own_arrays(jobs, ids)
    return rebuild(
        workload, transform, runs, keep_recorded=False,
        jobs=with_column(jobs, "job_id", ids),
        stages=with_column(take_rows(workload.stages, stage), "job", taken.stage_job),
        tasks=tasks,
        stage_edges={"parent": taken.edge_parent, "child": taken.edge_child, "kind": kind},
        job_edges=job_edges,
        downloads=with_column(downloads, "job", new_row[values(downloads, "job")]),
    )  # fmt: skip


def _edges_of_copies(workload: Workload, rows: I8, copy: Mask) -> pa.Table:
    """Return the dependencies of copies: on the copy of the same number, or else the original.

    Inputs are not copied: they exist.
    """
    edges = workload.job_edges
    kinds = names(edges, "kind")
    is_kind = np.array([kind in DEPENDENCY_KINDS for kind in kinds], dtype=bool)
    picked = np.flatnonzero(is_kind[values(edges, "kind")]) if edges.num_rows else np.zeros(0, int)
    row_of, n_copies = dict[tuple[int, int], int](), dict[int, int]()
    if len(picked):
        for row, (job, is_copy) in enumerate(zip(rows.tolist(), copy.tolist(), strict=True)):
            n_copies[job] = n_copies.get(job, 0) + is_copy
            row_of[job, n_copies[job] if is_copy else 0] = row
    ends = [values(edges, key)[picked].tolist() for key in ("upstream", "downstream")]
    edges_of_copies = [
        (edge, row_of.get((upstream, number), row_of.get((upstream, 0), -1)), row)
        for edge, upstream, downstream in zip(picked.tolist(), *ends, strict=True)
        for number in range(1, n_copies.get(downstream, 0) + 1)
        for row in [row_of[downstream, number]]
    ]
    triples = np.array(
        [entry for entry in edges_of_copies if entry[1] >= 0], dtype=np.int64
    ).reshape(-1, 3)
    table = take_rows(edges, triples[:, 0])
    for column, key in ((1, "upstream"), (2, "downstream")):
        table = with_column(table, key, triples[:, column].astype(np.int32))
    return table


def _unique_ids(ids: list[str], copy: Mask) -> list[str]:
    """Append a number to the ids of copies: ``a``, ``a+1``, ``a+2``."""
    used = set(ids)
    number: dict[str, int] = {}
    unique = []
    for job_id, is_copy in zip(ids, copy.tolist(), strict=True):
        new = job_id
        while is_copy and new in used:
            number[job_id] = number.get(job_id, 0) + 1
            new = f"{job_id}+{number[job_id]}"
        used.add(new)
        unique.append(new)
    return unique


def _with_own_arrays(jobs: pa.Table, ids: list[str]) -> pa.Table:
    """Give copies arrays of their own: the copies of an array are another one, with its throttle.

    `ids` are the new ids of the jobs.
    """
    if ARRAY.name not in jobs.column_names:
        return jobs
    arrays = jobs[ARRAY.name].to_pylist()
    endings = [new[len(old) :] for old, new in zip(jobs["job_id"].to_pylist(), ids, strict=True)]
    own = [array + end if array else "" for array, end in zip(arrays, endings, strict=True)]
    column = pa.array(own, pa.string()).dictionary_encode()
    return jobs.set_column(jobs.column_names.index(ARRAY.name), ARRAY.name, column)
