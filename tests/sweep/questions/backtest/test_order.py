"""Pairs of jobs that start in the recorded order."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from sweep.questions.backtest.order import pairs_in_order


def naive(recorded: list[float], simulated: list[float], grace_s: float) -> float:
    pairs = [
        (a, b) if recorded[a] < recorded[b] else (b, a)
        for a, b in itertools.combinations(range(len(recorded)), 2)
        if recorded[a] != recorded[b]
    ]
    n_right = sum(simulated[first] <= simulated[second] + grace_s for first, second in pairs)
    return n_right / len(pairs)


@pytest.mark.parametrize("grace_s", [0.0, 2.0])
@pytest.mark.parametrize("n", [2, 3, 7, 8, 33])
def test_it_counts_pairs(n: int, grace_s: float) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        recorded, simulated = rng.integers(0, n, (2, n)).astype(float)
        if len(set(recorded)) > 1:
            expected = naive(list(recorded), list(simulated), grace_s)
            assert pairs_in_order(recorded, simulated, grace_s) == pytest.approx(expected)


def test_order_of_ties() -> None:
    # of three jobs the last two started together: two pairs count
    recorded = np.array([0.0, 5.0, 5.0])
    assert pairs_in_order(recorded, np.array([0.0, 9.0, 7.0])) == 1.0
    assert pairs_in_order(recorded, np.array([8.0, 9.0, 7.0])) == 0.5
    assert pairs_in_order(recorded, np.array([7.0, 9.0, 7.0])) == 1.0  # a simulated tie
    assert math.isnan(pairs_in_order(np.array([5.0, 5.0]), np.array([1.0, 2.0])))
