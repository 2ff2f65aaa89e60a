"""All estimators of one quantity under one protocol: seconds a task, NaN for unknown."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sim
from policies.check.unknown import recurring
from policies.estimates.durations import ENDLESS_S, Declared, Durations, Recorded, Truth
from policies.estimates.priors import Priors
from policies.estimates.stage_profiles import StageProfiles


def estimators(workload: sim.Workload) -> dict[str, Durations]:
    columns = workload.columns
    return {
        "true": Truth(columns),
        "run": StageProfiles(columns, math.nan, ad_hoc="user"),
        "history": StageProfiles(columns, math.nan, ad_hoc="user", recorded=True),
        "slearn": Priors(columns.features),
        "recorded": Recorded(columns),
    }


def test_every_estimator_gives_seconds_a_task_and_takes_what_has_ended():
    workload = recurring(3)
    columns, stages = workload.columns, np.arange(workload.n_stages)
    for name, estimator in estimators(workload).items():
        expected = estimator.expect(stages, 0.0)
        assert expected.shape == (len(stages),), name
        assert np.isnan(expected).all() == (name == "run"), name
        estimator.learn(stages[:8], columns.stage_work[:8], 100.0)
        again = estimator.expect(stages, 100.0)
        learns = name in ("run", "history", "slearn")
        assert np.array_equal(expected, again, equal_nan=True) != learns, name
        assert not (again < 0).any(), name


def test_the_truth_is_the_mean_of_each_stage():
    columns = recurring(3).columns
    bounds = zip(columns.stage_task0[:-1], columns.stage_task0[1:], strict=True)
    mean = [columns.task_duration[first:last].mean() for first, last in bounds]
    assert Truth(columns).expect(np.arange(len(mean))) == pytest.approx(mean)


def test_recorded_means_are_those_of_jockeys_profile():
    from policies.jockey.control import training_profile

    columns = recurring(3).columns
    recorded = Recorded(columns)
    n = 0
    for job in range(len(columns.job_submit)):
        stages = np.arange(*columns.job_stage0[job : job + 2])
        if not columns.template_names[columns.job_template[job]]:
            assert np.isnan(recorded.expect(stages)).all()
            continue
        profile = training_profile(columns, job)
        mean = np.add.reduceat(profile.run_s + profile.init_s, profile.sample0[:-1])
        mean = mean / np.diff(profile.sample0)
        assert recorded.expect(stages) == pytest.approx(mean, rel=1e-12)
        n += 1
    assert n > 10


def test_a_request_is_shared_by_the_stages_of_the_longest_chain():
    chain = [
        {"name": "a", "durations_s": [1.0]},
        {"name": "b", "durations_s": [1.0], "parents": ["a"]},
        {"name": "side", "durations_s": [1.0]},
    ]
    jobs = [
        {"submit_s": 0.0, "requested_s": 60.0, "stages": chain},
        {"submit_s": 0.0, "requested_s": 90.0, "stages": chain[:1]},
        {"submit_s": 0.0, "stages": chain[:2]},  # no request: endless
    ]
    declared = Declared(sim.Workload.from_jobs(jobs).columns)
    each_s = ENDLESS_S / 2
    assert declared.expect(np.arange(6)).tolist() == [30, 30, 30, 90, each_s, each_s]
    jobs[0]["requested_s"] = 2 * ENDLESS_S  # none is longer than endless
    declared = Declared(sim.Workload.from_jobs(jobs).columns)
    assert declared.expect(np.arange(6)).tolist()[-2:] == [ENDLESS_S, ENDLESS_S]
    del jobs[:2]
    with pytest.raises(sim.InputError, match="requested run times are needed"):
        Declared(sim.Workload.from_jobs(jobs).columns)
