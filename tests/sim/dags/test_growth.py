"""Means by size and the slope of a line."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import linregress

from sim.base.errors import InputError
from sim.base.random import stream
from sim.dags import mean_by_size, slope


def test_means_are_taken_by_size():
    sizes, means, counts = mean_by_size(np.array([6, 9, 6, 7]), [1, 5, 2, 4])
    assert sizes.tolist() == [6, 7, 9]
    assert means.tolist() == [1.5, 4.0, 5.0]
    assert counts.tolist() == [2, 1, 1]


def test_slope_is_that_of_scipy():
    rng = stream(0, "test slope")
    x = rng.integers(1, 50, 200)
    y = 0.5 * x + rng.normal(size=200)
    assert slope(x, y) == pytest.approx(linregress(x, y).slope, rel=1e-12)


@pytest.mark.parametrize("x", [[], [4], [4, 4]])
def test_one_x_has_no_slope(x):
    with pytest.raises(InputError, match="two x or more"):
        slope(x, x)
