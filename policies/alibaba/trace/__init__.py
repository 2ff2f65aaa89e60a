"""Reader of Alibaba's cluster-trace-v2018, table ``batch_task``; its tasks are our stages.

Source: https://github.com/alibaba/clusterdata, cluster-trace-v2018; Tian et al., *Characterizing
and synthesizing task dependencies of data-parallel jobs in Alibaba cloud*, SoCC 2019.
"""

from __future__ import annotations

import os
from typing import Literal

from policies.alibaba.trace.jobs import assemble
from policies.alibaba.trace.rows import CollectedRows
from sim.base.errors import InputError
from sim.base.parameters import NotNegative, checked
from sim.base.reading import (
    BadRows,
    Field,
    Layout,
    OnBadRow,
    first_line,
    open_text,
    read_blocks,
)
from sim.workload.workload import Workload

ORIGINAL_COLUMNS = (
    "task_name", "instance_num", "job_name", "task_type", "status", "start_time", "end_time",
    "plan_cpu", "plan_mem",
)  # fmt: skip
"""Columns of the original file, which has no header."""
_FIELDS = {
    "task_name": Field("text", required=True),
    "instance_num": Field("whole"),
    "job_name": Field("text", required=True),
    "status": Field("text"),
    "start_time": Field("number"),
    "end_time": Field("number"),
    "plan_cpu": Field("number"),
    "plan_mem": Field("number"),
    "mean_inst_dur": Field("any"),
    "cpu_usage": Field("any"),
    "mem_usage": Field("any"),
}
_OTHER_TRACES = {
    8: "this looks like the trace of 2017, whose batch_task has 8 columns and no dependencies; "
    "cluster-trace-v2018 is read: ",
    10: "this looks like the task table of the PAI trace of 2020, which has 10 columns; "
    "cluster-trace-v2018 is read, and trace=table reads a table with a row a job: ",
}
"""Hints at other traces of Alibaba's, by their number of columns."""
_OPTIONAL = ("mean_inst_dur", "cpu_usage", "mem_usage")


@checked
def read(
    path: str | os.PathLike[str],
    *,
    on_bad_row: OnBadRow = "error",
    status: Literal["all", "terminated"] = "all",
    unfinished: Literal["drop", "keep"] = "drop",
    default_cpu: NotNegative = 1.0,
    default_mem: NotNegative = 0.3,
) -> Workload:
    """Read a ``batch_task`` file block by block.

    A row becomes a stage of ``instance_num`` tasks. A job is submitted at its earliest stage's
    start; times are shifted so that the first submission is 0, and ``meta["offset_s"]`` has the
    shift. Each parent in a name (`policies.alibaba.trace.rows`) becomes a barrier edge. Jobs are
    sorted by submission, then by first appearance in the file; stages by their number in the job,
    those without one last, in the order of the file.

    Durations: every task of a stage lasts ``mean_inst_dur`` if the file has that column and a value
    in it, otherwise end − start; 0 s becomes 0.5 s, as the trace counts whole seconds.

    Demands: ``plan_cpu`` / 100 cores as ``cpu`` and ``plan_mem`` (normalised: a machine has 100)
    as ``mem``, in quanta of 0.01, or finer if a value needs it.

    Additional columns of ``stages``: ``span_s``, end − start as recorded, in whole seconds, which
    shows the stages shorter than one second (NaN: unknown); ``guessed``, the values that were
    filled in (1: ``n_tasks``, 2: ``demand_cpu``, 4: ``demand_mem``, or a sum); ``used_cpu`` and
    ``used_mem``, the mean use of tasks, if the file has ``cpu_usage`` and ``mem_usage``. Of
    ``jobs``: ``n_lost``, the number of dropped rows and dependencies, which is 0 for complete DAGs;
    ``is_dag``, whether a row's name is of the DAG form (Table 1: "w/ dependencies");
    ``recorded_start_s``, the first start, and ``recorded_finish_s``, the last end of its stages
    (null: one is unknown). As submissions are not in the trace, no recorded job waits
    (``meta["submit_is_start"]``).

    Parameters
    ----------
    path : path-like
        Plain or gzipped (detected from content, not from the name). Either the original without a
        header (nine columns) or with a header naming the columns, which may add ``mean_inst_dur``.
    on_bad_row : {"error", "skip"}
        Malformed rows (a wrong number of fields, text in a number, a negative or fractional
        count, no name) and jobs whose names form a cycle: raise, or drop and count.
    status : {"all", "terminated"}
        Keep rows of any status, as they held their machines all the same, or only those that
        are ``Terminated``.
    unfinished : {"drop", "keep"}
        Rows whose end is 0, which were running or waiting when the trace ended: drop them, or
        keep them, for the structure of their jobs, as stages of 0.5 s and ``span_s`` NaN.
    default_cpu, default_mem : float
        Demand of rows without one: one core and 0.3, the medians of the trace.

    Returns
    -------
    Workload
        Its ``meta["report"]`` counts rows, jobs, stages and edges, and by rule

        ``dropped``: rows whose end or start is missing, whose end is 0 (censored: their mean
        duration is garbage of 10^5 s; unless kept) or before their start, that have 0 instances,
        that are not Terminated (with ``status="terminated"``), that are there twice, whose number
        an earlier row of the job has too, or whose job never started; jobs without a remaining row;
        ``filled``: rows without instance_num (1 is assumed), plan_cpu, plan_mem, or mean_inst_dur
        (in a file that has it), durations of 0 s and of rows that never ended;
        ``edges_dropped``: by a parent that is not in the job, that was dropped, that is the
        stage itself or is named twice;
        ``noticed``: kept rows that are not Terminated, names that are not of the DAG form, jobs
        that name a parent they don't have;
        ``bad_rows``: rows and jobs dropped by ``on_bad_row="skip"``.

    Raises
    ------
    InputError
        With file, line and rule: see `sim.base.reading.read_blocks`; "wrong columns",
        "empty file", "no job left", "cycle".
    """
    defaults = {"plan_cpu": 100.0 * default_cpu, "plan_mem": float(default_mem)}
    layout = _layout(path)
    fields = {k: v for k, v in _FIELDS.items() if k in layout.names}
    bad = BadRows()
    collected = CollectedRows(
        defaults, only_terminated=status == "terminated", keep_unfinished=unfinished == "keep"
    )
    with open_text(path) as stream:
        for block in read_blocks(path, stream, layout, fields, on_bad_row, bad):
            collected.add(block)
    return assemble(path, collected, on_bad_row, bad)


def _layout(path: str | os.PathLike[str]) -> Layout:
    names = tuple(name.strip().strip('"') for name in first_line(path).split(","))
    if "task_name" not in names and "job_name" not in names:
        if len(names) != len(ORIGINAL_COLUMNS):
            other = _OTHER_TRACES.get(len(names), "")
            raise InputError(
                f"{other}the first line has {len(names)} fields and is not a header; it must have "
                f"the 9 columns of the original ({', '.join(ORIGINAL_COLUMNS)}), or be a header "
                "that names the columns",
                file=path,
                line=1,
                rule="wrong columns",
            )
        return Layout(ORIGINAL_COLUMNS)
    missing = [name for name in _FIELDS if name not in names and name not in _OPTIONAL]
    repeated = [name for name in names if names.count(name) > 1]
    if missing or repeated:
        fault = f"has no column {', '.join(missing)}" if missing else f"repeats {repeated[0]!r}"
        raise InputError(
            f"the header {fault}; its columns are {', '.join(names)}",
            file=path,
            line=1,
            rule="wrong columns",
        )
    return Layout(names, skip_lines=1)
