"""Reader of TPC-H queries as Spark ran them: durations of all tasks at several parallelisms.

One JSON object, ``{size: {query: {adj, dur}}}``: ``adj`` is the adjacency matrix of the stages,
``dur`` has for each stage ``first_wave``, ``rest_wave`` and ``fresh_durations`` (those of the first
wave that ran on new executors), each with a list of milliseconds for every number of executors that
the query was run with. It is the input format of the simulator of Mao et al., *Learning scheduling
algorithms for data processing clusters*, SIGCOMM 2019.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sim.base.acyclic import find_cycle
from sim.base.arrays import F8, I8
from sim.base.errors import InputError, unknown
from sim.base.parameters import Count, NotNegative, Positive, checked
from sim.base.reading import Account, no_job_left, parse_json, read_text
from sim.engine.recording import record_alone, training_table
from sim.workload.amounts import with_account
from sim.workload.workload import Workload

WAVES = ("first_wave", "rest_wave")
"""Lists of tasks that make up a stage, in order."""


@dataclass(frozen=True)
class _Query:
    """A query on data of one size."""

    name: str
    parent: I8
    child: I8
    stages: list[dict[int, F8]]

    def durations_s(self, executors: int) -> list[F8] | None:
        """Return the task durations of each stage at a parallelism; None if not measured."""
        durations = [stage.get(executors, np.empty(0)) for stage in self.stages]
        return durations if all(map(len, durations)) else None


@checked
def read(
    path: str | os.PathLike[str],
    *,
    executors: Count = 50,
    trained_at: Count | None = 20,
    sizes: Sequence[str] = (),
    queries: Sequence[str] = (),
    deadline: Positive | None = None,
    every_s: NotNegative = 0.0,
) -> Workload:
    """Read queries as jobs, with durations from one parallelism and training runs from another.

    A query on data of one size becomes a job ``<query>-<size>``, which is its template too. Stages
    are separated by shuffles, so all edges are barriers. An executor runs one task at a time, so a
    task takes one slot.

    Parameters
    ----------
    path : path-like
        Plain or gzipped JSON.
    executors : int
        Number of executors with which the durations of the jobs' tasks were measured.
    trained_at : int, optional
        Number of executors of the earlier runs: the durations measured with as many executors,
        scheduled first come, first served on as many slots. None for no earlier runs.
    sizes, queries : sequence of str
        Sizes and queries to read, e.g. ``["2g"]`` and ``["5", "9"]``; empty for all.
    deadline : float, optional
        Deadline of a job, as a multiple of the length of its earlier run; by default none.
    every_s : float
        Time between submissions, s; in the order of the file.

    Returns
    -------
    Workload
        ``meta["report"]`` counts queries, jobs, stages and tasks, and by rule ``dropped``.

    Raises
    ------
    InputError
        With the file and rule: "not JSON", "wrong shape", "number out of range", "cycle", "unknown
        size", "unknown query", "no job left"; on an option out of range.
    """
    if deadline is not None and trained_at is None:
        raise InputError(
            "deadline is a multiple of the length of the earlier run, so it needs trained_at, the "
            "number of executors of that run; give it, or no deadline"
        )
    content = _content(path)
    dropped: dict[str, int] = {}
    jobs, runs, recorded = [], [], []
    n_queries = 0
    for query in _queries(content, path, sizes, queries):
        n_queries += 1
        durations = query.durations_s(executors)
        earlier = None if trained_at is None else query.durations_s(trained_at)
        if durations is None or (trained_at is not None and earlier is None):
            missing = executors if durations is None else trained_at
            rule = f"not measured with {missing} executors"
            dropped[rule] = dropped.get(rule, 0) + 1
            continue
        jobs.append(query)
        runs.append(durations)
        if earlier is not None:
            assert trained_at is not None
            recorded.append(record_alone(_workload([query], [earlier], None, 0.0), trained_at))
    if not jobs:
        raise no_job_left(path, dropped)
    deadline_s = None
    if deadline is not None:
        deadline_s = [deadline * float(r["finish_s"].max()) for r in recorded]
    training = training_table([query.name for query in jobs], recorded) if recorded else None
    account = Account(
        {
            "cpu_s": np.array([sum(float(np.sum(s)) for s in run) for run in runs]),
            "tasks": np.array([float(sum(map(len, run))) for run in runs]),
            "edges": np.array([float(len(query.parent)) for query in jobs]),
        }
    )
    for rule, n in dropped.items():
        account.add_bad(rule, {}, n)
    workload = _workload(jobs, runs, deadline_s, every_s)
    report = {
        "rows": n_queries,
        "jobs": workload.n_jobs,
        "stages": workload.n_stages,
        "tasks": workload.n_tasks,
        "dropped": dropped,
    }
    workload = Workload.from_tables(
        jobs=workload.jobs,
        stages=workload.stages,
        tasks=workload.tasks,
        stage_edges=workload.stage_edges,
        training=training,
        meta={"name": "spark_tpch", "report": report},
    )
    return with_account(workload, account)


def _content(path: str | os.PathLike[str]) -> dict[str, Any]:
    text = read_text(path)
    try:
        content = parse_json(text)
    except ValueError as error:
        raise InputError(f"not JSON: {error}", file=path, rule="not JSON") from error
    if not isinstance(content, dict) or not all(isinstance(v, dict) for v in content.values()):
        raise _shape_error(path, "the file must be a JSON object {size: {query: {adj, dur}}}")
    return content


def _queries(
    content: dict[str, Any],
    path: str | os.PathLike[str],
    sizes: Sequence[str],
    queries: Sequence[str],
) -> Iterator[_Query]:
    for size in sizes:
        if size not in content:
            raise InputError(unknown("size", size, content), file=path, rule="unknown size")
    for size in sizes or content:
        for query in queries:
            if query not in content[size]:
                text = unknown("query", query, content[size])
                raise InputError(text, file=path, rule="unknown query")
        for query in queries or content[size]:
            yield _query(f"{query}-{size}", content[size][query], path)


def _query(name: str, entry: Any, path: str | os.PathLike[str]) -> _Query:
    try:
        adjacency = np.array(entry["adj"], dtype=np.int64)
        n = len(adjacency)
        stages = [_stage(entry["dur"][str(g)]) for g in range(n)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        text = f"query {name} is not of the form {{adj, dur}}: {type(error).__name__}: {error}"
        raise _shape_error(path, text) from error
    if adjacency.shape != (n, n) or len(entry["dur"]) != n:
        raise _shape_error(
            path,
            f"query {name}: adj must be a square matrix with a row for each of the "
            f"{len(entry['dur'])} stages in dur; its shape is {adjacency.shape}",
        )
    for stage in stages:
        for times in stage.values():
            if not (np.isfinite(times) & (times >= 0)).all():
                raise InputError(
                    f"query {name}: a task's time must be finite and at least 0, not "
                    f"{1000.0 * times[~(np.isfinite(times) & (times >= 0))][0]:g} ms",
                    file=path,
                    rule="number out of range",
                )
    parent, child = np.nonzero(adjacency)
    if cycle := find_cycle(parent.astype(np.int32), child.astype(np.int32), n):
        text = f"query {name}: stages {', '.join(map(str, sorted(cycle)))} form a cycle in adj"
        raise InputError(text, file=path, rule="cycle")
    return _Query(name, parent, child, stages)


def _stage(waves: dict[str, dict[str, list[float]]]) -> dict[int, F8]:
    """Return the durations of a stage's tasks by the number of executors, s."""
    return {
        int(n): np.array([ms for wave in WAVES for ms in waves[wave].get(n, [])], float) / 1000.0
        for n in waves[WAVES[0]]
    }


