"""Reader of Spark's event logs: one application, or a history server's folder.

Source: Spark, *Monitoring and Instrumentation* (https://spark.apache.org/docs/latest/monitoring),
and ``org.apache.spark.util.JsonProtocol``, which writes them.
"""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np

from sim.base.arrays import F8
from sim.base.parameters import checked
from sim.base.reading import BadRows, OnBadRow, no_job_left
from sim.traces.spark_eventlog.events import demand, read_log
from sim.traces.spark_eventlog.files import find_logs
from sim.traces.spark_eventlog.stages import BYTES, COLUMN, SHORTEST_S, Job, build_jobs
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
    """Read event logs in pieces.

    An executed stage is a stage; each of its partitions is a task, which lasts from launch to
    finish of the first successful attempt, over all attempts of the stage. Failed and killed
    attempts, and speculative copies that lost, are counted. Skipped stages are omitted: their
    children wait for the earlier stage that wrote the same output. Times are s from the first event
    of all logs (the start of an application, or a job's submission).

    Parameters
    ----------
    path : path-like
        A log; plain, or compressed with gzip, zstd or lz4 (detected from content; lz4 as Spark
        writes it or as a frame), of a finished or a running application (``.inprogress``). Or the
        folder of a rolled log (``eventlog_v2_*``). Or a folder of logs of either kind.
    read_as : {"applications", "queries", "jobs"}
        Unit that becomes a job: an application, with all its Spark jobs; an SQL execution, for
        which the adaptive planner submits several Spark jobs (Spark jobs outside SQL are separate
        jobs); or a Spark job.
    order : bool
        True: the first stages of a Spark job wait for the Spark jobs of the same job that ended
        just before its submission, as the driver did. False: a stage waits only for the stages
        whose shuffle output it reads.
    on_bad_row : {"error", "skip"}
        Lines that are not events, or events with missing fields: raise, or drop and count. A
        truncated last line or ``.inprogress`` file is only noticed.

    Returns
    -------
    Workload
        A task demands ``cpu`` (``spark.task.cpus``, or that of its resource profile) and ``mem``:
        its share of the executor's memory, GiB (heap, and overhead and off-heap memory if they are
        set; with a ``local`` master, the driver's memory). ``stages`` has ``input_bytes``,
        ``shuffle_read_bytes``, ``shuffle_write_bytes`` and ``output_bytes``, summed over tasks, and
        ``spark_stage``, Spark's Stage ID; ``jobs`` has ``application``, ``job_name``,
        ``recorded_start_s`` (the launch of its first task) and ``recorded_finish_s`` (null: no end
        in the log), and ``tasks`` has both for each task. The queue is the scheduler pool of a
        query or Spark job, else the YARN queue, else "default". ``meta["cores"]`` is the number of
        cores of all executors at most, of a single application whose log has them.
        ``meta["report"]`` counts ``dropped``, ``filled`` and ``noticed``.

    Raises
    ------
    InputError
        With file, line and rule: "missing file", "empty file", "wrong line", "missing value",
        "wrong type", "number out of range", "wrong parent", "job that has started", "ends before
        it starts", "not UTF-8", "line too long", "unknown codec", "truncated gzip",
        "truncated zstd", "unreadable", "no job left".
    """
    bad = BadRows()
    report: dict[str, Any] = {"events": 0, "applications": 0}
    counts: dict[str, dict[str, int]] = {"dropped": {}, "filled": {}, "noticed": {}}
    jobs: list[Job] = []
    tasks: dict[str, dict[int, F8]] = {}  # by application
    app_ids: set[str] = set()
    begin_ms, cores = np.inf, 0.0
    for log in find_logs(path, counts["noticed"]):
        app = read_log(log, on_bad_row, bad)
        report["events"] += app.n_events
        app.app_id = app.app_id or log.path.name
        if app.app_id in app_ids:
            _add(counts["dropped"], {"an application that another log has too": 1})
            continue
        app_ids.add(app.app_id)
        report["applications"] += 1
        if log.unfinished or not np.isfinite(app.end_ms):
            app.notice("an application whose end is not in its log")
        app_jobs, tasks[app.app_id], filled = build_jobs(app, read_as, order)
        jobs += app_jobs
        first = [app.begin_ms, *(job.submit_ms for job in app.jobs.values())]
        begin_ms = min(begin_ms, np.nanmin(first) if app_jobs else np.inf)
        cores = app.peak_cores
        app.rows = type(app.rows)("d")  # to free memory: `tasks` has the rows
        _add(counts["dropped"], app.dropped)
        _add(counts["filled"], filled)
        _add(counts["noticed"], app.noticed)
    if not jobs:
        raise no_job_left(path, {**bad, **counts["dropped"]})
    jobs.sort(key=lambda job: job.submit_ms)
    return Workload.from_tables(
        **_tables(jobs, tasks, begin_ms),
        meta={
            "name": "spark_eventlog",
            "quantum": {"cpu": 1e-3, "mem": 1e-6},
            "offset_s": begin_ms / 1000,
            "resolution_s": 1e-3,
            **({"cores": int(cores)} if report["applications"] == 1 and cores else {}),
            "report": {**report, "jobs": len(jobs), "bad_rows": bad, **counts},
        },
    )


