"""Input report, counts, and shares of jobs with dependencies (Tian et al., SoCC 2019, §3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base import maths
from sim.base.arrays import Mask
from sim.describe.dataset import Dataset
from sim.describe.statistics import Section, Statistic, mean
from sim.workload.columns import stage_demand, stage_work_s
from sim.workload.tables import values

HOUR_S = 3600.0
IS_DAG = "is_dag"
"""``jobs.is_dag``: whether the trace describes a job as a DAG, where it tells."""


POPULATION_WORDS = {
    "all": "all jobs",
    "dag": "described as DAGs",
    "stages_2": "with at least two stages",
}
"""All jobs, and the two populations of the paper's "jobs with dependencies".

``dag``: jobs that the trace describes as DAGs, of one stage too (Table 1: "w/ dependencies", 80.24
% of the jobs), by the column ``jobs.is_dag``; without it, jobs with an edge. ``stages_2``: at least
two stages. Table 1 calls these "over two tasks"; they are the 48.92 % of the text (2,055,299 of
4,201,014 jobs), and 60.97 % of those described as DAGs, as in the histograms of the whole trace
(61.67 %; of more than two stages are 41.26 %).
"""


def populations(data: Dataset) -> dict[str, Mask]:
    """Return the jobs of each population of `POPULATION_WORDS`, (J,) each."""
    graphs, workload = data.every, data.workload
    is_dag = graphs.job_n_edges > 0
    if workload is not None and IS_DAG in workload.jobs.column_names:
        is_dag = workload.jobs[IS_DAG].to_numpy()
    return {
        "all": np.ones(graphs.n_jobs, dtype=bool),
        "dag": is_dag,
        "stages_2": graphs.job_n_stages >= 2,
    }


def overview(data: Dataset) -> list[Statistic]:
    """Compute the counts of Table 1, and the time over which jobs were submitted."""
    section = Section("overview")
    graphs = data.every
    is_dag, stages_2 = populations(data)["dag"], populations(data)["stages_2"]
    section.add("jobs", "jobs", graphs.n_jobs, "count")
    section.add("jobs_without", "… not described as DAGs", (~is_dag).sum(), "count")
    section.add("jobs_dag", "… described as DAGs", is_dag.sum(), "count")
    section.add("jobs_whole", "… … read in full", (is_dag & data.whole).sum(), "count")
    section.add("jobs_stages_2", "… with at least two stages", stages_2.sum(), "count")
    section.add("stages", "stages", graphs.n_stages, "count")
    n_stages = graphs.job_n_stages[is_dag].sum()
    section.add("stages_dag", "… of jobs described as DAGs", n_stages, "count")
    if data.workload is not None:
        n_tasks = _by_job(data, values(data.workload.stages, "n_tasks"))
        section.add("tasks", "tasks", n_tasks.sum(), "count")
        section.add("tasks_dag", "… of jobs described as DAGs", n_tasks[is_dag].sum(), "count")
    section.add("edges", "dependencies (stage edges)", graphs.n_edges, "count")
    if data.workload is not None and graphs.n_jobs:
        submit_s = values(data.workload.jobs, "submit_s")
        hours = float(submit_s[-1] - submit_s[0]) / HOUR_S
        section.add("hours", "hours from first to last submission", hours)
    return section.statistics


def shares(data: Dataset) -> list[Statistic]:
    """Compute the shares of jobs with dependencies in jobs, stages, tasks and resource-time.

    Both populations of such jobs are used, and the second as a part of the first, with numbers a
    job. Resource-time is demand times duration, over all tasks.
    """
    section = Section("dependencies")
    masks, amounts = populations(data), _amounts(data)
    for key in ("dag", "stages_2"):
        section.group = f"share of jobs {POPULATION_WORDS[key]}"
        for name, amount in amounts.items():
            total = amount.sum()
            share = float(maths.dot(amount, masks[key]) / total) if total > 0 else np.nan
            label = name if name in _COUNTED else f"{name}-time"
            section.add(f"{key}_{name}", f"of all {label}", share, "share")
    is_dag = masks["dag"]
    section.group = f"jobs {POPULATION_WORDS['dag']}"
    section.share("stages_2_of_dag", POPULATION_WORDS["stages_2"], masks["stages_2"], is_dag)
    edges = {"dependencies": data.every.job_n_edges}
    for name, amount in {**amounts, **edges}.items():
        if name in (*_COUNTED[1:], *edges):
            section.add(f"{name}_of_dag", f"{name} a job, mean", mean(amount[is_dag]))
    return section.statistics


_COUNTED = ("jobs", "stages", "tasks")


def _amounts(data: Dataset) -> dict[str, NDArray[Any]]:
    """Return the amounts that `shares` divides, (J,) each."""
    amounts: dict[str, NDArray[Any]] = {
        "jobs": np.ones(data.every.n_jobs),
        "stages": data.every.job_n_stages,
    }
    if data.workload is not None:
        work_s = stage_work_s(data.workload)
        _, demand, _ = stage_demand(data.workload)
        amounts["tasks"] = _by_job(data, values(data.workload.stages, "n_tasks"))
        amounts["task"] = _by_job(data, work_s)
        for r, name in enumerate(data.workload.resources):
            amounts[name] = _by_job(data, work_s * demand[:, r])
    return amounts


def _by_job(data: Dataset, per_stage: NDArray[Any]) -> NDArray[Any]:
    return np.bincount(data.every.stage_job, per_stage, data.every.n_jobs)


# of a loader's report: in the overview, or in sentences
_TOTALS = ("jobs", "stages", "tasks", "edges", "account", "bad_examples", "warnings")


def reading(data: Dataset) -> list[Statistic]:
    """Return the loader's counts, and numbers of jobs that some statistics leave out."""
    section = Section("input")
    section.group = "jobs"
    graphs = data.every
    section.add("one_stage", "of one stage", (graphs.job_n_stages == 1).sum(), "count")
    section.add("no_edge", "of more stages, without an edge", _unlinked(data), "count")
    section.add(
        "not_whole", "not read in full: left out of structure", (~data.whole).sum(), "count"
    )
    if data.workload is not None:
        report = data.workload.meta.get("report", {})
        for group, rule, count in _counts(report):
            section.group = group
            section.add(f"{group}: {rule}", rule, count, "count")
    return section.statistics


def _unlinked(data: Dataset) -> int:
    return int(((data.every.job_n_stages > 1) & (data.every.job_n_edges == 0)).sum())


def _counts(report: Mapping[str, Any], group: str = "loading") -> Iterator[tuple[str, str, float]]:
    """Yield the non-zero counts of a report, each with the group it is in."""
    nested = {
        rule: count
        for rule, count in report.items()
        if isinstance(count, Mapping) and rule not in _TOTALS
    }
    for rule, count in report.items():
        if rule not in nested and rule not in _TOTALS and isinstance(count, (int, float)) and count:
            yield group, rule, float(count)
    for rule, count in nested.items():
        name = rule.replace("_", " ")
        yield from _counts(count, name if group == "loading" else f"{group}: {name}")
