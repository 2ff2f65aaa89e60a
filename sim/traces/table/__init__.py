"""Reader of a table of jobs, CSV or Parquet: for logs in none of the other formats."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from sim.base.errors import InputError, unknown
from sim.base.parameters import checked
from sim.base.reading import OnBadRow
from sim.traces.table.build import Options, Release, WaitsFrom, build_workload, report_of
from sim.traces.table.columns import COLUMNS, Columns, find_columns
from sim.traces.table.csv_rows import read_csv
from sim.traces.table.parquet_rows import is_parquet, read_parquet
from sim.traces.table.raw import to_log
from sim.traces.table.replacing import check_replace
from sim.traces.table.retries import Which
from sim.traces.table.tasks import Per, Tasks
from sim.traces.table.units import TimeUnit
from sim.workload.workload import Workload

__all__ = ["read"]


@checked
def read(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str | None] = MappingProxyType({}),
    unit: TimeUnit | Mapping[str, str] | None = None,
    zone: str | None = None,
    on_bad_row: OnBadRow = "error",
    state: Literal["all", "completed"] = "all",
    tasks: Tasks | None = None,
    demands: Per = "worker",
    gang: bool = True,
    release: Release = "eligible",
    waits_from: WaitsFrom = "inputs",
    retries: Which = "failed",
    priorities: Mapping[str, float] = MappingProxyType({}),
    header: Sequence[str] | None = None,
    replace: Mapping[str, Mapping[Any, Any]] = MappingProxyType({}),
) -> Workload:
    """Read a table with a row a job, of whose columns those that exist are used.

    ``submit_s``, ``eligible_s``, ``start_s`` and ``end_s`` are numbers of any clock, all of the
    same, or dates and times (``2026-03-01 09:30:00``, with or without parts of a second and a time
    zone). ``run_s``, ``limit_s`` and ``deadline_s`` are numbers, ``[days-]hours:minutes:seconds``
    or ``1h 2m 3s``. ``submit_s`` is required, and a run time: ``run_s``, or ``start_s`` and
    ``end_s``. Of start, end and run time, one that is missing follows from the two others (the
    start also from ``wait_s``); where all three are there and contradict each other by more than
    the resolution of the times, ``run_s`` counts, and the difference is told. ``-``, ``N/A``,
    ``none`` and ``unknown`` are no value.

    A row becomes a job; its like tasks are a stage. Jobs are sorted by release, and times are
    shifted so that the first is 0. Into ``jobs`` go ``limit_s`` as ``requested_s`` (null for none,
    and for 0), ``recorded_start_s``, ``recorded_finish_s`` and ``recorded_eligible_s``, ``user``,
    ``queue`` (else the partition), ``account``, ``qos``, ``partition``, ``priority``,
    ``deadline_s`` (from submission; null for none), ``checkpoint_s`` (null for none), ``restart_s``
    (0 for none), ``topology_required`` and ``topology_preferred`` (null for none). A row with a
    ``width_min`` is an elastic job (`sim.workload.elastic`), with a ``speedup`` and
    ``reconfigure_s``: its run time is that at its number of tasks, and ``width_max``, by default
    that number, its greatest width; ``gpu_type`` becomes ``runs_on`` of ``stages``. ``depends_on``
    has ids of jobs that a job waits for: hard edges, as which it polls. A retry is submitted
    after any end of its earlier attempt (``afterany``); between rows of one job the pause is the
    ``lag_s`` of its stages. Rows of one ``part_of`` are one job (`sim.traces.table.parts`): its
    stages, where ``depends_on`` has ids of each other, else tasks of stages of like demand. A job
    whose id ``parent_id`` of others names contains them, and is left out. A ``job_id`` that is
    there again, with other values, is a job of its own (``id#2``); without one a job is named by
    its row. Other columns are ignored.

    Parameters
    ----------
    path : path-like
        CSV with a header line and ``,``, ``;``, ``|`` or a tab between fields, plain or compressed;
        or Parquet, a file or a folder of such. Which one is detected from content.
    columns : mapping of str to str or None
        Names of the table's columns where they differ: ``trace.columns.submit_s=Submitted``; None
        leaves one out.
    unit : str, mapping of str to str or None
        Unit of plain numbers of time: s, ms, us, ns, min or h, for all, or by column
        (``{limit_s: min, mem: MiB, cpus: milli, gpus: percent}``). None: as a column's own name
        ends (``start_ms``, ``cpu_milli``), else s, GiB and whole ones.
    zone : str or None
        Zone of dates without one: an offset (``+01:00``) or a name (``Europe/Berlin``). None: UTC;
        then it is an error if other dates have one.
    on_bad_row : {"error", "skip"}
        Rows with invalid values: raise, or drop and count.
    state : {"all", "completed"}
        Keep all jobs that ran, or only those whose ``state`` says that they completed.
    tasks : {"cpus", "gpus", "nodes", "workers", "job"} or None
        A task per CPU (the rest of a CPU is shared out), per GPU, per node or worker, or one task a
        job. A job's ``cpus``, ``gpus`` and ``mem`` (GiB) are shared out among its tasks. None:
        workers, if there is such a column; with GPUs, nodes or else job; else cpus.
    demands : {"worker", "job"}
        In a table with ``workers``: demands are of one worker, or of the whole job.
    gang : bool
        False lets the tasks of a job start one by one.
    release : {"eligible", "submit", "inputs"}
        Submit a job when it was eligible, if that is later and no dependency explains it; or always
        when it was submitted. With ``inputs`` a job that was submitted (or eligible) after the end
        of those it depends on is submitted when these have ended in the simulation, and the time
        between the two has passed.
    waits_from : {"inputs", "submit"}
        A job that depends on others is submitted when these have ended, and its wait and JCT count
        from then, as of jobs that poll for their inputs; or it is submitted when the log says, and
        waits for the end of the others as jobs of Slurm do.
    retries : {"failed", "same_id", "none"}
        Rows that are retries: of a ``job_id`` whose earlier row had ended by then, and did not
        complete by its ``state``; or whatever its state; or none. A column ``retry_of`` names the
        earlier row, too. A retry is submitted when its earlier attempt has ended in the simulation,
        and the pause of the log between the two has passed. Jobs that depend on the id wait for the
        last attempt that had ended when they started.
    priorities : mapping of str to float
        Numbers of priorities that are words, whatever their case: ``trace.priorities.high=10``. The
        larger goes first.
    header : sequence of str, optional
        Names of the columns of a CSV file whose first line does not name them.
    replace : mapping of str to mapping
        What values of a column mean, null for unknown: ``{cpus: {">24": 30}, mem: {-1: null}}``.

    Returns
    -------
    Workload
        ``meta["resolution_s"]`` is the resolution of the times. ``meta["report"]`` counts by rule
        ``dropped`` (repeated rows, jobs that never started, still ran at the end, or demand
        nothing, unknown times), ``filled`` (what is unknown, run times of 0 s, which become 0.5 s),
        ``noticed``, ``bad_rows``, and in ``columns_unused`` columns that resemble a missing one;
        ``account`` holds the log's work by what became of it.

    Raises
    ------
    InputError
        With file, line (of Parquet, row) and rule: "missing column", "unknown column", "wrong
        type", "not Parquet", "not a table" (JSON), "no header", "empty file", "no job left",
        "implausible unit", "mixed time zones", "unknown zone", "priority without a number",
        "unknown key", "elastic parts", and those of
        `sim.base.reading.read_blocks`.
    """
    for name in columns:
        if name not in COLUMNS:
            raise InputError(unknown("column", name, COLUMNS), file=path, rule="unknown column")
    check_replace(replace)

    def find(names: Sequence[str]) -> tuple[Columns, tuple[str, ...]]:
        return find_columns(path, names, columns)

    if is_parquet(path):
        raw = read_parquet(path, find, on_bad_row, replace)
    else:
        raw = read_csv(path, find, on_bad_row, replace, header)
    noticed = dict(raw.replaced)
    report = report_of(raw, noticed)
    log = to_log(path, raw, unit, zone, priorities, noticed)
    bad = raw.bad
    del raw  # its texts are no longer needed
    options = Options(state == "completed", tasks, demands, gang, release, waits_from, retries)
    return build_workload(path, log, bad, report, options)
