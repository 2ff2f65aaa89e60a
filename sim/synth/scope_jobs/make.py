"""Puts a controlled run together: jobs with deadlines, their training, faults, the background.

Deadlines are in minutes after submission (Ferguson et al., EuroSys 2012, §5.1). The background is
jobs without a deadline: ordinary ones, in slow waves and bursts, which keep the cluster about as
busy as published, and such that always have tasks waiting and take what the ordinary ones leave, so
that a spare token has more than one taker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8
from sim.base.errors import InputError, unknown
from sim.base.random import Stream, stream
from sim.synth.scope_jobs.templates import (
    NAN,
    JobRun,
    Piece,
    draw_run,
    joined,
    of_runs,
    recorded_run,
    template,
    training_of,
)
from sim.transforms.faults import fail_tasks
from sim.workload.workload import Workload

WARM_UP_S = 900.0
"""When the job is submitted: the background has filled the cluster by then."""
TAIL = 1.5
"""The background goes on until so many times the latest deadline."""
SHORT_MIN = {"A": 25.0, "B": 20.0, "C": 30.0, "D": 35.0, "E": 45.0, "F": 45.0, "G": 60.0}
"""Of the seven. Those of E, F and G are the captions' of Fig. 6; the others are chosen
as those are on average: 2.8 times as long as the job takes alone with 100 tokens, in steps of 5."""
LONGER = 2.0
"""The longer of a job's two deadlines over the shorter."""
OTHERS_MIN = 60.0
"""Of the other jobs."""
CHANGES = {"halve": 0.5, "double": 2.0, "triple": 3.0}
CHANGED_AT_MIN = 10.0
"""What a deadline is multiplied by, and when (Fig. 7)."""


def deadline_s(job: str, deadline: str | float) -> float:
    """Return the deadline of a job, s."""
    if isinstance(deadline, str):
        if deadline not in ("short", "long"):
            raise InputError(unknown("deadline", deadline, ("short", "long")), rule="wrong option")
        if job not in SHORT_MIN:
            return 60.0 * OTHERS_MIN
        return 60.0 * SHORT_MIN[job] * (LONGER if deadline == "long" else 1.0)
    if isinstance(deadline, bool) or not 0 < deadline < float("inf"):
        raise InputError(f"a deadline must be a positive number of minutes, not {deadline!r}")
    return 60.0 * float(deadline)


def change_of(change: str | None, before_s: float) -> tuple[float, float]:
    """Return the new deadline and when it comes to hold, s; NaN for neither."""
    if change is None:
        return float("nan"), float("nan")
    if change not in CHANGES:
        raise InputError(unknown("change of the deadline", change, CHANGES), rule="wrong option")
    return CHANGES[change] * before_s, 60.0 * CHANGED_AT_MIN


WAVE_S, WAVE = (1800.0, 5400.0), 0.35
"""Period of the slow wave of a run, between these, and how far it goes up and down."""
BURST_EVERY_S, BURST_S, BURST = 3600.0, (300.0, 900.0), 0.8
"""Mean time between bursts, how long one lasts, and what it adds to the mean."""
WIDTH, WIDTH_SIGMA, WIDEST = 20.0, 0.8, 200
"""Tasks of the first stage of a job: median, spread and most; the second has a quarter."""
TASK_S, TASK_SIGMA = 60.0, 0.8
"""Median and spread of the durations of their tasks, s."""
WAITING_S = 1200.0
"""How long a job that waits for what the ordinary ones leave takes with all of it, on average."""
STEP_S = 10.0


@dataclass(frozen=True, eq=False)
class Background:
    """J jobs of one or two stages, by when they are submitted."""

    submit_s: F8  # when each is submitted, s
    n_tasks: I8  # tasks of its stages, which follow each other
    duration_s: F8  # how long each task lasts, job by job, s


def draw_background(slots: float, until_s: float, rng: Stream) -> Background:
    """Draw jobs that keep `slots` slots busy on average, in a wave and bursts, up to `until_s`."""
    at = np.arange(0.0, until_s, STEP_S)
    demand = _demand(at, until_s, rng)
    width = WIDTH * maths.exp(WIDTH_SIGMA**2 / 2)
    of_one = 1.25 * width * TASK_S * maths.exp(TASK_SIGMA**2 / 2)
    rate = slots * demand / of_one
    reached = np.concatenate([[0.0], np.cumsum(rate * STEP_S)])
    n = int(rng.poisson(reached[-1]))
    submit_s = maths.interp(np.sort(rng.random(n)) * reached[-1], reached, np.append(at, until_s))
    first = np.clip(np.rint(WIDTH * maths.exp(WIDTH_SIGMA * rng.normal(size=n))), 1, WIDEST)
    n_tasks = np.stack([first, np.ceil(first / 4)], axis=1).astype(np.int64)
    duration_s = TASK_S * maths.exp(TASK_SIGMA * rng.normal(size=int(n_tasks.sum())))
    # so that the run's load is the mean and no chance of its own
    duration_s *= slots * until_s / duration_s.sum() if n else 1.0
    return Background(submit_s, n_tasks, duration_s)


