"""Input report, counts, and shares of jobs with dependencies (Tian et al., SoCC 2019, §3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base import maths
from sim.base.arrays import Mask
from sim.describe.dataset import Dataset
from sim.describe.statistics import Section, Statistic
from sim.workload.columns import stage_demand, stage_work_s
from sim.workload.tables import values

HOUR_S = 3600.0


POPULATION_WORDS = {
    "all": "all jobs",
    "any": "with any dependency",
    "over_2": "with more than two stages",
}
"""All jobs, and the two ways of counting those with dependencies.

``any``: at least one edge (Table 1 counts 80.2 % of jobs); ``over_2``: more than two stages (the
text's 48.92 %).
"""


def populations(data: Dataset) -> dict[str, Mask]:
    """Return the jobs of each population of `POPULATION_WORDS`, (J,) each."""
    graphs = data.every
    return {
        "all": np.ones(graphs.n_jobs, dtype=bool),
        "any": graphs.job_n_edges > 0,
        "over_2": graphs.job_n_stages > 2,
    }


def overview(data: Dataset) -> list[Statistic]:
    """Compute the counts of Table 1, and the time over which jobs were submitted."""
    section = Section("overview")
    graphs = data.every
    linked, over_2 = populations(data)["any"], populations(data)["over_2"]
    section.add("jobs", "jobs", graphs.n_jobs, "count")
    section.add("jobs_without", "… without dependencies", (~linked).sum(), "count")
    section.add("jobs_with", "… with dependencies", linked.sum(), "count")
    section.add("jobs_whole", "… … read in full", (linked & data.whole).sum(), "count")
    section.add("jobs_over_2", "… with over two stages", over_2.sum(), "count")
    section.add("stages", "stages", graphs.n_stages, "count")
    n_stages = graphs.job_n_stages[linked].sum()
    section.add("stages_with", "… of jobs with dependencies", n_stages, "count")
    if data.workload is not None:
        n_tasks = _by_job(data, values(data.workload.stages, "n_tasks"))
        section.add("tasks", "tasks", n_tasks.sum(), "count")
        section.add("tasks_with", "… of jobs with dependencies", n_tasks[linked].sum(), "count")
    section.add("edges", "dependencies (stage edges)", graphs.n_edges, "count")
    if data.workload is not None and graphs.n_jobs:
        submit_s = values(data.workload.jobs, "submit_s")
        hours = float(submit_s[-1] - submit_s[0]) / HOUR_S
        section.add("hours", "hours from first to last submission", hours)
    return section.statistics


def shares(data: Dataset) -> list[Statistic]:
    """Compute the shares of jobs with dependencies in jobs, stages, tasks and resource-time.

    Both definitions of such jobs are used. Resource-time is demand times duration, over all tasks.
    """
    section = Section("dependencies")
    for key in ("any", "over_2"):
        mask = populations(data)[key]
        section.group = f"share of jobs {POPULATION_WORDS[key]}"
        for name, amount in _amounts(data).items():
            share = float(maths.dot(amount, mask) / amount.sum()) if amount.sum() > 0 else np.nan
            label = name if name in _COUNTED else f"{name}-time"
            section.add(f"{key}_{name}", f"of all {label}", share, "share")
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
