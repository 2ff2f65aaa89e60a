"""How long the vertices of each stage run: log-normal, fitted to a column of Table 2."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from sim.base.arrays import F8, I8
from sim.published import numbers


@dataclass(frozen=True)
class Statistics:
    """A column of Table 2."""

    median_s: float  # of the run times of all vertices, s
    p90_s: float
    fastest_p90_s: float  # 90th percentile of the fastest and of the slowest stage, s
    slowest_p90_s: float
    n_stages: int  # stages, those that begin with a full shuffle, and vertices (tasks)
    n_barriers: int
    n_vertices: int


A_P90_S = 88.0
"""Chosen: the table leaves job A's out. Its median times the geometric mean of the other six jobs'
ratios of the 90th percentile to the median, 5.4."""
TABLE_2 = {
    job: Statistics(**{"p90_s": A_P90_S, **printed})
    for job, printed in numbers("jockey")["table2"].items()
}
"""Statistics of the seven jobs."""
INIT_S = numbers("jockey")["table3"]["training"][1:]
"""Median and 90th percentile of what goes before a vertex runs, s: job F's training (Table 3)."""
Z90 = 1.2815515655446004
"""The 90th percentile of a standard normal."""

SIGMAS = np.linspace(0.15, 0.9, 26)
SKEWS = np.geomspace(0.15, 8.0, 32)
BULKS = (1.0, 0.8, 0.65, 0.5, 0.35)
ORDERS = 12
"""What is tried: spread within stages, skew of the stages' percentiles, how far the bulk of them
reaches, orders of the stages."""
FEW = 12.0
"""The skew of those stages that are slower than the bulk."""
WIDE = 40
"""The fastest and the slowest stage have at least so many vertices, so that they can be told."""
MARGIN = 0.06
"""How far the others stay within the two, in rank."""


@dataclass(frozen=True, eq=False)
class Law:
    """Run times of g stages: log-normal with the 90th percentile `p90_s` and spread `sigma`."""

    p90_s: F8
    sigma: float

    def run_s(self, n_tasks: I8, rng: np.random.Generator) -> F8:
        """Draw the run times of all tasks, stage by stage, s."""
        stage = np.repeat(np.arange(len(n_tasks)), n_tasks)
        z = rng.normal(size=len(stage))
        drawn: F8 = self.p90_s[stage] * np.exp(self.sigma * (z - Z90))
        return drawn


def fit_law(n_tasks: I8, wanted: Statistics, rng: np.random.Generator) -> Law:
    """Find a law whose mixture over all vertices has the median and percentile that are wanted.

    The stages' 90th percentiles lie between the fastest and the slowest (`spread_p90`); their
    shape, the spread within stages and the order of the stages are searched.
    """
    shapes = [(bulk, skew) for bulk in BULKS for skew in SKEWS]
    ends = (wanted.fastest_p90_s, wanted.slowest_p90_s)
    best, found = math.inf, Law(np.full(len(n_tasks), wanted.p90_s), 0.5)
    for _ in range(ORDERS):
        order = _order(n_tasks, rng)
        p90_s = np.stack([spread_p90(order, *shape, *ends) for shape in shapes])
        for sigma in SIGMAS.tolist():
            error = _error(p90_s, sigma, n_tasks, wanted)
            row = int(np.argmin(error))
            if error[row] < best:
                best, found = float(error[row]), Law(p90_s[row], sigma)
    return found


def draw_law(
    n_tasks: I8,
    shape: tuple[float, float],
    ends: tuple[float, float],
    sigma: float,
    rng: np.random.Generator,
) -> Law:
    """Make the law of a job of which no percentiles over all vertices are wanted."""
    return Law(spread_p90(_order(n_tasks, rng), *shape, *ends), sigma)


def spread_p90(order: F8, bulk: float, skew: float, fastest: float, slowest: float) -> F8:
    """Return the stages' 90th percentiles, given their ranks from 0 (fastest) to 1 (slowest).

    Their logarithm rises as a power of the rank, but for the part 1 - `bulk` of the way, which only
    the last few stages go.
    """
    way = bulk * order**skew + (1 - bulk) * order ** max(skew, FEW)
    p90_s: F8 = fastest * (slowest / fastest) ** way
    return p90_s


def draw_init_s(n: int, rng: np.random.Generator) -> F8:
    """Draw what goes before vertices run, (n,) s."""
    median, p90 = INIT_S
    drawn: F8 = median * np.exp(math.log(p90 / median) / Z90 * rng.normal(size=n))
    return drawn


def _order(n_tasks: I8, rng: np.random.Generator) -> F8:
    """Draw the stages' ranks; the first and the last go to wide ones."""
    n = len(n_tasks)
    order = np.empty(n)
    wide = np.flatnonzero(n_tasks >= min(WIDE, np.sort(n_tasks)[-2]))
    ends = rng.choice(wide, 2, replace=False)
    order[ends] = (0.0, 1.0)
    others = np.setdiff1d(np.arange(n), ends)
    inner = np.linspace(MARGIN, 1 - MARGIN, len(others)) if len(others) else np.empty(0)
    order[others] = rng.permutation(inner)
    return order


def _error(p90_s: F8, sigma: float, n_tasks: I8, wanted: Statistics) -> F8:
    """Tell how far the mixtures are from having half and 90 % of their mass where wanted."""
    share = n_tasks / n_tasks.sum()
    middle = np.log(p90_s) - sigma * Z90
    error = np.zeros(len(p90_s))
    for goal, z in ((wanted.median_s, 0.0), (wanted.p90_s, Z90)):
        reached = ndtr((math.log(goal) - middle) / sigma) @ share
        error = np.maximum(error, np.abs(ndtri(np.clip(reached, 1e-6, 1 - 1e-6)) - z))
    return error
