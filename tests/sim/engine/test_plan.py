"""Checks of the values that a policy sets in a plan."""

from __future__ import annotations

import numpy as np
import pytest

from sim.base.errors import PolicyError
from sim.engine.plan import Plan


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        (None, {"key": [1.0, 2.0]}, "job column 'key' was given 2 values for 4 jobs; give one for"),
        ([0, 1], {"key": [1.0, 2.0, 3.0]}, "'key' was given 3 values for 2 jobs"),
        (slice(1, 2), {"run_limit": [1, 2, 3]}, "'run_limit' was given 3 values for 1 jobs"),
        (None, {"key": np.zeros((4, 2))}, r"'key' was given an array of shape \(4, 2\) for 4 jobs"),
        (7, {"key": 1.0}, "'key': index 7 is out of bounds .*; there are 4 jobs"),
        ([True, False], {"key": 1.0}, "'key': boolean index did not match .*; there are 4 jobs"),
    ],
)
def test_errors_of_a_plan_name_the_column(rows, columns, message):
    with pytest.raises(PolicyError, match=message):
        Plan(4, 5, 6).set_jobs(rows, **columns)
    with pytest.raises(PolicyError, match="stage column 'cost' was given 3 values for 5 stages"):
        Plan(4, 5, 6).set_stages(cost=[1.0, 2.0, 3.0])
