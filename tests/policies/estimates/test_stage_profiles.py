"""Means of stages, over templates, users and recorded runs: by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

import sim
from policies.base import Policy
from policies.estimates.learnt import learn_durations
from policies.estimates.stage_profiles import StageProfiles
from sim.engine.plan import Batch, Event, Plan, World
from tests.policies.small import runs_of


def expected(profiles: StageProfiles, *stages: int) -> list[float]:
    return profiles.expect(np.array(stages)).tolist()


@dataclass(frozen=True)
class Watcher(Policy):
    """Keep the jobs, and what is expected of all stages, each time that more is known."""

    seen: list = field(default_factory=list)

    name, events = "watcher", Event.REFINED

    def prepare(self, world: World, plan: Plan) -> None:
        learn_durations(StageProfiles(world.columns, 30.0), plan, 2.0, 10.0, estimates=True)

    def react(self, memory: object, batch: Batch, world: World, plan: Plan) -> None:
        self.seen.append((batch.now, batch.row.tolist(), plan.stages["expected_s"].tolist()))


def test_a_profile_is_the_mean_of_earlier_runs_refined_by_the_stage_itself():
    jobs = runs_of("t", [2, 14], [1, 1], [9, 9])
    for job, submit_s in zip(jobs, (0.0, 16.0, 16.0), strict=True):
        job["submit_s"] = submit_s
    policy = Watcher()
    run = sim.simulate(sim.Workload.from_jobs(jobs), sim.Cluster.slots(9), policy)
    refined_s = (2 * 30 + 2) / (2 + 1)
    assert policy.seen == [
        (0, [0], [30, 30, 30]),
        (10, [0], [refined_s, 30, 30]),  # its task of 2 s has ended
        (16, [1, 2], [refined_s, 8, 8]),
        (20, [2], [refined_s, 8, (16 + 2) / 4]),  # the second run has ended
    ]
    assert run.job_estimate.tolist() == [60, 16, 16]


def test_a_stage_without_earlier_runs_is_expected_to_last_as_all_stages_on_average():
    jobs = runs_of("t", [2, 4]) + runs_of("", [5], [7])
    workload = sim.Workload.from_jobs(sorted(jobs, key=lambda job: job["submit_s"]))
    profiles = StageProfiles(workload.columns, 30.0)
    profiles.learn(np.array([0]), np.array([6.0]))
    profiles.learn(np.array([1]), np.array([5.0]))
    assert expected(profiles, 0, 2) == [3, 11 / 3]


def test_ad_hoc_jobs_are_similar_to_those_of_their_user():
    def job(user: str, *durations: float, template: str = "") -> dict:
        stages = [{"name": f"s{i}", "durations_s": [d]} for i, d in enumerate(durations)]
        return {"submit_s": 0.0, "user": user, "template": template, "stages": stages}

    jobs = [
        job("u", 2.0),
        job("v", 8.0),
        job("u", 1.0, 1.0),
        job("w", 1.0),
        job("u", 1, template="t"),
    ]
    columns = sim.Workload.from_jobs(jobs).columns  # stages 0; 1; 2 and 3; 4; 5
    alone, by_user = (StageProfiles(columns, 30.0, ad_hoc=a) for a in ("alone", "user"))
    for profiles in (alone, by_user):
        assert expected(profiles, *range(6)) == [30] * 6
        profiles.learn(np.array([0, 1]), np.array([2.0, 8.0]))
    assert expected(alone, *range(6)) == [5] * 6  # none learns from an ad hoc stage alone
    # the second stage of u's job has no like: that of u's jobs; w has none, and t is no ad hoc job
    assert expected(by_user, *range(6)) == [2, 8, 2, 2, 5, 5]


def test_recorded_runs_come_before_the_first_job():
    stages = [{"name": "a", "durations_s": [1.0, 1.0]}, {"name": "b", "durations_s": [1.0]}]
    jobs = [
        {"submit_s": 5.0, "template": "t", "stages": stages},
        {"submit_s": 6.0, "template": "x", "stages": stages},
        {"submit_s": 7.0, "user": "u", "stages": stages},
        {"submit_s": 8.0, "user": "nobody", "stages": stages},
    ]
    n = 4
    history = {
        "submit_s": [-90.0] * n,
        "finish_s": [-80.0, -70.0, -60.0, 50.0],  # the last ends during the run
        "n_tasks": [1, 3, 1, 1],
        "mean_task_s": [10.0, 20.0, 40.0, 1e9],
        "template": ["x", "x", "", "x"],
        "user": ["u", "u", "u", "u"],
    }
    training = {
        "template": ["t", "t", "gone"], "run": [0, 0, 0], "stage": [0, 0, 0], "task": [0, 1, 0],
        "ready_s": [0.0] * 3, "start_s": [1.0, 1.0, 0.0], "finish_s": [4.0, 6.0, 100.0],
    }  # fmt: skip
    workload = sim.Workload.from_jobs(jobs).with_history(history).with_training(training)
    recorded = StageProfiles(workload.columns, 30.0, ad_hoc="user", recorded=True)
    overall = (10 + 60 + 40 + 3 + 5 + 100) / (1 + 3 + 1 + 2 + 1)
    # t's first stage, then all of t; x twice 70 / 4; u's ad hoc job; and all that ended
    assert expected(recorded, *range(8)) == [4, 4, 17.5, 17.5, 40, 40, overall, overall]
    run = StageProfiles(workload.columns, math.nan, ad_hoc="user")
    assert np.isnan(run.expect(np.arange(8))).all()
