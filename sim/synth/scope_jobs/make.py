"""Puts a controlled run together: jobs with deadlines, their training, faults, the background."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from sim.base.random import stream
from sim.synth.scope_jobs import TAIL, WARM_UP_S, tables
from sim.synth.scope_jobs.background import draw_background, draw_waiting
from sim.synth.scope_jobs.deadlines import change_of, deadline_s
from sim.synth.scope_jobs.runs import JobRun, draw_run, recorded_run
from sim.synth.scope_jobs.templates import template
from sim.synth.scope_jobs.training import training_of

if TYPE_CHECKING:
    from sim.workload.workload import Workload


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
    waiting: int,
    every_s: float,
) -> Workload:
    """Make the workload; see `sim.synth.scope_jobs.synthesize`."""
    from sim.knobs.faults import fail_tasks
    from sim.workload.workload import Workload

    drawn = [_run(name, i, seed, like_inputs, work) for i, name in enumerate(names)]
    runs = [_slowed(run, slow_stage) for run in drawn]
    due_s = [deadline_s(name, deadline) for name in names]
    changes = [change_of(change, due) for due in due_s]
    submit_s = [WARM_UP_S * (utilization > 0) + every_s * i for i in range(len(runs))]
    jobs = tables.of_runs(
        runs,
        [f"{name}-{i}" for i, name in enumerate(names)],
        submit_s,
        deadline_s=due_s,
        new_deadline_s=[new for new, _ in changes],
        new_deadline_at_s=[at for _, at in changes],
    )
    pieces = [jobs]
    latest_s = [float(np.nanmax([due, new])) for due, (new, _) in zip(due_s, changes, strict=True)]
    until_s = max(s + TAIL * due for s, due in zip(submit_s, latest_s, strict=True))
    busy = _busy(runs, submit_s, due_s, utilization * slots)
    if busy > 0:
        rng = stream(seed, "synth", "scope_jobs", "background", *names)
        pieces.append(tables.of_background(draw_background(busy, until_s, rng), "ordinary"))
    if waiting and utilization > 0:
        rng = stream(seed, "synth", "scope_jobs", "waiting", *names)
        left = (1.0 - utilization) * slots
        pieces.append(tables.of_background(draw_waiting(waiting, left, until_s, rng), "waiting"))
    workload = Workload.from_tables(
        **tables.joined(pieces),
        training=training_of(sorted(set(names))),
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
