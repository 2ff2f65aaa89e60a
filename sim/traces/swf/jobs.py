"""Tables of jobs, stages and edges, of the lines of an SWF log that become jobs."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8
from sim.base.reading import Account, count_rule, distinct_ids
from sim.traces.swf.fields import Log, known
from sim.traces.swf.lines import keys_of, memory_gib, processors_of
from sim.traces.swf.partial import SPAN

ZERO_BECOMES_S: Final = 0.5
"""Duration of jobs whose run time is logged as 0 s: logs count whole seconds."""


def jobs_table(
    log: Log, groups: bool, filled: dict[str, int], noticed: dict[str, int]
) -> dict[str, Any]:
    """Return the columns of jobs, in the order of the log's lines."""
    submit = log["submit_time"]
    start = submit + known(log["wait_time"])
    names, is_again = distinct_ids(_text(log["job_number"]))
    count_rule(noticed, "job number of an earlier line with other content: another job", is_again)
    limit_s = log["requested_time"]
    count_rule(noticed, "requested time of 0: no limit", limit_s == 0)
    jobs: dict[str, Any] = {
        "job_id": names,
        "submit_s": submit - submit[0],
        "template": _names(log, "executable", "", filled),
        "user": _names(log, "user_id", "", filled),
        "queue": _names(log, "queue", "default", filled),
        "requested_s": pa.array(np.where(limit_s > 0, limit_s, np.nan), from_pandas=True),
        "recorded_start_s": start - submit[0],
        "recorded_finish_s": start + log.get(SPAN, log["run_time"]) - submit[0],
    }
    if (log["partition"] >= 0).any():
        jobs["partition"] = _names(log, "partition", "", filled).dictionary_encode()
    if groups:
        jobs["user_group"] = _names(log, "group_id", "", filled).dictionary_encode()
    return jobs


def edges_table(
    log: Log, preceding: str, account: Account
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of edges from preceding jobs, and those of jobs that wait for them."""
    is_named = log["preceding_job"] >= 1
    if not is_named.any():
        return {}, {}
    if preceding == "ignore":
        account.add("preceding=ignore", by_option=True, edges=float(is_named.sum()))
        return {}, {}
    upstream = _preceding_rows(log)
    waits = upstream >= 0
    account.count(edges=float(waits.sum()))
    account.add("preceding job that is no earlier job", edges=float((is_named & ~waits).sum()))
    if not waits.any():
        return {}, {}
    edges = {
        "upstream": upstream[waits].astype(np.int32),
        "downstream": np.flatnonzero(waits).astype(np.int32),
    }
    return edges, {
        "input_mode": pa.array(np.where(waits, "poll", "none")),
        "poll_lag_s": np.where(waits, np.nan_to_num(known(log["think_time"])), 0.0),
    }


def _preceding_rows(log: Log) -> I8:
    """Return the row of each job's preceding job, the last of its number before it; -1: none.

    Rows are in the order of submission, so that no jobs wait for each other.
    """
    n, rank = len(log["preceding_job"]), np.arange(len(log["preceding_job"]))
    distinct, code = np.unique(keys_of(log), return_inverse=True)
    named = keys_of(log, "preceding_job")
    place = np.minimum(np.searchsorted(distinct, named), len(distinct) - 1)
    order = np.argsort(code, kind="stable")
    before = np.searchsorted((code * n + rank)[order], place * n + rank) - 1
    row = order[np.maximum(before, 0)]
    is_there = (log["preceding_job"] >= 1) & (distinct[place] == named)
    return np.where(is_there & (before >= 0) & (code[row] == place), row, -1)


def stages_table(
    log: Log, chosen: str, memory: str, filled: dict[str, int], account: Account
) -> dict[str, Any]:
    """Return the columns of stages, one a job; enter the work that options and defaults change.

    A run time of 0 s becomes half a second.
    """
    processors, is_other = processors_of(log, chosen)
    other = "requested" if chosen == "allocated" else "allocated"
    count_rule(filled, f"{chosen} processors unknown: {other}", is_other)
    allocated, _ = processors_of(log, "allocated")
    is_zero = log["run_time"] == 0
    rule = f"0 s becomes {ZERO_BECOMES_S} s"
    count_rule(filled, rule, is_zero)
    taken_s = {
        "requested processors, not allocated ones": (allocated - processors) * log["run_time"],
        rule: np.where(is_zero, -ZERO_BECOMES_S * processors, 0.0),
    }
    stages: dict[str, Any] = {
        "job": np.arange(len(processors), dtype=np.int32),
        "n_tasks": processors.astype(np.int32),
        "duration_s": np.where(is_zero, ZERO_BECOMES_S, log["run_time"]),
        "demand_cpu": np.ones(len(processors)),
    }
    for changed, part_s in taken_s.items():
        account.change(changed, cpu_s=float(np.sum(part_s)))
    if memory != "none":
        gib = memory_gib(log, memory)
        count_rule(filled, f"{memory} memory unknown: 0", np.isnan(gib))
        stages["demand_mem"] = np.nan_to_num(gib)
        for changed, part_s in taken_s.items():
            account.change(changed, mem_gib_s=float(np.sum(part_s * stages["demand_mem"])))
    return stages


def _names(log: Log, name: str, unknown: str, filled: dict[str, int]) -> pa.Array:
    missing = ~(log[name] >= 0)
    count_rule(filled, f"{name.removesuffix('_id')} unknown: {unknown!r}", missing)
    coded = _text(np.where(missing, -1, log[name])).dictionary_encode()
    texts = [unknown if text == "-1" else text for text in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


def _text(numbers: F8) -> pa.StringArray:
    return pa.array(numbers.astype(np.int64)).cast(pa.string())
