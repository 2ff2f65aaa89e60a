"""Greedy allocation by hand, and against all ways to split the tokens."""

from itertools import product

import numpy as np

from policies.jockey.filling import greedy_fill


def test_by_hand():
    """A step of 2 at 1 a token comes before one of 4 at 1/2; falling utility gets no tokens."""
    tokens = [np.array([0, 2, 6]), np.array([0, 4]), np.array([0, 3])]
    worth = [np.array([0.0, 2.0, 2.4]), np.array([-1.0, 1.0]), np.array([0.0, -1.0])]
    assert greedy_fill(tokens, worth, 1).tolist() == [1, 0, 0]
    assert greedy_fill(tokens, worth, 5).tolist() == [2, 3, 0]
    assert greedy_fill(tokens, worth, 100).tolist() == [6, 4, 0]


def test_a_dent_is_bridged():
    tokens, worth = [np.array([0, 1, 4])], [np.array([0.0, 0.1, 4.0])]
    other = [np.array([0, 4])], [np.array([0.0, 2.0])]
    shared = greedy_fill(tokens + other[0], worth + other[1], 4)
    assert shared.tolist() == [4, 0]


def test_it_is_the_best_where_curves_are_concave():
    rng = np.random.default_rng(0)
    tokens = np.arange(5)
    for _ in range(20):
        worth = [np.concatenate([[0.0], np.cumsum(-np.sort(-rng.random(4)))]) for _ in range(3)]
        shared = greedy_fill([tokens] * 3, worth, 6)
        splits = [s for s in product(range(5), repeat=3) if sum(s) <= 6]
        best = max(sum(values[n] for values, n in zip(worth, s, strict=True)) for s in splits)
        assert sum(values[n] for values, n in zip(worth, shared, strict=True)) >= best - 1e-12
