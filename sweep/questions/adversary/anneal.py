"""Simulated annealing over instances, as PISA does over graphs and networks.

Source: Coleman and Krishnamachari, "PISA: an adversarial approach to comparing task graph
scheduling algorithms", arXiv 2403.07120: the temperature falls geometrically, a worse instance is
accepted with a probability that falls with it, and the worst instance ever met is the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from sim.base.random import Stream
from sweep.questions.adversary.changes import Bounds, change
from sweep.questions.adversary.instances import Jobs

HOT, COLD = 0.3, 0.003
"""First and last temperature, in logarithms of the ratio."""


@dataclass(frozen=True)
class Found:
    """An instance, and the logarithm of the ratio on it."""

    jobs: Jobs
    loss: float


def anneal(
    start: Found,
    bounds: Bounds,
    loss: Callable[[Jobs, float], float],
    n: int,
    rng: Stream,
    is_over: Callable[[], bool],
) -> Found:
    """Search from an instance, with `n` changes; return the worst that was met.

    What the loss of an instance must reach to be accepted is drawn before it is known, so that
    `loss` need not be exact below.
    """
    current = worst = start
    for k in range(n):
        if is_over():
            break
        temperature = HOT * (COLD / HOT) ** (k / max(n - 1, 1))
        jobs = change(current.jobs, bounds, rng)
        if rng.uniform() < 0.3:
            jobs = change(jobs, bounds, rng)
        if jobs is current.jobs:
            continue
        accepted = current.loss + temperature * math.log(max(rng.uniform(), 1e-300))
        new = Found(jobs, loss(jobs, accepted))
        if new.loss >= accepted:
            current = new
        if current.loss > worst.loss:
            worst = current
    return worst
