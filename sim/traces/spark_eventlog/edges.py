"""Dependencies between the stages of an application.

A stage that did not run was skipped, as its output existed: its children wait for the stage that
wrote that output, which is identified by the RDDs that both compute.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Callable
from typing import Final

import numpy as np

from sim.base.arrays import F8
from sim.base.reading import Account
from sim.traces.spark_eventlog.application import Application, SparkJob, Stage
from sim.traces.spark_eventlog.tasks import TASK, Tasks

LATE_MS: Final = 1000.0
"""Time after a job's last task by which Spark has long written the job's end: within a few ms."""


def build_edges(
    app: Application,
    tasks: Tasks,
    account: Account,
    group: Callable[[int], str],
    order: bool,
) -> list[tuple[int, int]]:
    """Return the edges between stages with tasks, within each job of the workload (`group`)."""
    by_stage = tasks.by_stage
    writers: dict[frozenset[int], list[int]] = {}
    for stage_id in sorted(by_stage):
        writers.setdefault(app.stages[stage_id].rdds, []).append(stage_id)
    edges: set[tuple[int, int]] = set()
    has_parent: set[int] = set()  # in the same Spark job
    n_foreign = 0
    for child in by_stage:
        for parent in _sources(app.stages, by_stage, writers, child):
            if group(parent) == group(child):
                edges.add((parent, child))
                if app.stages[parent].job == app.stages[child].job:
                    has_parent.add(child)
            else:
                n_foreign += 1
    app.notice("a stage that reads what another job has written", n_foreign)
    ordered = _order_edges(app, by_stage, group, edges, has_parent) if order else set()
    _enter_edges(app, tasks, account, edges, ordered - edges)
    return sorted(edges | ordered)


def _enter_edges(
    app: Application,
    tasks: Tasks,
    account: Account,
    edges: set[tuple[int, int]],
    ordered: set[tuple[int, int]],
) -> None:
    """Enter the parents that the log states of stages that ran, by what became of them."""
    stated = {(parent, child) for child in app.stages for parent in app.stages[child].parents}
    ran = {(parent, child) for parent, child in stated if child in tasks.ran}
    read = {(parent, child) for parent, child in ran if child in tasks.by_stage}
    unknown = {(parent, child) for parent, child in read if parent not in app.stages}
    foreign = {(parent, child) for parent, child in read if parent in tasks.by_stage} - edges
    skipped = read - unknown - foreign - edges
    account.count(edges=len(read) - len(unknown) - len(foreign))
    account.add("a dependency of a stage without tasks", edges=len(ran) - len(read))
    account.add("a dependency on a stage that no event describes", edges=len(unknown))
    account.add("a dependency between jobs", edges=len(foreign), by_option=True)
    account.change(
        "a parent without tasks: the stage that wrote its output, if any",
        edges=len(skipped) - len(edges - stated),
    )
    account.change("the order of an application's Spark jobs", edges=-len(ordered))


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
    ends = {number: _end_ms(app, tasks, app.jobs[number]) for number in heads}
    order_edges: set[tuple[int, int]] = set()
    for numbers in members.values():
        running: list[tuple[float, int]] = []
        ended: list[int] = []
        end_ms: list[float] = []
        latest_ms = -math.inf  # submission of those that ended
        for number in sorted(numbers, key=lambda number: app.jobs[number].submit_ms):
            submit_ms = app.jobs[number].submit_ms
            while running and running[0][0] <= submit_ms:
                end_ms.append(running[0][0])
                ended.append(heapq.heappop(running)[1])
                latest_ms = max(latest_ms, app.jobs[ended[-1]].submit_ms)
            heapq.heappush(running, (ends[number], number))
            order_edges |= {
                (tail, head)
                for earlier in ended[bisect.bisect_left(end_ms, latest_ms) :]
                for tail in tails[earlier]
                for head in heads[number]
                if tail < head
            }
    return order_edges


def _end_ms(app: Application, tasks: dict[int, F8], job: SparkJob) -> float:
    """Return when the driver went on after a Spark job.

    That is the job's end, or the end of its last task if the former is missing or far too late.
    """
    ran = [i for i in job.listed if i in tasks]
    is_over = max(job.listed, default=-1) in tasks and all(
        len(tasks[i]) >= app.stages[i].n_tasks for i in ran
    )
    if not is_over:
        return job.end_ms
    last_ms = max(float(np.max(tasks[i][:, TASK.index("finish_ms")])) for i in ran)
    return last_ms if last_ms + LATE_MS < job.end_ms else job.end_ms
