"""Refinement of expected durations: equal to a naive loop that refines and passes on every job."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim.base.arrays import ranges
from sim.engine.plan import Batch, Event


class Naive:
    """A policy, without the kernel's learning: at every timer all running jobs are refined."""

    events = Event.JOB_ARRIVED | Event.TIMER

    def __init__(self, policy):
        self.policy, self.name, self.running = policy, policy.name, set()

    def begin(self, world, plan):
        memory = self.policy.begin(world, plan)
        self.orders = self.policy.events & plan.events
        self.learning, plan.learning, plan.events = plan.learning, None, self.events
        return memory

    def react(self, memory, batch, world, plan):
        jobs = self.refine(batch, world, plan)
        rows = {Event.JOB_ARRIVED: batch.rows(Event.JOB_ARRIVED), Event.REFINED: jobs}
        for event, ordered in rows.items():
            if self.orders & event and len(ordered):
                kinds = np.full(len(ordered), int(event), "i4")
                self.policy.react(memory, Batch(batch.now, kinds, ordered), world, plan)

    def refine(self, batch, world, plan):
        """Learn and refine as §7.1 of DAGPS says."""
        learning, columns = self.learning, world.columns
        size, left = columns.stage_n_tasks, world.view["stage_left"]
        done_work = world.view["stage_done_work"]
        for g in sorted(g for g in self.running if left[g] == 0):
            for group in learning.group[learning.group[:, g] >= 0, g]:
                learning.work_s[group] += done_work[g]
                learning.n_tasks[group] += size[g]
                learning.mean_s[group] = learning.work_s[group] / learning.n_tasks[group]
            if learning.group[0, g] >= 0:
                learning.runs[learning.group[0, g]] += 1
            self.running.remove(g)
        jobs = batch.row[batch.row >= 0]
        first = columns.job_stage0
        stages = ranges(first[jobs], first[jobs + 1])
        self.running |= set(stages.tolist())
        if -1 in batch.row:
            stages = np.array(sorted(self.running), dtype=np.int64)
            jobs = np.unique(columns.stage_job[stages])
        if len(jobs):
            prior_s = np.full(len(stages), np.nan)
            for level in learning.group:
                known_s = np.where(level[stages] >= 0, learning.mean_s[level[stages]], np.nan)
                prior_s = np.where(np.isnan(prior_s), known_s, prior_s)
            prior_s[np.isnan(prior_s)] = learning.guess_s
            n_tasks = learning.prior_tasks + (size - left)[stages]
            expected_s = (prior_s * learning.prior_tasks + done_work[stages]) / n_tasks
            plan.set_stages(stages, jobs=jobs, expected_s=expected_s)
            plan.timer_s = min(plan.timer_s, batch.now + learning.refresh_s)
        return jobs


def random_jobs(seed):
    """Draw jobs of two templates and none, with pairs and barriers, some at the same time."""
    rng = np.random.default_rng(seed)
    jobs = []
    for _ in range(25):
        stages = []
        for s in range(int(rng.integers(1, 4))):
            kind = rng.choice(["barrier", "one_to_one"])
            stages.append(
                {
                    "name": f"s{s}",
                    "durations_s": rng.lognormal(2, 1, int(rng.integers(1, 6))).tolist(),
                    "demand": {"cpu": int(rng.integers(1, 4)), "disk": int(rng.integers(0, 3))},
                    "parents": {f"s{s - 1}": kind} if s and rng.random() < 0.8 else {},
                }
            )
        submit_s = float(rng.integers(0, 12)) * 10.0
        template = rng.choice(["", "x", "y"])
        jobs.append({"submit_s": submit_s, "template": template, "user": "u", "stages": stages})
    return sim.Workload.from_jobs(sorted(jobs, key=lambda job: job["submit_s"]))


@pytest.mark.parametrize(
    ("name", "params", "faults"),
    [
        ("dagps", {}, False),
        ("dagps", {"srpt": "unfinished"}, True),
        ("srpt", {"knowledge": "run"}, False),
        ("critical_path", {"knowledge": "history"}, False),
    ],
)
def test_a_run_equals_that_of_a_naive_refinement(name, params, faults):
    cluster = sim.Cluster.machines(4, cpu=4, disk=4, fungible=("disk",))
    for seed in range(3):
        workload = random_jobs(seed)
        if faults:
            rng = np.random.default_rng(seed)
            duration_s = workload.columns.task_duration
            task = np.flatnonzero(rng.random(len(duration_s)) < 0.2)
            after_s, lost = 0.3 * duration_s[task], np.full(len(task), -1)
            workload = workload.with_failures({"task": task, "after_s": after_s, "lost": lost})
        policy = policies.build(name, refresh_s=7.0, **params)
        run = sim.simulate(workload, cluster, policy)
        naive = sim.simulate(workload, cluster, Naive(policy))
        for column in ("task_start", "task_finish", "task_machine"):
            assert np.array_equal(getattr(run, column), getattr(naive, column)), (seed, column)
