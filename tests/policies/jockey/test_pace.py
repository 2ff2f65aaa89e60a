"""The work that a job turns out to need."""

import numpy as np
import pytest

from policies.jockey.pace import PRIOR, Pace
from policies.jockey.profile import profile_of
from tests.policies.jockey.test_profile import ONE_RUN, TWO_STAGES, records

PROFILE = profile_of(TWO_STAGES, records(ONE_RUN))  # 8 and 2 token seconds, in 2 tasks and 1


def test_as_in_training_at_first():
    assert Pace(PROFILE, 3.0).factor(np.zeros(2)) == 1.0


def test_token_seconds_are_counted_between_looks():
    pace = Pace(PROFILE, 0.0)
    pace.look(0.0, 2)
    pace.look(4.0, 2)
    pace.look(6.0, 0)
    assert pace.held_s == 8.0 + 2.0
    assert pace.factor(np.array([1.0, 0.0])) == pytest.approx((10 + 10 * PRIOR) / (8 + 10 * PRIOR))


def test_half_a_task_is_done_of_those_that_run():
    pace = Pace(PROFILE, 0.0, running=2)
    pace.look(5.0, 2)
    want = (10 - 2 * (10 / 3) / 2 + 10 * PRIOR) / (4 + 10 * PRIOR)
    assert pace.factor(np.array([0.5, 0.0])) == pytest.approx(want)
