"""Build jobs, their executed stages and dependencies from an application's events.

A task is the first successful attempt at a partition; the others are counted. A stage that did not
run was skipped, as its output existed: its children wait for the stage that wrote that output,
which is identified by the RDDs that both compute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sim.base.arrays import F8
from sim.traces.spark_eventlog.events import DONE, KILLED, ROW, Application, SparkJob, Stage

COLUMN = {name: number for number, name in enumerate(ROW)}
BYTES = tuple(name for name in ROW if name.endswith("_bytes"))
SHORTEST_S = 0.0005
"""Duration of a task whose launch and finish are the same millisecond."""


@dataclass
class Job:
    """A job of the workload: one or more Spark jobs of an application."""

    job_id: str
    submit_ms: float
    end_ms: float
    template: str
    job_name: str
    queue: str
    app: Application
    stages: list[int] = field(default_factory=list)  # Stage IDs, ascending
    edges: list[tuple[int, int]] = field(default_factory=list)  # (parent, child), Stage IDs


def build_jobs(
    app: Application, read_as: str, order: bool
) -> tuple[list[Job], dict[int, F8], dict[str, int]]:
    """Return an application's jobs, the tasks of its stages (`ROW`), and counts of filled rows."""
    tasks, filled = _tasks(app)
    key = {number: _key(read_as, number, job) for number, job in app.jobs.items()}
    grouped: dict[str, Job] = {}
    for number, spark_job in app.jobs.items():
        job = grouped.get(key[number])
        if job is None:
            grouped[key[number]] = _job(app, read_as, key[number], number, spark_job)
        elif read_as != "applications":
            job.submit_ms = min(job.submit_ms, spark_job.submit_ms)
            job.end_ms = max(job.end_ms, spark_job.end_ms)
    n_incomplete = 0
    for stage_id in sorted(tasks):
        grouped[key[app.stages[stage_id].job]].stages.append(stage_id)
        n_incomplete += len(tasks[stage_id]) < app.stages[stage_id].n_tasks
    app.notice("a stage of which not every task has ended", n_incomplete)
    ended = {number for number, job in app.jobs.items() if np.isfinite(job.end_ms)}
    n_skipped = sum(
        stage_id not in tasks and stage.job in ended for stage_id, stage in app.stages.items()
    )
    app.notice("a skipped stage: its output existed", n_skipped)
    edges = _edges(app, tasks, lambda stage_id: key[app.stages[stage_id].job], order)
    for parent, child in edges:
        grouped[key[app.stages[child].job]].edges.append((parent, child))
    jobs = [job for job in grouped.values() if job.stages]
    unit = "an application" if read_as == "applications" else "a job"
    n_empty = len(grouped) - len(jobs) if app.jobs else read_as == "applications"
    app.drop(f"{unit} without a successful task", int(n_empty))
    return jobs, tasks, filled


def _key(read_as: str, number: int, job: SparkJob) -> str:
    if read_as == "applications":
        return ""
    if read_as == "queries" and job.execution:
        return f"query-{job.execution}"
    return f"job-{number}"


def _job(app: Application, read_as: str, key: str, number: int, job: SparkJob) -> Job:
    queue = app.properties.get("spark.yarn.queue", "") or "default"
    if read_as == "applications":
        begin_ms = app.begin_ms if np.isfinite(app.begin_ms) else job.submit_ms
        return Job(app.app_id, begin_ms, app.end_ms, app.name, app.name, queue, app)
    last = max((i for i, stage in app.stages.items() if stage.job == number), default=-1)
    name = job.description or (app.stages[last].name if last >= 0 else "")
    if key.startswith("query-"):
        name = app.executions.get(job.execution, "") or name
    return Job(
        f"{app.app_id}/{key}", job.submit_ms, job.end_ms, f"{app.name}: {name}", name,
        job.pool or queue, app,
    )  # fmt: skip


