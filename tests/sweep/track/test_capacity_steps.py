"""Steps of capacities: distinct, in order, and in per cent where that tells them apart."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweep.track.capacity_steps import capacity_steps


@pytest.mark.parametrize(
    ("capacities", "steps", "unit"),
    [
        ([0.7, 0.85, 1.0], [70, 85, 100], "1 %"),
        ([0.04, 0.05, 0.06], [4, 5, 6], "1 %"),
        ([1.0, 0.5, 0.25, 0.1667], [100, 50, 25, 17], "1 %"),
        ([0.1, 0.2, 0.1 + 0.2, 2.0], [10, 20, 30, 200], "1 %"),
        ([1 / 3, 2 / 3], [33, 67], "1 %"),
        ([0.996, 1.0, 1.004], [996, 1000, 1004], "0.1 %"),
        ([1.0, 1.00001], [100000, 100001], "0.001 %"),
        ([0.3, 0.1 + 0.2], [1, 2], "rank"),
        ([1e-20, 1.0], [0, 100], "1 %"),
        ([1e-20, 2e-20, 1.0], [1, 2, 3], "rank"),
        ([], [], "1 %"),
    ],
)
def test_steps(capacities: list[float], steps: list[int], unit: str) -> None:
    given_steps = capacity_steps([*capacities, math.nan, *capacities])
    assert [given_steps.step(capacity) for capacity in capacities] == steps
    assert [given_steps.capacity(step) for step in steps] == capacities
    assert given_steps.unit == unit
    assert ("step" in given_steps.describe()) == (unit != "1 %")


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, unique=True))
def test_distinct_capacities_have_distinct_steps_in_their_order(capacities: list[float]) -> None:
    steps = capacity_steps(capacities)
    in_order = [steps.step(capacity) for capacity in sorted(capacities)]
    assert all(first < second for first, second in itertools.pairwise(in_order))
    assert all(0 <= step < 2**53 for step in in_order)


@given(st.lists(st.integers(1, 1000), min_size=1, unique=True))
def test_whole_per_cents_are_their_own_steps(per_cents: list[int]) -> None:
    steps = capacity_steps(per_cent / 100 for per_cent in per_cents)
    assert steps.unit == "1 %"
    assert [steps.step(per_cent / 100) for per_cent in per_cents] == per_cents
