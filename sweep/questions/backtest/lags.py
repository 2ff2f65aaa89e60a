"""Lags of a log that its simulated runs have: of launches, and of stages behind their parents."""

from __future__ import annotations

import math

import numpy as np

from sim.base.arrays import F8
from sim.workload.schema import RECORDED
from sim.workload.tables import column_or_default
from sim.workload.workload import Workload
from sweep.questions.backtest.findings import Audit

MAX_LAGS = 99
"""Most lags that runs draw from: more are replaced by as many of their quantiles."""
STAGE_LAG_QUANTILE = 0.05
"""Quantile of the time from the end of a stage's parents to its first start: the others wait."""


def launch_lags_s(workload: Workload, findings: Audit, n_slots: float) -> list[float]:
    """Return the lags from which runs draw, s, in milliseconds' steps.

    Rigid jobs start as a whole, so these are the lags that the audit found. Where each task starts
    by itself, they are those of tasks: `task_lags_s`. There are all of them, or `MAX_LAGS` of their
    quantiles, as they stand in the command line of the sweep; one number if they are all the same.
    """
    lags_s = without_rounding(findings.launch_lags_s, findings.resolution_s)
    if has_task_times(workload) and not workload.columns.job_min_tasks.any():
        lags_s = task_lags_s(workload, n_slots)
    return thinned(lags_s)


def without_rounding(lags_s: F8, resolution_s: float) -> F8:
    """Return the lags about their mean with the spread that they have without rounding, s.

    A lag is a difference of two times that are cut to the log's resolution r, which leaves its mean
    and adds r²/6 to its variance.
    """
    spread_s = float(lags_s.std()) if len(lags_s) else 0.0
    if not spread_s:
        return lags_s
    mean_s = float(lags_s.mean())
    true_s = math.sqrt(max(spread_s**2 - resolution_s**2 / 6.0, 0.0))
    return np.maximum(mean_s + (lags_s - mean_s) * (true_s / spread_s), 0.0)


def thinned(lags_s: F8) -> list[float]:
    """Return lags, or `MAX_LAGS` of their quantiles, ascending; 0 if there are none."""
    lags_s = np.sort(lags_s[np.isfinite(lags_s)])
    if len(lags_s) > MAX_LAGS:
        lags_s = np.quantile(lags_s, (np.arange(MAX_LAGS) + 0.5) / MAX_LAGS)
    lags = np.maximum(np.round(lags_s, 3), 0.0).tolist() or [0.0]
    return lags if lags[0] < lags[-1] else lags[:1]


def has_task_times(workload: Workload) -> bool:
    """Tell whether the log has a start of each task."""
    return workload.stage_duration_s is None and RECORDED[0].name in workload.tasks.column_names


def task_lags_s(workload: Workload, n_slots: float) -> F8:
    """Compute the lags of tasks behind the ends of others that made room for them, s.

    On n slots the i-th start in time waits for the (i − n)-th end. Tasks whose stage had begun
    before that end were ready then, and their lag is the time since; 0 if they start before it, as
    a log may note an end late.
    """
    start_s, finish_s = (column_or_default(workload.tasks, column) for column in RECORDED)
    stage = workload.columns.task_stage()
    known = np.isfinite(start_s) & np.isfinite(finish_s)
    start_s, finish_s, stage = start_s[known], np.sort(finish_s[known]), stage[known]
    begin_s = np.full(workload.n_stages, np.inf)
    np.minimum.at(begin_s, stage, start_s)
    order = np.argsort(start_s, kind="stable")[int(n_slots) :]
    room_s = finish_s[: len(order)]
    is_ready = begin_s[stage[order]] < room_s
    lags_s: F8 = np.maximum(start_s[order] - room_s, 0.0)[is_ready]
    return lags_s


def stage_lag_s(workload: Workload) -> float:
    """Return the lag of a stage behind the end of its parents that a log shows, s; 0 without one.

    A low quantile of the time from the last end of a parent to the first start: most stages wait
    for room, too.
    """
    edges = workload.stage_edges
    if not has_task_times(workload) or not edges.num_rows:
        return 0.0
    start_s, finish_s = (column_or_default(workload.tasks, column) for column in RECORDED)
    stage = workload.columns.task_stage()
    begin_s, end_s = np.full(workload.n_stages, np.inf), np.full(workload.n_stages, -np.inf)
    np.fmin.at(begin_s, stage, start_s)
    np.fmax.at(end_s, stage, finish_s)
    parent, child = (edges[name].to_numpy() for name in ("parent", "child"))
    ready_s = np.full(workload.n_stages, -np.inf)
    np.maximum.at(ready_s, child, end_s[parent])
    lags_s = (begin_s - ready_s)[np.unique(child)]
    lags_s = lags_s[np.isfinite(lags_s)]
    lag_s = float(np.quantile(lags_s, STAGE_LAG_QUANTILE)) if len(lags_s) else 0.0
    return round(max(lag_s, 0.0), 3)
