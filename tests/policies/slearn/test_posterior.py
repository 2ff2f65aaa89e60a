"""The posterior estimator: against integration, sampling, and small runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import policies
import sim
from policies.slearn.histogram import Histogram
from policies.slearn.posterior import chance_of_other_queue, gain, prior_of
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


def test_prior_is_what_a_new_job_of_the_population_takes():
    values = np.array([1.0, 2.0, 3.0, 4.0, 10.0])
    prior = prior_of_values(values)
    logs = np.log(values)
    assert prior.mean == pytest.approx(logs.mean())
    assert prior.variance == pytest.approx(logs.var(ddof=1) * (1 + 1 / 5) * 4 / 2)
    three = prior_of_values([1.0, 2.0, 4.0])
    assert three.mean == pytest.approx(math.log(2.0))
    assert three.variance == prior_of(Histogram(80)).variance == math.inf


def test_jobs_of_no_length_are_taken_for_the_shortest():
    assert prior_of_values([0.0, 5.0]).mean == pytest.approx(math.log(5.0))
    assert prior_of_values([0.0] * 5) == Normal(-math.inf, 0.0)


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
    got = chance_of_other_queue(Normal(mean, sd0**2), m, sd1**2, bounds)
    assert got == pytest.approx(other.mean(), abs=0.06)  # nine nodes across a jump


def test_gain_by_hand():
    # a tenth less wrong, jobs stretched 30-fold, 18 of 20 tasks left, 10 slots: 5.4 - 1 for
    # the wait - 2/10
    assert gain(0.1, 30.0, 20, 10, 0, 2) == pytest.approx(5.4 - 1 - 0.2)
    # as much again for each two jobs that wait
    assert gain(0.1, 30.0, 20, 10, 4, 2) == pytest.approx(3 * 5.4 - 1 - 0.2)
    assert gain(0.0, math.inf, 20, 10, 4, 2) == 0.0
    assert gain(0.1, math.inf, 20, 10, 0, 2) == math.inf


def history(mean_task_s):
    n = len(mean_task_s)
    return {
        "submit_s": [-200.0] * n,
        "finish_s": [-100.0] * n,
        "n_tasks": [1] * n,
        "mean_task_s": mean_task_s,
        "user": ["u"] * n,
    }


def run(past, **params):
    jobs = [{"submit_s": 0.0, "user": "u", "stages": [{"durations_s": [20.0] * 8}]}]
    made = sim.Workload.from_jobs(jobs).with_history(past)
    return sim.simulate(made, sim.Cluster.slots(2), policies.build("bayes", **params))


def test_a_sure_history_needs_no_pilots():
    # five jobs of 10 s each: sure, and in the same queue whatever a pilot says
    assert run(history([10.0] * 5)).estimate_s[0] == pytest.approx(80.0)


def test_no_history_asks_pilots_alone():
    assert run(history([])).estimate_s[0] == 160.0
    assert run(history([10.0] * 3)).estimate_s[0] == 160.0  # of three no variance is known


def test_an_unsure_history_is_weighed_with_the_pilots():
    took = [1.0, 5.0, 9.0, 300.0, 600.0]
    prior = prior_of_values(took)
    # one pilot took 20 s; a task varies by as much as its mean, nothing else being known
    expected = math.exp(posterior(prior, 1, math.log(20.0), math.log(2.0)).mean) * 8
    assert run(history(took)).estimate_s[0] == pytest.approx(expected)


def test_priors_that_were_surer_than_right_are_widened():
    took = [9.0, 10.0, 11.0, 10.0, 10.0]
    durations = [15.0, 25.0] * 4
    jobs = [
        {"submit_s": t, "user": "u", "stages": [{"durations_s": durations}]} for t in (0.0, 1000.0)
    ]
    made = sim.Workload.from_jobs(jobs).with_history(history(took))
    r = sim.simulate(made, sim.Cluster.slots(2), policies.build("bayes", sampling_percent=1.0))
    first, second = prior_of_values(took), prior_of_values([*took, 20.0])
    wider = (math.log(20.0) - first.mean) ** 2 / first.variance
    assert wider > 10
    prior = Normal(second.mean, second.variance * wider)
    differ = math.log1p(8 * 5.0**2 / 7 / 20.0**2)
    expected = [8 * math.exp(posterior(prior, 1, math.log(y), differ).mean) for y in (15.0, 25.0)]
    assert min(abs(r.estimate_s[1] - one) for one in expected) < 1e-6


def prior_of_values(values):
    seen = Histogram(80)
    for value in values:
        seen.add(value)
    return prior_of(seen)
