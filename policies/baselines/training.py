"""Evolution strategies: a step along random directions, each weighted by what it gains.

Salimans et al., *Evolution strategies as a scalable alternative to reinforcement learning*, arXiv
1703.03864, Algorithm 1 with pairs of opposite directions; the gain is relative, and steps have a
length that falls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from sim.base import maths
from sim.base.arrays import F8
from sim.base.random import stream

if TYPE_CHECKING:
    from policies.acting import Acting
    from sim.env import SchedulingEnv

SEEDS = (1000, 1016)
"""Seeds of episodes, from the first to below the last: not those of a later comparison."""


def train(
    score: Callable[[F8, int], float],
    n_weights: int,
    *,
    steps: int = 40,
    pairs: int = 8,
    first_step: float = 2.0,
    seed: int = 0,
) -> F8:
    """Return weights for which the score of an episode is low.

    Parameters
    ----------
    score : callable
        Score, above 0, by weights and the seed of an episode.
    n_weights : int
        Number of weights; they begin at 0.
    steps, pairs : int
        Number of steps, and of pairs of opposite directions for each.
    first_step : float
        Length of the first step; that of step i, from 0, is divided by 1 + i / 10.
    seed : int
        Seed of directions and episodes.
    """
    rng = stream(seed, "policies.baselines.training")
    weights = np.zeros(n_weights)
    for step in range(steps):
        gain = np.zeros(n_weights)
        for _ in range(pairs):
            direction, episode = rng.standard_normal(n_weights), int(rng.integers(*SEEDS))
            better, worse = (score(weights + sign * direction, episode) for sign in (1.0, -1.0))
            gain += direction * ((worse - better) / (worse + better))
        length = float(np.sqrt(maths.dot(gain, gain)))
        if length > 0:
            weights = weights + first_step / (1 + step / 10) / length * gain
    return weights


def mean_jct_s(env: SchedulingEnv, policy: Acting, seed: int) -> float:
    """Return the mean completion time of an episode that a policy acts in, s."""
    observed, _ = env.reset(seed=seed)
    is_over = False
    while not is_over:
        observed, _, is_over, *_ = env.step(policy.act(observed))
    return float(env.result().metrics["jct_mean_s"])
