"""Build the workload of a controlled run: jobs with deadlines, training, faults, background jobs.

Deadlines are in minutes after submission (Ferguson et al., EuroSys 2012, §5.1). Background jobs
have no deadline. There are two kinds: ordinary jobs, in slow waves and bursts, keep the cluster
about as busy as published; queued jobs always have tasks waiting and take the slots that the
ordinary ones leave, so that several jobs compete for a spare token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policies.jockey.scope_jobs.templates import (
    AS_ASSUMED,
    NAN,
    Assumptions,
    Initialise,
    JobBatch,
    JobRun,
    batch_runs,
    concat_tables,
    critical_path_s,
    draw_run,
    fail_vertices,
    read_as,
    recorded_run,
    recorded_training,
    template,
)
from sim.base import maths
from sim.base.arrays import F8, I8
from sim.base.errors import InputError, unknown
from sim.base.random import Stream, stream
from sim.workload.workload import Workload

WARM_UP_S = 900.0
"""Submission time of the job: the background has filled the cluster by then."""
TAIL = 1.5
"""End of the background, as a multiple of the latest deadline."""
SHORT_DEADLINE_MIN = {"A": 25.0, "B": 20.0, "C": 30.0, "D": 35.0, "E": 45.0, "F": 45.0, "G": 60.0}
"""Short deadlines of the seven jobs. Those of E, F and G are from the captions of Fig. 6; the
others are set to the same average ratio: 2.8 times the job's time alone with 100 tokens, in steps
of 5."""
DEADLINE_STEP_MIN = 5.0
"""Step of deadlines that are set by critical paths: all that the captions name are multiples."""
LONG_OVER_SHORT = 2.0
"""Ratio of a job's long deadline to its short one."""
OTHER_DEADLINE_MIN = 60.0
"""Deadline of the other jobs."""
CHANGES = {"halve": 0.5, "double": 2.0, "triple": 3.0}
CHANGED_AT_MIN = 10.0
"""Factor of a deadline change, and the time of the change (Fig. 7)."""


def deadline_s(
    job: str,
    deadline: str | float,
    critical_paths: float | None = None,
    assumed: Assumptions = AS_ASSUMED,
    queues: bool = False,
) -> float:
    """Return the deadline of a job, s.

    The short deadline of the seven jobs is published, or `critical_paths` times their critical path
    (§2.2), on which vertices initialise or `queues` says that they queue without a token, to the
    nearest `DEADLINE_STEP_MIN` minutes.
    """
    if isinstance(deadline, str):
        if deadline not in ("short", "long"):
            raise InputError(unknown("deadline", deadline, ("short", "long")), rule="wrong option")
        if job not in SHORT_DEADLINE_MIN:
            return 60.0 * OTHER_DEADLINE_MIN
        short_min = SHORT_DEADLINE_MIN[job]
        if critical_paths is not None:
            steps = critical_paths * critical_path_s(job, assumed, queues) / 60 / DEADLINE_STEP_MIN
            short_min = DEADLINE_STEP_MIN * max(float(np.rint(steps)), 1.0)
        return 60.0 * short_min * (LONG_OVER_SHORT if deadline == "long" else 1.0)
    if isinstance(deadline, bool) or not 0 < deadline < float("inf"):
        raise InputError(f"a deadline must be a positive number of minutes, not {deadline!r}")
    return 60.0 * float(deadline)


def changed_deadline(change: str | None, before_s: float) -> tuple[float, float]:
    """Return the new deadline and the time from which it holds, s; NaN without a change."""
    if change is None:
        return float("nan"), float("nan")
    if change not in CHANGES:
        raise InputError(unknown("change of the deadline", change, CHANGES), rule="wrong option")
    return CHANGES[change] * before_s, 60.0 * CHANGED_AT_MIN


WAVE_S, WAVE = (1800.0, 5400.0), 0.35
"""Range of the period of a run's slow wave, and its relative amplitude."""
BURST_EVERY_S, BURST_S, BURST = 3600.0, (300.0, 900.0), 0.8
"""Bursts: mean time between two, range of their length, and the part of the mean load they add."""
WIDTH, WIDTH_SIGMA, WIDTH_MAX = 20.0, 0.8, 200
"""Tasks of a job's first stage: median, spread and maximum; the second stage has a quarter."""
TASK_S, TASK_SIGMA = 60.0, 0.8
"""Median and spread of the durations of their tasks, s."""
WAITING_S = 1200.0
"""Mean time that a queued job takes if it gets all slots that ordinary jobs leave."""
STEP_S = 10.0


