"""Transform that records earlier runs of templates."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim import transforms


def two_runs_of_a_chain():
    stages = [
        {"name": "a", "durations_s": [2.0, 4.0]},
        {"name": "b", "durations_s": [6.0], "parents": ["a"]},
    ]
    jobs = [{"submit_s": t, "template": "x", "stages": stages} for t in (0.0, 9.0)]
    jobs += [{"submit_s": 1.0, "template": "once", "stages": stages}]
    jobs += [{"submit_s": t, "template": "", "stages": stages} for t in (2.0, 3.0)]
    return sim.Workload.from_jobs(sorted(jobs, key=lambda job: job["submit_s"]))


def test_recorded_runs_are_those_of_recurring_templates_without_waiting():
    workload = two_runs_of_a_chain()
    past = transforms.record_runs(workload, runs=2, sigma=0.0)
    rows = past.training.to_pylist()
    assert [(r["template"], r["run"], r["stage"], r["task"]) for r in rows] == [
        ("x", run, stage, task) for run in (0, 1) for stage, task in ((0, 0), (0, 1), (1, 0))
    ]
    assert [(r["start_s"], r["finish_s"]) for r in rows[:3]] == [(0, 2), (0, 4), (4, 10)]
    assert past.jobs == workload.jobs
    assert past.tasks == workload.tasks
    with pytest.raises(sim.InputError, match="recorded runs already"):
        transforms.record_runs(past)
    assert transforms.record_runs(workload, jobs=3).training.num_rows == 0
    assert transforms.record_runs(workload, jobs=1).training.num_rows == 6


def test_recorded_runs_differ_by_stage_and_seed():
    def durations(**options):
        table = transforms.record_runs(two_runs_of_a_chain(), runs=200, **options).training
        return (table["finish_s"].to_numpy() - table["start_s"].to_numpy()).reshape(-1, 3)

    drawn = durations(sigma=0.3)
    np.testing.assert_allclose(drawn[:, 1], 2 * drawn[:, 0])
    spread = np.log(drawn[:, [0, 2]] / [2.0, 6.0])
    assert np.abs(spread.std(axis=0) - 0.3).max() < 0.05
    assert abs(np.corrcoef(spread.T)[0, 1]) < 0.25
    assert (durations(sigma=0.3, seed=1) != drawn).all()
