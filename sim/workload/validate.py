"""Validation of a workload by every rule of the schema; each error names table and row."""

from __future__ import annotations

import numpy as np

from sim.base.acyclic import find_cycle
from sim.base.arrays import I4, I8, Mask
from sim.base.distinct import first_repeat
from sim.base.errors import InputError
from sim.workload.columns import job_n_tasks, job_stage0, stage_durations
from sim.workload.elastic import curve_points
from sim.workload.record import Tables
from sim.workload.rules import check_column, check_number, fail, refuse
from sim.workload.schema import (
    AFTER_NEEDS,
    DELAY,
    DEMAND_PREFIX,
    EDGE_KINDS,
    FEATURES,
    INPUT_KINDS,
    JOB_EDGE_KINDS,
    NEW_DEADLINE,
    NEW_DEADLINE_AT,
    OPTIONAL_COLUMNS,
    OPTIONAL_TABLES,
    RECORDED,
    REQUEST_PREFIX,
    SINGLETON,
    SPEEDUP,
    TABLES,
    WIDTH_MIN,
    demand_column,
    licence_column,
    request_column,
    speed_column,
)
from sim.workload.tables import (
    codes,
    column_or_default,
    column_or_nan,
    licence_names,
    names,
    requested_resources,
    speed_classes,
    values,
)

_MAX_QUANTA = 2.0**45


def validate(workload: Tables) -> None:
    """Raise InputError for the first broken rule of `workload`."""
    _check_sizes(workload)
    for name in TABLES:
        if name == "tasks" and workload.in_runs:
            if workload.stage_duration_s is not None:  # a table of runs is validated before
                check_number("stages", TABLES["tasks"][1], workload.stage_duration_s)
            continue
        table = getattr(workload, name)
        columns = list(TABLES[name])
        if name == "stages":
            columns += [demand_column(r) for r in workload.resources]
            columns += [speed_column(c) for c in speed_classes(table)]
            columns += [request_column(c) for c in requested_resources(table)]
        if name == "jobs":
            columns += [licence_column(c) for c in licence_names(table)]
        for column in columns:
            check_column(workload, name, table, column)
    _check_jobs(workload)
    _check_stages(workload)
    _check_tasks(workload)
    _check_gangs(workload)
    _check_stage_edges(workload)
    _check_edges(workload, "job_edges", "upstream", "downstream", workload.n_jobs)
    _check_demands(workload)
    for resource in requested_resources(workload.stages):
        _check_requests(workload, resource)
    validate_optional(workload)


def _check_sizes(workload: Tables) -> None:
    if workload.n_jobs == 0:
        raise InputError("the workload is empty; it needs at least one job", rule="empty workload")
    for name in ("jobs", "stages", "stage_edges", "job_edges", "downloads", *OPTIONAL_TABLES):
        rows = getattr(workload, name).num_rows
        if rows > np.iinfo(np.int32).max:
            raise InputError(f"{name} has {rows} rows; at most 2^31 - 1", rule="too many rows")


def _check_jobs(workload: Tables) -> None:
    repeat = first_repeat(workload.jobs["job_id"].chunk(0))
    if repeat is not None:
        row, other = repeat
        fail(workload, "jobs", row, f"job_id is that of row {other} too", "duplicate id")
    _check_ascending(workload, "jobs", "submit_s", "before", "non-monotonic submit")


def _check_stages(workload: Tables) -> None:
    _check_ascending(workload, "stages", "job")
    empty = np.ones(workload.n_jobs, dtype=bool)
    empty[values(workload.stages, "job")] = False
    text = "the job has no stages; give it one"
    refuse(workload, "jobs", empty, lambda _: text, "job without stages")


def _check_tasks(workload: Tables) -> None:
    if workload.n_tasks > np.iinfo(np.int32).max:
        raise InputError(
            f"the stages have {workload.n_tasks:,} tasks; at most 2^31 - 1", rule="too many rows"
        )
    if workload.in_runs:
        return
    _check_ascending(workload, "tasks", "stage")
    counts = np.bincount(values(workload.tasks, "stage"), minlength=workload.n_stages)
    n_tasks = values(workload.stages, "n_tasks")
    refuse(
        workload, "stages", counts != n_tasks,
        lambda i: f"n_tasks is {n_tasks[i]}, but the table of tasks has {counts[i]} for it",
        "n_tasks mismatch",
    )  # fmt: skip