def _tables(jobs: list[Job], tasks: dict[str, dict[int, F8]], begin_ms: float) -> dict[str, Any]:
    rows = [(number, job, i) for number, job in enumerate(jobs) for i in job.stages]
    row_of = {(number, i): row for row, (number, _, i) in enumerate(rows)}
    stages = [job.app.stages[i] for _, job, i in rows]
    stage_tasks = [tasks[job.app.app_id][i] for _, job, i in rows]
    all_tasks = np.concatenate(stage_tasks)
    n_tasks = np.array([len(part) for part in stage_tasks])
    task_stage = np.repeat(np.arange(len(rows), dtype=np.int32), n_tasks)
    demands = np.array(
        [demand(job.app, stage.profile) for (_, job, _), stage in zip(rows, stages, strict=True)]
    )
    edges = [
        (row_of[number, parent], row_of[number, child])
        for number, job in enumerate(jobs)
        for parent, child in job.edges
    ]
    parent, child = np.array(edges, np.int32).reshape(-1, 2).T
    end_ms = np.array([job.end_ms for job in jobs])
    finish_s = np.where(np.isfinite(end_ms), (end_ms - begin_ms) / 1000, np.nan)
    launch_ms, ended_ms = (all_tasks[:, COLUMN[name]] for name in ("launch_ms", "finish_ms"))
    start_ms = np.full(len(jobs), np.inf)
    np.minimum.at(start_ms, np.array([number for number, _, _ in rows])[task_stage], launch_ms)
    return {
        "jobs": {
            "job_id": [job.job_id for job in jobs],
            "submit_s": np.array([job.submit_ms - begin_ms for job in jobs]) / 1000,
            "template": [job.template for job in jobs],
            "user": [job.app.user for job in jobs],
            "queue": [job.queue for job in jobs],
            "application": [job.app.name for job in jobs],
            "job_name": [job.job_name for job in jobs],
            "recorded_start_s": (start_ms - begin_ms) / 1000,
            "recorded_finish_s": finish_s,
        },
        "stages": {
            "job": np.array([number for number, _, _ in rows], np.int32),
            "name": [
                f"{i} {stage.name}".strip() for (_, _, i), stage in zip(rows, stages, strict=True)
            ],
            "n_tasks": n_tasks.astype(np.int32),
            "demand_cpu": demands[:, 0],
            "demand_mem": demands[:, 1],
            "spark_stage": np.array([i for _, _, i in rows]),
            **{
                name: np.bincount(task_stage, all_tasks[:, COLUMN[name]], len(rows))
                for name in BYTES
            },
        },
        "tasks": {
            "stage": task_stage,
            "duration_s": np.maximum((ended_ms - launch_ms) / 1000, SHORTEST_S),
            "recorded_start_s": (launch_ms - begin_ms) / 1000,
            "recorded_finish_s": (ended_ms - begin_ms) / 1000,
        },
        "stage_edges": {"parent": parent, "child": child},
    }


def _add(counts: dict[str, int], more: dict[str, int]) -> None:
    for rule, n in more.items():
        counts[rule] = counts.get(rule, 0) + n
