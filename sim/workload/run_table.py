"""Runs of like tasks from a table of tasks with a column ``count``, row by row validated."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sim.base.arrays import I4, offsets
from sim.base.errors import InputError
from sim.workload.rules import check_number, refuse
from sim.workload.runs import Runs
from sim.workload.schema import COUNT, TABLES
from sim.workload.tables import values


def runs_from_table(tasks: pa.Table, n_tasks: I4) -> Runs:
    """Return the runs of a table of tasks with a column ``count``.

    Parameters
    ----------
    tasks : pyarrow.Table
        In normal form: stage, duration_s, count. Neighbours that are alike become one run.
    n_tasks : (G,) int32
        Number of tasks of each stage.

    Raises
    ------
    InputError
        If a stage or number is out of range, rows are out of order, the counts of a stage don't
        add up to `n_tasks`, or there is another column.
    """
    more = set(tasks.column_names) - {"stage", "duration_s", COUNT.name}
    if more:
        raise InputError(
            f"tasks has a column 'count', so a row stands for many tasks, and can't have "
            f"{min(more)!r}, which is of single tasks",
            rule="column of single tasks",
        )
    stage, duration_s, count = (values(tasks, name) for name in tasks.column_names)
    for column in (*TABLES["tasks"], COUNT):
        check_number("tasks", column, values(tasks, column.name))
    n_stages = len(n_tasks)
    text = f"but the last row of stages is {n_stages - 1}"
    refuse(
        None, "tasks", stage >= n_stages,
        lambda i: f"stage is {stage[i]}, {text}", "row out of range",
    )  # fmt: skip
    refuse(
        None, "tasks", np.append(False, stage[1:] < stage[:-1]),
        lambda i: f"stage is {stage[i]}, below the {stage[i - 1]} of the row above; sort tasks by "
        "stage",
        "rows out of order",
    )  # fmt: skip
    total = np.zeros(n_stages, np.int64)
    np.add.at(total, stage, count)
    refuse(
        None, "stages", total != n_tasks,
        lambda i: f"n_tasks is {n_tasks[i]}, but the table of tasks has {total[i]} for it",
        "n_tasks mismatch",
    )  # fmt: skip
    stage0 = np.searchsorted(stage, np.arange(n_stages + 1))
    return Runs(stage0, offsets(count), duration_s).with_durations(duration_s)
