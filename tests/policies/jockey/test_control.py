"""Admission control (the control law itself: tests/paper/test_jockey_examples.py)."""

import numpy as np

from policies.jockey.control import NEVER, Law, is_admissible, tokens_needed

LAW = Law(1.2, 0.2, 180.0)


def test_tokens_needed():
    left = np.array([5000.0, 2850.0, 1000.0])
    assert tokens_needed(LAW, 3600.0, 0.0, left) == 2  # 1.2 · 2850 + 180 = 3600
    assert tokens_needed(LAW, 3599.0, 0.0, left) == 3
    assert tokens_needed(LAW, 3600.0, 2300.0, left) == NEVER


def test_admission():
    assert is_admissible([], 10, 10)
    assert not is_admissible([], 11, 10)
    assert is_admissible([3, 4], 3, 10)
    assert not is_admissible([3, 4], 4, 10)
    assert not is_admissible([], NEVER, 10)
    assert not is_admissible([NEVER], 1, 10)  # a late job needs the whole capacity
