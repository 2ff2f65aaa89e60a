"""The linear policy and its training: keys, starts and steps worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from policies.baselines.linear import Linear
from policies.baselines.training import mean_jct_s, train
from sim.cluster.cluster import Cluster
from sim.env import SchedulingEnv
from sim.workload.workload import Workload
from tests.policies.small import job, run

JOBS = [job("a", 0, [1.0] * 3), job("b", 0, [5.0]), job("c", 0, [1.0] * 2)]


def test_keys_by_hand():
    # 4 tasks, of which 2 are left, and 10 s of work: 5 s each, so that 10 s are left
    jobs = np.zeros((1, 9), np.float32)
    jobs[0, :6] = [np.e - 1, 4, 2, 0, 2, 10]
    shown = {"jobs": jobs, "n_jobs": np.array([1])}
    assert Linear(factors=(1, 0, 0, 0, 0, 0)).act(shown) == pytest.approx([0.1 / 1.1])
    x = np.log(11) / 10  # log(1 + 10) of the work that is done, and of what is left
    assert Linear(factors=(0, 0, 0, 0, 0, 1)).act(shown) == pytest.approx([x / (1 + x)])
    assert Linear(factors=(0, 0, 0, 0, -2, 1)).act(shown) == pytest.approx([-x / (1 + x)])


def test_starts_by_hand():
    # by unfinished tasks, one slot: b (1) until 5, c (2) until 7, then a
    result = run("linear", JOBS, factors=[0, 0, 1, 0, 0, 0])
    assert result.job_finish.tolist() == [10, 5, 7]
    # the most tasks first: a until 3; then c
    assert run("linear", JOBS, factors=[0, -1, 0, 0, 0, 0]).job_finish.tolist() == [3, 10, 5]


def test_a_run_does_what_the_environment_did():
    workload = Workload.from_jobs(JOBS)
    env = SchedulingEnv(lambda _: (workload, Cluster.slots(1)), form=Linear.form)
    assert mean_jct_s(env, Linear(factors=(0, 0, 1, 0, 0, 0)), 0) == pytest.approx(22 / 3)
    assert mean_jct_s(env, Linear(factors=(0, -1, 0, 0, 0, 0)), 0) == pytest.approx(18 / 3)


@pytest.mark.parametrize("target", [50.0, -50.0])
def test_steps_by_hand(target):
    """One weight, far from the best: all steps lead there, of 2, 2 / 1.1 and 2 / 1.2."""
    expected = np.sign(target) * (2 + 2 / 1.1 + 2 / 1.2)
    assert train(lambda w, _: abs(w[0] - target), 1, steps=3, pairs=2) == pytest.approx([expected])


def test_training_comes_near_the_best():
    best = np.array([3.0, -1.0, 2.0])

    def score(weights, seed):
        assert 1000 <= seed < 1016
        return 1.0 + ((weights - best) ** 2).sum()

    weights = train(score, 3, steps=30)
    assert np.abs(weights - best).max() < 0.5
    assert (weights == train(score, 3, steps=30)).all()
    assert (weights != train(score, 3, steps=30, seed=1)).any()
