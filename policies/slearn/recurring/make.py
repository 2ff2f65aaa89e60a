"""Build a workload of recurring jobs; task durations have the target variation over space."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from policies.slearn.recurring.draft import (
    GOOD_ERROR,
    Draft,
    fitted_draft,
    longest_over_mean,
    means,
)
from policies.slearn.recurring.programs import DAY_S, Drift, Programs, draw_programs
from policies.slearn.recurring.tables import Tables
from policies.slearn.task_variation import (
    SAMPLED,
    coefficient_of_variation,
    jobs_over_space,
    jobs_over_time,
    load_statistics,
    window_loads,
)
from sim.base import maths
from sim.base.arrays import F8, I8, offsets, ranks
from sim.base.random import stream
from sim.workload.workload import Workload

SHORTEST = 0.01
"""Minimum duration of a task, relative to the mean of its job."""
SPREAD_CORRELATION = 0.7
"""Correlation between runs of a program of the variation of their tasks."""
_STEPS = 48
_STEEPNESS_MAX = 64.0


def variations(tables: Tables, programs: Programs, seed: int, past: bool = False) -> F8:
    """Return the target σ₁ / (√(0.03 n) μ) of each job, log-normal over jobs of several tasks.

    The jobs are ranked by the variation of their strata. With `past`, those of the history follow.
    """
    program = programs.program if past else programs.program[: programs.n_jobs]
    own_normal = stream(seed, "recurring", "spread").standard_normal(len(program))
    normal = (
        np.sqrt(SPREAD_CORRELATION) * programs.steadiness[program]
        + np.sqrt(1 - SPREAD_CORRELATION) * own_normal
    )
    pairs = np.maximum([stratum.over_space for stratum in tables.strata], 1e-6)
    middle, high = maths.log(pairs[programs.stratum[program]]).T
    score = middle + normal * (high - middle) / maths.normal_quantile(0.9)
    rows = np.flatnonzero(programs.width[program] > 1)
    target = np.zeros(len(program))
    if len(rows):
        rank = ranks(score[rows])
        median, at_90 = tables.over_space
        normal = maths.normal_quantile((rank + 0.5) / len(rows))
        target[rows] = median * maths.exp(
            normal * maths.log(at_90 / median) / maths.normal_quantile(0.9)
        )
    return target


def durations(n_tasks: I8, mean_s: F8, over_space: F8, seed: int) -> F8:
    """Return the duration of every task, with exactly the job's mean and variation.

    The excess over `SHORTEST` times the mean is log-normal. A σ₁/μ of √(n-1) or more, which n tasks
    can't reach, is cut.
    """
    first = offsets(n_tasks)
    normal = stream(seed, "recurring", "tasks").standard_normal(int(first[-1]))
    normal -= np.repeat(np.maximum.reduceat(normal, first[:-1]), n_tasks)
    target = np.minimum(over_space * np.sqrt(SAMPLED * n_tasks), 0.94 * np.sqrt(n_tasks - 1))
    target /= 1 - SHORTEST
    low, high = np.zeros(len(n_tasks)), np.full(len(n_tasks), _STEEPNESS_MAX)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        is_below = (
            coefficient_of_variation(maths.exp(np.repeat(middle, n_tasks) * normal), first) < target
        )
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    shape = maths.exp(np.repeat(low, n_tasks) * normal)
    mean = np.add.reduceat(shape, first[:-1]) / n_tasks
    relative = (1 - SHORTEST) * shape / np.repeat(mean, n_tasks) + SHORTEST
    return relative * np.repeat(mean_s, n_tasks)


_ATTEMPTS = 3


def make(
    name: str,
    tables: Tables,
    n_jobs: int,
    n_history: int | None,
    recurring: float | None,
    n_slots: int,
    drift: Drift,
    seed: int,
) -> Workload:
    """Build the workload."""
    draft, draft_seed = draw_draft(tables, n_jobs, n_history, recurring, n_slots, drift, seed)
    n_tasks, mean_s = draft.programs.width[draft.programs.program], means(draft)
    target = variations(tables, draft.programs, draft_seed)
    task_s = durations(n_tasks[:n_jobs], mean_s[:n_jobs], target, draft_seed)
    workload = _workload(name, draft, mean_s, task_s)
    actual = _actual(workload, tables, n_slots)
    targets = dict(zip(actual, (*tables.over_time, *tables.over_space, *tables.load), strict=True))
    pairs = {key: [float(targets[key]), value] for key, value in actual.items()}
    return workload.with_meta({"seed": seed, "target, actual": pairs})


def draw_draft(
    tables: Tables,
    n_jobs: int,
    n_history: int | None,
    recurring: float | None,
    n_slots: int,
    drift: Drift,
    seed: int,
) -> tuple[Draft, int]:
    """Draw a draft, a few times at most, until it is near enough to its targets.

    The seed that made it is returned too.
    """
    drafts = []
    for attempt in range(_ATTEMPTS):
        draft_seed = int(stream(seed, "recurring", attempt).integers(2**62))
        programs = draw_programs(tables, n_jobs, n_history, recurring, draft_seed)
        draft, error = fitted_draft(tables, programs, tables.over_time, n_slots, drift, draft_seed)
        drafts.append((error, draft, draft_seed))
        if error <= GOOD_ERROR:
            break
    _, draft, draft_seed = min(drafts, key=lambda item: item[0])
    return draft, draft_seed


def labels(draft: Draft) -> dict[str, pa.Array]:
    """Return the features of each run, (N,) each: program, the job's name, user and request."""
    programs, program = draft.programs, draft.programs.program
    version = np.where(programs.renamed[program], draft.version, -1)
    texts: dict[str, Any] = {
        "application": np.char.add("app-", program.astype(str)),
        "job_name": [
            f"job-{p}" if v < 0 else f"job-{p}-v{v}" for p, v in zip(program, version, strict=True)
        ],
        "user": np.char.add("user-", programs.user[program].astype(str)),
        "requested": np.char.add("request-", programs.request[program].astype(str)),
    }
    return {k: pa.array(list(v), pa.string()).dictionary_encode() for k, v in texts.items()}


