"""The posterior estimator: against integration, sampling, and small runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import policies
import sim
from policies.slearn.kernels import pilots
from policies.slearn.kernels.pilots import gain
from policies.slearn.posterior import Posterior
from sim.base import maths
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


def chances_of_other_queue(prior, n_max, task_variance, bounds):
    chances = np.empty(n_max + 1)
    pilots.chances_of_other_queue(*prior, task_variance, np.array(bounds), chances)
    return chances.tolist()


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
        monkeypatch.setattr(
            Posterior,
            "_choose_n_pilots",
            lambda self, job, *_: seen.append(self._prior[job][1]) or 0,
        )
        run(past(mean_s), **params)
        return seen[1]

    trusting = widened()
    monkeypatch.setattr("policies.slearn.posterior.MAX_SURPRISE", 1.0)
    assert trusting == pytest.approx(10.0 * widened())


@pytest.mark.parametrize("seed", range(20))
def test_the_number_of_pilots_equals_plain_python_to_the_bit(seed):
    rng = np.random.default_rng(seed)
    group = rng.integers(-1, 3, (30, 6)).astype(np.int32)
    spread = np.zeros((4, 2))
    plain = [(0, 0.0)] * 4
    for stage in range(30):
        value = float(rng.exponential(rng.choice([0.0, 1.0])))
        pilots.add_spread(group, spread, stage, value)
        for g in (*(g for g in group[stage].tolist() if g >= 0), 3):
            plain[g] = plain[g][0] + 1, plain[g][1] + value
    assert spread.tolist() == [[n, total] for n, total in plain]
    bounds = maths.log([*np.sort(rng.lognormal(7, 2, 5)), math.inf])
    prior = Normal(float(rng.normal(3, 1)), float(rng.exponential(2.0) * (seed % 7 > 0)))
    n_tasks, slots, stretch = int(rng.integers(3, 400)), int(rng.integers(1, 40)), 9.0
    log_n, n_others, n_max = maths.log(float(n_tasks)), float(rng.integers(0, 9)), 12
    similar = next((g for g in group[4].tolist() if g >= 0 and plain[g][0] >= 3), 3)
    variance = maths.log1p(plain[similar][1] / plain[similar][0])
    chance = [_chance(prior, m, variance, bounds - log_n) for m in range(n_max + 1)]
    gains = [0.0, *(gain(chance[0] - chance[m], stretch, n_tasks, slots, n_others, m)
                    for m in range(1, n_max + 1))]  # fmt: skip
    numbers = n_max, stretch, n_tasks, log_n, slots, n_others
    chosen = pilots.choose_n_pilots(group, spread, bounds, 4, *prior, *numbers)
    assert chosen == (gains.index(max(gains)) if max(gains) > 0 else 0)
    out = np.empty(n_max + 1)
    pilots.chances_of_other_queue(*prior, variance, bounds - log_n, out)
    assert out.tolist() == chance


def _chance(prior, m, task_variance, bounds):
    """Return the chance that x and its estimate from m samples differ in queue."""
    left = posterior(prior, m, prior.mean, task_variance).variance
    if left == 0:
        return 0.0
    estimate = prior.mean + np.sqrt(max(0.0, prior.variance - left)) * pilots.NODES
    queue = np.searchsorted(bounds, estimate, side="right")
    ends = np.append(bounds, -math.inf)[np.stack([queue, queue - 1])]
    above, below = maths.normal_cdf((ends - estimate) / np.sqrt(left))
    return float(((1.0 - (above - below)) * pilots.WEIGHTS).sum() / math.sqrt(2 * math.pi))
