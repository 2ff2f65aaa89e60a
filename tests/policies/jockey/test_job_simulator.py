"""The job simulator: copies equal runs alone; C(p, a) against every instant of every run."""

import numpy as np
import pytest

import sim
from policies.base import Policy
from policies.estimates.profile import build_profile
from policies.jockey.indicators import indicator
from policies.jockey.job_simulator import (
    LEVELS,
    Remaining,
    allocations,
    progress_level,
    resample,
    simulate_remaining,
)
from tests.policies.estimates.test_profile import records, shape


class Limited(Policy):
    """A run limit of `tokens` for each job."""

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
    return build_profile(s, records(rows))


@pytest.mark.parametrize("tokens", [1, 3, 50])
def test_each_copy_is_alone_under_a_run_limit(tokens):
    copies = resample(profile(), 6)
    start, finish = copies.run(tokens)
    alone = Limited()
    object.__setattr__(alone, "tokens", tokens)
    for copy in range(6):
        single = copies.workload.take(np.array([copy]))
        run = sim.simulate(single, sim.Cluster.slots(60), alone, record="tasks")
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


TOKENS = np.array([1, 2, 5, 9], "i4")


@pytest.fixture(scope="module")
def simulated():
    copies = resample(profile(2), 25)
    return copies, simulate_remaining(copies, indicator("totalworkWithQ", copies.profile), TOKENS)


def test_the_worst_case_is_the_longest_left_at_any_instant_of_any_run(simulated):
    copies, remaining = simulated
    progress_indicator = indicator("totalworkWithQ", copies.profile)
    n_tasks = copies.profile.shape.n_tasks
    stage = np.repeat(np.arange(len(n_tasks)), n_tasks)
    for i, tokens in enumerate(TOKENS.tolist()):
        _, finish = copies.run(tokens)
        worst = np.zeros(LEVELS + 1)
        for run in finish:
            for time in [0.0, *np.sort(run).tolist()]:
                ended = np.bincount(stage[run <= time], minlength=len(n_tasks))
                level = progress_level(float(progress_indicator.progress(ended / n_tasks)))
                worst[level] = max(worst[level], run.max() - time)
        worst = np.maximum.accumulate(worst[::-1])[
            ::-1
        ]  # the time left at a later level counts, too
        np.testing.assert_allclose(remaining.left_s[i, :, -1], worst, atol=1e-6)


def test_more_tokens_never_take_longer_and_progress_never_adds(simulated):
    _, remaining = simulated
    for q in (0.1, 0.5, 1.0):
        table = remaining.quantile(q, 9)
        assert table.shape == (LEVELS + 1, 9)
        assert (np.diff(table, axis=1) <= 0).all()
        assert (np.diff(table, axis=0) <= 1e-9).all()
        assert (table[-1] == 0).all()
    assert (remaining.quantile(0.5, 9) <= remaining.quantile(1.0, 9)).all()


def test_an_anomaly_is_levelled():
    left = np.repeat(np.array([4.0, 1.0, 2.0])[:, None], LEVELS + 1, axis=1)[:, :, None]
    table = Remaining(np.array([1, 2, 4], "i4"), left).quantile(1.0, 4)
    assert table[0].tolist() == [4.0, 1.0, 1.0, 1.0]


def test_between_simulated_allocations_it_is_linear_in_the_inverse():
    left = np.repeat(np.array([120.0, 40.0])[:, None], LEVELS + 1, axis=1)[:, :, None]
    table = Remaining(np.array([1, 4], "i4"), left).quantile(1.0, 4)
    np.testing.assert_allclose(table[7], 40.0 + (120 - 40) * (1 / np.arange(1, 5) - 1 / 4) / 0.75)


def test_quantiles_are_order_statistics():
    left = np.tile(np.arange(1.0, 11.0), (1, LEVELS + 1, 1))
    remaining = Remaining(np.array([1], "i4"), left)
    actual = [remaining.quantile(q, 1)[0, 0] for q in (0.01, 0.1, 0.11, 0.5, 0.95, 1.0)]
    assert actual == [1.0, 1.0, 2.0, 5.0, 10.0, 10.0]


def test_allocations_are_as_many_as_wanted():
    assert len(allocations(100, 20)) == 20
    assert allocations(100, 20)[[0, -1]].tolist() == [1, 100]
    assert allocations(5, 20).tolist() == [1, 2, 3, 4, 5]
    assert allocations(1, 20).tolist() == [1]
