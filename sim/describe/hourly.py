"""Jobs and resource use hour by hour (Tian et al., SoCC 2019, §3.2, Fig. 1).

Use is hypothetical, as if no task ever waited for resources: every stage starts when its parents
are done, with all its tasks at once. So it can be computed for any workload, even if its trace has
no start times, and does not depend on how full that cluster was.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base.arrays import F8, I4, I8, Mask
from sim.describe.dataset import Dataset
from sim.describe.overview import HOUR_S, POPULATION_WORDS, populations
from sim.describe.statistics import Section, Statistic
from sim.workload.columns import stage_demand
from sim.workload.tables import values
from sim.workload.workload import Workload

_TASKS_AT_ONCE = 1 << 22
_NOISE = 1e-9


def hourly(data: Dataset) -> pa.Table:
    """Build the table of jobs and resource use per hour."""
    assert data.workload is not None
    workload = data.workload
    submit_s = values(workload.jobs, "submit_s") + float(workload.meta.get("offset_s", 0.0))
    start_s, finish_s = data.spans_s
    job_stage0 = data.every.job_stage0
    job_finish_s = np.maximum.reduceat(finish_s, job_stage0[:-1])
    first = int(submit_s[0] // HOUR_S)
    n_hours = int(submit_s[-1] // HOUR_S) - first + 1
    hours = np.arange(first, first + n_hours)
    inside = (hours * HOUR_S >= submit_s[0]) & ((hours + 1) * HOUR_S <= submit_s[-1])
    offset_s = submit_s[0] - values(workload.jobs, "submit_s")[0] - first * HOUR_S
    masks = populations(data)
    used = _used(workload, start_s + offset_s, n_hours, data.every.stage_job, list(masks.values()))
    parts = []
    for (population, mask), amounts in zip(masks.items(), used, strict=True):
        begin = (submit_s[mask] - first * HOUR_S) // HOUR_S
        end = (job_finish_s[mask] + offset_s) // HOUR_S
        columns = {
            "population": pa.array([population] * n_hours),
            "hour": hours,
            "whole": inside,
            "jobs_submitted": np.bincount(begin.astype(np.int64), minlength=n_hours),
            "jobs_running": _running(begin.astype(np.int64), end.astype(np.int64), n_hours),
        }
        for name, amount in zip(workload.resources, amounts, strict=True):
            columns[f"{name}_hours"] = amount
        parts.append(pa.table(columns))
    return pa.concat_tables(parts)


def peak_to_trough(data: Dataset, table: pa.Table) -> list[Statistic]:
    """Compute busiest over least busy hour, among the whole hours of `hourly`'s table."""
    section = Section("hourly")
    population = np.array(table["population"].to_pylist())
    whole = table["whole"].to_numpy()
    for key, words in POPULATION_WORDS.items():
        rows = whole & (population == key)
        section.group = f"peak hour over trough: {words}"
        for column in table.column_names[3:]:
            ratio = _ratio(table[column].to_numpy()[rows]) if rows.sum() > 1 else np.nan
            label = column.replace("_", " ").replace(" hours", "-hours")
            section.add(f"{key}_{column}", label, ratio, "ratio")
    return section.statistics


def _used(
    workload: Workload, start_s: F8, n_hours: int, stage_job: I4, masks: list[Mask]
) -> list[list[F8]]:
    """Sum resource use by hour for the jobs of each mask; time 0 is the first hour's start."""
    _, demand, _ = stage_demand(workload)
    pieces: list[list[_Hours]] = [[_Hours(n_hours) for _ in workload.resources] for _ in masks]

    def add(stage: NDArray[Any] | slice, duration_s: F8, copies: NDArray[Any] | int) -> None:
        begin_s = start_s[stage]
        for mask, hours in zip(masks, pieces, strict=True):
            chosen = mask[stage_job[stage]]
            for r, total in enumerate(hours):
                amount = demand[stage, r] * copies * chosen
                total.add(begin_s, duration_s, amount)

    if workload.stage_duration_s is not None:
        n_tasks = values(workload.stages, "n_tasks")
        add(slice(None), workload.stage_duration_s, n_tasks)
    else:
        for begin in range(0, workload.n_tasks, _TASKS_AT_ONCE):
            end = min(begin + _TASKS_AT_ONCE, workload.n_tasks)
            tasks = workload.task_rows(begin, end)
            add(tasks["stage"].to_numpy(), tasks["duration_s"].to_numpy(), 1)
    return [[total.by_hour() for total in hours] for hours in pieces]


class _Hours:
    """Accumulator of amounts in use over intervals, summed by hour, in amount × hours."""

    def __init__(self, n_hours: int) -> None:
        self.n_hours = n_hours
        self.partial = np.zeros(n_hours)
        self.change = np.zeros(n_hours + 1)  # of the amount in use throughout an hour

    def add(self, begin_s: F8, duration_s: F8, amount: F8) -> None:
        """Add intervals, cut off at the end of the last hour."""
        n = self.n_hours
        begin = np.minimum(begin_s / HOUR_S, n)
        end = np.minimum((begin_s + duration_s) / HOUR_S, n)
        first = np.minimum(begin.astype(np.int64), n - 1)
        last = np.minimum(end.astype(np.int64), n - 1)
        same = first == last
        head = np.where(same, end - begin, first + 1 - begin)
        tail = np.where(same, 0.0, end - last)
        self.partial += np.bincount(first, head * amount, n)
        self.partial += np.bincount(last, tail * amount, n)
        through = last > first + 1
        self.change += np.bincount(first[through] + 1, amount[through], n + 1)
        self.change -= np.bincount(last[through], amount[through], n + 1)

    def by_hour(self) -> F8:
        """Return the sums, (n_hours,), with rounding errors set to 0."""
        through = np.cumsum(self.change)[:-1]
        through[through < _NOISE * max(float(through.max()), 1e-300)] = 0.0
        return self.partial + through


def _running(begin: I8, end: I8, n_hours: int) -> I8:
    """Count the intervals from hour `begin` to hour `end`, both included, that touch each hour."""
    started = np.bincount(begin, minlength=n_hours)[:n_hours]
    ended = np.bincount(np.minimum(end, n_hours) + 1, minlength=n_hours + 2)[:n_hours]
    return np.cumsum(started - ended)


def _ratio(amounts: NDArray[Any]) -> float:
    highest, lowest = float(amounts.max()), float(amounts.min())
    if highest == 0:
        return np.nan
    return highest / lowest if lowest > 0 else np.inf