def _workload(name: str, draft: Draft, mean_s: F8, task_s: F8) -> Workload:
    programs, n_jobs = draft.programs, draft.programs.n_jobs
    n_tasks, names = programs.width[programs.program], labels(draft)
    stage = np.arange(n_jobs, dtype=np.int32)
    past = slice(n_jobs, None)
    return Workload.from_tables(
        jobs={
            "job_id": [f"job-{row}" for row in range(n_jobs)],
            "submit_s": draft.time_s[:n_jobs],
            "template": names["application"][:n_jobs],
            **{key: column[:n_jobs] for key, column in names.items()},
        },
        stages={"job": stage, "n_tasks": n_tasks[:n_jobs].astype(np.int32)},
        tasks={"stage": np.repeat(stage, n_tasks[:n_jobs]), "duration_s": task_s},
        history={
            "submit_s": draft.time_s[past],
            "finish_s": (draft.time_s + mean_s * longest_over_mean(n_tasks, draft.tables))[past],
            "n_tasks": n_tasks[past].astype(np.int32),
            "mean_task_s": mean_s[past],
            **{key: column[n_jobs:] for key, column in names.items()},
        },
        meta={"name": f"recurring {name}", "quantum": {"cpu": 1.0}},
    )


def _actual(workload: Workload, tables: Tables, n_slots: int) -> dict[str, float]:
    """Return the workload's values of its targets."""
    columns = workload.columns
    actual: dict[str, float] = {}
    for name, numbers in (
        ("over_time", jobs_over_time(workload, tables.history_days * DAY_S)),
        ("over_space", jobs_over_space(workload)),
    ):
        p50, p90 = np.nanquantile(numbers, [0.5, 0.9])
        actual |= {f"{name}_p50": float(p50), f"{name}_p90": float(p90)}
    load = load_statistics(window_loads(columns.job_submit, columns.job_work, n_slots))
    return actual | {key: load[key] for key in ("load_average", "load_p50", "load_p90")}
