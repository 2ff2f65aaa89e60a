"""The worked example of the SLearn paper (Jajoo et al., NSDI 2022), §4.1.2."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sim.base.random import Normal, posterior


def test_posterior_of_three_samples():
    # mu = 10, sigma0² = 4, sigma1² = 9, y = (12, 14, 13)
    exact = posterior(Normal(Fraction(10), Fraction(4)), 3, Fraction(13), Fraction(9))
    assert exact == (Fraction(82, 7), Fraction(12, 7))
    got = posterior(Normal(10.0, 4.0), 3, 13.0, 9.0)
    assert got.mean == pytest.approx(82 / 7)
    assert got.variance == pytest.approx(12 / 7)


def test_without_a_prior_it_is_the_mean_of_the_samples():
    assert posterior(Normal(0.0, float("inf")), 3, 13.0, 9.0) == (13.0, 3.0)
