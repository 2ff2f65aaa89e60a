"""From an application's events to jobs, their stages that ran, and what these wait for.

A task is the attempt at a partition that succeeded first; the others are counted. A stage that
did not run was skipped, as what it would write was there: those that wait for it wait for the
stage that wrote it, which is known by the RDDs that both compute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from sim.base.arrays import F8
from sim.traces.spark_eventlog.events import DONE, KILLED, ROW, Application, SparkJob, Stage

AT = {name: place for place, name in enumerate(ROW)}
BYTES = tuple(name for name in ROW if name.endswith("_bytes"))
SHORTEST_S = 0.0005
"""What a task lasts whose times, in ms, are the same."""


@dataclass
class Job:
    """A job of the workload: some of the Spark jobs of an application."""

    job_id: str
    submit_ms: float
    end_ms: float
    template: str
    job_name: str
    queue: str
    app: Application
    stages: list[int] = field(default_factory=list)  # in order
    edges: list[tuple[int, int]] = field(default_factory=list)  # (parent, child), stages


def jobs_of(
    app: Application, read_as: str, order: bool
) -> tuple[list[Job], dict[int, F8], dict[str, int]]:
    """Return an application's jobs, its stages' tasks (rows of `ROW`), and what was filled in."""
    tasks, filled = _tasks(app)
    key = {number: _key(read_as, number, job) for number, job in app.jobs.items()}
    grouped: dict[str, Job] = {}
    for number, job in app.jobs.items():
        one = grouped.get(key[number])
        if one is None:
            one = grouped[key[number]] = _job(app, read_as, key[number], number, job)
        elif read_as != "applications":
            one.submit_ms = min(one.submit_ms, job.submit_ms)
            one.end_ms = max(one.end_ms, job.end_ms)
    n_short = 0
    for at in sorted(tasks):
        grouped[key[app.stages[at].job]].stages.append(at)
        n_short += len(tasks[at]) < app.stages[at].n_tasks
    app.notice("a stage of which not every task has ended", n_short)
    ended = {number for number, job in app.jobs.items() if np.isfinite(job.end_ms)}
    app.notice(
        "a skipped stage: its output was there",
        sum(at not in tasks and of.job in ended for at, of in app.stages.items()),
    )
    edges = _edges(app, tasks, lambda at: key[app.stages[at].job], order)
    for parent, child in edges:
        grouped[key[app.stages[child].job]].edges.append((parent, child))
    kept = [job for job in grouped.values() if job.stages]
    what = "an application" if read_as == "applications" else "a job"
    none = len(grouped) - len(kept) if app.jobs else read_as == "applications"
    app.drop(f"{what} without a task that succeeded", int(none))
    return kept, tasks, filled


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
    result = max((at for at, of in app.stages.items() if of.job == number), default=-1)
    name = job.description or (app.stages[result].name if result >= 0 else "")
    if key.startswith("query-"):
        name = app.executions.get(job.execution, "") or name
    return Job(
        f"{app.app_id}/{key}", job.submit_ms, job.end_ms, f"{app.name}: {name}", name,
        job.pool or queue, app,
    )  # fmt: skip


def _tasks(app: Application) -> tuple[dict[int, F8], dict[str, int]]:
    """Return the attempts that count, by stage and partition; count the others by rule."""
    rows = app.attempts
    stage, partition, kind = (rows[:, AT[name]] for name in ("stage", "partition", "kind"))
    speculative = rows[:, AT["speculative"]] > 0
    known = np.isin(stage, np.fromiter(app.stages, np.float64, len(app.stages)))
    app.drop("a task of a stage that no job lists", int(np.count_nonzero(~known & (kind == DONE))))
    at = np.flatnonzero(known & (kind == DONE))
    at = at[np.lexsort((rows[at, AT["finish_ms"]], partition[at], stage[at]))]
    first = np.ones(len(at), dtype=bool)
    first[1:] = (np.diff(stage[at]) != 0) | (np.diff(partition[at]) != 0)
    app.drop("a task that ran again: its output was lost", int(np.count_nonzero(~first)))
    at = at[first]
    app.notice("a speculative copy that won", int(np.count_nonzero(speculative[at])))
    won = {(rows[row, 0], rows[row, 1]): bool(speculative[row]) for row in at.tolist()}
    killed = np.flatnonzero(kind == KILLED)
    for row in killed.tolist():
        winner = won.get((rows[row, 0], rows[row, 1]))
        if speculative[row] and winner is not None:
            app.drop("a speculative copy that lost")
        elif winner:
            app.drop("an attempt that a speculative copy overtook")
        else:
            app.drop("a killed attempt")
    app.drop("a task that has not ended", max(app.n_started - app.n_ended, 0))
    taken = rows[at]
    zero = taken[:, AT["finish_ms"]] == taken[:, AT["launch_ms"]]
    filled = {f"0 ms becomes {1000 * SHORTEST_S:g} ms": int(np.count_nonzero(zero))}
    cuts = np.flatnonzero(np.diff(taken[:, 0])) + 1
    parts = np.split(taken, cuts) if len(taken) else []
    return {int(part[0, 0]): part for part in parts}, {k: n for k, n in filled.items() if n}


def _edges(
    app: Application, tasks: dict[int, F8], group: Callable[[int], str], order: bool
) -> list[tuple[int, int]]:
    """Return which stages that ran wait for which, within each job of the workload."""
    writers: dict[frozenset[int], list[int]] = {}
    for at in sorted(tasks):
        writers.setdefault(app.stages[at].rdds, []).append(at)
    edges: set[tuple[int, int]] = set()
    of_own_job: set[int] = set()
    n_foreign = 0
    for child in tasks:
        for parent in _sources(app.stages, tasks, writers, child):
            if group(parent) == group(child):
                edges.add((parent, child))
                if app.stages[parent].job == app.stages[child].job:
                    of_own_job.add(child)
            else:
                n_foreign += 1
    app.notice("a stage that reads what another job has written", n_foreign)
    if order:
        edges |= _in_turn(app, tasks, group, edges, of_own_job)
    return sorted(edges)


def _sources(
    stages: dict[int, Stage],
    tasks: dict[int, F8],
    writers: dict[frozenset[int], list[int]],
    child: int,
) -> set[int]:
    """Return the stages that wrote what `child` reads, through skipped ones where need be."""
    found: set[int] = set()
    seen: set[int] = set()
    left = list(stages[child].parents)
    while left:
        at = left.pop()
        if at in seen or at not in stages:
            continue
        seen.add(at)
        if at in tasks:
            found.add(at)
            continue
        before = [w for w in writers.get(stages[at].rdds, ()) if w < at]
        if before:
            found.add(before[-1])
        else:
            left.extend(stages[at].parents)
    return found


def _in_turn(
    app: Application,
    tasks: dict[int, F8],
    group: Callable[[int], str],
    edges: set[tuple[int, int]],
    of_own_job: set[int],
) -> set[tuple[int, int]]:
    """Let the first stages of a Spark job wait for those that ended just before it began."""
    waited_for = {p for p, c in edges if app.stages[p].job == app.stages[c].job}
    heads: dict[int, list[int]] = {}
    tails: dict[int, list[int]] = {}
    members: dict[str, list[int]] = {}
    for at in sorted(tasks):
        number = app.stages[at].job
        if number not in heads:
            members.setdefault(group(at), []).append(number)
        heads.setdefault(number, []).extend([] if at in of_own_job else [at])
        tails.setdefault(number, []).extend([] if at in waited_for else [at])
    found: set[tuple[int, int]] = set()
    for numbers in members.values():
        by_end = sorted(numbers, key=lambda number: app.jobs[number].end_ms)
        end_ms = np.array([app.jobs[number].end_ms for number in by_end])
        latest_ms = np.maximum.accumulate([app.jobs[number].submit_ms for number in by_end])
        for number in numbers:
            last = int(np.searchsorted(end_ms, app.jobs[number].submit_ms, side="right"))
            if last:
                first = int(np.searchsorted(end_ms, latest_ms[last - 1], side="left"))
                found |= {
                    (tail, head)
                    for before in by_end[first:last]
                    for tail in tails[before]
                    for head in heads[number]
                    if tail < head
                }
    return found
