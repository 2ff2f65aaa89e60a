"""Partial executions: lines of the runs between which a job was swapped out or had a checkpoint.

By the standard they follow a line of the whole job. Where there is none, they are joined into one.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.base.reading import count_rule, repeated_rows
from sim.traces.swf.fields import FIELDS, Log, known, take
from sim.traces.swf.lines import (
    COMPLETED,
    CONTINUED,
    FAILED,
    LAST_COMPLETED,
    LAST_FAILED,
    PARTS,
    amounts,
    keys_of,
    processors_of,
    rules_of,
)

SPAN: Final = "span_s"
"""Column with the time from the first start to the last end of parts that were joined, s."""


def without_repeats(log: Log, dropped: dict[str, int]) -> Log:
    """Return the lines without those that equal an earlier one; they have no work of their own."""
    fields = {name: log[name] for name in FIELDS}
    is_repeated = repeated_rows(log["job_number"], {**fields, "turn": _turns(log)})
    count_rule(dropped, "repeated line", is_repeated)
    return take(log, ~is_repeated) if is_repeated.any() else log


def _turns(log: Log) -> F8:
    """Return the number of each part after the last line of its job that tells its submission.

    Parts of one length are alike in every field. They are no repeated lines, as their turns differ.
    """
    is_part = np.isin(log["status"], PARTS)
    turn = np.zeros(len(is_part))
    if not is_part.any():
        return turn
    key = keys_of(log)
    order = np.argsort(key, kind="stable")
    ordered, position = key[order], np.arange(len(order))
    begins = np.append(True, ordered[1:] != ordered[:-1]) | (log["submit_time"][order] >= 0)
    turn[order] = position - np.maximum.accumulate(np.where(begins, position, 0))
    return np.where(is_part, turn, 0.0)


def join_parts(log: Log, dropped: dict[str, int], noticed: dict[str, int]) -> Log:
    """Return the lines with one a job: parts of jobs with a whole line dropped, others joined.

    A whole line from which no job can be made counts as none.
    """
    is_part = np.isin(log["status"], PARTS)
    if not is_part.any():
        return log
    key = keys_of(log)
    is_whole = ~is_part & ~np.logical_or.reduce([*rules_of(log).values()])
    has_whole = is_part & np.isin(key, key[is_whole])
    count_rule(dropped, "partial execution of a job that has its whole line", has_whole)
    rows = np.flatnonzero(is_part & ~has_whole)
    log, is_joined = _joined(log, rows, key[rows], noticed)
    count_rule(dropped, "partial execution, joined to the job's first", is_joined)
    return take(log, ~(has_whole | is_joined))


def _joined(log: Log, rows: I8, key: I8, noticed: dict[str, int]) -> tuple[Log, Mask]:
    """Return the log with the parts in `rows` joined into the first of each key; mark the others.

    Such a line has the work of all parts on the processors of the widest, and ``span_s``, the time
    to the end of the last part (NaN: unknown).
    """
    log = {**log, SPAN: log["run_time"]}
    is_joined = np.zeros(len(log["status"]), dtype=bool)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    head, is_head = rows[first], np.zeros(len(rows), dtype=bool)
    is_head[first] = True
    part = take(log, rows)
    processors, _ = processors_of(part, "allocated")
    work_s = np.bincount(group, amounts(part)["cpu_s"])
    later_s = np.where(is_head, 0.0, known(part["wait_time"]))
    n_completed, n_failed = (
        np.bincount(group, part["status"] == last) for last in (LAST_COMPLETED, LAST_FAILED)
    )
    ended = np.where(n_completed > 0, COMPLETED, FAILED)
    width = np.full(len(head), np.nan)
    np.fmax.at(width, group, processors)
    columns = {
        "run_time": np.nan_to_num(work_s / width, nan=-1.0),
        "allocated_processors": np.where(width >= 1, width, part["allocated_processors"][first]),
        SPAN: np.bincount(group, known(part["run_time"]) + later_s),
        "status": np.where(n_completed + n_failed > 0, ended, CONTINUED),
    }
    for name, values in columns.items():
        log[name] = log[name].copy()
        log[name][head] = values
    is_joined[rows[~is_head]] = True
    count_rule(noticed, "job of partial executions alone: joined", np.ones(len(head), dtype=bool))
    is_narrower = processors < width[group]
    count_rule(noticed, "partial execution on fewer processors than another one", is_narrower)
    return log, is_joined
