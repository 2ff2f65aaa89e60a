"""Build a workload of program runs from fitted programs and tables."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from policies.wing.programs.draw import (
    Runs,
    choose_jobs,
    draw_quantile,
    draw_runs,
    has_kinds,
    run_programs,
)
from policies.wing.programs.file import Fitted
from policies.wing.programs.history import add_dependencies, split_history
from policies.wing.programs.profiles import LABELS, Profile, attributes
from sim.base import maths
from sim.base.arrays import F8, I8, Mask
from sim.base.random import stream
from sim.synth.fitted.arrivals import draw_rows
from sim.synth.fitted.jobs import draw_jobs
from sim.transforms.parts import rebuild, repeat_jobs
from sim.workload.columns import job_n_tasks, job_work_s
from sim.workload.paths import critical_path_s
from sim.workload.tables import values, with_column
from sim.workload.workload import Workload

NEAR_TURNS = 4.0
"""Maximum shift of the arrivals of jobs of kinds, in turns of the clock (weeks, for a long log)."""


def make(
    fitted: Fitted,
    jobs: int,
    seed: int,
    history: int | None = None,
    joint: bool | None = None,
    deadline: float | None = None,
) -> Workload:
    """Draw runs and build their jobs; the first ones become the history."""
    profiles = fitted.programs
    if history is None:
        history = jobs if any(profile.is_program for profile in profiles) else 0
    n = jobs + history
    kinds = has_kinds(profiles)
    tables = fitted.tables
    drawn_jobs = draw_jobs(tables, n, seed, joint=tables.has_joint if joint is None else joint)
    source_job, submit_s = None, values(drawn_jobs.jobs, "submit_s")
    if kinds and tables.arrivals is not None:
        source_job, submit_s = draw_rows(tables.arrivals, n, seed, NEAR_TURNS)
    runs = draw_runs(profiles, n, seed, source_job)
    program, program_profile = run_programs(profiles, runs)
    row, factor = choose_jobs(
        profiles, runs, program, program_profile, job_work_s(drawn_jobs), attributes(drawn_jobs)
    )
    workload = repeat_jobs(drawn_jobs, row, np.ones(n, dtype=bool), submit_s, {})
    workload = _add_labels(workload, profiles, runs)
    workload = _scale_durations(
        workload, factor, np.array([profile.spread for profile in profiles])[runs.profile], seed
    )
    requests = np.array([profile.requested or (np.nan, np.nan) for profile in profiles])
    requested_s, max_share = requests[runs.profile].T
    if kinds:
        shorter = np.fmin(requested_s * max_share / critical_path_s(workload.columns), 1.0)
        workload = _scale_durations(workload, shorter, np.zeros(len(profiles))[runs.profile], seed)
    is_named = np.array([profile.is_program for profile in profiles])[runs.profile]
    workload = _add_deadlines(
        workload, profiles, runs, np.where(is_named, program, -1), deadline, seed
    )
    if kinds:
        requested = pa.array(requested_s, from_pandas=True)
        workload = rebuild(
            workload, None, jobs=with_column(workload.jobs, "requested_s", requested)
        )
    workload = add_dependencies(workload, profiles, runs, seed)
    workload = split_history(workload, history)
    synth = {
        "generator": "programs", "jobs": jobs, "seed": int(seed), "history": int(history),
        "deadline": deadline, "source": fitted.source, "programs": len(program_profile),
        "jobs_from": workload.meta["synth"],
    }  # fmt: skip
    return workload.with_meta({"name": "synth-programs", "synth": synth, "transforms": []})


def _add_labels(workload: Workload, profiles: tuple[Profile, ...], runs: Runs) -> Workload:
    """Add the labels of profiles; programs that ran once get a new name in every block."""
    jobs = workload.jobs
    jobs = with_column(jobs, "job_id", [f"run-{row:07d}" for row in range(workload.n_jobs)])
    keys = [(profile.labels, profile.priority, profile.gang) for profile in profiles]
    n_runs: Counter[tuple[tuple[str, ...], float, bool]] = Counter()
    for key, profile in zip(keys, profiles, strict=True):
        n_runs[key] += len(profile.positions)
    once = [
        profile.is_program and n_runs[key] == 1 for key, profile in zip(keys, profiles, strict=True)
    ]
    suffix = np.where(np.array(once)[runs.profile], runs.block, 0)
    n_blocks = int(runs.block.max()) + 1
    distinct, index = np.unique(runs.profile * n_blocks + suffix, return_inverse=True)
    number, block = np.divmod(distinct, n_blocks)
    for i, label in enumerate(LABELS):
        texts = [
            f"{profiles[p].labels[i]}~{b}" if b and i < 3 and profiles[p].labels[i]
            else profiles[p].labels[i]
            for p, b in zip(number.tolist(), block.tolist(), strict=True)
        ]  # fmt: skip
        if not any(texts):
            continue
        column = pa.DictionaryArray.from_arrays(pa.array(index, pa.int32()), pa.array(texts))
        jobs = with_column(jobs, label, column.cast(pa.string()).dictionary_encode())
    priority = np.array([profile.priority for profile in profiles])[runs.profile]
    gang = np.array([profile.gang for profile in profiles])[runs.profile]
    poll = np.array([profile.poll_lag_s for profile in profiles])[runs.profile]
    jobs = with_column(jobs, "priority", priority)
    jobs = with_column(jobs, "min_tasks", np.where(gang, job_n_tasks(workload), 0).astype(np.int32))
    if poll.any():
        jobs = with_column(jobs, "poll_lag_s", pa.array(poll))
    return rebuild(workload, None, jobs=jobs)


def _scale_durations(workload: Workload, factor: F8, spread: F8, seed: int) -> Workload:
    """Scale task durations by a job's factor, and spread those of a stage around its mean."""
    stage_factor = factor[values(workload.stages, "job")]
    if workload.stage_duration_s is not None and not spread.any():
        return rebuild(workload, None, workload.stage_duration_s * stage_factor)
    columns = workload.columns
    stage = columns.task_stage()
    if workload.stage_duration_s is None:  # the tasks of a stage differ already
        spread = np.zeros(len(factor))
    noise = stream(seed, "programs", "tasks").standard_normal(len(stage))
    relative = maths.exp(spread[columns.stage_job][stage] * noise)
    mean = np.bincount(stage, relative, workload.n_stages) / columns.stage_n_tasks
    task_s = columns.task_duration * (stage_factor / mean)[stage] * relative
    return rebuild(workload, None, tasks={"stage": stage.astype(np.int32), "duration_s": task_s})


