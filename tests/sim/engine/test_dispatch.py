"""Placement past the first stage in order, with more waiting stages than one loop tries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import sim
from policies.base import Policy
from sim.base import jit
from sim.engine.kernels.state import BLOCK
from sim.engine.plan import Fit, Order, Queues
from tests.sim.engine import reference

N_JOBS = 7 * BLOCK // 4


@dataclass(frozen=True)
class Crowd(Policy):
    """Queues of every order, demotions, and run limits that park jobs and let them back."""

    fit: str = "skip"
    name: ClassVar[str] = "crowd"

    def prepare(self, world, plan):
        rng = world.rng("tests.crowd")
        orders = [Order.KEY, Order.REMAINING, Order.FIFO]
        plan.queues = Queues.make(
            3, weight=[3, 2, 1], order=orders, demote_at=[20, 60, np.inf], demote_to=[1, 2, -1]
        )
        plan.fit = Fit[self.fit.upper()]
        plan.set_jobs(key=rng.integers(0, 9, N_JOBS), queue=rng.integers(0, 3, N_JOBS))
        plan.set_jobs(slice(0, N_JOBS, 5), run_limit=2)
        plan.set_stages(key=rng.integers(0, 2, len(world.columns.stage_job)))


def crowd(seed):
    rng = np.random.default_rng(seed)
    jobs = []
    for submit_s in np.sort(rng.integers(-90, 30, N_JOBS).clip(0)):
        stages = []
        for s in range(2):
            demand = {name: float(rng.integers(1, 9)) for name in ("cpu", "disk", "mem")}
            durations = rng.integers(1, 20, rng.integers(1, 3)).astype(float).tolist()
            stages.append({"name": f"s{s}", "durations_s": durations, "demand": demand})
        if rng.random() < 0.5:
            stages[1]["parents"] = ["s0"]
        queue = f"q{rng.integers(0, 2)}"
        jobs.append({"submit_s": float(submit_s), "queue": queue, "stages": stages})
    return sim.Workload.from_jobs(jobs)


def max_waiting(workload, run):
    """Return the largest number of jobs that were submitted but not started."""
    submit = workload.columns.job_submit
    n_submitted = np.searchsorted(submit, submit, side="right")
    n_started = np.searchsorted(np.sort(run.job_start), submit, side="right")
    return int((n_submitted - n_started).max())


COMPILED = [("skip", "hard"), ("pack", "global")]
PLAIN = [("skip", "global"), ("pack", "hard")]
"""Crowds of kernels as plain Python; the reference takes seconds for each."""


@pytest.mark.parametrize(("fit", "mode"), COMPILED if jit.JIT else PLAIN)
def test_same_bits_in_a_crowd(fit, mode):
    workload = crowd(1)
    cluster = sim.Cluster.machines(3, cpu=27, disk=27, mem=27)
    if mode == "hard":
        cluster = cluster.with_queues("hard", {"q0": 0.3, "q1": 0.7})
    policy = Crowd(fit=fit)
    fast = sim.simulate(workload, cluster, policy, record="tasks")
    slow = reference.simulate(workload, cluster, policy)
    for name in ("task_start", "task_finish", "task_machine", "job_start", "job_finish"):
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name), err_msg=name)
    assert max_waiting(workload, fast) > BLOCK, "the list must be longer than a block"