@dataclass(frozen=True, eq=False)
class Background:
    """J jobs of one or two stages, in order of submission."""

    submit_s: F8  # submission time of each job, s
    n_tasks: I8  # tasks of each job's stages, which run one after the other
    duration_s: F8  # duration of each task, job by job, s


def draw_background(slots: float, until_s: float, rng: Stream) -> Background:
    """Draw jobs, up to `until_s`, that keep `slots` slots busy on average, in a wave and bursts."""
    time_s = np.arange(0.0, until_s, STEP_S)
    demand = _demand(time_s, until_s, rng)
    width = WIDTH * maths.exp(WIDTH_SIGMA**2 / 2)
    job_work_s = 1.25 * width * TASK_S * maths.exp(TASK_SIGMA**2 / 2)
    rate = slots * demand / job_work_s
    cum_jobs = np.concatenate([[0.0], np.cumsum(rate * STEP_S)])
    n = int(rng.poisson(cum_jobs[-1]))
    submit_s = maths.interp(
        np.sort(rng.random(n)) * cum_jobs[-1], cum_jobs, np.append(time_s, until_s)
    )
    first = np.clip(np.rint(WIDTH * maths.exp(WIDTH_SIGMA * rng.normal(size=n))), 1, WIDTH_MAX)
    n_tasks = np.stack([first, np.ceil(first / 4)], axis=1).astype(np.int64)
    duration_s = TASK_S * maths.exp(TASK_SIGMA * rng.normal(size=int(n_tasks.sum())))
    # scaled to the mean load exactly, so that runs do not differ in it by chance
    duration_s *= slots * until_s / duration_s.sum() if n else 1.0
    return Background(submit_s, n_tasks, duration_s)


def draw_waiting(mean: float, slots: float, until_s: float, rng: Stream) -> Background:
    """Draw Poisson arrivals of queued jobs that share `slots` slots, up to `until_s`.

    On average `mean` jobs wait, also at time 0. The queue is a processor-sharing one with the load
    mean / (1 + mean), so that the number of its jobs is geometric.
    """
    load = mean / (1 + mean)
    n_at_start = int(rng.geometric(1 - load)) - 1
    n_later = int(rng.poisson(load * until_s / WAITING_S))
    submit_s = np.concatenate([np.zeros(n_at_start), np.sort(rng.random(n_later)) * until_s])
    mean_s = TASK_S * maths.exp(TASK_SIGMA**2 / 2)
    work_s = slots * WAITING_S * rng.exponential(1.0, size=len(submit_s))
    n_tasks = np.maximum(np.rint(work_s / mean_s), 1).astype(np.int64)[:, None]
    duration_s = TASK_S * maths.exp(TASK_SIGMA * rng.normal(size=int(n_tasks.sum())))
    return Background(submit_s, n_tasks, duration_s)


def _demand(time_s: F8, until_s: float, rng: Stream) -> F8:
    period_s, phase = rng.uniform(*WAVE_S), rng.uniform(0, 2 * np.pi)
    demand: F8 = 1 + WAVE * maths.sin(2 * np.pi * time_s / period_s + phase)
    begin_s = rng.exponential(BURST_EVERY_S)
    while begin_s < until_s:
        end_s = begin_s + rng.uniform(*BURST_S)
        demand[(time_s >= begin_s) & (time_s < end_s)] += BURST
        begin_s = end_s + rng.exponential(BURST_EVERY_S)
    scaled: F8 = demand / demand.mean()
    return scaled


def _background_batch(background: Background, name: str) -> JobBatch:
    """Return the background jobs as a batch, with a barrier between the stages of a job."""
    n, per_job = background.n_tasks.shape
    stage = np.arange(n * per_job)
    parent = stage[stage % per_job < per_job - 1]
    return JobBatch(
        {
            "job_id": [f"{name}-{i}" for i in range(n)],
            "submit_s": background.submit_s.tolist(),
            "template": [name] * n,
            "user": [name] * n,
            "deadline_s": [NAN] * n,
            "new_deadline_s": [NAN] * n,
            "new_deadline_at_s": [NAN] * n,
            "cpu_s": [NAN] * n,
        },
        stage // per_job,
        background.n_tasks.ravel(),
        background.duration_s,
        np.stack([parent, parent + 1, np.zeros(len(parent), np.int64)]),
    )


