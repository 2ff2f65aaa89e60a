"""The job simulator (§4.1): resampled copies of a job, run by `sim.simulate` itself.

All copies of a job are one workload, one after the other on a pool of as many slots as the job has
tokens, each submitted when the one before must long be done: so each is alone, as on tokens of its
own, and the kernel runs them at its full speed. The same copies serve every allocation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import sim
from policies.base import Policy
from policies.jockey.profile import Profile
from sim.base.arrays import F8
from sim.base.random import stream
from sim.workload.schema import EDGE_KINDS


@dataclass(frozen=True, eq=False)
class Copies:
    """R resampled copies of a job of n tasks."""

    profile: Profile  # what they are drawn from
    duration_s: F8  # how long each task holds its token, failed attempts included, s
    workload: sim.Workload  # the copies as jobs

    def run(self, tokens: int) -> tuple[F8, F8]:
        """Run every copy with so many tokens."""
        result = sim.simulate(self.workload, sim.Cluster.slots(tokens), Policy(), record="tasks")
        assert result.task_start is not None
        assert result.task_finish is not None
        submit = result.job_submit[:, None]
        shape = self.duration_s.shape
        return (
            np.maximum(result.task_start.reshape(shape) - submit, 0.0),
            np.maximum(result.task_finish.reshape(shape) - submit, 0.0),
        )


def resample(profile: Profile, n_copies: int) -> Copies:
    """Draw copies of a job from its profile.

    Run time, initialisation and the number of failed attempts of each task are drawn apart, each
    from what was recorded of its stage. A failed attempt takes its initialisation and a uniform
    part of a run time, and the next starts at once with its token.
    """
    rng = stream(0, "jockey", "copies", profile.digest)
    shape = profile.shape
    first = np.repeat(profile.sample0[:-1], shape.n_tasks)
    width = np.repeat(np.diff(profile.sample0), shape.n_tasks)
    size = (n_copies, len(first))

    def drawn(samples: F8) -> F8:
        picked: F8 = samples[first + (rng.random(size) * width).astype(np.int64)]
        return picked

    duration = drawn(profile.run_s) + drawn(profile.init_s)
    if profile.n_failed.any():
        failed = drawn(profile.n_failed.astype(np.float64))
        for attempt in range(int(failed.max())):
            lost = drawn(profile.init_s) + rng.random(size) * drawn(profile.run_s)
            duration += np.where(failed > attempt, lost, 0.0)
    return Copies(profile, duration, _one_after_the_other(profile, duration))


def _one_after_the_other(profile: Profile, duration_s: F8) -> sim.Workload:
    """Make a job of each row, far enough apart that none meets the next even with one token."""
    shape, n_copies = profile.shape, len(duration_s)
    n_stages = len(shape.n_tasks)
    apart_s = 1.0 + 1.001 * float(duration_s.sum(axis=1).max())
    stage = np.repeat(np.arange(n_stages), shape.n_tasks)
    offset = np.arange(n_copies)[:, None] * n_stages
    kinds = np.array(EDGE_KINDS)[shape.kind]
    return sim.Workload.from_tables(
        jobs={
            "job_id": [f"copy-{i}" for i in range(n_copies)],
            "submit_s": np.arange(n_copies) * apart_s,
        },
        stages={
            "job": np.repeat(np.arange(n_copies), n_stages),
            "n_tasks": np.tile(shape.n_tasks, n_copies),
        },
        tasks={"stage": (stage + offset).ravel(), "duration_s": duration_s.ravel()},
        stage_edges={
            "parent": (shape.parent + offset).ravel(),
            "child": (shape.child + offset).ravel(),
            "kind": np.tile(kinds, n_copies).tolist(),
        },
        validate=False,
    )
