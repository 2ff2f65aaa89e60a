"""Transforms of a planner: another trace's jobs too, faster machines, no jobs of a queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import I8
from sim.base.errors import InputError, unknown
from sim.base.parameters import Positive, checked
from sim.transforms.parts import rebuild, repeat_jobs
from sim.workload.recorded import drop_recorded
from sim.workload.schema import DEMAND_PREFIX, LICENSE_PREFIX, OPTIONAL_COLUMNS, SPEED_PREFIX
from sim.workload.tables import names, values, with_column
from sim.workload.workload import Workload


@checked
def faster(workload: Workload, factor: Positive) -> Workload:
    """Divide every task's duration by a factor; users' requested run times stay as they are.

    Parameters
    ----------
    workload : Workload
        Any workload; failing attempts fail as much sooner.
    factor : float
        How many times as fast machines are; below 1 they are slower.

    Raises
    ------
    InputError
        If the factor is not positive.
    """
    transform = {"faster": float(factor)}
    after_s = values(workload.failures, "after_s") / factor
    changed = {"failures": with_column(workload.failures, "after_s", after_s)}
    if workload.in_runs:
        runs = workload.runs
        durations = runs.with_durations(runs.duration_s / factor)
        return rebuild(workload, transform, durations, **changed)
    tasks = with_column(workload.tasks, "duration_s", values(workload.tasks, "duration_s") / factor)
    return rebuild(workload, transform, tasks=tasks, **changed)


def without_queue(workload: Workload, queue: str | Sequence[str]) -> Workload:
    """Drop the jobs of a queue, or of several.

    Parameters
    ----------
    workload : Workload
        Any workload.
    queue : str or sequence of str
        Names of queues.

    Raises
    ------
    InputError
        If there is no such queue, or no other.
    """
    dropped = [queue] if isinstance(queue, str | int) else [*queue]
    known = names(workload.jobs, "queue")
    used = {known[code] for code in np.unique(values(workload.jobs, "queue")).tolist()}
    for name in map(str, dropped):
        if name not in used:
            raise InputError(unknown("queue", name, sorted(used)), rule="unknown queue")
    if not used - {*map(str, dropped)}:
        raise InputError(
            f"no job is left without queue {', '.join(map(str, dropped))}; the workload has no "
            "other queue",
            rule="empty workload",
        )
    codes = [code for code, name in enumerate(known) if name in {*map(str, dropped)}]
    remaining = workload.take(~np.isin(values(workload.jobs, "queue"), codes))
    transform = {"without_queue": [*map(str, dropped)]}
    return rebuild(remaining, transform, failures=remaining.failures)


def add(workload: Workload, other: Workload) -> Workload:
    """Add the jobs of another workload, both from their beginnings on.

    Job ids that both have get a number. Resources that only one demands are demanded by its tasks
    alone.

    Parameters
    ----------
    workload, other : Workload
        Any workloads; failing attempts of both stay with their tasks. Of histories and earlier
        runs, the first's stay.
    """
    tables: dict[str, Any] = {
        name: _joined(
            [getattr(workload, name), _shifted(getattr(other, name), name, workload)], name
        )
        for name in ("jobs", "stages", "stage_edges", "job_edges", "downloads")
    }
    tables["tasks"] = pa.concat_tables(
        [
            workload.runs.table(),
            with_column(
                other.runs.table(),
                "stage",
                values(other.runs.table(), "stage") + workload.n_stages,
            ),
        ]
    )
    quantum = {**other.meta["quantum"], **workload.meta["quantum"]}
    for name in workload.meta["quantum"].keys() & other.meta["quantum"].keys():
        quantum[name] = min(workload.meta["quantum"][name], other.meta["quantum"][name])
    tables["stages"] = drop_recorded(tables["stages"])
    tables |= {"history": workload.history, "training": workload.training}
    meta = {**workload.meta, "quantum": quantum}
    both = Workload.from_tables(**tables, meta=meta, validate=False)
    submit_s = values(both.jobs, "submit_s")
    order = np.argsort(submit_s, kind="stable")
    note: dict[str, object] = {"add": other.meta.get("name", "trace"), "jobs": other.n_jobs}
    arranged = repeat_jobs(both, order, np.zeros(len(order), np.bool_), submit_s[order], note)
    failures = [workload.failures, _shifted_failures(other.failures, workload.n_tasks)]
    if not sum(table.num_rows for table in failures):
        return arranged
    return arranged.with_failures(_moved_failures(failures, both, arranged, order))


def _shifted_failures(failures: pa.Table, n_before: int) -> pa.Table:
    """Renumber the tasks of failing attempts, which come after `n_before` others."""
    for key in ("task", "lost"):
        task = values(failures, key)
        failures = with_column(failures, key, np.where(task < 0, task, task + n_before))
    return failures


def _moved_failures(
    parts: list[pa.Table], before: Workload, after: Workload, order: I8
) -> dict[str, NDArray[Any]]:
    """Return the failures of tasks whose jobs `order` has arranged anew."""
    old, new = before.columns, after.columns
    new_job = np.argsort(order, kind="stable")

    def moved(task: I8) -> I8:
        stage = np.searchsorted(old.stage_task0, task, side="right") - 1
        job = old.stage_job[stage]
        new_stage = new.job_stage0[new_job[job]] + stage - old.job_stage0[job]
        row: I8 = new.stage_task0[new_stage] + task - old.stage_task0[stage]
        return row

    task, lost, after_s = (
        np.concatenate([values(part, name) for part in parts])
        for name in ("task", "lost", "after_s")
    )
    moved_task, moved_lost = moved(task), np.where(lost < 0, -1, moved(np.maximum(lost, 0)))
    rows = np.argsort(moved_task, kind="stable")  # attempts of a task stay in order
    return {"task": moved_task[rows], "after_s": after_s[rows], "lost": moved_lost[rows]}


_KEYS = {
    "stages": ("job",),
    "stage_edges": ("parent", "child"),
    "job_edges": ("upstream", "downstream"),
    "downloads": ("job",),
}


def _shifted(table: pa.Table, name: str, before: Workload) -> pa.Table:
    """Renumber the rows that a table refers to, as they come after another workload's."""
    shift = before.n_stages if name == "stage_edges" else before.n_jobs
    for key in _KEYS.get(name, ()):
        table = with_column(table, key, values(table, key) + shift)
    if name == "jobs":
        table = with_column(table, "job_id", _new_ids(table, {*before.jobs["job_id"].to_pylist()}))
    return table


