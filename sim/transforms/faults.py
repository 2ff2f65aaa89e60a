"""Faults of tasks, drawn beforehand: attempts that fail, inputs that are lost, stragglers.

They are drawn from (seed, purpose) alone, so that every policy meets the same ones.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.base.parameters import Between, Factor, Share, checked
from sim.base.random import Stream, stream
from sim.transforms.parts import rebuilt
from sim.workload.columns import Columns
from sim.workload.tables import with_column
from sim.workload.workload import Workload

MOST_FAILURES = 8
"""Attempts of one task that fail at the most."""
STRAGGLERS, SLOWER = 0.01, (1.5, 3.0)
"""What part of the tasks straggle, and how many times as long they take until they end or a
duplicate has: assumptions."""


@checked
def fail_tasks(
    workload: Workload,
    single: Share = 0.01,
    multiple: Annotated[float, Between(0, 1 - 1e-9)] = 0.15,
    lost: Share = 0.001,
    of: Literal["all", "deadline"] = "all",
    seed: int = 0,
) -> Workload:
    """Draw which attempts of which tasks fail, and which find an input lost.

    An attempt fails after a part of the task's duration that is drawn evenly. What finds its input
    lost does so before its other failures; the input is that of a task it waits for: of any of its
    edges alike, then of any task behind it.

    Parameters
    ----------
    workload : Workload
        Without failures.
    single : float
        Chance that a task's first attempt fails.
    multiple : float
        Chance that the next attempt fails where one has.
    lost : float
        Chance that a task with parents finds an input lost.
    of : {"all", "deadline"}
        Tasks of all jobs, or of those with a deadline.
    seed : int
        Seed of the draws.

    Raises
    ------
    InputError
        If a chance is not between 0 and 1 (`multiple` below 1), or there are failures already.
    """
    if workload.failures.num_rows:
        raise InputError("the workload has failures already; give one without")
    task, after_s, missing = _draw(workload.columns, single, multiple, lost, of, seed)
    noted = {"fail_tasks": len(task), "lost": int((missing >= 0).sum()), "seed": int(seed)}
    failures = {"task": task, "after_s": after_s, "lost": missing}
    return rebuilt(workload, noted, validate=True, failures=failures)


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
        Without failures.
    rate : float
        What part of the tasks straggle.
    slower : (float, float)
        Between what their durations are multiplied by, evenly in the logarithm.
    seed : int
        Seed of the draws.

    Raises
    ------
    InputError
        If the rate is not between 0 and 1, or the factors are not 1 or more and rising.
    """
    low, high = (float(s) for s in slower)
    if not 1 <= low <= high < np.inf:
        raise InputError(f"slower must be two rising numbers from 1 on, not {slower!r}")
    factor = straggling(workload.n_tasks, stream(seed, "stragglers"), rate, (low, high))
    tasks = with_column(workload.tasks, "duration_s", workload.columns.task_duration * factor)
    noted = {"straggle": int((factor > 1).sum()), "seed": int(seed)}
    return rebuilt(workload, noted, validate=True, tasks=tasks)


def straggling(
    n: int, rng: Stream, rate: float = STRAGGLERS, slower: tuple[float, float] = SLOWER
) -> F8:
    """Draw what the durations of `n` tasks are multiplied by, (n,); 1 for most."""
    chosen = rng.random(n) < rate
    factor = np.ones(n)
    low, high = maths.log(slower)
    factor[chosen] = maths.exp(rng.uniform(low, high, int(chosen.sum())))
    return factor


def _draw(
    columns: Columns, single: float, multiple: float, lost: float, of: str, seed: int
) -> tuple[I8, F8, I8]:
    """Return the rows of the table: task, after_s and lost."""
    stage = columns.task_stage()
    task = np.arange(len(stage))
    if of == "deadline":
        task = task[~np.isnan(columns.job_deadline)[columns.stage_job[stage]]]
    rng = stream(seed, "failures")
    first, more, finds = rng.random((3, len(task)))
    again = np.floor(maths.log(more) / maths.log(multiple)) if multiple > 0 else np.zeros(len(task))
    n_failed = np.where(first < single, 1 + np.minimum(again, MOST_FAILURES - 1), 0)
    parents = columns.stage_n_barrier + columns.stage_n_o2o
    losing = (finds < lost) & (parents[stage[task]] > 0)
    input_of = _inputs(columns, task[losing], stage, stream(seed, "lost inputs"))
    n = n_failed.astype(np.int64) + losing
    out = np.repeat(task, n)
    missing = np.full(len(out), -1, np.int64)
    missing[(np.cumsum(n) - n)[losing]] = input_of
    return out, columns.task_duration[out] * rng.random(len(out)), missing


def _inputs(columns: Columns, task: I8, stage: I8, rng: Stream) -> I8:
    """Draw for each task one that it waits for: an edge, then a task behind it."""
    n_children = np.diff(columns.edge0)
    order = np.argsort(columns.edge_child, kind="stable")
    parent = np.repeat(np.arange(len(n_children)), n_children)[order]
    child, kind = columns.edge_child[order], columns.edge_kind[order]
    own = stage[task]
    begin, end = np.searchsorted(child, own), np.searchsorted(child, own, side="right")
    choice, where = rng.random((2, len(task)))
    edge = begin + np.floor(choice * (end - begin)).astype(np.int64)
    task0 = columns.stage_task0
    n = (task0[1:] - task0[:-1])[parent[edge]]
    place = np.floor(where * n).astype(np.int64)
    same = np.minimum(task - task0[own], n - 1)
    lost: I8 = task0[parent[edge]] + np.where(kind[edge] == 1, same, place)
    return lost
