"""Reader of the Standard Workload Format: logs of the Parallel Workloads Archive.

A line has 18 fields; comments begin with ``;``.

Source: Chapin et al., *Benchmarks and standards for the evaluation of parallel job schedulers*,
JSSPP 1999; https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
"""

from __future__ import annotations

import os
from typing import Literal

import numpy as np

from sim.base.parameters import checked
from sim.base.reading import BadRows, OnBadRow, count_rule, no_job_left, resolution_s
from sim.traces.swf.fields import FIELDS, align_clocks, read_lines, take
from sim.traces.swf.jobs import ZERO_BECOMES_S, edges_table, jobs_table, stages_table
from sim.traces.swf.lines import select
from sim.traces.swf.partial import join_parts, without_repeats
from sim.workload.amounts import with_account
from sim.workload.workload import Workload

__all__ = ["FIELDS", "ZERO_BECOMES_S", "read"]


@checked
def read(
    path: str | os.PathLike[str],
    *,
    on_bad_row: OnBadRow = "error",
    status: Literal["all", "completed"] = "all",
    processors: Literal["allocated", "requested"] = "allocated",
    gang: bool = True,
    memory: Literal["none", "requested", "used"] = "none",
    groups: bool = False,
    preceding: Literal["edges", "ignore"] = "edges",
) -> Workload:
    """Read a log of parallel jobs.

    A line becomes a job of one stage with a task per processor. All tasks last the run time and
    demand one ``cpu``. As rigid parallel jobs start as a whole, ``min_tasks`` is the number of
    tasks. ``job_id``, ``user``, ``queue`` and ``template`` (the executable) are the numbers in the
    log; unknown ones are "", an unknown queue is "default". Jobs are sorted by submission, those of
    the same second by their order in the log, and times are shifted so that the first is 0. Columns
    of ``jobs``: ``partition``, if the log has any (it is no queue: partitions are parts of the
    machine); ``requested_s``, the run time that the user requested (null: unknown);
    ``recorded_start_s`` and ``recorded_finish_s`` have when the job really ran (null: the log does
    not tell its wait).

    A job that got no processor never ran: it is no job of 0 s. One that started and has no end
    still ran when the log ended: it is left out as censored. A requested time of 0 is no limit.

    A line that is there twice counts once; a job number with other content is another job
    (``17#2``). Of logs that were put together each has a header: times behind it count from its
    ``UnixStartTime``, and preceding jobs are those of the same log.

    Lines of partial executions (status 2 to 4) are left out where the job has a whole line.
    Otherwise they are joined into one job, of all their work on the processors of the widest.

    Parameters
    ----------
    path : path-like
        Plain or compressed (detected from content). The file is read in blocks; memory holds only
        its jobs.
    on_bad_row : {"error", "skip"}
        Lines with fewer than 18 fields, or with text or a number below -1 or above 1e12: raise, or
        drop and count. Of lines with more fields the first 18 are read.
    status : {"all", "completed"}
        Keep all jobs, or only those of status 1.
    processors : {"allocated", "requested"}
        Number of processors to use; the other one if it is unknown.
    gang : bool
        False lets the tasks of a job start one by one.
    memory : {"none", "requested", "used"}
        Memory per processor that tasks demand as ``mem``, in GiB: none, as requested or as used;
        unknown is 0.
    groups : bool
        A column ``user_group``, too: the user's group in the log, "" if unknown.
    preceding : {"edges", "ignore"}
        Preceding jobs: a job is submitted at the later of its own time and its think time after
        the end of the job that it waits for; or only at its own time.

    Returns
    -------
    Workload
        ``meta["header"]`` has the log's ``; Key: value`` comments; of several headers the first
        value, the earliest ``UnixStartTime``, and the largest ``MaxProcs`` (the size of the
        machine). ``meta["resolution_s"]`` is the resolution of its times. ``meta["report"]`` has
        the log's account (`sim.base.reading.account`) and counts by rule ``dropped`` (jobs that
        never started, or still ran at the end; submission, run time or processors unknown;
        repeated lines, lines of partial executions; with ``status="completed"``, other jobs),
        ``filled`` (processors taken from the other field, unknown users, queues and executables,
        run times of 0 s, which become 0.5 s) and ``noticed`` (submissions out of order, numbers of
        several jobs, further logs, requested times of 0, jobs of partial executions alone, lines
        with more than 18 fields).

    Raises
    ------
    InputError
        With file, line and rule: see `sim.base.reading.read_blocks`; "empty file",
        "no job left".
    """
    bad = BadRows()
    log, headers = read_lines(path, on_bad_row, bad)
    dropped: dict[str, int] = {}
    filled: dict[str, int] = {}
    noticed: dict[str, int] = {}
    n_rows = len(log["status"]) + sum(bad.values())
    warnings = align_clocks(log, headers, noticed)
    log = join_parts(without_repeats(log, dropped), dropped, noticed)
    rows, account = select(log, status == "completed", memory, bad, dropped)
    account.warnings += warnings
    if not len(rows):
        raise no_job_left(path, bad, dropped)
    submit = log["submit_time"][rows]
    is_late = submit < np.maximum.accumulate(submit)
    count_rule(noticed, "submitted before the line above", is_late)
    log = take(log, rows[np.argsort(submit, kind="stable")])
    edges, inputs = edges_table(log, preceding, account)
    stages = stages_table(log, processors, memory, filled, account)
    jobs = jobs_table(log, groups, filled, noticed)
    zero_s = float(log["submit_time"][0])
    recorded = (jobs[f"recorded_{name}_s"] + zero_s for name in ("start", "finish"))
    workload = Workload.from_tables(
        jobs={**jobs, **inputs, "min_tasks": stages["n_tasks"] if gang else np.zeros(len(rows))},
        stages=stages,
        job_edges=edges or None,
        meta={
            "name": "swf",
            "quantum": {"cpu": 1.0} | ({"mem": 1e-6} if memory != "none" else {}),
            "offset_s": zero_s,
            "resolution_s": resolution_s(log["submit_time"], *recorded),
            "header": headers.merged,
            "report": {
                "rows": n_rows,
                "jobs": len(rows),
                "dropped": dropped,
                "filled": filled,
                "noticed": noticed,
                "bad_rows": bad,
            },
        },
    )
    return with_account(workload, account, bad)