def _check_gangs(workload: Tables) -> None:
    gang = values(workload.jobs, "min_tasks")
    if not gang.any():
        return
    tasks = job_n_tasks(workload)
    refuse(
        workload, "jobs", gang > tasks,
        lambda i: f"min_tasks is {gang[i]}, but the job has {tasks[i]} tasks in all",
        "gang larger than job",
    )  # fmt: skip


def _check_stage_edges(workload: Tables) -> None:
    parent, child = (values(workload.stage_edges, end) for end in ("parent", "child"))
    job = values(workload.stages, "job")
    refuse(
        workload, "stage_edges", job[parent] != job[child],
        lambda i: (
            f"leads from stage {parent[i]} of job {job[parent[i]]} to stage {child[i]} of job "
            f"{job[child[i]]}; dependencies between jobs belong in job_edges"
        ),
        "edge between jobs",
    )  # fmt: skip
    _check_edges(workload, "stage_edges", "parent", "child", workload.n_stages)


def _check_edges(workload: Tables, name: str, from_: str, to: str, n_nodes: int) -> None:
    table = getattr(workload, name)
    tail, head = values(table, from_), values(table, to)
    text = f"{from_} and {to} are both"
    refuse(workload, name, tail == head, lambda i: f"{text} {tail[i]}", "self edge")
    is_repeated = (tail[1:] == tail[:-1]) & (head[1:] == head[:-1])
    refuse(
        workload, name, np.append(False, is_repeated),
        lambda i: f"the edge {tail[i]} to {head[i]} is listed twice", "duplicate edge",
    )  # fmt: skip
    rows = np.arange(len(tail))
    if name == "job_edges":  # a soft input is never waited for
        rows = rows[codes(table, "kind", JOB_EDGE_KINDS) != JOB_EDGE_KINDS.index("soft")]
    cycle = find_cycle(tail[rows], head[rows], n_nodes)
    if cycle:
        shown = " -> ".join(map(str, [*cycle[:8], *(["..."] if len(cycle) > 8 else [cycle[0]])]))
        closes = (tail[rows] == cycle[0]) & (head[rows] == cycle[1 % len(cycle)])
        fail(workload, name, int(rows[np.argmax(closes)]), f"closes the cycle {shown}", "cycle")


def _check_demands(workload: Tables) -> None:
    for resource in workload.resources:
        quantum = workload.quantum[resource]
        if not np.isfinite(quantum) or quantum <= 0:
            raise InputError(
                f"the quantum of {resource} is {quantum}; it must be a positive number",
                rule="wrong quantum",
            )
        column = DEMAND_PREFIX + resource
        demand = values(workload.stages, column)
        with np.errstate(over="ignore"):
            too_large = demand / quantum > _MAX_QUANTA
        if too_large.any():
            row = int(np.argmax(too_large))
            text = f"{column} is {demand[row]:g}, more than 2^45 quanta of {quantum:g}"
            text += "; state a larger quantum in meta"
            fail(workload, "stages", row, text, "demand out of range")


def _check_requests(workload: Tables, resource: str) -> None:
    column = REQUEST_PREFIX + resource
    if resource not in workload.resources:
        raise InputError(
            f"stages has {column} and no {DEMAND_PREFIX}{resource}: state what tasks need, too",
            rule="request without demand",
        )
    request = column_or_nan(workload.stages, column)
    demand = values(workload.stages, DEMAND_PREFIX + resource)
    refuse(
        workload, "stages", request < demand,
        lambda i: (
            f"{column} is {request[i]:g}, less than the demand of {demand[i]:g}; a task holds what "
            "it requests, and can't use more: request at least the demand, or leave it empty"
        ),
        "request below demand",
    )  # fmt: skip
    with np.errstate(over="ignore"):
        too_large = request / workload.quantum[resource] > _MAX_QUANTA
    text = "is more than 2^45 quanta; state a larger quantum in meta"
    refuse(workload, "stages", too_large, lambda _: f"{column} {text}", "demand out of range")


