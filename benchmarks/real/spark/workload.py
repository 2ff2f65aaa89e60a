"""Synthesized jobs for a real Spark: when they are submitted, and how long their tasks sleep.

The rule, fixed before the first run: 40 jobs; 1, 2 or 3 stages in a chain, and 2 to 24 tasks in
each, all as likely; a stage's typical task sleeps for 0.3 to 2.5 s, log-uniformly, and each of its
tasks for that times a log-normal factor of shape 0.4, within 0.2 and 5 s. Gaps between submissions
are exponential, stretched so that the work that arrives is 1.1 times what the slots can do until
the last submission: jobs queue.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base import maths
from sim.base.random import stream

N_JOBS = 40
LOAD = 1.1


@dataclass(frozen=True)
class SleepingJob:
    """A job: its submission after the start of the run, ms, and the sleeps of each stage's tasks.

    Attributes
    ----------
    name : str
        Its name, and that of its scheduler pool.
    submit_ms : int
        Submission, ms after the start.
    stages_ms : tuple of tuple of int
        For each stage the time that each task sleeps, ms; a stage waits for the one before it.
    """

    name: str
    submit_ms: int
    stages_ms: tuple[tuple[int, ...], ...]


def synthesize(seed: int, slots: int, *, names_reversed: bool = False) -> list[SleepingJob]:
    """Draw the jobs of a workload for that many slots.

    Sorted by name they are in the order of submission, or in the reverse of it.
    """
    rng = stream(seed, "sleeping jobs")
    stages = [_stages(rng) for _ in range(N_JOBS)]
    work_s = sum(sum(map(sum, job)) for job in stages) / 1000
    gaps = rng.exponential(1.0, N_JOBS)
    submit = np.cumsum(gaps) - gaps[0]
    submit_ms = np.rint(submit / submit[-1] * work_s / slots / LOAD * 1000).astype(int)
    return [
        SleepingJob(f"job-{N_JOBS - 1 - i if names_reversed else i:02}", ms, job)
        for i, (ms, job) in enumerate(zip(submit_ms.tolist(), stages, strict=True))
    ]


def _stages(rng) -> tuple[tuple[int, ...], ...]:
    stages = []
    for _ in range(int(rng.integers(1, 4))):
        n_tasks = int(rng.integers(2, 25))
        typical_s = 0.3 * maths.exp(rng.random() * maths.log(2.5 / 0.3))
        factor = maths.exp(rng.normal(0.0, 0.4, n_tasks))
        sleep_s = np.clip(typical_s * factor, 0.2, 5.0)
        stages.append(tuple(np.rint(sleep_s * 1000).astype(int).tolist()))
    return tuple(stages)


def to_lines(jobs: list[SleepingJob]) -> str:
    """Return a line a job, as `application.scala` reads it: name, submission, stages, all in ms."""
    return "".join(
        f"{job.name} {job.submit_ms} "
        + " ".join(",".join(map(str, stage)) for stage in job.stages_ms)
        + "\n"
        for job in jobs
    )
