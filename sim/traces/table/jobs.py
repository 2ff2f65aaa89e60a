"""Jobs of a table: their times, one from the others, and the rows that are no jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow.compute as pc

from sim.base.arrays import F8, Mask
from sim.base.errors import InputError
from sim.base.reading import Account, count_rule, resolution_s
from sim.traces.table.raw import Log
from sim.traces.table.states import (
    CANCELLED,
    COMPLETED,
    OTHER,
    RUNNING,
    WAITING,
    state_codes,
)

HOUR_S = 3600.0
CENSORED = "still ran when the log ended (censored)"
CONTAINS = "contains other jobs, whose work is counted there"
MAX_CENSORED = 0.02
"""Share of censored jobs, or of their work, from which on a user is warned."""
LONGER = "run_s longer than from start_s to end_s: run_s counts"
SHORTER = "run_s shorter than from start_s to end_s: run_s counts"
_CLOCK_S = 1.0
"""Largest difference, s, between times that are rounded to seconds."""


@dataclass(frozen=True, eq=False)
class Ran:
    """Times of each row in s since the log's zero; NaN if unknown. Run times may be negative.

    `between_s` is the time from start to end as the log has them, s, where the run time contradicts
    it; elsewhere the run time.
    """

    submit_s: F8
    start_s: F8
    end_s: F8
    run_s: F8
    between_s: F8

    def take(self, rows: Any) -> Ran:
        """Return some rows."""
        return Ran(*(getattr(self, field.name)[rows] for field in fields(self)))


def times_of(log: Log, noticed: dict[str, int], warnings: list[str]) -> Ran:
    """Return start, end and run time of each row, each from the two others where it is missing.

    Where all three are there and contradict each other, by more than the resolution of the times,
    the run time counts: a clock that changes does not change it, and a job may be suspended.
    """
    columns, unknown_s = log.columns, np.full(len(log), np.nan)
    submit_s = columns["submit_s"]
    start_s, end_s, run_s = (columns.get(c, unknown_s) for c in ("start_s", "end_s", "run_s"))
    count_rule(noticed, "run_s below 0: unknown", run_s < 0)
    run_s = np.where(run_s < 0, np.nan, run_s)
    wait_s = columns.get("wait_s", unknown_s)
    count_rule(noticed, "wait_s below 0: unknown", wait_s < 0)
    start_s = np.where(np.isnan(start_s) & (wait_s >= 0), submit_s + wait_s, start_s)
    start_s = np.where(start_s < submit_s, start_s + _later(log, "start_s"), start_s)
    end_s = np.where(end_s < start_s, end_s + _later(log, "end_s"), end_s)
    _warn_twice(log, warnings)
    has_run = ~np.isnan(run_s)
    between_s = end_s - start_s
    lag_s = np.abs(np.abs(between_s - run_s) - HOUR_S)
    is_jump = has_run & ((between_s < 0) | (log.without_zone & (lag_s <= _CLOCK_S)))
    count_rule(noticed, "end set to start_s + run_s, which it contradicts", is_jump)
    _warn_backwards(log, start_s, between_s < 0, has_run, warnings)
    step_s = max(_CLOCK_S, resolution_s(submit_s, start_s, end_s))
    is_longer, is_shorter = (
        ~is_jump & (sign * (run_s - between_s) > step_s) for sign in (1.0, -1.0)
    )
    for rule, rows in ((LONGER, is_longer), (SHORTER, is_shorter)):
        count_rule(noticed, rule, rows)
    _warn_of_run_times(is_longer, is_shorter, warnings)
    run_s = np.where(has_run, run_s, between_s)
    start_s = np.where(np.isnan(start_s), end_s - run_s, start_s)
    end_s = np.where(np.isnan(end_s) | is_jump | is_longer, start_s + run_s, end_s)
    if "start_s" in columns:  # no run of 0 s, but none
        run_s = np.where(np.isnan(start_s) & (run_s == 0), np.nan, run_s)
    between_s = np.where(is_longer | is_shorter, between_s, run_s)
    return Ran(submit_s, start_s, end_s, run_s, between_s)


def rules_of(log: Log, ran: Ran, demands: Mapping[str, F8], *, completed: bool) -> dict[str, Mask]:
    """Return the rows that are no jobs, by rule; each row counts under the first.

    Raises
    ------
    InputError
        If only completed jobs are to be kept of a table without states.
    """
    columns, run_s = log.columns, ran.run_s
    states = _states(log)
    if completed and "state" not in columns:
        text = "state=completed needs a column state: give trace.columns.state=NAME"
        raise InputError(text, rule="missing column")
    no_run = np.isnan(run_s)
    ended = "start_s" in columns and "end_s" in columns
    is_censored = no_run & ~np.isnan(ran.start_s) & np.isnan(ran.end_s) & ended
    no_start = np.isnan(ran.start_s) & ("start_s" in columns or "end_s" in columns)
    in_vain = ((states == CANCELLED) | (states == WAITING)) & ~(run_s > 0)
    rules = {
        CONTAINS: _parents(log),
        "never started": (no_run & no_start) | in_vain,
        CENSORED: _still_runs(ran, states == RUNNING) | is_censored,
        "submission unknown": np.isnan(ran.submit_s),
        "run time unknown": no_run,
        "ends before it starts": run_s < 0,
        **_idle(columns, demands),
    }
    if completed:
        rules["not completed"] = states != COMPLETED
    return rules


def warn_of_clocks(ran: Ran, eligible_s: F8 | None, warnings: list[str]) -> None:
    """Warn if starts are whole hours after, or before, the submissions: another time zone."""
    ready_s = ran.submit_s if eligible_s is None else np.fmax(ran.submit_s, eligible_s)
    wait_s = (ran.start_s - ready_s)[~np.isnan(ran.start_s - ready_s)]
    if len(wait_s) < 2:
        return
    hours = np.floor(wait_s / HOUR_S)
    shift = float(hours.min())
    same = bool(np.mean(hours == shift) > 0.5)
    if shift >= 1 and same:
        warnings.append(
            f"Every job starts {shift:.0f} h or more after its submission (the smallest wait is "
            f"{wait_s.min():,.0f} s): are the two of one time zone? trace.zone=Europe/Berlin says "
            "which one times without a zone are in."
        )
    elif (wait_s <= 60.0 - HOUR_S).all():
        warnings.append(
            f"Every job starts before its submission, by {-wait_s.max():,.0f} s or more: are the "
            "two of one time zone?"
        )


def warn_of_censored(account: Account) -> None:
    """Warn if many jobs, or much of the work, still ran when the log ended."""
    shares = {
        kind: entry.get("left_out_by", {}).get(CENSORED, 0.0) / (entry["log"] or 1.0)
        for kind, entry in account.entries({}).items()
        if kind in ("jobs", "cpu_s", "gpu_s")
    }
    if max(shares.values()) > MAX_CENSORED:
        work = max(share for kind, share in shares.items() if kind != "jobs")
        account.warnings.append(
            f"{100 * shares['jobs']:.1f} % of the jobs, with {100 * work:.1f} % of the known work, "
            "still ran when the log ended, and are left out: long jobs are missing, and the load "
            "of its last part is too low."
        )


def _still_runs(ran: Ran, running: Mask) -> Mask:
    """Mark the running rows that have no end, or one at or after the end of the log.

    Such an end is when the log was written, or an expected one. Other rows ended after their state
    was noted.
    """
    known = [ran.submit_s, ran.start_s, ran.end_s[~running]]
    last_s = np.nanmax(np.concatenate([*known, [-np.inf]]))
    still_runs: Mask = running & ~(ran.end_s < last_s)
    return still_runs


def _states(log: Log) -> Any:
    if "state" not in log.columns:
        return np.full(len(log), OTHER, np.int8)
    return state_codes(log.columns["state"])


def _parents(log: Log) -> Mask:
    """Mark the rows whose job_id other rows name as the job that contains them."""
    columns = log.columns
    if "parent_id" not in columns or "job_id" not in columns:
        return np.zeros(len(log), dtype=bool)
    parents = columns["parent_id"].filter(pc.not_equal(columns["parent_id"], columns["job_id"]))
    return np.asarray(pc.is_in(columns["job_id"], value_set=parents.drop_null().unique()))


def _idle(columns: dict[str, Any], demands: Mapping[str, F8]) -> dict[str, Mask]:
    """Return the rows that demand nothing, by rule."""
    rules = {}
    has_gpus = demands["gpu"] > 0 if "gpu" in demands else np.array(False)
    if "cpu" in demands:
        rules["0 CPUs"] = (demands["cpu"] == 0) & ~has_gpus
    else:
        rules["no GPUs"] = ~has_gpus
    if "workers" in columns:
        rules = {"0 workers": columns["workers"] == 0, **rules}
    return rules


def _later(log: Log, column: str) -> F8:
    return log.later_s.get(column, np.zeros(len(log)))


def _warn_twice(log: Log, warnings: list[str]) -> None:
    n = sum(int(np.count_nonzero(later)) for later in log.later_s.values())
    if n:
        warnings.append(
            f"Times in the hour that clocks show twice, at the end of daylight saving: {n:,}. "
            "Where the order of a job's times does not tell, the first is meant."
        )


def _warn_of_run_times(is_longer: Mask, is_shorter: Mask, warnings: list[str]) -> None:
    """Say how many run times contradict start and end, and how to believe those instead."""
    n_longer, n_shorter = int(is_longer.sum()), int(is_shorter.sum())
    if n_longer or n_shorter:
        warnings.append(
            f"run_s contradicts start_s and end_s in {n_longer + n_shorter:,} of "
            f"{len(is_longer):,} rows ({n_longer:,} longer, {n_shorter:,} shorter, as of jobs that "
            "were suspended): run_s counts, and ends follow from longer ones; "
            "trace.columns.run_s=null takes the time from start to end."
        )


def _warn_backwards(
    log: Log, start_s: F8, backwards: Mask, has_run: Mask, warnings: list[str]
) -> None:
    """Explain ends before starts by daylight saving, where that may be."""
    rows = backwards & ~has_run
    if log.without_zone and rows.any():
        first = np.datetime64(int(log.zero_s + start_s[rows].min()), "s").astype("datetime64[D]")
        warnings.append(
            f"Jobs that end before they start: {int(rows.sum()):,}, the first on {first}. If "
            "daylight saving ended that day, give the zone of the times (trace.zone=Europe/Berlin) "
            "or a column of run times (run_s), which no clock changes."
        )
