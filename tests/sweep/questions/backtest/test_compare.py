"""Comparison of runs with a log: numbers worked out by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sweep.questions.backtest.compare import between_runs_s, compare
from sweep.questions.backtest.logged_jobs import LoggedJobs


def log(grace_s: float = 2.0, resolution_s: float = 1.0) -> LoggedJobs:
    """Return four jobs that waited 1, 10, 20 and 40 s; the mean is 17.75 s."""
    submit_s = np.array([0.0, 10.0, 20.0, 30.0])
    start_s = submit_s + np.array([1.0, 10.0, 20.0, 40.0])
    finish_s = start_s + np.array([10.0, 10.0, 10.0, np.nan])
    return LoggedJobs(np.arange(4), submit_s, start_s, finish_s, grace_s, resolution_s)


def runs(*waits: list[float]) -> tuple[np.ndarray, np.ndarray]:
    start_s = log().submit_s + np.array(waits)
    return start_s, start_s + 10.0


def test_the_same_as_recorded() -> None:
    compared = compare(log(), *runs([1, 10, 20, 40], [1, 10, 20, 40]))
    assert (compared.error, compared.mae, compared.mae_between_runs) == (0.0, 0.0, 0.0)
    assert (compared.waited_within_10pct, compared.pairs_in_order, compared.in_range) == (
        1.0,
        1.0,
        1.0,
    )
    assert compared.completion_error == 0.0
    assert compared.low == compared.high == compared.wait_mean_s == 17.75


def test_numbers_of_two_runs() -> None:
    # waits of the first run: 0, 11, 23, 40; of the second: 0, 9, 21, 0, before all but job 0
    compared = compare(log(), *runs([0, 11, 23, 40], [0, 9, 21, 0]))
    means = 74 / 4, 30 / 4
    assert compared.wait_mean_s == pytest.approx(sum(means) / 2)
    assert compared.low == pytest.approx(means[1] + 0.025 * (means[0] - means[1]))
    assert compared.high == pytest.approx(means[0] - 0.025 * (means[0] - means[1]))
    assert compared.error == pytest.approx((13 - 17.75) / 17.75)
    assert compared.mae == pytest.approx((1 + 1 + 3 + 0 + 1 + 1 + 1 + 40) / 8 / 17.75)
    assert compared.mae_between_runs == pytest.approx((0 + 2 + 2 + 40) / 4 / 17.75)
    # three jobs waited for longer than 2 s; limits are 1, 2 and 4 s
    assert compared.waited_within_10pct == pytest.approx((2 + 2) / 6)
    # starts of the second run: 0, 19, 41, 30, recorded 1, 20, 40, 70: one of six is turned round
    assert compared.pairs_in_order == pytest.approx((1 + 5 / 6) / 2)
    # job 0 starts a second, the resolution, before; the others lie in the range of the runs
    assert compared.in_range == 1.0
    # the last end is not recorded; the others take 11, 20, 30, simulated 10, 21, 33 and 10, 19, 31
    assert compared.completion_mean_recorded_s == pytest.approx(61 / 3)
    assert compared.completion_mean_s == pytest.approx((64 + 60) / 6)
    assert compared.completion_mae == pytest.approx((1 + 1 + 3 + 1 + 1 + 1) / 6 / (61 / 3))


def test_nobody_waited() -> None:
    compared = compare(log(grace_s=50.0), *runs([0, 0, 0, 0]))
    assert math.isnan(compared.waited_within_10pct)
    assert math.isnan(compared.mae_between_runs)


def test_differences_of_runs() -> None:
    start_s = np.random.default_rng(0).exponential(10.0, (5, 7))
    pairs = [np.abs(a - b).mean() for a, b in itertools.combinations(start_s, 2)]
    assert between_runs_s(start_s) == pytest.approx(np.mean(pairs))
