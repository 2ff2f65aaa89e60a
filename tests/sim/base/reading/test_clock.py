"""The resolution of recorded times."""

from __future__ import annotations

import numpy as np
import pytest

from sim.base.reading import resolution_s

SOME = np.arange(20) * 7.0


@pytest.mark.parametrize(
    ("times_s", "expected"),
    [
        (SOME * 60, 60.0),
        (SOME[:5] * 60, 1.0),
        (SOME, 1.0),
        (SOME + 1.7e9, 1.0),
        (SOME / 10, 0.1),
        (SOME / 100 + 1.7e9, 0.01),
        (SOME / 1000 + 1.7e9, 1e-3),
        (SOME / 1e6, 1e-6),
        (SOME / 3e7, 1e-6),
        (np.array([]), 1.0),
    ],
)
def test_it_is_the_coarsest_unit_of_all_times(times_s, expected):
    assert resolution_s(times_s, np.array([np.nan])) == expected
    assert resolution_s(times_s, np.array([0.5, 1.0])) <= min(expected, 0.1)
