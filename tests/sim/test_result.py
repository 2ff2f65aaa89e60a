"""The facade of a run: how it is shown."""

from __future__ import annotations

import math

import pytest

import policies
import sim
from sim.evaluators import evaluate


def test_workload_and_result_are_shown_in_a_line() -> None:
    jobs = [{"submit_s": 0.0, "stages": [{"durations_s": [2.0, 4.0]}]}, {"submit_s": 1.0}]
    jobs[1]["stages"] = [{"durations_s": [1.0]}]
    workload = sim.Workload.from_jobs(jobs)
    assert repr(workload) == "<Workload jobs: 2 jobs, 2 stages, 3 tasks; cpu>"
    result = sim.simulate(workload, sim.Cluster.slots(3), policies.build("fifo"), seed=4)
    assert {"utility", "worth"}.isdisjoint(result.jobs.column_names)
    assert repr(result) == "<Result fifo() on 3 slots, seed 4: 2 jobs; mean JCT 2.5 s>"


def test_jobs_have_their_utility_and_the_worth_that_the_policy_set_last() -> None:
    jobs = [
        {"submit_s": 0.0, "deadline_s": 4.0, "stages": [{"durations_s": [4.0]}]},
        {"submit_s": 0.0, "deadline_s": 4.0, "stages": [{"durations_s": [300.0]}]},
        {"submit_s": 0.0, "stages": [{"durations_s": [1.0]}]},
    ]
    workload, slots = sim.Workload.from_jobs(jobs), sim.Cluster.slots(3)
    table = sim.simulate(workload, slots, policies.build("wserpt")).jobs
    late = 1 - 2 * 296 / 600  # 1 when due, -1 ten minutes later
    assert table["utility"].to_pylist() == [1.0, pytest.approx(late), None]
    assert all(worth > 0 for worth in table["worth"].to_pylist())
    _, stored = evaluate("simulation", sim.simulate, workload, slots, policies.build("wserpt"), 0)
    assert stored["utility"].to_pylist() == pytest.approx([1.0, late, math.nan], nan_ok=True)
    assert stored["worth"].to_pylist() == pytest.approx(table["worth"].to_pylist())
