"""Variation over space and over time, and load in windows, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from policies.slearn.task_variation import (
    SimilarJobs,
    jobs_over_space,
    jobs_over_time,
    load_statistics,
    over_space,
    window_loads,
)


def test_over_space_by_hand():
    durations = np.array([2.0, 4.0, 9.0, 0.0, 0.0])
    got = over_space(durations, np.array([0, 2, 3, 5]))
    assert got[0] == pytest.approx(1 / (np.sqrt(0.03 * 2) * 3))
    assert np.isnan(got[1:]).all()  # one task; no mean


def naive_over_time(codes, submit, finish, value, rows, window, min_jobs=2):
    result = []
    for row in rows:
        spreads = []
        for feature in codes.T:
            like = [
                v
                for c, end, v in zip(feature, finish, value, strict=True)
                if c == feature[row] >= 0 and submit[row] - window <= end <= submit[row]
            ]
            if len(like) >= min_jobs:
                spreads.append(np.std(like) / np.mean(like))
        result.append(min(spreads, default=np.nan))
    return np.array(result)


@pytest.mark.parametrize("min_jobs", [2, 5])
@pytest.mark.parametrize("seed", range(4))
def test_over_time_equals_a_plain_loop(seed, min_jobs):
    rng = np.random.default_rng(seed)
    n = 120
    codes = rng.integers(-1, 8, (n, 6)).astype(np.int32)
    submit = rng.integers(0, 100, n) * 1.0
    finish = submit + rng.integers(0, 20, n)
    value = rng.exponential(size=n) + 0.1
    rows = rng.permutation(n)[:40]
    got = SimilarJobs(codes, submit, finish, rows, 30.0, min_jobs).variation(value)
    expected = naive_over_time(codes, submit, finish, value, rows, 30.0, min_jobs)
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    assert not np.isnan(got).all()


def test_what_ends_after_a_submission_says_nothing_about_it():
    codes = np.zeros((3, 1), np.int32)
    submit, value = np.array([0.0, 1.0, 10.0]), np.array([1.0, 3.0, 5.0])
    rows = np.array([2])
    late = SimilarJobs(codes, submit, np.array([5.0, 10.5, 11.0]), rows, 100.0)
    assert np.isnan(late.variation(value)).all()
    in_time = SimilarJobs(codes, submit, np.array([5.0, 10.0, 11.0]), rows, 100.0)
    assert in_time.variation(value) == pytest.approx([0.5])


def test_a_workload_is_measured_with_its_history():
    jobs = [
        {"submit_s": 100.0, "user": "u", "stages": [{"durations_s": [3.0, 5.0]}]},
        {"submit_s": 200.0, "user": "u", "stages": [{"durations_s": [8.0]}]},
    ]
    plain = sim.Workload.from_jobs(jobs)
    history = {
        "submit_s": [-50.0, -10.0],
        "finish_s": [-40.0, 150.0],
        "n_tasks": [1, 1],
        "mean_task_s": [2.0, 90.0],
        "user": ["u", "u"],
    }
    w = sim.Workload.from_tables(
        jobs=plain.jobs, stages=plain.stages, tasks=plain.tasks, history=history
    )
    got = jobs_over_time(w, 1000.0)
    assert np.isnan(got[0])
    past = [2.0, 90.0, 4.0]
    assert got[1] == pytest.approx(np.std(past) / np.mean(past))
    assert jobs_over_space(w)[0] == pytest.approx(0.25 / np.sqrt(0.06))


def test_load_in_windows_equals_a_plain_loop():
    rng = np.random.default_rng(0)
    submit = np.sort(rng.random(200) * 20_000)
    work = rng.exponential(size=200) * 1e4
    expected = []
    begin = submit[0]
    while begin <= submit[-1]:
        inside = (submit >= begin) & (submit < begin + 1000)
        expected.append(work[inside].sum() / (7 * 1000))
        begin += 100
    got = window_loads(submit, work, 7)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-9)
    figures = load_statistics(got)
    assert figures["load_max"] == pytest.approx(max(expected))
    assert figures["load_p90"] == pytest.approx(np.quantile(expected, 0.9))


def test_jobs_of_one_instant_make_one_window():
    assert window_loads(np.zeros(3), np.full(3, 500.0), 1.5).tolist() == [1.0]
