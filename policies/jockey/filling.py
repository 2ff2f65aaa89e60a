"""Tokens one after the other to whom the next is worth most, on concave envelopes of utility."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sim.base.arrays import F8, I8


def greedy_fill(tokens: Sequence[I8], worth: Sequence[F8], total: int) -> I8:
    """Share `total` tokens out among J jobs: (J,).

    Job j is worth ``worth[j]`` with ``tokens[j]`` tokens, ascending from 0 on, and between two of
    these what the least concave curve above them says.
    """
    steps = [
        (-(of[b] - of[a]) / (at[b] - at[a]), j, int(at[b] - at[a]))
        for j, (at, of) in enumerate(zip(tokens, worth, strict=True))
        for a, b in _corners(at, of)
    ]
    shared, left = np.zeros(len(tokens), dtype=np.int64), total
    for _, j, n in sorted(steps):  # those of a job come in its order, as they fall
        got = min(n, left)
        shared[j] += got
        left -= got
    return shared


def _corners(at: I8, of: F8) -> list[tuple[int, int]]:
    """Return the pieces of the rising part of the concave envelope of points, by their indices."""
    corner = [0]
    for i in range(1, len(at)):
        if of[i] <= of[corner[-1]]:
            continue
        while len(corner) > 1 and _rise(at, of, corner[-1], i) >= _rise(at, of, *corner[-2:]):
            corner.pop()
        corner.append(i)
    return list(pairwise(corner))


def _rise(at: I8, of: F8, a: int, b: int) -> float:
    return float((of[b] - of[a]) / (at[b] - at[a]))
