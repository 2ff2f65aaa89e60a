"""Reader of Slurm's accounting, as ``sacct --allusers --parsable2`` prints it.

Source: the manual of sacct, https://slurm.schedmd.com/sacct.html (fields, states, forms of times).
"""

from __future__ import annotations

import os
from typing import Literal

from sim.base.parameters import checked
from sim.base.reading import (
    BadRows,
    Field,
    Layout,
    OnBadRow,
    column_names,
    open_text,
    read_columns,
)
from sim.traces.sacct.columns import MEMORY
from sim.traces.sacct.records import build_workload
from sim.workload.workload import Workload

_REQUIRED = ("JobID", "Submit", "Start", "End/Elapsed/ElapsedRaw")
_HINT = (
    "; run sacct with --parsable2, without --noheader, and with "
    "--format=JobID,User,Partition,Submit,Start,End,Timelimit,State,AllocCPUS,NNodes"
)
_TIME = Field(
    form=r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|\d{1,12}|Unknown)$", example="2026-03-01T09:30:00"
)
_SPAN = Field(
    form=r"^((\d{1,6}-)?(\d{1,6}:)?\d{1,9}(:\d+(\.\d+)?)?|UNLIMITED|Partition_Limit|INVALID)$",
    example="1-02:03:04",
)
_COUNT = Field(form=r"^\d{1,12}$", example="90")
_FIELDS = {
    "JobID": Field(required=True),
    **dict.fromkeys(("Submit", "Start", "End"), _TIME),
    **dict.fromkeys(("Elapsed", "Timelimit"), _SPAN),
    **dict.fromkeys(("ElapsedRaw", "TimelimitRaw"), _COUNT),
    **dict.fromkeys(("AllocCPUS", "NCPUS", "ReqCPUS", "NNodes", "AllocNodes"), Field("whole")),
    "Priority": Field("number"),
    "ReqMem": Field(form=rf"^({MEMORY}|\?)$", example="4000M"),
    **dict.fromkeys(("State", "User", "JobName", "Account", "Partition"), Field()),
    **dict.fromkeys(("AllocTRES", "ReqTRES", "NodeList", "QOS", "Eligible"), Field()),
}


@checked
def read(
    path: str | os.PathLike[str],
    *,
    on_bad_row: OnBadRow = "error",
    state: Literal["all", "completed"] = "all",
    tasks: Literal["cpus", "nodes"] = "cpus",
    arrays: Literal["job", "jobs"] = "job",
    gang: bool = True,
    queue: Literal["Partition", "Account"] = "Partition",
) -> Workload:
    """Read the output of ``sacct --allusers --parsable2 --format=JobID,Submit,Start,End,...``.

    A record of an allocation becomes a job; records of steps (``17.batch``, ``17.0``) are dropped,
    as the record of their job includes them. An array whose elements are one task each becomes one
    job with a stage per element; elements of several tasks are rigid and become separate jobs. Jobs
    are sorted by submission, and times are shifted so that the first is 0. The column
    ``requested_s`` of ``jobs`` has the time limit (null: unlimited or unknown);
    ``recorded_start_s`` and ``recorded_finish_s`` have when a job really ran: an array from its
    first element's start to its last one's end. ``stages`` has both for each element.

    Parameters
    ----------
    path : path-like
        Plain or gzipped (detected from content), with a header line that names ``JobID``,
        ``Submit``, ``Start``, and one of ``End``, ``Elapsed`` and ``ElapsedRaw``. Also read if
        present: ``State``, ``Timelimit`` or ``TimelimitRaw``, ``AllocCPUS`` (or ``NCPUS``,
        ``ReqCPUS``), ``NNodes`` (``AllocNodes``), ``AllocTRES`` (``ReqTRES``), ``ReqMem``,
        ``User``, ``Account``, ``Partition``, ``JobName`` (the template), ``Priority``; into
        columns of ``jobs``: ``QOS``, ``Account``, ``Partition`` (one of which is also the queue)
        and ``Eligible`` (``recorded_eligible_s``); into ``node_list`` of ``stages``: ``NodeList``.
    on_bad_row : {"error", "skip"}
        Lines with a wrong number of fields, or text where a time is expected: raise, or drop and
        count.
    state : {"all", "completed"}
        Keep all jobs, or only those that are COMPLETED.
    tasks : {"cpus", "nodes"}
        A task per CPU, which demands one ``cpu``, as logs of parallel jobs are usually simulated;
        or a task per node, which demands the job's share of a node: ``cpu``, ``mem`` (GiB) and
        ``gpu``.
    arrays : {"job", "jobs"}
        Treat an array as one job, or each of its elements as a job.
    gang : bool
        False lets the tasks of a job start one by one.
    queue : {"Partition", "Account"}
        Column that is the queue.

    Returns
    -------
    Workload
        ``meta["resolution_s"]`` is the resolution of the times. ``meta["report"]`` counts by rule
        ``dropped`` (steps; jobs that never started or have not ended; earlier records of a requeued
        job; with ``state="completed"``, other jobs), ``filled`` (CPUs or memory unknown, run times
        of 0 s, which become 0.5 s) and ``noticed`` (parts of heterogeneous jobs and elements of
        arrays that became separate jobs).

    Raises
    ------
    InputError
        With file, line and rule: "no header", "missing column", "wrong time", "empty file",
        "no job left", and those of `sim.base.reading.read_blocks`.
    """
    names = column_names(path, "|", _REQUIRED, _HINT)
    bad = BadRows()
    fields = {name: field for name, field in _FIELDS.items() if name in names}
    with open_text(path) as stream:
        layout = Layout(names, delimiter="|", skip_lines=1, quoted=False)
        log = read_columns(path, stream, layout, fields, on_bad_row, bad)
    return build_workload(
        path, "sacct", log, bad, state=state, tasks=tasks, arrays=arrays, gang=gang, queue=queue
    )