def _check_ascending(
    workload: Tables, name: str, column: str, less: str = "below", rule: str = "rows out of order"
) -> None:
    rows = values(getattr(workload, name), column)
    refuse(
        workload, name, np.append(False, rows[1:] < rows[:-1]),
        lambda i: (
            f"{column} is {rows[i]}, {less} the {rows[i - 1]} of the row above; "
            f"sort {name} by {column}"
        ),
        rule,
    )  # fmt: skip


def validate_optional(workload: Tables) -> None:
    """Validate the optional tables and columns of a workload."""
    for name, columns in OPTIONAL_TABLES.items():
        for column in columns:
            check_column(workload, name, getattr(workload, name), column)
    _check_deadlines(workload)
    _check_releases(workload)
    _check_elastic(workload)
    _check_recorded(workload)
    _check_history(workload)
    _check_training(workload)
    _check_failures(workload)


def _check_deadlines(workload: Tables) -> None:
    jobs = workload.jobs
    present = [c for c in OPTIONAL_COLUMNS["jobs"] if c.nullable and c.name in jobs.column_names]
    for column in present:
        check_column(workload, "jobs", jobs, column)
    if not present:
        return
    has_deadline = ~np.isnan(column_or_default(jobs, NEW_DEADLINE))
    has_time = ~np.isnan(column_or_default(jobs, NEW_DEADLINE_AT))
    missing = jobs["deadline_s"].chunk(0).is_null().to_numpy(zero_copy_only=False)
    text = "a deadline that changes needs deadline_s, new_deadline_s and new_deadline_at_s"
    incomplete = (has_deadline != has_time) | (has_deadline & missing)
    refuse(workload, "jobs", incomplete, lambda _: text, "half a change of deadline")


def _check_releases(workload: Tables) -> None:
    jobs, edges = workload.jobs, workload.job_edges
    if AFTER_NEEDS.name in jobs.column_names:
        check_column(workload, "jobs", jobs, AFTER_NEEDS)
    if DELAY.name in edges.column_names:
        check_column(workload, "job_edges", edges, DELAY)
        is_input = codes(edges, "kind", JOB_EDGE_KINDS) < len(INPUT_KINDS)
        text = "an input has no delay_s; give its reader a poll_lag_s"
        delayed = is_input & (column_or_default(edges, DELAY) > 0)
        refuse(workload, "job_edges", delayed, lambda _: text, "delay of an input")
    name = FEATURES[1].name
    unnamed = np.ones(workload.n_jobs, dtype=bool)
    if name in jobs.column_names:
        unnamed = np.array([not text for text in names(jobs, name)])[values(jobs, name)]
    refuse(
        workload, "jobs", column_or_default(jobs, SINGLETON) & unnamed,
        lambda _: f"a singleton waits for other jobs of its name; give it a {name}",
        "singleton without a name",
    )  # fmt: skip


def _check_elastic(workload: Tables) -> None:
    jobs = workload.jobs
    if WIDTH_MIN.name not in jobs.column_names:
        return
    check_column(workload, "jobs", jobs, WIDTH_MIN)
    low, gang, widest = (
        values(jobs, WIDTH_MIN.name),
        values(jobs, "min_tasks"),
        job_n_tasks(workload),
    )
    is_elastic, stage0 = low > 0, job_stage0(workload)
    first = stage0[:-1]
    _, longest, shortest = stage_durations(workload)
    unlike = (np.diff(stage0) > 1) | (longest[first] != shortest[first])
    text = "an elastic job is one stage of tasks of equal duration"
    refuse(workload, "jobs", is_elastic & unlike, lambda _: text, "elastic job of unlike tasks")
    refuse(
        workload, "jobs", is_elastic & ((low > widest) | (gang != low)),
        lambda i: (
            f"width_min is {low[i]}, min_tasks {gang[i]}, and it has {widest[i]} tasks; an elastic "
            "job starts with width_min of them, so that min_tasks is the same"
        ),
        "wrong width",
    )  # fmt: skip
    if SPEEDUP.name in jobs.column_names:
        curve, texts = values(jobs, SPEEDUP.name), names(jobs, SPEEDUP.name)
        ends = [curve_points(text)[0][[0, -1]] if text else (1, np.inf) for text in texts]
        begin, end = np.array(ends).T[:, curve]
        refuse(
            workload, "jobs", is_elastic & ((begin > low) | (end < widest)),
            lambda i: (
                f"speedup is {texts[curve[i]]!r}, and its widths are {low[i]} to {widest[i]}: "
                "give points for the least and the greatest"
            ),
            "width beyond the curve",
        )  # fmt: skip


