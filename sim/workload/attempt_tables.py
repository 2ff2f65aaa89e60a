"""Tables of a workload whose tasks are attempts that a log records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8
from sim.base.reading import distinct_ids


@dataclass(slots=True)
class Attempt:
    """An attempt at a task, or at each of several like tasks that ran at the same time.

    Attributes
    ----------
    job, stage : str
        Key of its job, and its stage there.
    start, end : float
        On the clock of the log, in its units; NaN: unknown, or it did not start.
    demand : mapping of str to float
        By resource; of ``cpu``, NaN is unknown.
    rule : str
        Reason why it becomes no task; "" if it becomes one.
    node : str
        Machine that it ran on; "" if unknown.
    turn : int
        Place among the tasks of its stage; tasks of equal turns are in order of their times.
    """

    job: str
    stage: str
    start: float
    end: float
    demand: Mapping[str, float]
    rule: str = ""
    n_tasks: int = 1
    node: str = ""
    turn: int = 0


@dataclass(slots=True)
class LoggedJob:
    """A job of a log; its columns are those of `sim.workload.schema`.

    Attributes
    ----------
    submit : float
        On the clock of the log, in its units.
    priority, requested_s : float
        NaN is unknown; a request may be infinite, too.
    edges : list of (str, str, str)
        Parent, child and kind of edges between stages.
    edges_left_out : dict of str to int
        Counts of dependencies that are left out.
    """

    job_id: str
    submit: float
    template: str = ""
    user: str = ""
    queue: str = "default"
    priority: float = 0.0
    requested_s: float = math.nan
    min_tasks: int = 0
    edges: list[tuple[str, str, str]] = field(default_factory=list)
    edges_left_out: dict[str, int] = field(default_factory=dict)


Demand = tuple[tuple[str, float], ...]


class Layout:
    """Order of jobs, stages and tasks: by submission or start, whatever the order of the log.

    Tasks of a stage that differ in demand make several stages.

    Attributes
    ----------
    jobs : list of LoggedJob
    names : list of str
        The stages'.
    row : (R,) int64
        Attempt of each row of tasks, by stage.
    stage : (R,) int64
        Stage of each row of tasks.
    job : (G,) int64
        Job of each stage.
    """

    def __init__(
        self, jobs: Mapping[str, LoggedJob], attempts: Sequence[Attempt], tasks: I8
    ) -> None:
        stages: dict[str, dict[tuple[str, Demand], list[int]]] = {}
        for row in tasks.tolist():
            attempt = attempts[row]
            stage = (attempt.stage, tuple(sorted(attempt.demand.items())))
            stages.setdefault(attempt.job, {}).setdefault(stage, []).append(row)
        keys = sorted(stages, key=lambda key: (jobs[key].submit, jobs[key].job_id, key))
        self.jobs = [jobs[key] for key in keys]

        def turn(row: int) -> tuple[int, float, float, str]:
            attempt = attempts[row]
            return attempt.turn, attempt.start, attempt.end, attempt.node

        groups: list[list[int]] = []
        self.names: list[str] = []
        job: list[int] = []
        self._row_of: dict[tuple[int, str], int] = {}
        for number, key in enumerate(keys):
            ordered = [(sorted(rows, key=turn), name) for (name, _), rows in stages[key].items()]
            n_like: dict[str, int] = {}
            for rows, name in sorted(ordered, key=lambda group: (turn(group[0][0]), group[1])):
                n = n_like[name] = n_like.get(name, 0) + 1
                self._row_of.setdefault((number, name), len(groups))
                groups.append(rows)
                self.names.append(name if n == 1 else f"{name} {n}")
                job.append(number)
        self.row = np.array([row for rows in groups for row in rows], np.int64)
        self.stage = np.repeat(np.arange(len(groups)), [len(rows) for rows in groups])
        self.job = np.array(job, np.int64)

    def edges(self) -> dict[str, list[Any]]:
        """Return the edges between stages that have tasks."""
        kinds = {
            (self._row_of[number, parent], self._row_of[number, child]): kind
            for number, job in enumerate(self.jobs)
            for parent, child, kind in job.edges
            if (number, parent) in self._row_of and (number, child) in self._row_of
        }
        ordered = sorted(kinds)
        return {
            "parent": [parent for parent, _ in ordered],
            "child": [child for _, child in ordered],
            "kind": [kinds[edge] for edge in ordered],
        }


def make_tables(
    layout: Layout,
    attempts: Sequence[Attempt],
    run_s: F8,
    demand: Mapping[str, F8],
    per_s: float,
    noticed: dict[str, int],
) -> dict[str, Any]:
    """Return the tables; time 0 is the first submission.

    Parameters
    ----------
    run_s : (A,) float64
        Duration of each attempt.
    demand : mapping of str to (A,) float64
    per_s : float
        Number of units of the log's clock in a second.
    noticed : dict of str to int
        Counts gangs that are larger than their jobs, and names of several jobs.
    """
    zero = layout.jobs[0].submit
    row, stage = layout.row, layout.stage
    chosen = [attempts[i] for i in row.tolist()]
    count = np.array([attempt.n_tasks for attempt in chosen])
    start_s = (np.array([attempt.start for attempt in chosen]) - zero) / per_s
    end_s = (np.array([attempt.end for attempt in chosen]) - zero) / per_s
    first = np.searchsorted(stage, np.arange(len(layout.names)))
    n_tasks = np.add.reduceat(count, first)
    first_stage = np.searchsorted(layout.job, np.arange(len(layout.jobs)))
    jobs = _jobs(layout.jobs, np.add.reduceat(n_tasks, first_stage), noticed)
    jobs["submit_s"] = (np.array([job.submit for job in layout.jobs]) - zero) / per_s
    tables = {
        "jobs": jobs | _span(start_s, end_s, first[first_stage]),
        "stages": {
            "job": layout.job.astype(np.int32),
            "name": layout.names,
            "n_tasks": n_tasks.astype(np.int32),
            **{f"demand_{name}": column[row[first]] for name, column in demand.items()},
            **_span(start_s, end_s, first),
        },
        "tasks": {
            "stage": np.repeat(stage, count).astype(np.int32),
            "duration_s": np.repeat(run_s[row], count),
            "recorded_start_s": np.repeat(start_s, count),
            "recorded_finish_s": np.repeat(end_s, count),
        },
        "stage_edges": layout.edges(),
    }
    nodes: list[set[str]] = [set() for _ in layout.names]
    for number, attempt in zip(stage.tolist(), chosen, strict=True):
        nodes[number].add(attempt.node)
    if any(nodes_of_stage - {""} for nodes_of_stage in nodes):
        names = [",".join(sorted(nodes_of_stage - {""})) for nodes_of_stage in nodes]
        tables["stages"]["node_list"] = pa.array(names).dictionary_encode()
    return tables


def _jobs(jobs: Sequence[LoggedJob], n_tasks: I8, noticed: dict[str, int]) -> dict[str, Any]:
    """Return the columns of jobs; a name that an earlier job has gets a number."""
    names, is_again = distinct_ids(pa.array([job.job_id for job in jobs], pa.string()))
    min_tasks = np.array([job.min_tasks for job in jobs])
    for rule, n in {
        "a name of an earlier job: another job": int(is_again.sum()),
        "a gang larger than its tasks: all of them": int(np.sum(min_tasks > n_tasks)),
    }.items():
        if n:
            noticed[rule] = noticed.get(rule, 0) + n
    requested_s = np.array([job.requested_s for job in jobs], np.float64)
    requested_s[~np.isfinite(requested_s)] = np.nan
    columns: dict[str, Any] = {
        "job_id": names,
        "priority": np.nan_to_num(np.array([job.priority for job in jobs], np.float64)),
        "min_tasks": np.minimum(min_tasks, n_tasks).astype(np.int32),
        **{name: [getattr(job, name) for job in jobs] for name in ("template", "user", "queue")},
    }
    if not np.isnan(requested_s).all():
        columns["requested_s"] = pa.array(requested_s, from_pandas=True)
    return columns


def _span(start_s: F8, end_s: F8, first: I8) -> dict[str, F8]:
    """Return the first start and the last end of groups of rows that begin at `first`."""
    return {
        "recorded_start_s": np.minimum.reduceat(start_s, first),
        "recorded_finish_s": np.maximum.reduceat(end_s, first),
    }
