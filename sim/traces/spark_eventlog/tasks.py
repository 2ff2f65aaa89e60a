"""Choose the tasks of each stage from its attempts.

A task is the first successful attempt at a partition; the others are left out, by rule. A stage
that completed has run all its tasks: those without an end in the log are events that Spark's
listener bus dropped.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.base.errors import InputError
from sim.base.memory import available_bytes
from sim.base.reading import Account
from sim.traces.spark_eventlog.application import (
    COLUMN,
    DONE,
    KILLED,
    KINDS,
    ROW,
    Application,
)
from sim.traces.spark_eventlog.attempts import Attempts

MissingTasks = Literal["leave_out", "median"]
BYTES: Final = tuple(name for name in ROW if name.endswith("_bytes"))
TASK: Final = ("launch_ms", "finish_ms", "duration_s", *BYTES)
"""Columns of `Tasks.by_stage`; launch and finish are NaN if they are not in the log."""
SHORTEST_S: Final = 0.0005
"""Duration of a task whose launch and finish are the same millisecond."""
ZERO: Final = f"0 ms becomes {1000 * SHORTEST_S:g} ms"
REPEATED: Final = "a repeated event: another line has the same attempt"
UNKNOWN_STAGE: Final = "a task of a stage that no event describes"
RAN_AGAIN: Final = "a task that ran again: its output was lost"
LATE: Final = "an earlier attempt of the stage that ended later"
COPY_LOST: Final = "a speculative copy that lost"
OVERTAKEN: Final = "an attempt that a speculative copy overtook"
SECOND: Final = "a second success of a task, for no reason that the log shows"
MISSING: Final = "a task whose end is not in the log, though its stage completed"
MEDIAN: Final = "a task whose end is not in the log: the median of its stage"
CENSORED: Final = "a task that has not ended (censored)"
UNENDED: Final = "an attempt whose end is not in the log"


@dataclass
class Tasks:
    """Tasks of an application, and how many of them the log should have.

    Attributes
    ----------
    by_stage : dict of int to (T, len(TASK)) float64
        Tasks of each stage that has any, in order of partitions.
    ran : set of int
        Stages that ran, with or without a task that ended.
    n_due : int
        Number of tasks of the stages that completed.
    n_missing : int
        Those of them without an end in the log.
    n_censored : int
        Number of tasks that still ran where the log ends.
    """

    by_stage: dict[int, F8]
    ran: set[int]
    n_due: int = 0
    n_missing: int = 0
    n_censored: int = 0


def choose_tasks(app: Application, account: Account, missing_tasks: MissingTasks) -> Tasks:
    """Return an application's tasks; count and enter all other attempts by rule."""
    attempts = Attempts(app, account)
    fresh = ~attempts.repeated()
    _leave_out_repeated(attempts, fresh)
    kind = attempts["kind"]
    for number, reason in enumerate(KINDS[2:], 2):
        attempts.leave_out(f"a failed attempt: {reason}", np.flatnonzero(fresh & (kind == number)))
    described = np.isin(attempts["stage"], np.fromiter(app.stages, np.float64, len(app.stages)))
    done = fresh & (kind == DONE)
    attempts.leave_out(UNKNOWN_STAGE, np.flatnonzero(done & ~described), n_tasks=1)
    first = _first_successes(attempts, np.flatnonzero(done & described))
    _leave_out_killed(attempts, first, np.flatnonzero(fresh & (kind == KILLED)))
    attempts.leave_out_unread()
    unended = _unended(app)
    ran = {*unended, *app.submissions, *app.completions}
    ran |= {int(stage) for stage in np.unique(attempts["stage"])}
    tasks = Tasks(_by_stage(attempts, first), ran)
    _leave_out_unended(attempts, tasks, unended, missing_tasks)
    return tasks


def _leave_out_repeated(attempts: Attempts, fresh: Mask) -> None:
    """Leave out repeated rows, which are no loss; notice files that have no others."""
    app = attempts.app
    attempts.leave_out(REPEATED, np.flatnonzero(~fresh), is_loss=False)
    bounds = [*app.file_rows, len(fresh)]
    n_files = sum(
        end > begin and not fresh[begin:end].any() for begin, end in itertools.pairwise(bounds)
    )
    app.notice("a repeated file: other files have all its attempts", n_files)


def _first_successes(attempts: Attempts, done: I8) -> I8:
    """Return the first success of each task by stage and partition; leave out the others."""
    app, stage, partition = attempts.app, attempts["stage"], attempts.partition
    order = np.lexsort((attempts["finish_ms"][done], partition[done], stage[done]))
    done = done[order]
    is_first = np.ones(len(done), dtype=bool)
    is_first[1:] = (np.diff(stage[done]) != 0) | (np.diff(partition[done]) != 0)
    first = done[np.maximum.accumulate(np.where(is_first, np.arange(len(done)), 0))]
    lost = {
        (incident.stage, incident.attempt, incident.number)
        for incident in app.incidents
        if incident.kind == "lost"
    }
    rules = {
        row: _second_success(attempts.rows[row], attempts.rows[winner], lost)
        for row, winner in zip(done[~is_first].tolist(), first[~is_first].tolist(), strict=True)
    }
    _leave_out_by_rule(attempts, rules)
    won = done[is_first]
    attempts.keep(won)
    app.notice("a speculative copy that won", int(np.count_nonzero(attempts["speculative"][won])))
    return won