def draw_waiting(mean: float, slots: float, until_s: float, rng: Stream) -> Background:
    """Draw jobs that come at random and share `slots` slots, up to `until_s`.

    So many wait on average, and at 0, as of a queue that is served by sharing: each as often one
    more as the load, mean / (1 + mean), says.
    """
    load = mean / (1 + mean)
    at_first = int(rng.geometric(1 - load)) - 1
    coming = int(rng.poisson(load * until_s / WAITING_S))
    submit_s = np.concatenate([np.zeros(at_first), np.sort(rng.random(coming)) * until_s])
    mean_s = TASK_S * maths.exp(TASK_SIGMA**2 / 2)
    work_s = slots * WAITING_S * rng.exponential(1.0, size=len(submit_s))
    n_tasks = np.maximum(np.rint(work_s / mean_s), 1).astype(np.int64)[:, None]
    duration_s = TASK_S * maths.exp(TASK_SIGMA * rng.normal(size=int(n_tasks.sum())))
    return Background(submit_s, n_tasks, duration_s)


def _demand(at: F8, until_s: float, rng: Stream) -> F8:
    period_s, phase = rng.uniform(*WAVE_S), rng.uniform(0, 2 * np.pi)
    demand: F8 = 1 + WAVE * maths.sin(2 * np.pi * at / period_s + phase)
    begin_s = rng.exponential(BURST_EVERY_S)
    while begin_s < until_s:
        end_s = begin_s + rng.uniform(*BURST_S)
        demand[(at >= begin_s) & (at < end_s)] += BURST
        begin_s = end_s + rng.exponential(BURST_EVERY_S)
    scaled: F8 = demand / demand.mean()
    return scaled


def _of_background(background: Background, name: str) -> Piece:
    """Make jobs of the background, with a barrier between their stages."""
    n, per_job = background.n_tasks.shape
    stage = np.arange(n * per_job)
    parent = stage[stage % per_job < per_job - 1]
    return Piece(
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
    initialise: bool,
    largest_input: bool,
) -> Workload:
    """Make the workload; see `sim.synth.scope_jobs.synthesize`."""
    drawn = [_run(name, i, seed, like_inputs, work) for i, name in enumerate(names)]
    slowed = [_slowed(run, slow_stage) for run in drawn]
    inputs = None if not largest_input else "alike" if like_inputs else "all"
    runs = slowed if initialise else [run.at_once() for run in slowed]
    due_s = [deadline_s(name, deadline) for name in names]
    changes = [change_of(change, due) for due in due_s]
    submit_s = [WARM_UP_S * (utilization > 0) + every_s * i for i in range(len(runs))]
    jobs = of_runs(
        runs, [f"{name}-{i}" for i, name in enumerate(names)], submit_s, deadline_s=due_s,
        new_deadline_s=[new for new, _ in changes], new_deadline_at_s=[at for _, at in changes],
    )  # fmt: skip
    pieces = [jobs]
    latest_s = [float(np.nanmax([due, new])) for due, (new, _) in zip(due_s, changes, strict=True)]
    until_s = max(s + TAIL * due for s, due in zip(submit_s, latest_s, strict=True))
    busy = _busy(runs, submit_s, due_s, utilization * slots)
    if busy > 0:
        rng = stream(seed, "synth", "scope_jobs", "background", *names)
        pieces.append(_of_background(draw_background(busy, until_s, rng), "ordinary"))
    if waiting and utilization > 0:
        rng = stream(seed, "synth", "scope_jobs", "waiting", *names)
        left = (1.0 - utilization) * slots
        pieces.append(_of_background(draw_waiting(waiting, left, until_s, rng), "waiting"))
    workload = Workload.from_tables(
        **joined(pieces),
        training=training_of(sorted(set(names)), initialise, inputs),
        meta={"name": "scope_jobs", "synth": {"jobs": list(names), "seed": int(seed)}},
    )
    return fail_tasks(workload, of="deadline", seed=seed) if faults else workload


def _run(name: str, i: int, seed: int, like_inputs: bool, work: float | None) -> JobRun:
    rng = stream(seed, "synth", "scope_jobs", "run", name, i)
    if work is None:
        return draw_run(template(name), rng, like_inputs)
    like = recorded_run(template(name), rng)
    return JobRun(like.template, like.run_s * work, like.init_s)


def _slowed(run: JobRun, times: float) -> JobRun:
    """Let the stage with the most work take so many times as long."""
    n_tasks = run.template.structure.n_tasks
    stage = np.repeat(np.arange(len(n_tasks)), n_tasks)
    most = int(np.argmax(np.bincount(stage, run.run_s)))
    factor = np.where(stage == most, times, 1.0)
    return JobRun(run.template, run.run_s * factor, run.init_s)


def _busy(
    runs: Sequence[JobRun], submit_s: Sequence[float], due_s: Sequence[float], wanted: float
) -> float:
    """Return how many slots the background is to fill: those wanted less what the jobs need.

    What a job needs counts from its submission until it is due.
    """
    if wanted == 0:
        return 0.0
    work_s = sum(float(run.duration_s.sum()) for run in runs)
    span_s = max(s + due for s, due in zip(submit_s, due_s, strict=True)) - min(submit_s)
    return max(wanted - work_s / span_s, 0.0)
