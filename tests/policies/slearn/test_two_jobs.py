"""The two-job model of SLearn's §4.1: what is drawn agrees with what the formulas say."""

from __future__ import annotations

import pytest

import sim
from sim.evaluators import evaluate


def draw(**options):
    return evaluate("two_jobs", sim.simulate, None, None, None, 0, **options)[0]


@pytest.mark.parametrize(
    ("sd_jobs", "sd_tasks", "samples"), [(2.0, 3.0, 3), (5.0, 1.0, 1), (0.3, 6.0, 4)]
)
def test_draws_agree_with_the_formulas(sd_jobs, sd_tasks, samples):
    got = draw(sd_jobs=sd_jobs, sd_tasks=sd_tasks, samples=samples)
    for name in ("history", "samples", "posterior"):
        assert got[f"mse_{name}"] == pytest.approx(got[f"variance_{name}"], rel=0.02)
    assert got["variance_history"] == sd_jobs**2
    assert got["variance_samples"] == pytest.approx(sd_tasks**2 / samples)


def test_worked_example_leaves_twelve_sevenths():
    assert draw(draws=1)["variance_posterior"] == pytest.approx(12 / 7)


def test_which_is_better_turns_where_the_variances_meet():
    # sigma0² against sigma1²/m: 4 against 9/1, 9/3 and 9/9
    better = [
        got["mse_samples"] < got["mse_history"] for got in (draw(samples=m) for m in (1, 3, 9))
    ]
    assert better == [False, True, True]
    for m in (1, 3, 9):
        got = draw(samples=m)
        assert got["mse_posterior"] < min(got["mse_samples"], got["mse_history"])
        assert got["wrong_posterior"] <= got["wrong_history"]


def test_certain_samples_and_certain_history():
    assert draw(sd_tasks=0.0)["mse_posterior"] == 0.0
    assert draw(sd_jobs=0.0)["mse_posterior"] == 0.0
    with pytest.raises(sim.InputError, match="samples and draws of at least 1"):
        draw(samples=0)