def _second_success(row: F8, winner: F8, lost: set[tuple[int, int, int]]) -> str:
    """Return the rule of a success after the first one, by the evidence for its cause."""
    attempt, first_attempt = row[COLUMN["attempt"]], winner[COLUMN["attempt"]]
    key = (int(row[COLUMN["stage"]]), int(first_attempt), int(winner[COLUMN["partition"]]))
    if attempt > first_attempt or (attempt == first_attempt and key in lost):
        return RAN_AGAIN
    if attempt < first_attempt:
        return LATE
    if row[COLUMN["speculative"]]:
        return COPY_LOST
    return OVERTAKEN if winner[COLUMN["speculative"]] else SECOND


def _leave_out_killed(attempts: Attempts, first: I8, killed: I8) -> None:
    stage, partition, speculative = attempts["stage"], attempts.partition, attempts["speculative"]
    concerned = first[np.isin(stage[first], stage[killed])]
    copy_won = {(stage[row], partition[row]): bool(speculative[row]) for row in concerned.tolist()}
    rules: dict[int, str] = {}
    for row in killed.tolist():
        by_copy = copy_won.get((stage[row], partition[row]))
        if speculative[row] and by_copy is not None:
            rules[row] = COPY_LOST
        else:
            rules[row] = OVERTAKEN if by_copy else "a killed attempt"
    _leave_out_by_rule(attempts, rules)


def _leave_out_by_rule(attempts: Attempts, rules: dict[int, str]) -> None:
    for rule in dict.fromkeys(rules.values()):
        attempts.leave_out(rule, np.array([row for row, other in rules.items() if other == rule]))


def _by_stage(attempts: Attempts, first: I8) -> dict[int, F8]:
    """Return the tasks by stage; those of 0 ms last `SHORTEST_S`."""
    tasks = np.empty((len(first), len(TASK)))
    for column, name in enumerate(TASK):
        tasks[:, column] = attempts.run_s[first] if name == "duration_s" else attempts[name][first]
    stage = attempts["stage"][first]
    begins = np.flatnonzero(np.diff(stage)) + 1
    by_stage = {
        int(stage[begin]): part
        for begin, part in zip([0, *begins.tolist()], np.split(tasks, begins), strict=True)
        if len(part)
    }
    for stage_id, part in by_stage.items():
        zero = part[:, TASK.index("duration_s")] == 0
        n_zero = int(np.count_nonzero(zero))
        if n_zero:
            part[zero, TASK.index("duration_s")] = SHORTEST_S
            attempts.app.fill(ZERO, n_zero)
            attempts.change(ZERO, stage_id, SHORTEST_S * n_zero)
    return by_stage


def _leave_out_unended(
    attempts: Attempts, tasks: Tasks, unended: dict[int, int], missing_tasks: MissingTasks
) -> None:
    """Leave out, or fill in, attempts and tasks without an end in the log."""
    app = attempts.app
    completed = _completed(app, tasks.ran)
    unread = Counter(line.stage for line in app.unread if line.is_success)
    for stage in sorted({*completed, *unended}):
        n_unended = unended.get(stage, 0)
        n_ended = len(tasks.by_stage.get(stage, ())) + unread[stage]
        n_tasks = app.stages[stage].n_tasks if stage in app.stages else n_unended + n_ended
        n_missing = max(n_tasks - n_ended, 0)
        if stage in completed:
            tasks.n_due += max(n_tasks, n_ended)
            tasks.n_missing += n_missing
            app.notice(MISSING, n_missing)
            if missing_tasks == "median" and stage in tasks.by_stage:
                tasks.by_stage[stage] = _filled(attempts, stage, tasks.by_stage[stage], n_missing)
            else:
                attempts.leave_out_unknown(MISSING, n_missing, n_missing)
            n_unended, n_missing = max(n_unended - n_missing, 0), 0
        is_censored = stage not in completed and not math.isfinite(app.end_ms)
        n_missing = min(n_unended, n_missing)
        if is_censored:
            tasks.n_censored += n_missing
            app.drop(CENSORED, n_unended)
        else:
            app.notice(UNENDED, n_unended)
        attempts.leave_out_unknown(CENSORED if is_censored else UNENDED, n_unended, n_missing)


def _unended(app: Application) -> dict[int, int]:
    """Return the number of attempts that started and have no end, by stage."""
    started = app.started
    task, position = np.unique(started[:, 1], return_index=True)
    unread = np.array([line.task for line in app.unread], np.float64)
    ended = np.concatenate([app.attempts[:, COLUMN["task"]], unread])
    stages, counts = np.unique(started[position[~np.isin(task, ended)], 0], return_counts=True)
    return dict(zip(stages.tolist(), counts.tolist(), strict=True))


def _completed(app: Application, ran: set[int]) -> set[int]:
    """Return the stages that completed, of those that ran.

    Spark says so, or the job succeeded, or a stage that reads the output ran.
    """
    completed = {*app.completions}
    for stage_id in ran & app.stages.keys():
        stage = app.stages[stage_id]
        if stage.job in app.jobs and app.jobs[stage.job].has_succeeded:
            completed.add(stage_id)
        completed |= ran.intersection(stage.parents)
    return completed


def _filled(attempts: Attempts, stage: int, tasks: F8, n: int) -> F8:
    """Return a stage's tasks and `n` more, of their median duration."""
    n_bytes = n * len(TASK) * 8
    if n_bytes > available_bytes() // 4:
        raise InputError(
            f"stage {stage} has {n:,} tasks without an end in the log, too many for the memory of "
            "this machine: leave them out (missing_tasks=leave_out)",
            rule="too large",
        )
    if not n:
        return tasks
    median_s = float(np.median(tasks[:, TASK.index("duration_s")]))
    more = np.zeros((n, len(TASK)))
    more[:, : TASK.index("duration_s")] = np.nan
    more[:, TASK.index("duration_s")] = median_s
    attempts.app.fill(MEDIAN, n)
    attempts.change(MEDIAN, stage, median_s * n, n_tasks=n)
    return np.concatenate([tasks, more])
