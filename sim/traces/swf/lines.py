"""Lines of an SWF log that become jobs: whole executions, parts of them, and repeated numbers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.base.reading import Account, BadRows, count_rule, repeated_rows

COMPLETED: Final = 1
_FAILED, _CANCELLED = 0, 5
_PARTS: Final = (2, 3, 4)
_LAST_COMPLETED: Final = 3
"""Statuses of partial executions: to be continued, the last one completed, the last one failed."""
BY_OPTION: Final = ("not completed",)
_REPEATED: Final = "repeated line"


def known(column: F8) -> F8:
    """Return a column with NaN for what is unknown (-1)."""
    return np.where(column >= 0, column, np.nan)


def processors_of(log: dict[str, F8], chosen: str) -> tuple[F8, Mask]:
    """Return the processors of each line, NaN if unknown, and mark those of the other field."""
    other = "requested" if chosen == "allocated" else "allocated"
    first, second = (log[f"{name}_processors"] for name in (chosen, other))
    is_other = ~(first >= 1) & (second >= 1)
    return np.where(first >= 1, first, np.where(is_other, second, np.nan)), is_other


def never_ran(log: dict[str, F8]) -> Mask:
    """Mark jobs that got no processor: a run time of 0 is none, then.

    Of cancelled and failed jobs some logs have the processors as unknown.
    """
    allocated, status = log["allocated_processors"], log["status"]
    is_ended = np.isin(status, (_FAILED, _CANCELLED))
    is_without: Mask = (allocated == 0) | (~(allocated >= 0) & is_ended)
    return is_without & ~(log["run_time"] > 0)


def amounts(log: dict[str, F8]) -> dict[str, F8]:
    """Return the CPU time of each line, processor-s; NaN if unknown, 0 of jobs that never ran."""
    processors, _ = processors_of(log, "allocated")
    return {"cpu_s": np.where(never_ran(log), 0.0, processors * known(log["run_time"]))}


def joined_parts(log: dict[str, F8], is_repeated: Mask) -> tuple[dict[str, F8], Mask, Mask]:
    """Join the partial executions of jobs without a whole line into the first of each.

    Repeated lines are no parts.

    Returns
    -------
    log : dict of str to (N,) float64
        The columns, in which such a first line has the work of all parts and ``span_s``, the time
        from its start to the end of the last part, s (NaN for other lines).
    has_whole, is_joined : (N,) bool
        Parts of jobs whose whole execution has its own line; parts joined to a line before them.
    """
    number, is_part = log["job_number"], np.isin(log["status"], _PARTS)
    has_whole = is_part & np.isin(number, number[~is_part])
    rows = np.flatnonzero(is_part & ~has_whole & ~is_repeated)
    log = {**log, "span_s": np.full(len(number), np.nan)}
    if not len(rows):
        return log, has_whole, np.zeros(len(number), dtype=bool)
    _, first, group = np.unique(number[rows], return_index=True, return_inverse=True)
    head = rows[first]
    processors, _ = processors_of(log, "allocated")
    run_s, wait_s = known(log["run_time"]), known(log["wait_time"])
    later_s = np.where(np.isin(rows, head), 0.0, wait_s[rows])
    work_s = np.bincount(group, processors[rows] * run_s[rows])
    span_s = np.bincount(group, run_s[rows] + later_s)
    last_status = np.zeros(len(head))
    np.maximum.at(last_status, group, log["status"][rows] == _LAST_COMPLETED)
    for name, values in (
        ("run_time", np.where(np.isnan(work_s), -1.0, work_s / processors[head])),
        ("span_s", span_s),
        ("status", np.where(last_status > 0, COMPLETED, _FAILED)),
    ):
        log[name] = log[name].copy()
        log[name][head] = values
    is_joined = np.zeros(len(number), dtype=bool)
    is_joined[rows] = True
    is_joined[head] = False
    return log, has_whole, is_joined


def select(
    log: dict[str, F8], completed: bool, bad: BadRows, report: dict[str, Any]
) -> tuple[dict[str, F8], I8, Account]:
    """Return the log with joined parts, the lines that become jobs, and the log's account."""
    is_repeated = repeated_rows(log["job_number"], log)
    log, has_whole, is_joined = joined_parts(log, is_repeated)
    is_same = is_repeated | has_whole | is_joined  # no work of their own
    amount = amounts(log)
    account = Account(
        {
            "jobs": np.where(is_same, 0.0, 1.0),
            "cpu_s": np.where(is_same, 0.0, amount["cpu_s"]),
        }
    )
    processors, _ = processors_of(log, "allocated")
    is_running = (log["allocated_processors"] >= 1) & (log["wait_time"] >= 0)
    rules = {
        _REPEATED: is_repeated,
        "partial execution of a job that has its whole line": has_whole,
        "partial execution, joined to the job's first": is_joined,
        "never started": never_ran(log),
        "submission unknown": ~(log["submit_time"] >= 0),
        "censored: started, and no run time": ~(log["run_time"] >= 0) & is_running,
        "run time unknown": ~(log["run_time"] >= 0),
        "processors unknown": np.isnan(processors),
    }
    if completed:
        rules["not completed"] = log["status"] != COMPLETED
    is_kept = account.keep(rules, report["dropped"], BY_OPTION)
    count_rule(report["noticed"], "partial executions without a whole line", log["span_s"] >= 0)
    account.add_bad_rows(bad, amounts)
    return log, np.flatnonzero(is_kept), account


def preceding_jobs(number: F8, preceding: F8) -> I8:
    """Return the row of each job's preceding job, the last such before it; -1 for none.

    `number` and `preceding` are in the order of submission.
    """
    n = len(number)
    rank = np.arange(n)
    key = number.astype(np.int64) * n + rank
    order = np.argsort(key)
    searched = np.where(preceding >= 0, preceding, 0).astype(np.int64) * n + rank
    position = np.searchsorted(key[order], searched) - 1
    candidate = order[np.maximum(position, 0)]
    is_there = (preceding >= 0) & (position >= 0) & (number[candidate] == preceding)
    return np.where(is_there, candidate, -1)
