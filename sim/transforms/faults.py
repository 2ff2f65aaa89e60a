"""Transforms that draw task faults: failed attempts, lost inputs, stragglers.

They are drawn before the run, from (seed, purpose) alone, so every policy meets the same faults.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.base.parameters import Between, Factor, Share, checked
from sim.base.random import Stream, stream
from sim.transforms.parts import rebuild
from sim.workload.columns import Columns
from sim.workload.tables import with_column
from sim.workload.workload import Workload

MAX_FAILURES = 8
"""Largest number of failed attempts per task."""
STRAGGLERS, SLOWER = 0.01, (1.5, 3.0)
"""Fraction of tasks that straggle, and the range of their slowdown until they or a duplicate end:
assumptions."""


@checked
def fail_tasks(
    workload: Workload,
    single: Share = 0.01,
    multiple: Annotated[float, Between(0, 1 - 1e-9)] = 0.15,
    lost: Share = 0.001,
    scope: Literal["all", "deadline"] = "all",
    seed: int = 0,
) -> Workload:
    """Draw failed attempts of tasks, and lost inputs.

    An attempt fails after a uniformly drawn fraction of the task's duration. If a task's input is
    lost, that is its first failure. The lost input is the output of a task that it waits for: one
    of its edges is drawn uniformly, then one of the parent's tasks.

    Parameters
    ----------
    workload : Workload
        Workload without failures.
    single : float
        Probability that a task's first attempt fails.
    multiple : float
        Probability that the next attempt fails too.
    lost : float
        Probability that an input of a task with parents is lost.
    scope : {"all", "deadline"}
        Tasks of all jobs, or of jobs with a deadline.
    seed : int
        Seed of the draws.

    Raises
    ------
    InputError
        If a probability is not between 0 and 1 (`multiple` below 1), or there are failures already.
    """
    if workload.failures.num_rows:
        raise InputError(
            "the workload has task failures already; apply fail_tasks once, to a workload without"
        )
    task, after_s, missing = _draw(workload.columns, single, multiple, lost, scope, seed)
    transform = {"fail_tasks": len(task), "lost": int((missing >= 0).sum()), "seed": int(seed)}
    failures = {"task": task, "after_s": after_s, "lost": missing}
    return rebuild(workload, transform, validate=True, failures=failures)


@checked
def straggle(
    workload: Workload,
    rate: Share = STRAGGLERS,
    slower: tuple[Factor, Factor] = SLOWER,
    seed: int = 0,
) -> Workload:
    """Make some tasks stragglers, which take several times as long.

    Parameters
    ----------
    workload : Workload
        Workload without failures.
    rate : float
        Fraction of tasks that straggle.
    slower : (float, float)
        Range of the factor of their durations, which is uniform in the logarithm.
    seed : int
        Seed of the draws.

    Raises
    ------
    InputError
        If the rate is not between 0 and 1, or the factors are below 1 or in the wrong order.
    """
    low, high = (float(s) for s in slower)
    if not 1 <= low <= high < np.inf:
        raise InputError(
            f"slower must be two numbers of at least 1, the smaller one first, not {slower!r}"
        )
    factor = straggler_factors(workload.n_tasks, stream(seed, "stragglers"), rate, (low, high))
    tasks = with_column(workload.tasks, "duration_s", workload.columns.task_duration * factor)
    transform = {"straggle": int((factor > 1).sum()), "seed": int(seed)}
    return rebuild(workload, transform, validate=True, tasks=tasks)


def straggler_factors(
    n: int, rng: Stream, rate: float = STRAGGLERS, slower: tuple[float, float] = SLOWER
) -> F8:
    """Draw the factors of the durations of `n` tasks, (n,); 1 for tasks that do not straggle."""
    is_straggler = rng.random(n) < rate
    factor = np.ones(n)
    low, high = maths.log(slower)
    factor[is_straggler] = maths.exp(rng.uniform(low, high, int(is_straggler.sum())))
    return factor


def _draw(
    columns: Columns, single: float, multiple: float, lost: float, scope: str, seed: int
) -> tuple[I8, F8, I8]:
    """Return the columns of the table of failures: task, after_s and lost."""
    stage = columns.task_stage()
    task = np.arange(len(stage))
    if scope == "deadline":
        task = task[~np.isnan(columns.job_deadline)[columns.stage_job[stage]]]
    rng = stream(seed, "failures")
    u_first, u_more, u_lost = rng.random((3, len(task)))
    n_more = np.zeros(len(task))
    if multiple > 0:
        n_more = np.floor(maths.log(u_more) / maths.log(multiple))
    n_failed = np.where(u_first < single, 1 + np.minimum(n_more, MAX_FAILURES - 1), 0)
    n_parents = columns.stage_n_barrier + columns.stage_n_o2o
    loses_input = (u_lost < lost) & (n_parents[stage[task]] > 0)
    lost_input = _inputs(columns, task[loses_input], stage, stream(seed, "lost inputs"))
    exists = lost_input >= 0
    loses_input[loses_input] = exists
    lost_input = lost_input[exists]
    n = n_failed.astype(np.int64) + loses_input
    failed_task = np.repeat(task, n)
    missing = np.full(len(failed_task), -1, np.int64)
    missing[(np.cumsum(n) - n)[loses_input]] = lost_input
    after_s = columns.task_duration[failed_task] * rng.random(len(failed_task))
    return failed_task, after_s, missing


def _inputs(columns: Columns, task: I8, stage: I8, rng: Stream) -> I8:
    """Draw for each task one that it waits for: an edge, then a task of the parent.

    -1 if it has no partner over an edge from task to task.
    """
    n_children = np.diff(columns.edge0)
    order = np.argsort(columns.edge_child, kind="stable")
    parent = np.repeat(np.arange(len(n_children)), n_children)[order]
    child, kind = columns.edge_child[order], columns.edge_kind[order]
    task_stage = stage[task]
    begin = np.searchsorted(child, task_stage)
    end = np.searchsorted(child, task_stage, side="right")
    u_edge, u_task = rng.random((2, len(task)))
    edge = begin + np.floor(u_edge * (end - begin)).astype(np.int64)
    task0 = columns.stage_task0
    n = (task0[1:] - task0[:-1])[parent[edge]]
    any_task = np.floor(u_task * n).astype(np.int64)
    same_task = task - task0[task_stage]
    is_one_to_one = kind[edge] == 1
    lost: I8 = task0[parent[edge]] + np.where(is_one_to_one, same_task, any_task)
    lost[is_one_to_one & (same_task >= n)] = -1
    return lost