def _check_recorded(workload: Tables) -> None:
    for name in ("stages", "tasks")[: 1 + (not workload.in_runs)]:
        table = getattr(workload, name)
        for column in RECORDED:
            if column.name in table.column_names:
                check_column(workload, name, table, column)


def _check_history(workload: Tables) -> None:
    for column in OPTIONAL_COLUMNS["history"]:
        if column.name in workload.history.column_names:
            check_column(workload, "history", workload.history, column)
    submit, finish = (column_or_nan(workload.history, f"{name}_s") for name in ("submit", "finish"))
    refuse(
        workload, "history", np.isnan(submit) != np.isnan(finish),
        lambda _: "it has one of submit_s and finish_s; give both, or neither",
        "half a time",
    )  # fmt: skip
    refuse(
        workload, "history", finish < submit,
        lambda i: f"finish_s is {finish[i]}, before the submit_s of {submit[i]}",
        "ends before submission",
    )  # fmt: skip


def _check_training(workload: Tables) -> None:
    table = workload.training
    ready, start, finish = (values(table, f"{name}_s") for name in ("ready", "start", "finish"))
    refuse(
        workload, "training", (finish < start) | (start < ready),
        lambda i: f"it is ready at {ready[i]}, starts at {start[i]} and ends at {finish[i]} s",
        "ends before it starts",
    )  # fmt: skip
    keys = [values(table, name) for name in ("template", "run", "stage", "task")]
    is_repeated = np.append(False, np.logical_and.reduce([key[1:] == key[:-1] for key in keys]))
    text = "the task is that of the row above"
    refuse(workload, "training", is_repeated, lambda _: text, "recorded twice")


def _check_failures(workload: Tables) -> None:
    table = workload.failures
    if table.num_rows == 0:
        return
    task, lost, after = (values(table, name) for name in ("task", "lost", "after_s"))
    duration = workload.runs.duration_s[workload.runs.run_rows(task)]
    refuse(
        workload, "failures", after > duration,
        lambda i: f"after_s is {after[i]}, but the task lasts {duration[i]} s",
        "fails after its end",
    )  # fmt: skip
    refuse(
        workload, "failures", (lost >= 0) & ~_is_awaited(workload, task, np.maximum(lost, 0)),
        lambda i: f"lost is {lost[i]}; valid: tasks that task {task[i]} waits for, or -1",
        "not a parent's task",
    )  # fmt: skip


def _is_awaited(workload: Tables, task: I4, lost: I4) -> Mask:
    """Flag the tasks that wait for their `lost` task of a parent stage."""
    edges = workload.stage_edges
    if edges.num_rows == 0:
        return np.zeros(len(task), dtype=bool)
    child, parent = _task_stage(workload, task), _task_stage(workload, lost)
    key = values(edges, "parent") * np.int64(workload.n_stages) + values(edges, "child")
    target = parent * np.int64(workload.n_stages) + child
    row = np.minimum(np.searchsorted(key, target), len(key) - 1)
    is_one_to_one = codes(edges, "kind", EDGE_KINDS)[row] == 1
    first_task = workload.stage_task0
    same_index = task - first_task[child] == lost - first_task[parent]
    is_awaited: Mask = (key[row] == target) & (same_index | ~is_one_to_one)
    return is_awaited


def _task_stage(workload: Tables, task: I4) -> I8:
    return np.searchsorted(workload.stage_task0, task, side="right") - 1
