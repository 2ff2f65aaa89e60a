"""The posterior estimator: against integration, sampling, and small runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import policies
import sim
from policies.slearn.posterior import chances_of_other_queue, gain
from sim.base.random import Normal, posterior


@pytest.mark.parametrize("seed", range(5))
def test_posterior_is_prior_times_likelihood(seed):
    rng = np.random.default_rng(seed)
    mu, sd0, sd1 = rng.uniform(5, 20), rng.uniform(0.5, 4), rng.uniform(0.5, 4)
    y = rng.normal(mu, 3, rng.integers(1, 6))
    x = np.linspace(mu - 60, mu + 60, 400_001)
    log = -((x - mu) ** 2) / (2 * sd0**2) - ((y[:, None] - x) ** 2).sum(axis=0) / (2 * sd1**2)
    weight = np.exp(log - log.max())
    mean = (weight * x).sum() / weight.sum()
    variance = (weight * (x - mean) ** 2).sum() / weight.sum()
    got = posterior(Normal(mu, sd0**2), len(y), float(y.mean()), sd1**2)
    assert got.mean == pytest.approx(mean)
    assert got.variance == pytest.approx(variance)


def test_posterior_at_its_ends():
    prior = Normal(10.0, 4.0)
    assert posterior(prior, 0, math.nan, 9.0) == prior
    assert posterior(prior, 3, 13.0, math.inf) == prior
    assert posterior(prior, 3, 13.0, 0.0) == Normal(13.0, 0.0)
    assert posterior(Normal(10.0, 0.0), 3, 13.0, 9.0) == Normal(10.0, 0.0)
    assert posterior(Normal(0.0, math.inf), 3, 13.0, 9.0) == Normal(13.0, 3.0)


@pytest.mark.parametrize(
    ("mean", "sd0", "sd1", "m"), [(30.0, 4.0, 3.0, 0), (30.0, 4.0, 3.0, 2), (80.0, 30.0, 10.0, 1)]
)
def test_chance_of_another_queue_is_that_of_draws(mean, sd0, sd1, m):
    bounds = [10.0, 32.0, 100.0, math.inf]
    rng = np.random.default_rng(0)
    x = rng.normal(mean, sd0, 400_000)
    estimate = np.full(len(x), mean)
    if m:
        y = rng.normal(x[:, None], sd1, (len(x), m)).mean(axis=1)
        w0, w1 = 1 / sd0**2, m / sd1**2
        estimate = (w0 * mean + w1 * y) / (w0 + w1)
    inner = bounds[:-1]
    other = np.searchsorted(inner, x, "right") != np.searchsorted(inner, estimate, "right")
    got = chances_of_other_queue(Normal(mean, sd0**2), 3, sd1**2, np.array(bounds))
    assert got[m] == pytest.approx(other.mean(), abs=0.06)  # nine nodes across a jump


def test_a_certain_size_is_in_its_queue():
    bounds = np.array([10.0, math.inf])
    assert chances_of_other_queue(Normal(9.0, 0.0), 2, 1.0, bounds) == [0.0] * 3
    unsure, *sampled = chances_of_other_queue(Normal(10.0, 4.0), 2, 0.0, bounds)
    assert unsure > 0.4
    assert sampled == [0.0, 0.0]


def test_gain_by_hand():
    # a tenth less wrong, jobs stretched 30-fold, 18 of 20 tasks left, 10 slots: 5.4 - 1 for
    # the wait - 2/10
    assert gain(0.1, 30.0, 20, 10, 0, 2) == pytest.approx(5.4 - 1 - 0.2)
    # as much again for each two jobs that wait
    assert gain(0.1, 30.0, 20, 10, 4, 2) == pytest.approx(3 * 5.4 - 1 - 0.2)
    assert gain(0.0, math.inf, 20, 10, 4, 2) == 0.0
    assert gain(0.1, math.inf, 20, 10, 0, 2) == math.inf


def past(mean_task_s):
    """Return runs that arrived and ended one after the other."""
    n = len(mean_task_s)
    submit_s = [-100.0 * (n - i) for i in range(n)]
    return {
        "submit_s": submit_s,
        "finish_s": [s + 50.0 for s in submit_s],
        "n_tasks": [1] * n,
        "mean_task_s": mean_task_s,
        "application": ["a"] * n,
    }


def run(history, submits=(0.0,), durations=(20.0,) * 8, **params):
    jobs = [
        {"submit_s": t, "application": "a", "stages": [{"durations_s": list(durations)}]}
        for t in submits
    ]
    workload = sim.Workload.from_jobs(jobs).with_history(history)
    return sim.simulate(workload, sim.Cluster.slots(2), policies.build("bayes", **params))


def test_a_sure_history_needs_no_pilots():
    # always 10 s: certain, and in the same queue for any pilot
    assert run(past([10.0] * 5)).estimate_s[0] == pytest.approx(80.0)


def test_without_history_pilots_alone_count():
    assert run(past([])).estimate_s[0] == 160.0
    assert run(past([10.0])).estimate_s[0] == 160.0  # the error of the prior is unknown yet


def test_where_history_is_unsure_pilots_alone_count():
    mean_s = [1.0, 50.0, 9.0, 300.0, 20.0, 4000.0]
    assert run(past(mean_s), durations=(400.0,) * 8).estimate_s[0] == 3200.0
    assert run(past([10.0] * 5), sampling_percent=1.0).estimate_s[0] == 160.0


def test_overconfident_priors_are_widened(monkeypatch):
    # the second job's prior is near a queue's bound, 125 s a task, and sure
    mean_s = [100.0, 101.0, 99.0, 100.0, 100.0, 101.0]
    params = {"submits": (0.0, 90_000.0), "durations": (60.0,) * 8}

    def widened() -> float:
        seen: list[float] = []
        chances = "policies.slearn.posterior.chances_of_other_queue"
        monkeypatch.setattr(chances, lambda p, *a: seen.append(p.variance) or np.zeros(2))
        run(past(mean_s), **params)
        return seen[1]

    trusting = widened()
    monkeypatch.setattr("policies.slearn.posterior.MAX_SURPRISE", 1.0)
    assert trusting == pytest.approx(10.0 * widened())