def _workload(
    jobs: Sequence[_Query], runs: Sequence[list[F8]], deadline_s: list[float] | None, every_s: float
) -> Workload:
    n_stages = [len(run) for run in runs]
    stage0 = np.cumsum([0, *n_stages])
    n_tasks = [len(times) for run in runs for times in run]
    names = [query.name for query in jobs]
    deadlines = {} if deadline_s is None else {"deadline_s": deadline_s}
    return Workload.from_tables(
        jobs={
            "job_id": names,
            "template": names,
            "submit_s": every_s * np.arange(len(jobs)),
            **deadlines,
        },
        stages={
            "job": np.repeat(np.arange(len(jobs)), n_stages),
            "name": [f"S{g + 1}" for n in n_stages for g in range(n)],
            "n_tasks": n_tasks,
        },
        tasks={
            "stage": np.repeat(np.arange(len(n_tasks)), n_tasks),
            "duration_s": np.concatenate([times for run in runs for times in run]),
        },
        stage_edges={
            "parent": np.concatenate([q.parent + s for q, s in zip(jobs, stage0, strict=False)]),
            "child": np.concatenate([q.child + s for q, s in zip(jobs, stage0, strict=False)]),
        },
    )


def _shape_error(path: str | os.PathLike[str], text: str) -> InputError:
    return InputError(text, file=path, rule="wrong shape")
