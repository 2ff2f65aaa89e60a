"""Demand of a workload on a cluster: arrivals, job sizes, load, users, queues and programs.

These apply to any workload, with dependencies or without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base import maths
from sim.base.arrays import F8, I8
from sim.base.correlation import correlation, rank_correlation
from sim.describe.dataset import Dataset
from sim.describe.overview import HOUR_S
from sim.describe.statistics import Kind, Section, Statistic, deviation, largest, mean, quantile
from sim.workload.columns import (
    job_n_tasks,
    job_work_s,
    stage_demand,
    stage_request,
    stage_work_s,
)
from sim.workload.peaks import in_use_at_starts
from sim.workload.schema import DEMAND_PREFIX, USED_PREFIX
from sim.workload.tables import requested_resources, values
from sim.workload.workload import Workload

WINDOWS_S = {"1 min": 60.0, "10 min": 600.0, "1 h": HOUR_S}
"""Windows in which arrivals are counted."""
LARGEST = {"1 %": 0.01, "10 %": 0.1}
"""Fractions of the largest jobs whose share of the work is computed."""
_QUANTILES = (0.5, 0.9, 0.99)


def arrivals(data: Dataset) -> list[Statistic]:
    """Summarise the arrival process: rate, burstiness, correlation of successive intervals."""
    assert data.workload is not None
    section = Section("arrivals")
    submit_s = values(data.workload.jobs, "submit_s")
    gaps_s = np.diff(submit_s)
    hours = float(gaps_s.sum()) / HOUR_S
    section.add("hours", "hours from first to last submission", hours)
    section.add("rate", "jobs an hour", len(gaps_s) / hours if hours else np.nan)
    per_hour = counts(submit_s, HOUR_S)
    section.add("busiest_hour", "jobs in the busiest hour", largest(per_hour), "count")
    section.share("idle_hours", "hours without a job", per_hour == 0)
    section.group = "time between submissions"
    section.add("gap_p50", "median", quantile(gaps_s, 0.5), "seconds")
    section.add("gap_mean", "mean", mean(gaps_s), "seconds")
    spread = deviation(gaps_s) / mean(gaps_s) if hours else np.nan
    section.add("gap_cv", "standard deviation over mean (1: Poisson)", spread)
    section.add("gap_lag_1", "correlation with the previous one (0: Poisson)", lag_1(gaps_s))
    section.group = "variance over mean of the number of arrivals (1: Poisson)"
    for words, window_s in WINDOWS_S.items():
        section.add(f"dispersion_{words}", f"in {words}", dispersion(submit_s, window_s))
    return section.statistics


def sizes(data: Dataset) -> list[Statistic]:
    """Summarise run times, widths and work of jobs, and the share of work in the largest."""
    assert data.workload is not None
    section = Section("sizes")
    work_s, n_tasks = job_work_s(data.workload), job_n_tasks(data.workload)
    _spread(section, "run", "run time, if no task waits", ideal_run_s(data), "span")
    _spread(section, "width", "width: tasks of a job", n_tasks, "count")
    section.share("width_one", "jobs of one task", n_tasks == 1)
    section.share("width_power", "jobs of 2, 4, 8, ... tasks", (n_tasks > 1) & _is_power(n_tasks))
    _spread(section, "work", "work of a job: sum of its tasks' durations", work_s, "span")
    by_size = np.sort(work_s)[::-1]
    for words, part in LARGEST.items():
        n = max(int(part * len(by_size)), 1)
        share = by_size[:n].sum() / by_size.sum() if by_size.sum() else np.nan
        section.add(
            f"work_of_{part:g}", f"share of all work in the largest {words} of jobs", share, "share"
        )
    _, demand, _ = stage_demand(data.workload)
    n_of_stage = values(data.workload.stages, "n_tasks")
    for r, name in enumerate(data.workload.resources):
        words = f"demand of a task: {name}"
        _spread(section, f"demand_{name}", words, demand[:, r], n=n_of_stage)
    section.group = "rank correlation"
    section.add(
        "rank_width_run", "of width and run time", rank_correlation(n_tasks, ideal_run_s(data))
    )
    return section.statistics


def load(data: Dataset) -> list[Statistic]:
    """Summarise resource use if nothing waits, and requested against used amounts."""
    workload = data.workload
    assert workload is not None
    section = Section("load")
    submit_s = values(workload.jobs, "submit_s")
    span_s = float(submit_s[-1] - submit_s[0])
    _, demand, _ = stage_demand(workload)
    work_s, n_tasks = stage_work_s(workload), values(workload.stages, "n_tasks")
    section.group = "in use, if no task waits for resources"
    machine = _header_number(workload, "MaxProcs")
    for r, name in enumerate(workload.resources):
        used = float((work_s * demand[:, r]).sum()) / span_s if span_s else np.nan
        section.add(f"mean_{name}", f"{name}, mean from first to last submission", used)
        section.add(f"peak_{name}", f"{name}, maximum", _peak(data, demand[:, r] * n_tasks))
        if machine and name == "cpu":
            section.add(
                "of_machine", f"of the log's {machine:,.0f} processors", used / machine, "share"
            )
    _requested(section, data)
    return section.statistics


def users(data: Dataset) -> list[Statistic]:
    """Summarise users, queues and programs, and the share of jobs whose program ran before."""
    workload = data.workload
    assert workload is not None
    section = Section("users")
    work_s = job_work_s(workload)
    for column, words in (("user", "users"), ("queue", "queues"), ("template", "programs")):
        code = codes(workload, column)
        known = code >= 0
        if not known.any():
            section.group = words
            section.add(f"{column}s", words, np.nan, "count", why="not in the trace")
            continue
        jobs = np.bincount(code[known])
        n = int(np.count_nonzero(jobs))
        work = np.bincount(code[known], work_s[known])
        section.group = words
        section.add(f"{column}s", words, n, "count")
        if n == 1:
            continue
        section.add(
            f"{column}_jobs",
            "share of jobs of the one with most jobs",
            jobs.max() / jobs.sum(),
            "share",
        )
        top = work.max() / work.sum() if work.sum() else np.nan
        section.add(f"{column}_work", "share of work of the one with most work", top, "share")
        by_work = np.sort(work)[::-1].cumsum()
        half = np.searchsorted(by_work, by_work[-1] / 2) + 1
        section.add(f"{column}_half", "number that makes half of the work", int(half), "count")
        if column == "template":
            section.add("ran_before", "jobs whose program ran before", recurrence(code), "share")
    return section.statistics


def counts(submit_s: F8, window_s: float) -> I8:
    """Count submissions per window from the first one on, without the last, partial window."""
    number = ((submit_s - submit_s[:1]) // window_s).astype(np.int64)
    whole = int((submit_s[-1] - submit_s[0]) // window_s) if len(submit_s) else 0
    return np.bincount(number[number < whole], minlength=whole)


def dispersion(submit_s: F8, window_s: float) -> float:
    """Compute the index of dispersion of `counts`, variance over mean; NaN below two windows."""
    n = counts(submit_s, window_s)
    return float(n.var() / n.mean()) if len(n) > 1 and n.any() else np.nan


def lag_1(x: F8) -> float:
    """Compute the lag-1 autocorrelation of a series."""
    return correlation(x[:-1], x[1:])


def recurrence(code: I8) -> float:
    """Compute the share of jobs, in order, whose code (-1: unknown) appeared before."""
    again = np.ones(len(code), dtype=bool)
    again[np.unique(code, return_index=True)[1]] = False
    return float((again & (code >= 0)).mean()) if len(code) and (code >= 0).any() else np.nan


def ideal_run_s(data: Dataset) -> F8:
    """Compute each job's run time if no task waits for resources, (J,) s: its critical path."""
    assert data.workload is not None
    _, finish_s = data.spans_s
    ends_s: F8 = np.maximum.reduceat(finish_s, data.every.job_stage0[:-1])
    ends_s -= values(data.workload.jobs, "submit_s")
    return ends_s


