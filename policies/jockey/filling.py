"""Greedy allocation of tokens by marginal utility, on concave envelopes of utility."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from sim.base.arrays import F8, I8


def greedy_fill(tokens: Sequence[I8], worth: Sequence[F8], total: int) -> I8:
    """Allocate `total` tokens to J jobs: (J,).

    Job j has utility ``worth[j]`` with ``tokens[j]`` tokens, ascending from 0, and in between the
    least concave curve above these points.
    """
    steps = [
        (
            -(worth_j[b] - worth_j[a]) / (tokens_j[b] - tokens_j[a]),
            j,
            int(tokens_j[b] - tokens_j[a]),
        )
        for j, (tokens_j, worth_j) in enumerate(zip(tokens, worth, strict=True))
        for a, b in _envelope_pieces(tokens_j, worth_j)
    ]
    shared, left = np.zeros(len(tokens), dtype=np.int64), total
    for _, j, n in sorted(steps):  # a job's slopes fall, so that its pieces keep their order
        n_taken = min(n, left)
        shared[j] += n_taken
        left -= n_taken
    return shared


def _envelope_pieces(tokens: I8, worth: F8) -> list[tuple[int, int]]:
    """Return the pieces of the rising part of the concave envelope of points, by their indices."""
    corner = [0]
    for i in range(1, len(tokens)):
        if worth[i] <= worth[corner[-1]]:
            continue
        while len(corner) > 1 and _slope(tokens, worth, corner[-1], i) >= _slope(
            tokens, worth, *corner[-2:]
        ):
            corner.pop()
        corner.append(i)
    return list(pairwise(corner))


def _slope(tokens: I8, worth: F8, a: int, b: int) -> float:
    return float((worth[b] - worth[a]) / (tokens[b] - tokens[a]))
