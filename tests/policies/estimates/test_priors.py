"""Priors from history: by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sim
from policies.check.unknown import recurring
from policies.estimates.priors import Priors
from policies.estimates.weights import KIND_WEIGHT, OWN_RECENT, RECENT
from tests.policies.estimates import priors as plain


def priors(history, jobs=({"application": "a"},)):
    """Build the priors of `workload`."""
    return Priors(workload(history, jobs).columns.features)


def workload(history, jobs):
    """Build jobs that arrive at 0, after a history of (application, user, seconds)."""
    n = len(history)
    submit_s = [-100.0 * (n - i) for i in range(n)]
    return sim.Workload.from_jobs(
        [{"submit_s": 0.0, **job, "stages": [{"durations_s": [1.0]}]} for job in jobs]
    ).with_history(
        {
            "submit_s": submit_s,
            "finish_s": [s + 50.0 for s in submit_s],
            "n_tasks": [1] * n,
            "mean_task_s": [s for _, _, s in history],
            "application": [a for a, _, _ in history],
            "user": [u for _, u, _ in history],
        }
    )


def test_nothing_is_known_before_anything_was_predicted():
    assert priors([]).prior(0, 0.0).variance == math.inf
    assert priors([("a", "u", 5.0)]).prior(0, 0.0).variance == math.inf


def test_a_steady_program_is_predicted_by_its_runs():
    got = priors([("a", "u", 10.0)] * 6).prior(0, 0.0)
    assert got.mean == pytest.approx(math.log(10.0))
    assert got.variance == 0.0


def test_the_variance_is_the_mean_squared_error_of_predictions():
    log_s = [math.log(s) for s in (2.0, 8.0, 2.0)]
    first, second = log_s[1] - log_s[0], log_s[2] - (log_s[0] + log_s[1]) / 2
    got = priors([("a", "u", math.exp(s)) for s in log_s]).prior(0, 0.0)
    # its own errors, those of groups with 2 to 3 runs, of which there is one, and one error of the
    # mean of all runs
    group_errors = first**2 * (1 - 1 / OWN_RECENT) + second**2
    broad = (first**2 * (1 - 1 / RECENT) + second**2) / (2 - 1 / RECENT)
    kind_errors = KIND_WEIGHT * (second**2 + broad) / 2
    assert got.mean == pytest.approx(sum(log_s) / 3)
    assert got.variance == pytest.approx(
        (kind_errors + group_errors) / (KIND_WEIGHT + 2 - 1 / OWN_RECENT)
    )


def test_a_changed_program_is_predicted_by_its_last_runs():
    got = priors([("a", "u", s) for s in (10.0,) * 6 + (1000.0,) * 6]).prior(0, 0.0)
    assert got.mean == pytest.approx(math.log(1000.0), abs=0.1)


def test_new_programs_have_the_errors_of_new_programs():
    # a user's known programs take 1 s always, new ones anything
    history = [("known", "u", 1.0)] * 20
    for i in range(6):
        history += [(f"new-{i}", "u", 10.0**i), *[("known", "u", 1.0)] * 3]
    known, new = ({"application": name, "user": "u"} for name in ("known", "another"))
    sure = priors(history, [known]).prior(0, 0.0)
    unsure = priors(history, [new]).prior(0, 0.0)
    assert sure.variance < 0.5
    assert unsure.variance > 4.0


def test_zero_durations_count_as_a_millisecond():
    assert priors([("a", "u", 0.0)] * 4).prior(0, 0.0).mean == pytest.approx(math.log(1e-3))


def test_only_finished_runs_count():
    steady = priors([("a", "u", 10.0)] * 6)
    assert math.isinf(steady.prior(0, -560.0).variance)
    assert steady.prior(0, 0.0).variance == 0.0
    steady.add(0, 40.0, 0.0)
    assert steady.prior(0, 0.0).variance > 0


def test_equals_plain_python_to_the_bit():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        history = [
            (f"a{a}" if a else "", f"u{rng.integers(3)}", float(rng.lognormal(3, 2) * (a != 3)))
            for a in rng.integers(0, 9, 200)
        ]
        jobs = [
            {"application": f"a{rng.integers(0, 12)}", "user": f"u{rng.integers(5)}"}
            for _ in range(60)
        ]
        columns = workload(history, jobs).columns
        assert_same(rng, Priors(columns.features), plain.Priors(columns.features), len(jobs))


def test_template_and_place_come_first_and_recorded_runs_count():
    for seed in range(3):
        columns = recurring(seed).columns
        pair = (estimator(columns.features, columns) for estimator in (Priors, plain.Priors))
        rng = np.random.default_rng(seed)
        assert_same(rng, *pair, len(columns.stage_job))


def assert_same(rng, compiled, reference, n_stages):
    """Hold two estimators to the same bits, on random arrivals and ends."""
    now, running = -15_000.0, []
    for stage in range(n_stages):
        now += float(rng.exponential(400.0))
        assert compiled.prior(stage, now) == reference.prior(stage, now)
        running.append(stage)
        while rng.uniform() < 0.6 and running:
            ended = running.pop(int(rng.integers(len(running))))
            value = float(rng.lognormal(3, 2) * (rng.uniform() < 0.9))
            compiled.add(ended, value, now)
            reference.add(ended, value, now)