def codes(workload: Workload, column: str) -> I8:
    """Return the codes of a category of jobs, (J,): -1 where the name is unknown ("")."""
    names = workload.jobs[column].combine_chunks()
    code: I8 = names.indices.to_numpy().astype(np.int64)
    unknown = [number for number, name in enumerate(names.dictionary.to_pylist()) if not name]
    code[np.isin(code, unknown)] = -1
    return code


def _requested(section: Section, data: Dataset) -> None:
    workload = data.workload
    assert workload is not None
    section.group = "requested and used"
    if "requested_s" in workload.jobs.column_names:
        requested_s = workload.jobs["requested_s"].to_numpy(zero_copy_only=False)
        known = requested_s > 0
        section.share("time_known", "jobs with a requested time", known)
        part = ideal_run_s(data)[known] / requested_s[known]
        section.add(
            "time_used_p50", "run time over requested time, median", quantile(part, 0.5), "share"
        )
        section.add("time_used_mean", "run time over requested time, mean", mean(part), "share")
        section.share("time_exceeded", "jobs that ran longer than requested", part > 1)
        section.share("time_censored", "jobs that ran to their limit, or were cut there", part >= 1)
    work_s = stage_work_s(workload)
    needs, requests = (
        maths.dot(work_s, amount(workload)[1]) for amount in (stage_demand, stage_request)
    )
    for name in requested_resources(workload.stages):
        r = workload.resources.index(name)
        part_needed = needs[r] / requests[r] if requests[r] else np.nan
        section.add(
            f"needed_{name}", f"{name} needed, of the amount requested", part_needed, "share"
        )
    for column in workload.stages.column_names:
        name = column.removeprefix(USED_PREFIX)
        if column.startswith(USED_PREFIX) and DEMAND_PREFIX + name in workload.stages.column_names:
            used = workload.stages[column].to_numpy(zero_copy_only=False)
            requested = values(workload.stages, DEMAND_PREFIX + name)
            known = np.isfinite(used) & (requested > 0)
            total = (requested * work_s)[known].sum()
            part_used = (used * work_s)[known].sum() / total if total else np.nan
            section.add(f"used_{name}", f"{name} used, of the amount requested", part_used, "share")


