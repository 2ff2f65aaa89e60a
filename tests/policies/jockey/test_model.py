"""The time left by Amdahl's law."""

import numpy as np

from policies.estimates.profile import build_profile
from policies.jockey.model import amdahl_s, parallel_s, serial_s
from tests.policies.estimates.test_profile import ONE_RUN, TWO_STAGES, records

# T = 6, 1.5; l = 4, 1.5; L = 1.5, 0: without what goes before tasks execute
PROFILE = build_profile(TWO_STAGES, records(ONE_RUN))


def test_at_the_start_the_critical_path_and_all_the_work():
    none = np.zeros(2)
    assert serial_s(PROFILE, none) == 5.5
    assert parallel_s(PROFILE, none) == 7.5  # the critical path is not taken out
    assert amdahl_s(PROFILE, none, 4).tolist() == [13.0, 9.25, 8.0, 7.375]


def test_on_the_way():
    half = np.array([0.5, 0.0])
    assert serial_s(PROFILE, half) == 0.5 * 4.0 + 1.5
    assert parallel_s(PROFILE, half) == 4.5
    mapped = np.array([1.0, 0.0])
    assert serial_s(PROFILE, mapped) == 1.5  # finished stages do not count
    assert amdahl_s(PROFILE, mapped, 2).tolist() == [3.0, 2.25]


def test_at_the_end_nothing():
    assert amdahl_s(PROFILE, np.ones(2), 3).tolist() == [0.0, 0.0, 0.0]
