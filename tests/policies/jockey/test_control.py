"""Whether one more job fits (the control law itself: tests/paper/test_jockey_examples.py)."""

import numpy as np

from policies.jockey.control import NEVER, Law, fits, need

LAW = Law(1.2, 0.2, 180.0)


def test_what_a_job_needs():
    left = np.array([5000.0, 2850.0, 1000.0])
    assert need(LAW, 3600.0, 0.0, left) == 2  # 1.2 · 2850 + 180 = 3600
    assert need(LAW, 3599.0, 0.0, left) == 3
    assert need(LAW, 3600.0, 2300.0, left) == NEVER


def test_what_fits():
    assert fits([], 10, 10)
    assert not fits([], 11, 10)
    assert fits([3, 4], 3, 10)
    assert not fits([3, 4], 4, 10)
    assert not fits([], NEVER, 10)
    assert not fits([NEVER], 1, 10)  # one that is late needs all there is
