"""Training jobs: the distributions that Gavel's generator has, and gangs that add up."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim.base.errors import InputError
from sim.synth.training import MODELS, SPEEDS

JOBS = 20_000
TOLERANCE = 0.015  # more than 4 standard deviations of a share


@pytest.fixture(scope="module")
def columns():
    return sim.synthesize("training", jobs=JOBS, seed=3, half=0.0).columns


def gpus_of(columns):
    per_worker = columns.stage_demand_f[:, columns.resources.index("gpu")]
    return per_worker * columns.stage_n_tasks


def test_seven_of_ten_jobs_take_one_gpu(columns):
    gpus, counts = np.unique(gpus_of(columns), return_counts=True)
    assert gpus.tolist() == [1, 2, 4, 8]
    np.testing.assert_allclose(counts / JOBS, [0.7, 0.1, 0.15, 0.05], atol=TOLERANCE)


def test_run_times_span_half_an_hour_to_a_week(columns):
    minutes = columns.task_duration[columns.stage_task0[:-1]] / 60
    assert minutes.min() >= 10**1.5
    assert minutes.max() <= 10**4
    shares = [(minutes < limit).mean() for limit in (10**2.25, 10**3, 10**3.5)]
    np.testing.assert_allclose(shares, [0.4, 0.8, 0.9], atol=TOLERANCE)


def test_priorities_and_intervals(columns):
    assert (columns.job_priority == 5).mean() == pytest.approx(0.2, abs=TOLERANCE)
    interval_s = np.diff(columns.job_submit)
    assert interval_s.mean() == pytest.approx(600, rel=0.03)
    assert interval_s.std() == pytest.approx(600, rel=0.05)


def test_speeds_are_those_of_the_job_s_program(columns):
    names = list(columns.speed_classes)
    for row in range(50):
        model = MODELS.index(columns.template_names[columns.job_template[row]])
        for name, speed in SPEEDS.items():
            assert columns.stage_speed[row, names.index(name)] == speed[model]


@pytest.mark.parametrize("per_worker", [1, 2, 4, 8])
def test_jobs_of_more_than_a_worker_are_gangs(per_worker):
    columns = sim.synthesize("training", jobs=300, per_worker=per_worker, half=0.0).columns
    assert set(gpus_of(columns).tolist()) == {1, 2, 4, 8}
    is_gang = columns.stage_n_tasks > 1
    assert columns.stage_demand_f[:, columns.resources.index("gpu")].max() == per_worker
    np.testing.assert_array_equal(columns.job_min_tasks > 0, is_gang)
    np.testing.assert_array_equal(columns.job_min_tasks[is_gang], columns.stage_n_tasks[is_gang])


def test_each_user_is_of_one_team():
    jobs = sim.synthesize("training", jobs=2000, teams=3, users=5).jobs
    teams = set(zip(jobs["user"].to_pylist(), jobs["queue"].to_pylist(), strict=True))
    assert len(teams) == 5
    assert {team for _, team in teams} == {"team-1", "team-2", "team-3"}


def test_shares_of_halves_and_of_the_fast_partition():
    workload = sim.synthesize("training", jobs=JOBS, half=0.3, fast=0.4)
    gpus = gpus_of(workload.columns)
    assert (gpus == 0.5).mean() == pytest.approx(0.3 * 0.7, abs=TOLERANCE)
    partition = np.array(workload.jobs["partition"].to_pylist())
    assert (partition == "fast").mean() == pytest.approx(0.4, abs=TOLERANCE)


def test_options_are_checked():
    with pytest.raises(InputError, match="half"):
        sim.synthesize("training", half=1.5)