def _add_deadlines(
    workload: Workload,
    profiles: tuple[Profile, ...],
    runs: Runs,
    program: I8,
    deadline: float | None,
    seed: int,
) -> Workload:
    """Add the deadlines of jobs."""
    jobs, cp_s = workload.jobs, critical_path_s(workload.columns)
    u = stream(seed, "programs", "asked").random((2, workload.n_jobs))[1]
    due_s = cp_s * draw_quantile([profile.deadline for profile in profiles], runs.profile, u)
    if np.isnan(due_s).all() and deadline is not None:
        due_s = deadline * _program_medians(program, cp_s)
    jobs = with_column(jobs, "deadline_s", pa.array(due_s, pa.float64(), from_pandas=True))
    return rebuild(workload, None, jobs=jobs)


def _program_medians(program: I8, cp_s: F8) -> F8:
    """Return the median critical path of a job's program, (N,); NaN for a program's first run."""
    median_s = np.full(len(program), np.nan)
    order = np.lexsort((cp_s, program))
    n = np.bincount(program[program >= 0], minlength=1)
    begin = int((program < 0).sum()) + np.cumsum(n) - n
    has_program: Mask = program >= 0
    if has_program.any():
        median_s[has_program] = cp_s[order[begin + n // 2]][program[has_program]]
    first = np.unique(program, return_index=True)[1]
    median_s[first] = np.nan
    return median_s
