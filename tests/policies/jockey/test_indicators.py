"""Progress by hand, and times of levels against a loop over all ends of tasks."""

import numpy as np
import pytest

from policies.estimates.profile import build_profile
from policies.jockey.indicators import NAMES, MinStage, WeightedSum, indicator
from policies.jockey.kernels.levels import weighted_levels
from sim.base.errors import InputError
from tests.policies.estimates.test_profile import ONE_RUN, TWO_STAGES, records
from tests.policies.jockey.test_job_simulator import profile

UNLIMITED = (np.array([0.0, 0.6]), np.array([0.7, 1.0]))


@pytest.mark.parametrize(
    ("name", "half", "mapped"),
    [  # T = 6, 1.5; Q = 5, 1.5; l = 4, 1.5; L = 1.5, 0; begin .1, .8; end .7, 1; tasks 2, 1
        ("totalworkWithQ", 5.5 / 14, 11 / 14),
        ("totalwork", 0.4, 0.8),
        ("vertexfrac", 1 / 3, 2 / 3),
        ("cp", 1 - 3.5 / 5.5, 4 / 5.5),
        ("minstage", 0.4, 0.8),
        ("minstage-inf", 0.35, 0.6),
    ],
)
def test_progress_by_hand(name, half, mapped):
    progress_indicator = indicator(
        name, build_profile(TWO_STAGES, records(ONE_RUN), waits=True), UNLIMITED
    )
    assert progress_indicator.progress(np.array([0.5, 0.0])) == pytest.approx(half)
    assert progress_indicator.progress(np.array([1.0, 0.0])) == pytest.approx(mapped)
    assert progress_indicator.progress(np.array([1.0, 1.0])) == pytest.approx(1.0)
    both = progress_indicator.progress(np.array([[0.5, 0.0], [1.0, 0.0]]))
    np.testing.assert_allclose(both, [half, mapped])


def order_of(finish):
    return np.argsort(finish, axis=1, kind="stable").astype("i4")


@pytest.mark.parametrize("digits", [9, 0, -1])  # of ends: the fewer, the more are equal
@pytest.mark.parametrize("name", NAMES)
def test_times_of_levels_equal_a_loop(name, digits):
    rng = np.random.default_rng(5)
    p = profile()
    low = np.sort(rng.uniform(0, 0.6, 3))
    progress_indicator = indicator(name, p, (low, low + rng.uniform(0.1, 0.4, 3)))
    n_tasks = p.shape.n_tasks
    finish = rng.uniform(1, 100, (4, n_tasks.sum())).round(digits)
    levels = np.concatenate([[0.0], np.sort(rng.uniform(0.001, 0.999, 30)), [1.0]])
    got = progress_indicator.reached(finish, order_of(finish), n_tasks, levels)
    stage = np.repeat(np.arange(3), n_tasks)
    for run in range(4):
        want = np.full(len(levels), np.nan)
        for time in [0.0, *np.sort(finish[run]).tolist()]:
            ended = np.bincount(stage[finish[run] <= time], minlength=3)
            progress = progress_indicator.progress(ended / n_tasks)
            fresh = np.isnan(want) & (levels <= progress + 1e-9)
            want[fresh] = time
        np.testing.assert_array_equal(got[run], want)


def test_the_task_that_makes_progress_whole_reaches_its_level():
    finish_s, halves = np.array([[3.0, 1.0]]), np.array([0.5, 0.5])
    reached_s = np.empty((1, 3))
    weighted_levels(finish_s, order_of(finish_s), halves, np.array([0.25, 0.5, 0.75]), reached_s)
    assert reached_s.tolist() == [[1.0, 1.0, 3.0]]


def test_progress_never_falls_and_levels_come_in_order():
    p = profile()
    finish = np.random.default_rng(0).uniform(1, 9, (3, int(p.shape.n_tasks.sum())))
    for name in NAMES:
        progress_indicator = indicator(name, p, (np.zeros(3), np.ones(3)))
        assert isinstance(progress_indicator, WeightedSum | MinStage)
        times = progress_indicator.reached(
            finish, order_of(finish), p.shape.n_tasks, np.linspace(0, 1, 50)
        )
        assert (np.diff(times, axis=1) >= 0).all()
        np.testing.assert_array_equal(times[:, -1], finish.max(axis=1))


def test_tasks_of_no_length_count_alike():
    rows = [(0, s, t, 0.0, 0.0, 0.0, 0.0, 0) for s, t in ((0, 0), (0, 1), (1, 0))]
    p = build_profile(TWO_STAGES, records(rows))
    assert indicator("totalwork", p).progress(np.array([1.0, 0.0])) == pytest.approx(2 / 3)


def test_an_unknown_indicator_gets_the_nearest():
    with pytest.raises(InputError, match="did you mean 'minstage'"):
        indicator("minstag", profile())
