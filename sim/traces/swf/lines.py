"""Lines of an SWF log that become jobs, and the account of the others."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.base.reading import Account, BadRows
from sim.traces.swf.fields import SECTION, Log, known

FAILED: Final = 0
COMPLETED: Final = 1
CANCELLED: Final = 5
CONTINUED: Final = 2
LAST_COMPLETED: Final = 3
LAST_FAILED: Final = 4
PARTS: Final = (CONTINUED, LAST_COMPLETED, LAST_FAILED)
"""Statuses of partial executions, between which a job was swapped out or had a checkpoint."""
BY_OPTION: Final = ("not completed",)
_KIB_PER_GIB = 2.0**20
_CENSORED: Final = "censored: still ran when the log ended"


def processors_of(log: Log, chosen: str) -> tuple[F8, Mask]:
    """Return the processors of each line, NaN if unknown, and mark those of the other field."""
    other = "requested" if chosen == "allocated" else "allocated"
    first, spare = (log[f"{name}_processors"] for name in (chosen, other))
    is_other = ~(first >= 1) & (spare >= 1)
    return np.where(first >= 1, first, np.where(is_other, spare, np.nan)), is_other


def never_ran(log: Log) -> Mask:
    """Mark jobs that got no processor: a run time of 0 is none, then.

    Of cancelled and failed jobs some logs have the processors as unknown. A completed job ran.
    """
    allocated, status = log["allocated_processors"], log["status"]
    is_ended = np.isin(status, (FAILED, CANCELLED))
    is_without = (allocated == 0) | (~(allocated >= 0) & is_ended)
    mask: Mask = is_without & ~(log["run_time"] > 0) & (status != COMPLETED)
    return mask


def censored(log: Log) -> Mask:
    """Mark jobs that had started and not ended, and those whose last part is not in the log."""
    status = log["status"]
    has_ended = np.isin(status, (FAILED, COMPLETED, CANCELLED))
    has_started = (log["allocated_processors"] >= 1) | (log["wait_time"] >= 0)
    mask: Mask = (has_started & ~(log["run_time"] >= 0) & ~has_ended) | (status == CONTINUED)
    return mask


def amounts(log: Log, memory: str = "none") -> dict[str, F8]:
    """Return the CPU time of each line, processor-s, and what of its memory is read, GiB-s.

    NaN if unknown, 0 of jobs that never ran.
    """
    processors, _ = processors_of(log, "allocated")
    is_idle = never_ran(log)
    work = {"cpu_s": np.where(is_idle, 0.0, processors * known(log["run_time"]))}
    if memory != "none":
        work["mem_gib_s"] = np.where(is_idle, 0.0, work["cpu_s"] * memory_gib(log, memory))
    return work


def memory_gib(log: Log, field: str) -> F8:
    """Return the memory per processor that a job requested or used, GiB; NaN if unknown."""
    return known(log[f"{field}_memory"]) / _KIB_PER_GIB


def rules_of(log: Log) -> dict[str, Mask]:
    """Return the rules by which lines are no jobs, and the lines that each excludes."""
    processors, _ = processors_of(log, "allocated")
    return {
        "never started": never_ran(log),
        _CENSORED: censored(log),
        "submission unknown": ~(log["submit_time"] >= 0),
        "run time unknown": ~(log["run_time"] >= 0),
        "processors unknown": np.isnan(processors),
    }


def keys_of(log: Log, name: str = "job_number") -> I8:
    """Return a number for each job number of each section, (N,)."""
    numbers = np.maximum(np.nan_to_num(log[name], nan=-1.0), -1.0).astype(np.int64) + 1
    return (log[SECTION].astype(np.int64) << 32) + numbers


def select(
    log: Log, completed: bool, memory: str, bad: BadRows, dropped: dict[str, int]
) -> tuple[I8, Account]:
    """Return the lines that become jobs, and the log's account."""
    amounts_of = partial(amounts, memory=memory)
    account = Account(amounts_of(log))
    rules = rules_of(log)
    if completed:
        rules["not completed"] = log["status"] != COMPLETED
    is_kept = account.keep(rules, dropped, BY_OPTION)
    account.add_bad_rows(bad, amounts_of)
    account.warn_of_censored(_CENSORED)
    if memory == "none":
        unread = amounts(log, "requested")["mem_gib_s"]
        if total := float(np.nansum(unread)):
            account.add("memory, with memory=none", by_option=True, mem_gib_s=total)
    is_named = log["preceding_job"] >= 1
    if n := float((is_named & ~is_kept).sum()):
        account.add("preceding job of a line that is left out", edges=n)
    return np.flatnonzero(is_kept), account
