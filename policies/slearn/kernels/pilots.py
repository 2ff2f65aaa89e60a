"""Spread of task durations within stages, and the chance that an estimate misses a job's queue."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from math import inf, pi, sqrt

import numpy as np

from sim.base.jit import jit
from sim.base.maths.kernels.logarithm import log1p
from sim.base.maths.kernels.normal import normal_cdf

_NODES = (1.0232556637891326, 2.07684797867783, 3.20542900285647, 4.512745863399783)
_WEIGHTS = (
    1.0185664100087874, 0.6118617025232777, 0.12512187656567728, 0.006991340497741218,
    5.6012724410311303e-05,
)  # fmt: skip
NODES = np.array([*(-node for node in reversed(_NODES)), 0.0, *_NODES])
WEIGHTS = np.array([*reversed(_WEIGHTS[1:]), *_WEIGHTS])
"""Gauss-Hermite nodes and weights, for the weight function exp(-x**2 / 2)."""

ROOT_2_PI = sqrt(2 * pi)
MIN_STAGES = 3
"""Number of similar finished stages from which their spread counts."""


@jit
def add_spread(group, state_spread, stage, squared_cv):
    """Add a finished stage's squared coefficient of variation to its groups.

    Parameters
    ----------
    group : (G, F) int32
        Group of each stage by feature; -1 for none.
    state_spread : (K, 2) float64
        Number of stages and sum of their values, by group, the last of all; added to.
    """
    for f in range(group.shape[1]):
        if group[stage, f] >= 0:
            state_spread[group[stage, f], 0] += 1.0
            state_spread[group[stage, f], 1] += squared_cv
    state_spread[len(state_spread) - 1, 0] += 1.0
    state_spread[len(state_spread) - 1, 1] += squared_cv


@jit
def task_variance(group, spread, stage):
    """Return the expected variance of the logarithms of a stage's task durations."""
    for f in range(group.shape[1]):
        if group[stage, f] >= 0 and spread[group[stage, f], 0] >= MIN_STAGES:
            return log1p(spread[group[stage, f], 1] / spread[group[stage, f], 0])
    n, total = spread[len(spread) - 1, 0], spread[len(spread) - 1, 1]
    return log1p(total / n if n > 0.0 else 1.0)


@jit
def chances_of_other_queue(mean, variance, task_variance, bounds, out_chance):
    """Write the probability that x and its estimate from 0, 1, ... samples differ in queue."""
    n_bounds = len(bounds)
    terms = np.empty(len(NODES))
    for m in range(len(out_chance)):
        left = variance
        if m > 0 and variance > 0.0 and task_variance < inf:
            left = 1.0 / (m / task_variance + 1.0 / variance) if task_variance > 0.0 else 0.0
        if left == 0.0:
            out_chance[m] = 0.0
            continue
        scale, deviation = sqrt(max(0.0, variance - left)), sqrt(left)
        for k in range(len(NODES)):
            estimate = mean + scale * NODES[k]
            queue = np.int64(0)
            while queue < n_bounds and bounds[queue] <= estimate:
                queue += 1
            above = bounds[queue] if queue < n_bounds else -inf
            below = bounds[queue - 1] if queue > 0 else -inf
            inside = normal_cdf((above - estimate) / deviation)
            inside -= normal_cdf((below - estimate) / deviation)
            terms[k] = (1.0 - inside) * WEIGHTS[k]
        # as NumPy sums nine numbers
        low = (terms[0] + terms[1]) + (terms[2] + terms[3])
        high = (terms[4] + terms[5]) + (terms[6] + terms[7])
        out_chance[m] = ((low + high) + terms[8]) / ROOT_2_PI