def _spread(
    section: Section,
    key: str,
    words: str,
    x: NDArray[Any],
    kind: Kind = "number",
    n: I8 | None = None,
) -> None:
    """Add mean, quantiles and maximum of values that occur `n` times each (default: once)."""
    section.group = words
    if len(x) and (x == x[0]).all():
        section.add(f"{key}_mean", "all equal", float(x[0]), kind)
        return
    section.add(f"{key}_mean", "mean", mean(x, n), "number" if kind == "count" else kind)
    for q in _QUANTILES:
        named = "median" if q == 0.5 else f"percentile {100 * q:g}"
        section.add(f"{key}_p{100 * q:g}", named, quantile(x, q, n), kind)
    section.add(f"{key}_max", "largest", largest(x), kind)


def _peak(data: Dataset, amount: F8) -> float:
    """Compute the peak use, assuming that all tasks of a stage last as long as its longest."""
    return float(in_use_at_starts(*data.spans_s, amount).max(initial=0.0))


def _header_number(workload: Workload, key: str) -> float:
    header = workload.meta.get("header", {})
    text = str(header.get(key, "")) if isinstance(header, Mapping) else ""
    return float(text) if text.isdecimal() else 0.0


def _is_power(n: NDArray[Any]) -> NDArray[Any]:
    whole = n.astype(np.int64)
    is_power: NDArray[Any] = (whole & (whole - 1)) == 0
    return is_power