def _new_ids(jobs: pa.Table, used: set[str]) -> pa.Array:
    """Return the ids of jobs; those that others use already get a number: ``a+1``."""
    ids = jobs["job_id"].to_pylist()
    taken = used.union(ids)
    for row, job_id in enumerate(ids):
        number = 0
        while ids[row] in (used if number == 0 else taken):
            number += 1
            ids[row] = f"{job_id}+{number}"
    return pa.array(ids, pa.string())


_DEFAULTS = (
    ("stages", DEMAND_PREFIX, 0.0),
    ("stages", SPEED_PREFIX, 1.0),
    ("jobs", LICENSE_PREFIX, 0),
)
"""Values of columns by prefix that one of two tables lacks."""


def _joined(parts: list[pa.Table], name: str) -> pa.Table:
    """Join tables; categories as text.

    Of a column that one lacks, it has the default; demands are 0, speeds 1, and others null.
    """
    plain = [_with_texts(part) for part in parts]
    whole = pa.concat_tables(plain, promote_options="default")
    for column in whole.column_names:
        for table, prefix, default in _DEFAULTS:
            if name == table and column.startswith(prefix):
                amount = whole[column].fill_null(default)
                whole = whole.set_column(whole.column_names.index(column), column, amount)
    missing = [c for c in whole.column_names if any(c not in part.column_names for part in parts)]
    defaults = {column.name: column.default for column in OPTIONAL_COLUMNS.get(name, ())}
    for column in [c for c in missing if defaults.get(c) is not None]:
        filled = whole[column].fill_null(defaults[column])
        whole = whole.set_column(whole.column_names.index(column), column, filled)
    texts = [c for c in missing if pa.types.is_string(whole.schema.field(c).type)]
    for column in texts:
        whole = whole.set_column(
            whole.column_names.index(column), column, whole[column].fill_null("")
        )
    dropped = [
        c
        for c in missing
        if whole[c].null_count
        and c not in texts
        and not c.startswith(DEMAND_PREFIX)
        and not pa.types.is_floating(whole.schema.field(c).type)
    ]
    return whole.drop_columns(dropped)


def _with_texts(table: pa.Table) -> pa.Table:
    """Return a table whose categories are plain texts."""
    for index, name in enumerate(table.column_names):
        if pa.types.is_dictionary(table.schema.field(name).type):
            table = table.set_column(index, name, table[name].cast(pa.string()))
    return table
