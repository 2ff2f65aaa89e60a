"""Worked numbers of Ferguson et al., *Jockey*, EuroSys 2012."""

import numpy as np
import pytest

from policies.jockey.control import (
    Law,
    behind_s,
    next_allocation,
    raw_allocation,
    whole_tokens,
)
from sim.base.errors import InputError
from sim.workload.utility import POINTS, utility_curve

MIN = 60.0
U = utility_curve(POINTS)
LAW = Law()  # S = 1.2, α = 0.2, D = 3 min (§5.1)


def left(*minutes):
    return MIN * np.array(minutes, dtype=float)


@pytest.mark.parametrize("deadline", [45, 60, 140])
def test_the_utility_goes_through_the_points_of_the_paper(deadline):
    """§5.1: (0, 1), (d, 1), (d + 10, -1), (d + 1000, -1000)."""
    minutes = np.array([0, deadline / 2, deadline, deadline + 5, deadline + 10, deadline + 1000])
    actual = U((minutes - deadline) * MIN)
    np.testing.assert_allclose(actual, [1, 1, 1, 0, -1, -1000], atol=1e-12)
    assert U(505 * MIN) == pytest.approx(-1 - 999 / 2)
    assert U(1990 * MIN) == pytest.approx(-1000 - 999)  # and on as before


def test_the_latest_finish_for_a_utility():
    values = [1.0, 0.0, -1.0, -1000.0, -1999.0]
    actual = [U.latest(v) / MIN for v in values]
    np.testing.assert_allclose(actual, [0, 5, 10, 1000, 1990])
    assert U.latest(1.5) == -np.inf
    flat = utility_curve(((0.0, 1.0), (1.0, 0.0), (2.0, 0.0)))
    assert flat.latest(0.0) == np.inf


def test_the_fewest_tokens_of_greatest_utility():
    """With slack 1.2 and a dead zone of 3 min, 57 min of a deadline of 60 must hold 1.2 C."""
    assert raw_allocation(LAW, U, 60 * MIN, 0.0, left(90, 47.6, 47.4, 20)) == 3
    assert raw_allocation(Law(1.0, 0.2, 0.0), U, 60 * MIN, 0.0, left(90, 60, 47, 20)) == 2
    assert raw_allocation(LAW, U, 60 * MIN, 30 * MIN, left(90, 22.6, 22.4, 20)) == 3
    # none meets it: the least late, and of equals the fewest
    assert raw_allocation(LAW, U, 60 * MIN, 0.0, left(90, 70, 65, 65)) == 3


def test_a_deadline_of_60_minutes_is_one_of_57_and_is_acted_on_at_60():
    """§4.3, the example of the dead zone."""
    law = Law(1.0, 0.2, 3 * MIN)
    for finish, behind in [(56, -1), (57, 0), (59, 2), (60, 3), (62, 5)]:
        actual = behind_s(law, U, 60 * MIN, 10 * MIN, left(finish - 10, 20), 1)
        assert actual / MIN == pytest.approx(behind)
        raised = next_allocation(law, 1.0, 2, actual) > 1.0
        assert raised == (behind >= 3)


def test_without_the_gate_the_dead_zone_only_shifts_the_deadline():
    """The other reading of §4.3: a job that is to finish at 58 of 60 minutes gets more at once."""
    left_s = left(48, 20)
    for gate, tokens in ((True, 1.0), (False, 1.2)):
        law = Law(1.0, 0.2, 3 * MIN, gate=gate)
        raw = raw_allocation(law, U, 60 * MIN, 10 * MIN, left_s)
        behind = behind_s(law, U, 60 * MIN, 10 * MIN, left_s, 1)
        assert (raw, behind) == (2, MIN)
        assert next_allocation(law, 1.0, raw, behind) == tokens


def test_a_job_that_no_allocation_saves_is_behind_the_same_schedule():
    law = Law(1.0, 0.2, 3 * MIN)
    behind_min = [behind_s(law, U, 60 * MIN, 0.0, left(100, 75, 70), a) / MIN for a in (1, 2, 3)]
    np.testing.assert_allclose(behind_min, [43, 18, 13], atol=1e-9)


def test_the_allocation_goes_a_fifth_of_the_way_and_down_at_once():
    assert next_allocation(LAW, 20.0, 50, 3 * MIN) == 26.0
    assert next_allocation(LAW, 20.0, 50, 2.9 * MIN) == 20.0
    assert next_allocation(LAW, 20.0, 10, -10 * MIN) == 18.0
    assert next_allocation(LAW, 20.0, 10, 10 * MIN) == 18.0
    assert next_allocation(Law(hysteresis=1.0), 20.0, 50, 3 * MIN) == 50.0
    gap = 20.0
    for _ in range(10):
        gap = next_allocation(LAW, gap, 1, 0.0)
    assert gap - 1 == pytest.approx(19 * 0.8**10)


def test_tokens_are_whole():
    assert [whole_tokens(a) for a in (1.0, 1.2, 7.000000000001, 7.01)] == [1, 2, 7, 8]


@pytest.mark.parametrize(
    ("points", "match"),
    [
        (((0.0, 1.0), (5.0, 0.0), (9.0, 0.5)), "never rise: it goes from 0 at 5 min to 0.5 at 9"),
        (((0.0, 1.0),), "at least two points"),
        (((0.0, 1.0), (5.0,)), "at least two points"),
        (((0.0, 1.0), (0.0, 0.0)), "must ascend"),
        (((0.0, 1.0), (np.inf, 0.0)), "finite"),
    ],
)
def test_invalid_utilities_are_errors(points, match):
    with pytest.raises(InputError, match=match):
        utility_curve(points)
