"""The stages of a job and how long their vertices run.

Stages are pipelined segments, joined at full shuffles: a barrier stage begins a segment; the stages
after it have as many vertices and wait one for one. Of the paper's Fig. 3 the text says no more
than how many stages and barriers there are. Run times are log-normal, fitted to a column of
Table 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8, Mask
from sim.base.random import Stream
from sim.published import numbers

CHAINED = 0.8
"""Chance that a stage follows the one before it, rather than an earlier one of its segment."""
SIZE_SIGMA, SOURCE_SIZE = 0.9, 4.0
"""Spread of the segments' widths, and how many times as wide those are that read the input."""
LEAST = 4
"""Vertices that a stage has at the least."""


@dataclass(frozen=True, eq=False)
class Structure:
    """A job of g stages and e edges; parents have lower numbers."""

    n_tasks: I8  # vertices of each stage
    parent: I8  # edges, by parent and child
    child: I8
    one_to_one: Mask  # whether tasks wait one for one rather than for all


def draw_structure(n_stages: int, n_barriers: int, n_vertices: int, rng: Stream) -> Structure:
    """Draw a DAG of as many stages, barrier stages and vertices."""
    n_sources = 2 + (n_stages - n_barriers) // 12
    source = _places(n_sources, n_barriers, rng)
    length = _lengths(n_stages, source, rng)
    width = _widths(length, source, n_vertices, rng)
    edges: list[tuple[int, int, bool]] = []
    unread: list[int] = []  # stages whose output no stage reads as yet
    first = np.cumsum(length) - length
    for segment, (begin, n) in enumerate(zip(first.tolist(), length.tolist(), strict=True)):
        if not source[segment]:
            last = not (~source[segment + 1 :]).any()
            some = len(unread) if last else min(len(unread), int(rng.integers(1, 4)))
            edges += [(stage, begin, False) for stage in unread[len(unread) - some :]]
            del unread[len(unread) - some :]
        within = _chain(begin, n, rng)
        edges += within
        read = {parent for parent, _, _ in within}
        unread += [stage for stage in range(begin, begin + n) if stage not in read]
    edges.sort()
    parent, child, one_to_one = np.array(edges, np.int64).reshape(-1, 3).T
    return Structure(np.repeat(width, length), parent, child, one_to_one == 1)


def _places(n_sources: int, n_barriers: int, rng: Stream) -> Mask:
    """Say of each segment whether it reads the input; the first does, the last if all do."""
    middle = rng.permutation(np.arange(n_sources + n_barriers - 1 - (n_barriers > 0)))
    source = np.concatenate([[True], middle < n_sources - 1])
    return np.append(source, False) if n_barriers else source


def _lengths(n_stages: int, source: Mask, rng: Stream) -> I8:
    """Draw how many stages each segment has; the first source has one (see `_widths`)."""
    weight = np.where(source, 2.0, 1.0)
    weight[0] = 0.0
    extra = rng.multinomial(n_stages - len(source), weight / weight.sum())
    return 1 + extra


def _widths(length: I8, source: Mask, n_vertices: int, rng: Stream) -> I8:
    """Draw how many vertices the stages of each segment have; the first makes up the sum."""
    weight = maths.exp(SIZE_SIGMA * rng.normal(size=len(length))) * np.where(
        source, SOURCE_SIZE, 1.0
    )
    weight[0] = weight[source].max()
    share = n_vertices * weight / maths.dot(weight, length)
    while True:
        width: I8 = np.maximum(np.floor(share).astype(np.int64), LEAST)
        width[0] = n_vertices - int((width[1:] * length[1:]).sum())
        if width[0] >= LEAST:
            return width
        share *= 0.9  # the narrow ones, widened, took all


def _chain(begin: int, n: int, rng: Stream) -> list[tuple[int, int, bool]]:
    parents = [
        stage - 1 if rng.random() < CHAINED else int(rng.integers(begin, stage))
        for stage in range(begin + 1, begin + n)
    ]
    return [(parent, begin + 1 + i, True) for i, parent in enumerate(parents)]


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
INIT_S: tuple[float, float] = numbers("jockey")["table3"]["training"][1:]
"""Median and 90th percentile of what goes before a vertex runs, s: job F's training (Table 3)."""
Z90 = 1.2815515655446004
"""The 90th percentile of a standard normal."""
SIGMAS = np.linspace(0.15, 0.9, 26)
SKEWS = (0.15, 8.0, 32)
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

    def run_s(self, n_tasks: I8, rng: Stream) -> F8:
        """Draw the run times of all tasks, stage by stage, s."""
        stage = np.repeat(np.arange(len(n_tasks)), n_tasks)
        z = rng.normal(size=len(stage))
        return self.p90_s[stage] * maths.exp(self.sigma * (z - Z90))


def fit_law(n_tasks: I8, wanted: Statistics, rng: Stream) -> Law:
    """Find a law whose mixture over all vertices has the median and percentile that are wanted."""
    shapes = [(bulk, skew) for bulk in BULKS for skew in maths.geomspace(*SKEWS).tolist()]
    ends = (wanted.fastest_p90_s, wanted.slowest_p90_s)
    best, law = math.inf, Law(np.full(len(n_tasks), wanted.p90_s), 0.5)
    for _ in range(ORDERS):
        order = _order(n_tasks, rng)
        p90_s = np.stack([spread_p90(order, *shape, *ends) for shape in shapes])
        for sigma in SIGMAS.tolist():
            error = _error(p90_s, sigma, n_tasks, wanted)
            row = int(np.argmin(error))
            if error[row] < best:
                best, law = float(error[row]), Law(p90_s[row], sigma)
    return law


def draw_law(
    n_tasks: I8, shape: tuple[float, float], ends: tuple[float, float], sigma: float, rng: Stream
) -> Law:
    """Make the law of a job of which no percentiles over all vertices are wanted."""
    return Law(spread_p90(_order(n_tasks, rng), *shape, *ends), sigma)


def spread_p90(order: F8, bulk: float, skew: float, fastest: float, slowest: float) -> F8:
    """Return the stages' 90th percentiles, given their ranks from 0 (fastest) to 1 (slowest).

    Their logarithm rises as a power of the rank, but for the part 1 - `bulk` of the way, which only
    the last few stages go.
    """
    way = bulk * maths.power(order, skew) + (1 - bulk) * maths.power(order, max(skew, FEW))
    return fastest * maths.power(slowest / fastest, way)


def draw_init_s(n: int, rng: Stream) -> F8:
    """Draw what goes before vertices run, (n,) s."""
    median, p90 = INIT_S
    return median * maths.exp(maths.log(p90 / median) / Z90 * rng.normal(size=n))


def _order(n_tasks: I8, rng: Stream) -> F8:
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
    middle = maths.log(p90_s) - sigma * Z90
    error = np.zeros(len(p90_s))
    for goal, z in ((wanted.median_s, 0.0), (wanted.p90_s, Z90)):
        reached = maths.dot(maths.normal_cdf((maths.log(goal) - middle) / sigma), share)
        error = np.maximum(
            error, np.abs(maths.normal_quantile(np.clip(reached, 1e-6, 1 - 1e-6)) - z)
        )
    return error
