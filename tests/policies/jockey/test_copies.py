"""Copies run one after the other are as each alone, under a run limit on ample slots."""

import numpy as np
import pytest

import sim
from policies.base import Policy
from policies.jockey.copies import resample
from policies.jockey.profile import profile_of
from tests.policies.jockey.test_profile import records, shape


class Limited(Policy):
    """So many tasks of each job at once."""

    def prepare(self, world, plan):
        plan.set_jobs(run_limit=self.tokens)


def profile(n_failed=0):
    rng = np.random.default_rng(3)
    rows = []
    for stage, n in enumerate([5, 7, 2]):
        for task in range(n):
            start, length = rng.uniform(1, 3), rng.uniform(2, 9)
            rows.append((0, stage, task, 0.0, start, start + length, 1.0, n_failed * (task % 2)))
    s = shape([9, 9, 3], [(0, 1), (1, 2)])
    s.kind[0] = 1
    return profile_of(s, records(rows))


@pytest.mark.parametrize("tokens", [1, 3, 50])
def test_each_copy_is_alone_under_a_run_limit(tokens):
    copies = resample(profile(), 6)
    start, finish = copies.run(tokens)
    alone = Limited()
    object.__setattr__(alone, "tokens", tokens)
    for copy in range(6):
        one = copies.workload.take(np.array([copy]))
        run = sim.simulate(one, sim.Cluster.slots(60), alone, record="tasks")
        np.testing.assert_allclose(start[copy], run.task_start - run.job_submit[0], atol=1e-6)
        np.testing.assert_allclose(finish[copy], run.task_finish - run.job_submit[0], atol=1e-6)
    assert len(np.unique(finish.max(axis=1))) == 6


def test_every_duration_is_of_its_stage():
    p = profile()
    copies = resample(p, 40)
    first = p.shape.first_task
    for stage in range(3):
        a, b = p.sample0[stage : stage + 2]
        drawn = copies.duration_s[:, first[stage] : first[stage + 1]]
        ran = np.unique((drawn - 1.0).round(9))
        assert set(ran) == set(p.run_s[a:b].round(9))
        assert drawn.mean() == pytest.approx(p.run_s[a:b].mean() + 1.0, rel=0.1)


def test_failures_cost_an_initialisation_and_a_part_of_a_run_each():
    sure, never = resample(profile(3), 300), resample(profile(0), 300)
    lost = sure.duration_s[:, :9].mean() - never.duration_s[:, :9].mean()
    p = profile()
    run_s = p.run_s[:5].mean()
    assert lost == pytest.approx(0.4 * 3 * (1.0 + run_s / 2), rel=0.1)


def test_the_same_profile_gives_the_same_copies():
    np.testing.assert_array_equal(
        resample(profile(), 4).duration_s, resample(profile(), 4).duration_s
    )
    assert (resample(profile(1), 4).duration_s != resample(profile(), 4).duration_s).any()
