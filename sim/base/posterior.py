"""What some samples say of a mean that is known to vary: a normal prior and normal evidence."""

from __future__ import annotations

import math
from typing import NamedTuple


class Normal(NamedTuple):
    """A normal distribution; of variance inf if nothing is known."""

    mean: float
    variance: float


def posterior(prior: Normal, n: int, mean: float, variance: float) -> Normal:
    """Return the distribution of x after `n` samples (Jajoo et al., NSDI 2022, §4.1.2)."""
    if n == 0 or prior.variance == 0 or math.isinf(variance):
        return prior
    if variance == 0:
        return Normal(mean, 0.0)
    if math.isinf(prior.variance):
        return Normal(mean, variance / n)
    weight, own = n / variance, 1 / prior.variance
    return Normal((weight * mean + own * prior.mean) / (weight + own), 1 / (weight + own))
