"""Chance: a counter-based stream for each (seed, purpose), and what samples say of a mean."""

from __future__ import annotations

import hashlib
import math
from typing import NamedTuple

import numpy as np


def stream(seed: int, *purpose: str | int) -> np.random.Generator:
    """Return the Philox stream of (seed, purpose).

    The same arguments give the same numbers on every machine, in every process; different
    purposes give independent streams, so that drawing more for one never shifts another.
    """
    text = "\x1f".join([str(int(seed)), *map(str, purpose)])
    key = np.frombuffer(hashlib.sha256(text.encode()).digest()[:16], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key))


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
