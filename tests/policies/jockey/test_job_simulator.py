"""The job simulator: runs of copies against `sim.simulate`; C(p, a) against every instant."""

from dataclasses import replace

import numpy as np
import pytest

import sim
from policies.base import Policy
from policies.estimates.profile import build_profile
from policies.jockey.indicators import indicator
from policies.jockey.job_simulator import (
    LEVELS,
    Copies,
    Remaining,
    allocations,
    progress_level,
    resample,
    simulate_remaining,
)
from sim.workload.schema import EDGE_KINDS
from tests.policies.estimates.test_profile import records, shape


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


def as_jobs(copies):
    """Build a workload of the copies: each is submitted when the one before must have ended."""
    job, n = copies.profile.shape, len(copies.duration_s)
    n_stages = len(job.n_tasks)
    offset = np.arange(n)[:, None] * n_stages
    stage = np.repeat(np.arange(n_stages), job.n_tasks)
    return sim.Workload.from_tables(
        jobs={"job_id": [f"copy-{i}" for i in range(n)], "submit_s": copies.submit_s},
        stages={
            "job": np.repeat(np.arange(n), n_stages),
            "n_tasks": np.tile(job.n_tasks, n),
            "lag_s": np.tile(job.lag_s if len(job.lag_s) else np.zeros(n_stages), n),
        },
        tasks={"stage": (stage + offset).ravel(), "duration_s": copies.duration_s.ravel()},
        stage_edges={
            "parent": (job.parent + offset).ravel(),
            "child": (job.child + offset).ravel(),
            "kind": np.tile(np.array(EDGE_KINDS)[job.kind], n).tolist(),
        },
    )


def random_copies(rng, lags):
    """Draw copies of a job of stages of all sizes and edges of both kinds; parents may be later."""
    n_stages = int(rng.integers(1, 8))
    n_tasks = rng.integers(1, rng.choice([4, 30, 200]), n_stages)
    name = rng.permutation(n_stages)  # a stage may have a lower row than its parents
    edges = [(p, c) for c in range(n_stages) for p in range(c) if rng.random() < 0.4]
    job = shape(n_tasks.tolist(), [(int(name[p]), int(name[c])) for p, c in edges])
    job.kind[:] = rng.random(len(edges)) < 0.5
    size = (3, int(n_tasks.sum()))
    duration_s, lag_s = rng.lognormal(1, 1, size), rng.lognormal(1, 1, n_stages)
    if rng.random() < 0.5:  # many end at one instant, some at the instant at which they start
        duration_s = rng.integers(0, 4, size).astype(float)
        lag_s = rng.integers(0, 4, n_stages).astype(float)  # stages open then, too
    if not lags:
        lag_s = np.empty(0)
    return Copies(build_profile(replace(job, lag_s=lag_s), no_records(n_tasks)), duration_s)


def no_records(n_tasks):
    return records(
        [(0, s, t, 0.0, 0.0, 1.0, 0.0, 0) for s, n in enumerate(n_tasks) for t in range(n)]
    )


@pytest.mark.parametrize("lags", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_runs_equal_those_of_the_event_loop_to_the_bit(seed, lags):
    copies = random_copies(np.random.default_rng(seed), lags)
    workload, size = as_jobs(copies), copies.duration_s.shape
    for tokens in (1, 2, 7, size[1]):
        runs = copies.run(tokens)
        loop = sim.simulate(workload, sim.Cluster.slots(tokens), Policy(), record="tasks")
        for got, want in ((runs.start_s, loop.task_start), (runs.finish_s, loop.task_finish)):
            elapsed = want.reshape(size) - copies.submit_s[:, None]
            np.testing.assert_array_equal(got, elapsed)
        np.testing.assert_array_equal(runs.order, np.argsort(runs.finish_s, axis=1, kind="stable"))


def test_a_stage_that_lags_opens_so_long_after_its_last_barrier_parent():
    job = replace(shape([2, 1, 1], [(0, 1), (0, 2)]), lag_s=np.array([9.0, 5.0, 0.0]))
    copies = Copies(build_profile(job, no_records([2, 1, 1])), np.array([[3.0, 4.0, 2.0, 6.0]]))
    assert copies.run(2).start_s.tolist() == [[0.0, 0.0, 9.0, 4.0]]
    assert copies.run(1).start_s.tolist() == [[0.0, 3.0, 13.0, 7.0]]  # a token is free at 13


def test_no_two_copies_overlap_even_with_one_token():
    copies = resample(profile(), 6)
    last = copies.submit_s + copies.run(1).finish_s.max(axis=1)
    assert (last[:-1] < copies.submit_s[1:]).all()
    assert len(np.unique(last - copies.submit_s)) == 6


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
        finish = copies.run(tokens).finish_s
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
