"""Reader of Spark's event logs: one application, or a history server's folder.

Source: Spark, *Monitoring and Instrumentation* (https://spark.apache.org/docs/latest/monitoring),
and ``org.apache.spark.util.JsonProtocol``, which writes them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from sim.base.errors import InputError
from sim.base.parameters import checked
from sim.base.reading import BadRows, OnBadRow, no_job_left
from sim.traces.spark_eventlog.contents import Contents
from sim.traces.spark_eventlog.joining import join_logs
from sim.traces.spark_eventlog.logs import find_logs
from sim.traces.spark_eventlog.reading import read_log
from sim.traces.spark_eventlog.tables import to_tables
from sim.workload.amounts import with_account
from sim.workload.workload import Workload

__all__ = ["read"]


@checked
def read(
    path: str | os.PathLike[str],
    *,
    read_as: Literal["applications", "queries", "jobs"] = "applications",
    order: bool = True,
    missing_tasks: Literal["leave_out", "median"] = "leave_out",
    on_bad_row: OnBadRow = "error",
) -> Workload:
    """Read event logs in pieces.

    An executed stage is a stage; each of its partitions is a task, which lasts from launch to
    finish of the first successful attempt, over all attempts of the stage. Failed and killed
    attempts, those whose output was lost, and speculative copies that lost are work that the
    cluster did, and not the workload's: the account has them. Skipped stages are omitted: their
    children wait for the earlier stage that wrote the same output. A stage that no job's start
    lists (Spark drops events when it is busy) is taken as its submission describes it. Times are s
    from the first event of all logs (the start of an application, or a job's submission).

    Parameters
    ----------
    path : path-like
        A log; plain, or compressed with gzip, zstd or lz4 (detected from content; lz4 as Spark
        writes it or as a frame), of a finished or a running application (``.inprogress``). Or the
        folder of a rolled log (``eventlog_v2_*``). Or a folder of logs of any kind, also as
        Databricks delivers them (``eventlog-DATE.gz`` and ``eventlog``, some folders below): files
        of one application are joined in the order of their events, and copies read once.
    read_as : {"applications", "queries", "jobs"}
        Unit that becomes a job: an application, with all its Spark jobs; an SQL execution, for
        which the adaptive planner submits several Spark jobs (Spark jobs outside SQL are separate
        jobs); or a Spark job.
    order : bool
        True: the first stages of a Spark job wait for the Spark jobs of the same job that ended
        just before its submission, as the driver did. False: a stage waits only for the stages
        whose shuffle output it reads.
    missing_tasks : {"leave_out", "median"}
        Tasks of completed stages without an end in the log, as Spark dropped the event: left out,
        or filled in with the median duration of the stage's other tasks. A warning has their share.
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
        ``meta["report"]`` counts ``dropped``, ``filled`` and ``noticed``; its ``account`` has the
        work of all attempts (`sim.base.reading.account`).

    Raises
    ------
    InputError
        With file, line and rule: "missing file", "empty file", "wrong line", "missing value",
        "wrong type", "number out of range", "wrong parent", "job that has started", "ends before
        it starts", "not UTF-8", "line too long", "unknown codec", "truncated gzip",
        "truncated zstd", "unreadable", "too large", "no job left".
    """
    bad = BadRows()
    log = Contents()
    for part in join_logs(find_logs(path, log.noticed)):
        for app in read_log(part, on_bad_row, bad):
            log.add(app, read_as, order, missing_tasks)
    if not log.jobs:
        error = no_job_left(path, {**bad, **log.dropped})
        text = "; ".join([error.message, *log.account.warnings])
        raise InputError(text, file=path, line=1, rule=error.rule)
    log.jobs.sort(key=lambda job: job.submit_ms)
    log.warn(Path(path).name or str(path), missing_tasks)
    numbers = {"events": log.n_events, "applications": log.n_applications, "jobs": len(log.jobs)}
    counts = {"dropped": log.dropped, "filled": log.filled, "noticed": log.noticed}
    has_cores = log.n_applications == 1 and log.cores
    workload = Workload.from_tables(
        **to_tables(log.jobs, log.begin_ms),
        meta={
            "name": "spark_eventlog",
            "quantum": {"cpu": 1e-3, "mem": 1e-6},
            "offset_s": log.begin_ms / 1000,
            "resolution_s": 1e-3,
            **({"cores": int(log.cores)} if has_cores else {}),
            "report": {**numbers, "bad_rows": bad, **counts},
        },
    )
    return with_account(workload, log.account, bad)
