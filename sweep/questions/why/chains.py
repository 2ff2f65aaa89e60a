"""The chain of a job: attempts and waits that follow each other from its submission to its end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim.base.arrays import I8, Mask
from sweep.questions.why.attempts import Attempts

BARRIER, ONE_TO_ONE = 0, 1
SUBMISSION, STOP, PARENT, PARTNER = "submission", "stop", "parent", "partner"
"""An attempt was ready after its job's submission, an earlier attempt of its task, a barrier
parent, or its partner in a one-to-one parent."""


class Link(NamedTuple):
    """An attempt, and what it was ready after."""

    row: int
    ready_s: float
    after: str


def chain(attempts: Attempts, job: int) -> list[Link]:
    """Return the chain of a job that is done, first link first.

    It ends with the job's last attempt. Before an attempt stands what ended last among what it
    needed: its parents' tasks, and earlier attempts of its own task. Of several that end at one
    instant it is the first row. So waits and running times of a chain add up to the completion
    time.
    """
    rows = attempts.rows_of(job)
    ended = attempts.is_whole[rows] & (attempts.end_s[rows] <= attempts.run.job_finish[job])
    whole = np.flatnonzero(ended) + rows.start
    current = int(whole[np.argmax(attempts.end_s[whole])])
    links, seen = [], {current}
    while True:
        needed, after = _needed(attempts, rows, current)
        is_new = np.array([row not in seen for row in needed.tolist()], np.bool_)
        needed, after = needed[is_new], after[is_new]
        if not len(needed):
            links.append(Link(current, float(attempts.run.job_submit[job]), SUBMISSION))
            return links[::-1]
        last = int(np.argmax(attempts.end_s[needed]))
        before = int(needed[last])
        links.append(Link(current, float(attempts.end_s[before]), str(after[last])))
        seen.add(before)
        current = before


def _needed(a: Attempts, rows: slice, current: int) -> tuple[I8, I8]:
    """Return rows of the job that ended before an attempt was placed, and that it needed: why."""
    columns = a.columns
    stage, task, count = (int(values[current]) for values in (a.stage, a.task, a.count))
    is_ended: Mask = a.end_s[rows] <= a.placed_s[current]
    is_ended[current - rows.start] = False
    why = np.where(is_ended & (a.task[rows] == task), STOP, "").astype(object)
    for parent, kind in a.parents(stage):
        is_parent = is_ended & (a.stage[rows] == parent) & a.is_whole[rows]
        if kind == ONE_TO_ONE:
            first = task - int(columns.stage_task0[stage]) + int(columns.stage_task0[parent])
            begin = a.task[rows]
            is_parent &= (begin < first + count) & (begin + a.count[rows] > first)
        why[is_parent] = PARENT if kind == BARRIER else PARTNER
    needed = np.flatnonzero(why != "")
    return needed + rows.start, why[needed]
