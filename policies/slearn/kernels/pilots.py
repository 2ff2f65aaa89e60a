"""Spread of task durations within stages, the number of pilots with the highest gain, the load."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from math import inf, pi, sqrt

import numpy as np

from sim.base.jit import jit, part
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
def count_unfinished(left, running, state_rows, state_n, job):
    """Return sums of both columns over the unfinished jobs before a job.

    Parameters
    ----------
    left, running : (J,) int32
        Unfinished and running tasks of each job.
    state_rows : (J,) int64
        Unfinished jobs, ascending, since the last call; updated.
    state_n : (2,) int64
        Their number, and the row up to which jobs were added; updated.
    """
    n = state_n[0]
    for row in range(state_n[1], job):
        state_rows[n] = row
        n += 1
    n_rows, n_left, n_running = 0, 0, 0
    for i in range(n):
        row = state_rows[i]
        if left[row] == 0:
            continue
        state_rows[n_rows] = row
        n_rows += 1
        if row < job:
            n_left += left[row]
            n_running += running[row]
    state_n[0], state_n[1] = n_rows, max(state_n[1], job)
    return n_left, n_running


@jit
def choose_n_pilots(
    group,
    spread,
    bounds,
    stage,
    mean,
    variance,
    n_max,
    stretch,
    n_tasks,
    log_n,
    slots,
    n_others,
):
    """Return the number of pilots, up to `n_max`, with the highest positive gain, or 0.

    Parameters
    ----------
    group, spread
        See `add_spread`.
    bounds : (Q,) float64
        Logarithms of the upper limits of job sizes by queue.
    stage : int
        The stage whose tasks are sampled.
    mean, variance : float
        Prior of the logarithm of its mean task duration.
    stretch, n_tasks, slots, n_others
        See `gain`; `log_n` is the logarithm of `n_tasks`.
    """
    per_task = bounds - log_n
    chance = np.empty(n_max + 1)
    chances_of_other_queue(mean, variance, _task_variance(group, spread, stage), per_task, chance)
    best, best_gain = 0, 0.0
    for m in range(1, n_max + 1):
        expected_gain = gain(chance[0] - chance[m], stretch, n_tasks, slots, n_others, m)
        if expected_gain > best_gain:
            best, best_gain = m, expected_gain
    return best


@part
def _task_variance(group, spread, stage):
    """Return the expected variance of the logarithms of a stage's task durations."""
    for f in range(group.shape[1]):
        if group[stage, f] >= 0 and spread[group[stage, f], 0] >= MIN_STAGES:
            return log1p(spread[group[stage, f], 1] / spread[group[stage, f], 0])
    n, total = spread[len(spread) - 1, 0], spread[len(spread) - 1, 1]
    return log1p(total / n if n > 0.0 else 1.0)


@jit
def gain(chance_gain, stretch, n_tasks, slots, n_others, m):
    """Return the gain from m pilots, in mean task durations of the job.

    The rest of a job in a wrong queue loses about its completion time: the ideal one of
    ``(n_tasks - m) / slots`` task durations times the current stretch. So do, one by one, the jobs
    that it wrongly lets pass, or that let it pass: half of the `n_others`, which wait now or arrive
    meanwhile. Pilots cost one task duration, for which the rest of the job waits, and the slots
    that they use ahead of their turn.
    """
    if chance_gain <= 0:
        return 0.0
    return chance_gain * stretch * (n_tasks - m) / slots * (1 + n_others / 2) - 1.0 - m / slots


@jit
def chances_of_other_queue(mean, variance, task_variance, bounds, out_chance):
    """Write the probability that x and its estimate from 0, 1, ... samples differ in queue.

    The estimate is normal with the variance that the samples remove from the prior's; x is normal
    around it with the remaining variance. The mean over the estimate uses nine Gauss-Hermite nodes.
    All values are logarithms.

    Parameters
    ----------
    mean, variance : float
        The prior of x.
    task_variance : float
        Variance of one sample around x.
    bounds : (Q,) float64
        Upper limits of the queues.
    out_chance : (M+1,) float64
        Overwritten.
    """
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
