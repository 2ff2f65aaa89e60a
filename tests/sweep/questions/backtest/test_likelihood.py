"""Likelihood of recorded starts under simulated runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sweep.questions.backtest.likelihood import batch_of_jobs, compare_policies, log_likelihood


def test_one_draw_has_a_cauchy_density_of_the_least_width() -> None:
    recorded, draws = np.array([10.0, 12.0]), np.array([[10.0, 10.0]])
    likelihood = log_likelihood(recorded, draws, 2.0)
    # 1 / (pi 2) at its middle; half of it one width away
    assert likelihood == pytest.approx([-math.log(2 * math.pi), -math.log(4 * math.pi)])


def test_width_follows_the_draws() -> None:
    draws = np.array([[0.0], [10.0], [20.0], [30.0]])
    spread, quartiles_apart = math.sqrt(500 / 3), 15.0
    width = 0.9 * min(spread, quartiles_apart / 1.34) / 4**0.2
    expected = np.mean([1 / (1 + ((7.0 - x) / width) ** 2) for x in draws[:, 0]]) / (
        math.pi * width
    )
    likelihood = log_likelihood(np.array([7.0]), draws, 1.0)
    assert likelihood == pytest.approx([math.log(expected)])


def test_one_job_that_is_far_off_does_not_decide() -> None:
    rng = np.random.default_rng(0)
    recorded = np.cumsum(rng.exponential(60.0, 200))
    good, bad = recorded + rng.normal(0, 1, (30, 200)), recorded + rng.normal(20, 1, (30, 200))
    good[:, 100] += 1e6
    a, b = (log_likelihood(recorded, draws, 1.0) for draws in (good, bad))
    assert a.mean() > b.mean()
    assert compare_policies(a, b).p < 0.01


def test_density_is_one() -> None:
    draws = np.random.default_rng(1).normal(0, 5, (30, 1))
    starts_s = np.linspace(-1e4, 1e4, 40_001)
    density = np.exp(log_likelihood(starts_s, np.repeat(draws, len(starts_s), axis=1), 1.0))
    assert density.sum() * (starts_s[1] - starts_s[0]) == pytest.approx(1.0, abs=1e-3)


def test_batches_are_consecutive_and_nearly_equal() -> None:
    assert batch_of_jobs(3).tolist() == [0, 1, 2]
    sizes = np.bincount(batch_of_jobs(90))
    assert len(sizes) == 20
    assert set(sizes.tolist()) == {4, 5}


def test_level_of_the_test_where_neighbours_depend_on_each_other() -> None:
    rng = np.random.default_rng(2)
    n_wrong = 0
    for _ in range(400):
        noise = np.repeat(rng.normal(0, 1, 100), 10)  # ten jobs in a row share their difference
        n_wrong += compare_policies(noise, np.zeros(1000)).p < 0.05
    assert n_wrong / 400 < 0.08
