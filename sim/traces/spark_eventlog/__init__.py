"""Spark's event logs: of one application, or a history server's folder of many.

Source: Spark, *Monitoring and Instrumentation* (https://spark.apache.org/docs/latest/monitoring),
and ``org.apache.spark.util.JsonProtocol``, which writes them.
"""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.base.parameters import checked
from sim.base.reading import OnBadRow, no_job_left
from sim.traces.spark_eventlog.events import Application, demand, read_log
from sim.traces.spark_eventlog.files import logs
from sim.traces.spark_eventlog.stages import AT, BYTES, SHORTEST_S, Job, jobs_of
from sim.workload.workload import Workload

__all__ = ["read"]


@checked
def read(
    path: str | os.PathLike[str],
    *,
    read_as: Literal["applications", "queries", "jobs"] = "applications",
    order: bool = True,
    on_bad_row: OnBadRow = "error",
) -> Workload:
    """Read event logs, a piece of a file at a time.

    A stage that ran is a stage; a partition of it is a task, which lasts from launch to finish of
    the attempt that succeeded first, over all attempts of the stage. Attempts that failed or were
    killed, and copies started for speculation that lost, are counted. Stages that were skipped
    are not there: what waits for one waits for the stage that wrote its output before. Times are
    s from the first event of all logs (the start of an application, or a job's submission).

    Parameters
    ----------
    path : path-like
        A log; plain, or packed as gzip, zstd or lz4 (told by content; lz4 as Spark writes it or as
        a frame), whether its application has ended or not (``.inprogress``). A rolled log's folder
        (``eventlog_v2_*``). Or a folder of logs of either kind.
    read_as : {"applications", "queries", "jobs"}
        What a job is: an application, with all its Spark jobs; an execution of SQL, of which the
        adaptive planner makes several Spark jobs (those outside SQL are jobs of their own); or a
        Spark job.
    order : bool
        Whether the first stages of a Spark job wait for those Spark jobs of the same job that had
        ended just before it was submitted, as the driver did. False: a stage waits only for those
        whose shuffle output it reads.
    on_bad_row : {"error", "skip"}
        Lines that are no events, or events that lack something: raise, or leave out and count. A
        last line without its end, and a ``.inprogress`` file that breaks off, are noticed only.

    Returns
    -------
    Workload
        A task demands ``cpu`` (``spark.task.cpus``, or what its resource profile says) and ``mem``:
        its share of the executor's memory, GiB (heap, and overhead and off-heap memory where they
        are set; of a ``local`` master the driver's). ``stages`` has ``input_bytes``,
        ``shuffle_read_bytes``, ``shuffle_write_bytes`` and ``output_bytes``, sums over tasks, and
        ``spark_stage``, the number that Spark gave it; ``jobs`` has ``application``, ``job_name``
        and ``recorded_finish_s`` (null: no end in the log). The queue is the scheduler's pool of a
        query or Spark job, else YARN's, else "default". ``meta["report"]`` counts ``dropped``,
        ``filled`` and ``noticed``.

    Raises
    ------
    InputError
        With file, line and rule: "missing file", "empty file", "wrong line", "missing value",
        "wrong type", "number out of range", "wrong parent", "job that has started", "ends before
        it starts", "not UTF-8", "line too long", "unknown codec", "truncated gzip", "unreadable",
        "no job left".
    """
    bad: dict[str, int] = {}
    report: dict[str, Any] = {"events": 0, "applications": 0}
    counts: dict[str, dict[str, int]] = {"dropped": {}, "filled": {}, "noticed": {}}
    jobs: list[Job] = []
    tasks: dict[str, dict[int, F8]] = {}  # by application
    known: set[str] = set()
    begin_ms = np.inf
    for log in logs(path, counts["noticed"]):
        app = read_log(log, on_bad_row, bad)
        report["events"] += app.n_events
        app.app_id = app.app_id or log.path.name
        if app.app_id in known:
            _add(counts["dropped"], {"an application that is there already": 1})
            continue
        known.add(app.app_id)
        report["applications"] += 1
        if log.unfinished or not np.isfinite(app.end_ms):
            app.notice("an application whose end is not in its log")
        found, own, filled = jobs_of(app, read_as, order)
        tasks[app.app_id] = own
        jobs += found
        first = [app.begin_ms, *(job.submit_ms for job in app.jobs.values())]
        begin_ms = min(begin_ms, np.nanmin(first) if found else np.inf)
        app.rows = type(app.rows)("d")  # it is in `tasks`
        for name, of in (("dropped", app.dropped), ("filled", filled), ("noticed", app.noticed)):
            _add(counts[name], of)
    if not jobs:
        raise no_job_left(path, {**bad, **counts["dropped"]})
    jobs.sort(key=lambda job: job.submit_ms)
    return Workload.from_tables(
        **_tables(jobs, tasks, begin_ms),
        meta={
            "name": "spark_eventlog",
            "quantum": {"cpu": 1e-3, "mem": 1e-6},
            "offset_s": begin_ms / 1000,
            "report": {**report, "jobs": len(jobs), "bad_rows": bad, **counts},
        },
    )


def _tables(jobs: list[Job], tasks: dict[str, dict[int, F8]], begin_ms: float) -> dict[str, Any]:
    rows = [(number, job, at) for number, job in enumerate(jobs) for at in job.stages]
    place = {(number, at): row for row, (number, _, at) in enumerate(rows)}
    parts = [tasks[job.app.app_id][at] for _, job, at in rows]
    every = np.concatenate(parts)
    n_tasks = np.array([len(part) for part in parts])
    stage_of = np.repeat(np.arange(len(parts), dtype=np.int32), n_tasks)
    demands = np.array([_demand(job.app, at) for _, job, at in rows])
    edges = [
        (place[n, parent], place[n, child]) for n, j in enumerate(jobs) for parent, child in j.edges
    ]
    parent, child = np.array(edges, np.int32).reshape(-1, 2).T
    last_s = np.array([job.end_ms for job in jobs])
    last_s = np.where(np.isfinite(last_s), (last_s - begin_ms) / 1000, np.nan)
    return {
        "jobs": {
            "job_id": [job.job_id for job in jobs],
            "submit_s": np.array([job.submit_ms - begin_ms for job in jobs]) / 1000,
            "template": [job.template for job in jobs],
            "user": [job.app.user for job in jobs],
            "queue": [job.queue for job in jobs],
            "application": [job.app.name for job in jobs],
            "job_name": [job.job_name for job in jobs],
            "recorded_finish_s": pa.array(last_s, from_pandas=True),
        },
        "stages": {
            "job": np.array([number for number, _, _ in rows], np.int32),
            "name": [f"{at} {job.app.stages[at].name}".strip() for _, job, at in rows],
            "n_tasks": n_tasks.astype(np.int32),
            "demand_cpu": demands[:, 0],
            "demand_mem": demands[:, 1],
            "spark_stage": np.array([at for _, _, at in rows]),
            **{name: np.bincount(stage_of, every[:, AT[name]], len(rows)) for name in BYTES},
        },
        "tasks": {
            "stage": stage_of,
            "duration_s": np.maximum(
                (every[:, AT["finish_ms"]] - every[:, AT["launch_ms"]]) / 1000, SHORTEST_S
            ),
        },
        "stage_edges": {"parent": parent, "child": child},
    }


def _demand(app: Application, stage: int) -> tuple[float, float]:
    return demand(app, app.stages[stage].profile)


def _add(counts: dict[str, int], more: dict[str, int]) -> None:
    for rule, n in more.items():
        counts[rule] = counts.get(rule, 0) + n