def _tasks(app: Application) -> tuple[dict[int, F8], dict[str, int]]:
    """Return the first successful attempts, by stage and partition; count the others by rule."""
    rows = app.attempts
    stage, partition, kind = (rows[:, COLUMN[name]] for name in ("stage", "partition", "kind"))
    speculative = rows[:, COLUMN["speculative"]] > 0
    known = np.isin(stage, np.fromiter(app.stages, np.float64, len(app.stages)))
    app.drop("a task of a stage that no job lists", int(np.count_nonzero(~known & (kind == DONE))))
    done = np.flatnonzero(known & (kind == DONE))
    done = done[np.lexsort((rows[done, COLUMN["finish_ms"]], partition[done], stage[done]))]
    is_first = np.ones(len(done), dtype=bool)
    is_first[1:] = (np.diff(stage[done]) != 0) | (np.diff(partition[done]) != 0)
    app.drop("a task that ran again: its output was lost", int(np.count_nonzero(~is_first)))
    done = done[is_first]
    app.notice("a speculative copy that won", int(np.count_nonzero(speculative[done])))
    copy_won = {(rows[row, 0], rows[row, 1]): bool(speculative[row]) for row in done.tolist()}
    for row in np.flatnonzero(kind == KILLED).tolist():
        by_copy = copy_won.get((rows[row, 0], rows[row, 1]))
        if speculative[row] and by_copy is not None:
            app.drop("a speculative copy that lost")
        elif by_copy:
            app.drop("an attempt that a speculative copy overtook")
        else:
            app.drop("a killed attempt")
    app.drop("a task that has not ended", max(app.n_started - app.n_ended, 0))
    tasks = rows[done]
    n_zero = int((tasks[:, COLUMN["finish_ms"]] == tasks[:, COLUMN["launch_ms"]]).sum())
    filled = {f"0 ms becomes {1000 * SHORTEST_S:g} ms": n_zero} if n_zero else {}
    begins = np.flatnonzero(np.diff(tasks[:, 0])) + 1
    parts = np.split(tasks, begins) if len(tasks) else []
    return {int(part[0, 0]): part for part in parts}, filled


def _edges(
    app: Application, tasks: dict[int, F8], group: Callable[[int], str], order: bool
) -> list[tuple[int, int]]:
    """Return the edges between executed stages, within each job of the workload."""
    writers: dict[frozenset[int], list[int]] = {}
    for stage_id in sorted(tasks):
        writers.setdefault(app.stages[stage_id].rdds, []).append(stage_id)
    edges: set[tuple[int, int]] = set()
    has_parent: set[int] = set()  # in the same Spark job
    n_foreign = 0
    for child in tasks:
        for parent in _sources(app.stages, tasks, writers, child):
            if group(parent) == group(child):
                edges.add((parent, child))
                if app.stages[parent].job == app.stages[child].job:
                    has_parent.add(child)
            else:
                n_foreign += 1
    app.notice("a stage that reads what another job has written", n_foreign)
    if order:
        edges |= _order_edges(app, tasks, group, edges, has_parent)
    return sorted(edges)


def _sources(
    stages: dict[int, Stage],
    tasks: dict[int, F8],
    writers: dict[frozenset[int], list[int]],
    child: int,
) -> set[int]:
    """Return the stages that wrote the input of `child`, replacing skipped parents."""
    sources: set[int] = set()
    visited: set[int] = set()
    pending = list(stages[child].parents)
    while pending:
        stage_id = pending.pop()
        if stage_id in visited or stage_id not in stages:
            continue
        visited.add(stage_id)
        if stage_id in tasks:
            sources.add(stage_id)
            continue
        earlier = [w for w in writers.get(stages[stage_id].rdds, ()) if w < stage_id]
        if earlier:
            sources.add(earlier[-1])
        else:
            pending.extend(stages[stage_id].parents)
    return sources


def _order_edges(
    app: Application,
    tasks: dict[int, F8],
    group: Callable[[int], str],
    edges: set[tuple[int, int]],
    has_parent: set[int],
) -> set[tuple[int, int]]:
    """Return edges to the first stages of each Spark job, from jobs that ended just before it."""
    has_child = {p for p, c in edges if app.stages[p].job == app.stages[c].job}
    heads: dict[int, list[int]] = {}
    tails: dict[int, list[int]] = {}
    members: dict[str, list[int]] = {}
    for stage_id in sorted(tasks):
        number = app.stages[stage_id].job
        if number not in heads:
            members.setdefault(group(stage_id), []).append(number)
        heads.setdefault(number, []).extend([] if stage_id in has_parent else [stage_id])
        tails.setdefault(number, []).extend([] if stage_id in has_child else [stage_id])
    order_edges: set[tuple[int, int]] = set()
    for numbers in members.values():
        by_end = sorted(numbers, key=lambda number: app.jobs[number].end_ms)
        end_ms = np.array([app.jobs[number].end_ms for number in by_end])
        latest_ms = np.maximum.accumulate([app.jobs[number].submit_ms for number in by_end])
        for number in numbers:
            last = int(np.searchsorted(end_ms, app.jobs[number].submit_ms, side="right"))
            if last:
                first = int(np.searchsorted(end_ms, latest_ms[last - 1], side="left"))
                order_edges |= {
                    (tail, head)
                    for earlier in by_end[first:last]
                    for tail in tails[earlier]
                    for head in heads[number]
                    if tail < head
                }
    return order_edges
