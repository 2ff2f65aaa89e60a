"""Reader of Slurm's accounting, as ``sacct --allusers --parsable2`` or ``--json`` prints it.

Source: the manual of sacct, https://slurm.schedmd.com/sacct.html (fields, states, forms of times).
"""

from __future__ import annotations

import os

from sim.base.parameters import checked
from sim.base.reading import BadRows, OnBadRow, first_line
from sim.traces.sacct.json_jobs import is_json, read_json
from sim.traces.sacct.options import Arrays, Options, Queue, Release, State, Tasks
from sim.traces.sacct.records import build_workload
from sim.traces.sacct.text import read_text
from sim.workload.workload import Workload


@checked
def read(
    path: str | os.PathLike[str],
    *,
    on_bad_row: OnBadRow = "error",
    state: State = "all",
    tasks: Tasks = "cpus",
    arrays: Arrays = "auto",
    gang: bool = True,
    queue: Queue = "Partition",
    release: Release = "eligible",
    gpu_types: bool = False,
) -> Workload:
    """Read the output of ``sacct --allusers --parsable2 --format=JobID,Submit,Start,End,...``.

    A record of an allocation becomes a job; records of steps (``17.batch``, ``17.0``) are dropped,
    as the record of their job includes them. Records with one id are runs of one job only if that
    is plausible (`sim.traces.sacct.identity`): the last run counts, from the first submission and
    start on, and the account has the work of earlier ones. Jobs are sorted by submission, and times
    are shifted so that the first is 0. The column ``requested_s`` of ``jobs`` has the time limit
    (null: unlimited or unknown); ``recorded_start_s`` and ``recorded_finish_s`` have when a job
    really ran: an array from its first element's start to its last one's end. ``stages`` has both
    for each element.

    Parameters
    ----------
    path : path-like
        Plain or compressed (detected from content). JSON of ``sacct --json`` or slurmrestd; or
        text with a header line that names ``JobID``, ``Submit``, ``Start``, and one of ``End``,
        ``Elapsed`` and ``ElapsedRaw``. Also read if present: ``State``, ``Timelimit`` or
        ``TimelimitRaw``, ``AllocCPUS`` (or ``NCPUS``, ``ReqCPUS``), ``NNodes`` (``AllocNodes``),
        ``AllocTRES`` (``ReqTRES``), ``ReqMem``, ``Cluster``, ``User``, ``Account``, ``Partition``,
        ``JobName`` (the template), ``Priority``, ``Suspended``; ``Dependency`` (or ``SubmitLine``),
        whose afterok and afterany become edges between jobs, for which these wait; into columns of
        ``jobs``: ``QOS``, ``Account``, ``Partition`` (one of which is also the queue), ``Reason``
        and ``Eligible`` (``recorded_eligible_s``, with the cause, ``delayed_by``, if it was later
        than the submission); into ``node_list`` of ``stages``: ``NodeList``. ``SubmitLine`` tells
        the limit on running elements of an array, too (``throttle`` and ``array`` of ``jobs``);
        without it that is inferred.
    on_bad_row : {"error", "skip"}
        Lines with a wrong number of fields, or text where a time is expected: raise, or drop and
        count. A delimiter or line end in a free text is put right where that is certain.
    state : {"all", "completed"}
        Keep all jobs, or only those that are COMPLETED.
    tasks : {"cpus", "nodes"}
        A task per CPU, which demands one ``cpu``, as logs of parallel jobs are usually simulated;
        or a task per node, which demands its share of the job: ``cpu``, ``mem`` (GiB) and ``gpu``.
        Nodes with one more CPU or GPU than others are a stage of their own.
    arrays : {"auto", "job", "jobs"}
        Treat an array of single tasks as one job, with a stage per element, or each of its elements
        as a job; by default the former, unless the log has parallel jobs, tasks are nodes, or the
        array has a throttle that holds some of it. Elements of several tasks are rigid and always
        jobs of their own.
    gang : bool
        False lets the tasks of a job start one by one.
    queue : {"Partition", "Account"}
        Column that is the queue.
    release : {"eligible", "submit"}
        Submit a job when it became eligible, where the log has that: a begin time or a hold no
        longer held it back. What depends on the schedule (other jobs, the throttle of an array) a
        simulation has, too: such jobs are submitted as they were. Or submit all when they were
        submitted; ``recorded_submit_s`` has that too, where the two differ.
    gpu_types : bool
        With tasks of nodes, let a task run only on machines of the class that is its model of GPU
        (``runs_on`` of ``stages``). By default models are in ``gpu_type``, which nothing reads.

    Returns
    -------
    Workload
        ``meta["resolution_s"]`` is the resolution of the times. ``meta["report"]`` counts by rule
        ``dropped`` (steps; repeated rows; jobs that never started or have not ended; earlier runs
        of a requeued job; with ``state="completed"``, other jobs), ``filled`` (CPUs or memory
        unknown, run times of 0 s, which become 0.5 s) and ``noticed`` (parts of heterogeneous jobs
        and elements of arrays that became separate jobs, and more); ``account`` has the work of the
        log by what became of it, and ``warnings`` what else to know.

    Raises
    ------
    InputError
        With file, line and rule: "no header", "missing column", "wrong time", "empty file",
        "two formats", "no job left", and those of `sim.base.reading.read_blocks`.
    """
    options = Options(state, tasks, arrays, gang, queue, release, gpu_types)
    bad = BadRows()
    read_columns = read_json if is_json(first_line(path)) else read_text
    return build_workload(path, "sacct", read_columns(path, on_bad_row, bad), bad, options)