def make(
    names: Sequence[str],
    deadline: str | float,
    *,
    seed: int,
    change: str | None,
    like_inputs: bool,
    work: float | None,
    slow_stage: float,
    faults: bool,
    slots: int,
    utilization: float,
    waiting: float,
    every_s: float,
    initialise: Initialise,
    largest_input: bool,
    training_slowdowns: Mapping[str, Any] | None,
    critical_paths: float | None,
    assumed: Assumptions,
) -> Workload:
    """Build the workload; see `policies.jockey.scope_jobs.synthesize`."""
    drawn = [_run(name, i, seed, like_inputs, work, assumed) for i, name in enumerate(names)]
    slowed = [_slow_heaviest_stage(run, slow_stage) for run in drawn]
    inputs = None if not largest_input else "like" if like_inputs else "all"
    runs = [read_as(run, initialise, assumed) for run in slowed]
    queues = initialise == "without_token"
    due_s = [deadline_s(name, deadline, critical_paths, assumed, queues) for name in names]
    changed = [changed_deadline(change, due) for due in due_s]
    submit_s = [WARM_UP_S * (utilization > 0) + every_s * i for i in range(len(runs))]
    jobs = batch_runs(
        runs, [f"{name}-{i}" for i, name in enumerate(names)], submit_s, deadline_s=due_s,
        new_deadline_s=[new_s for new_s, _ in changed],
        new_deadline_at_s=[time_s for _, time_s in changed],
    )  # fmt: skip
    batches = [jobs]
    latest_s = [float(np.nanmax([due, new])) for due, (new, _) in zip(due_s, changed, strict=True)]
    until_s = max(s + TAIL * due for s, due in zip(submit_s, latest_s, strict=True))
    busy = _background_slots(runs, submit_s, due_s, utilization * slots)
    if busy > 0:
        rng = stream(seed, "synth", "scope_jobs", "background", *names)
        batches.append(_background_batch(draw_background(busy, until_s, rng), "ordinary"))
    if waiting and utilization > 0:
        rng = stream(seed, "synth", "scope_jobs", "waiting", *names)
        queued = draw_waiting(waiting, (1.0 - utilization) * slots, until_s, rng)
        batches.append(_background_batch(queued, "waiting"))
    workload = Workload.from_tables(
        **concat_tables(batches),
        training=recorded_training(
            sorted(set(names)), initialise, inputs, training_slowdowns, assumed
        ),
        meta={"name": "scope_jobs", "synth": {"jobs": list(names), "seed": int(seed)}},
    )
    return fail_vertices(workload, "deadline", seed) if faults else workload


def _run(
    name: str, i: int, seed: int, like_inputs: bool, work: float | None, assumed: Assumptions
) -> JobRun:
    rng = stream(seed, "synth", "scope_jobs", "run", name, i)
    if work is None:
        return draw_run(template(name, assumed.narrow), rng, like_inputs, assumed)
    recorded = recorded_run(template(name, assumed.narrow), rng, assumed=assumed)
    return JobRun(recorded.template, recorded.run_s * work, recorded.init_s)


def _slow_heaviest_stage(run: JobRun, factor: float) -> JobRun:
    """Multiply the run times of the stage with the most work by `factor`."""
    n_tasks = run.template.structure.n_tasks
    stage = np.repeat(np.arange(len(n_tasks)), n_tasks)
    heaviest = int(np.argmax(np.bincount(stage, run.run_s)))
    factors = np.where(stage == heaviest, factor, 1.0)
    return JobRun(run.template, run.run_s * factors, run.init_s)


def _background_slots(
    runs: Sequence[JobRun], submit_s: Sequence[float], due_s: Sequence[float], target_slots: float
) -> float:
    """Return the slots that the background fills: the target minus the mean need of the jobs.

    The need is the work of all jobs, spread from the first submission to the last deadline.
    """
    if target_slots == 0:
        return 0.0
    work_s = sum(float(run.duration_s.sum()) for run in runs)
    span_s = max(s + due for s, due in zip(submit_s, due_s, strict=True)) - min(submit_s)
    return max(target_slots - work_s / span_s, 0.0)
