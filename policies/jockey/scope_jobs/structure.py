"""Stages of a job and the run times of their vertices.

Stages are pipelined segments, joined at full shuffles: a barrier stage begins a segment; the stages
after it have as many vertices and wait one for one. The text of the paper gives only the number of
stages and barriers of its Fig. 3. Run times are log-normal, fitted to a column of Table 2.
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
"""Spread of the segments' widths, and the factor of those that read the input."""
MIN_VERTICES = 4
"""Minimum number of vertices of a stage, unless narrow stages are drawn."""


@dataclass(frozen=True, eq=False)
class Structure:
    """A job of g stages and e edges; parents have lower numbers."""

    n_tasks: I8  # vertices of each stage
    parent: I8  # edges, in order of parent and child
    child: I8
    one_to_one: Mask  # edges of which tasks wait one for one rather than for all

    def queueing_s(self, queue_s: F8) -> F8:
        """Return lags of stages, (g,) s, that stand for queueing of their vertices, `queue_s` (g,).

        A stage that waits one for one opens vertex by vertex, and the engine has no lag of a
        vertex. So the first stage of a segment lags by the queueing of the segment's longest chain,
        and the others do not. With a token for each vertex the longest chain takes as long; with
        fewer, all vertices wait at once for queueing beside which others would have run.
        """
        lag_s = np.array(queue_s, np.float64)
        after_s = np.zeros(len(lag_s))
        for e in np.flatnonzero(self.one_to_one)[::-1]:  # a parent's edges come before its child's
            p, c = self.parent[e], self.child[e]
            after_s[p] = max(after_s[p], queue_s[c] + after_s[c])
        lag_s += after_s
        lag_s[self.child[self.one_to_one]] = 0.0
        return lag_s

    def with_manager(self) -> Structure:
        """Return the job with a stage of one vertex before the stages that read the input."""
        n = len(self.n_tasks)
        sources = np.setdiff1d(np.arange(n), self.child)
        return Structure(
            np.append(1, self.n_tasks),
            np.concatenate([np.zeros(len(sources), np.int64), self.parent + 1]),
            np.concatenate([sources + 1, self.child + 1]),
            np.concatenate([np.zeros(len(sources), bool), self.one_to_one]),
        )


def draw_structure(
    n_stages: int, n_barriers: int, n_vertices: int, rng: Stream, narrow: bool = False
) -> Structure:
    """Draw a DAG with these numbers of stages, barrier stages and vertices.

    With `narrow` stages after a shuffle, such as aggregations, are split into fewer vertices, down
    to one (§3.3); else each has at least `MIN_VERTICES`.
    """
    n_sources = 2 + (n_stages - n_barriers) // 12
    source = _source_segments(n_sources, n_barriers, rng)
    length = _lengths(n_stages, source, rng)
    width = _widths(length, source, n_vertices, narrow, rng)
    edges: list[tuple[int, int, bool]] = []
    unread: list[int] = []  # stages whose output no stage reads as yet
    first = np.cumsum(length) - length
    for segment, (begin, n) in enumerate(zip(first.tolist(), length.tolist(), strict=True)):
        if not source[segment]:
            last = not (~source[segment + 1 :]).any()
            n_read = len(unread) if last else min(len(unread), int(rng.integers(1, 4)))
            edges += [(stage, begin, False) for stage in unread[len(unread) - n_read :]]
            del unread[len(unread) - n_read :]
        within = _chain(begin, n, rng)
        edges += within
        read = {parent for parent, _, _ in within}
        unread += [stage for stage in range(begin, begin + n) if stage not in read]
    edges.sort()
    parent, child, one_to_one = np.array(edges, np.int64).reshape(-1, 3).T
    return Structure(np.repeat(width, length), parent, child, one_to_one == 1)


def _source_segments(n_sources: int, n_barriers: int, rng: Stream) -> Mask:
    """Draw the segments that read the input: the first does, the last only if all do."""
    middle = rng.permutation(np.arange(n_sources + n_barriers - 1 - (n_barriers > 0)))
    source = np.concatenate([[True], middle < n_sources - 1])
    return np.append(source, False) if n_barriers else source


def _lengths(n_stages: int, source: Mask, rng: Stream) -> I8:
    """Draw the number of stages of each segment; the first source has one (see `_widths`)."""
    weight = np.where(source, 2.0, 1.0)
    weight[0] = 0.0
    extra = rng.multinomial(n_stages - len(source), weight / weight.sum())
    return 1 + extra


def _widths(length: I8, source: Mask, n_vertices: int, narrow: bool, rng: Stream) -> I8:
    """Draw the number of vertices per stage of each segment; the first makes up the sum.

    With `narrow` the logarithm of a width after a shuffle is uniform from 0 to what it would be.
    """
    minimum = 1 if narrow else MIN_VERTICES
    weight = maths.exp(SIZE_SIGMA * rng.normal(size=len(length))) * np.where(
        source, SOURCE_SIZE, 1.0
    )
    weight[0] = weight[source].max()
    share = n_vertices * weight / maths.dot(weight, length)
    if narrow:
        after = np.flatnonzero(~source)
        weight[after] *= maths.power(np.maximum(share[after], 1.0), -rng.random(len(after)))
        share = n_vertices * weight / maths.dot(weight, length)
    while True:
        width: I8 = np.maximum(np.floor(share).astype(np.int64), minimum)
        width[0] = n_vertices - int((width[1:] * length[1:]).sum())
        if width[0] >= minimum:
            return width
        share *= 0.9  # narrow segments, widened to the minimum, left too little for the first


def _chain(begin: int, n: int, rng: Stream) -> list[tuple[int, int, bool]]:
    parents = [
        stage - 1 if rng.random() < CHAINED else int(rng.integers(begin, stage))
        for stage in range(begin + 1, begin + n)
    ]
    return [(parent, begin + 1 + i, True) for i, parent in enumerate(parents)]


@dataclass(frozen=True)
class TableColumn:
    """A column of Table 2."""

    median_s: float  # of the run times of all vertices, s
    p90_s: float
    fastest_p90_s: float  # 90th percentile of the fastest and of the slowest stage, s
    slowest_p90_s: float
    n_stages: int
    n_barriers: int  # stages that begin with a full shuffle
    n_vertices: int  # tasks


A_P90_S = 88.0
"""An assumption, as the table lacks job A's: its median times 5.4, the geometric mean over the
other six jobs of the ratio of the 90th percentile to the median."""
TABLE_2 = {
    job: TableColumn(**{"p90_s": A_P90_S, **printed})
    for job, printed in numbers("jockey")["table2"].items()
}
"""TableColumn of the seven jobs."""
INIT_S: tuple[float, float] = numbers("jockey")["table3"]["training"][1:]
"""Median and 90th percentile of the initialisation of a vertex, s: job F's training (Table 3)."""
Z90 = 1.2815515655446004
"""The 90th percentile of a standard normal."""
SIGMAS = np.linspace(0.15, 0.9, 26)
SKEWS = (0.15, 8.0, 32)
BULKS = (1.0, 0.8, 0.65, 0.5, 0.35)
ORDERS = 12
"""Search grid of the fit: spread within stages, skew of the stages' percentiles, reach of their
bulk, number of random orders of the stages."""
TAIL_SKEW = 12.0
"""Skew of the stages that are slower than the bulk."""
WIDE = 40
"""Minimum vertices of the fastest and the slowest stage, so that their percentile is well
defined; narrow stages may be the slowest, too (§6.1)."""
MARGIN = 0.06
"""Distance in rank of the other stages from the fastest and the slowest."""


@dataclass(frozen=True, eq=False)
class RunTimes:
    """Run times of g stages: log-normal with the 90th percentile `p90_s` and spread `sigma`."""

    p90_s: F8
    sigma: float

    def run_s(self, n_tasks: I8, rng: Stream) -> F8:
        """Draw the run times of all tasks, stage by stage, s."""
        stage = np.repeat(np.arange(len(n_tasks)), n_tasks)
        z = rng.normal(size=len(stage))
        return self.p90_s[stage] * maths.exp(self.sigma * (z - Z90))


def fit_run_times(n_tasks: I8, target: TableColumn, rng: Stream, narrow: bool = False) -> RunTimes:
    """Fit run times whose mixture over all vertices has the target's median and percentile."""
    shapes = [(bulk, skew) for bulk in BULKS for skew in maths.geomspace(*SKEWS).tolist()]
    ends = (target.fastest_p90_s, target.slowest_p90_s)
    best, fitted = math.inf, RunTimes(np.full(len(n_tasks), target.p90_s), 0.5)
    for _ in range(ORDERS):
        order = _stage_ranks(n_tasks, rng, narrow)
        p90_s = np.stack([spread_p90(order, *shape, *ends) for shape in shapes])
        for sigma in SIGMAS.tolist():
            error = _quantile_error(p90_s, sigma, n_tasks, target)
            row = int(np.argmin(error))
            if error[row] < best:
                best, fitted = float(error[row]), RunTimes(p90_s[row], sigma)
    return fitted


def draw_run_times(
    n_tasks: I8,
    shape: tuple[float, float],
    ends: tuple[float, float],
    sigma: float,
    rng: Stream,
    narrow: bool = False,
) -> RunTimes:
    """Draw the run times of a job without target percentiles over all vertices."""
    return RunTimes(spread_p90(_stage_ranks(n_tasks, rng, narrow), *shape, *ends), sigma)


def spread_p90(order: F8, bulk: float, skew: float, fastest: float, slowest: float) -> F8:
    """Return the stages' 90th percentiles, given their ranks from 0 (fastest) to 1 (slowest).

    Their logarithm rises as a power of the rank, except for the part 1 - `bulk` of the rise, which
    falls on the last few stages (`TAIL_SKEW`).
    """
    rise = bulk * maths.power(order, skew) + (1 - bulk) * maths.power(order, max(skew, TAIL_SKEW))
    return fastest * maths.power(slowest / fastest, rise)


def draw_init_s(n: int, rng: Stream) -> F8:
    """Draw the initialisation times of n vertices, (n,) s."""
    median, p90 = INIT_S
    return median * maths.exp(maths.log(p90 / median) / Z90 * rng.normal(size=n))


def _stage_ranks(n_tasks: I8, rng: Stream, narrow: bool) -> F8:
    """Draw the stages' ranks; the first goes to a wide stage, and the last unless `narrow`."""
    n = len(n_tasks)
    ranks = np.empty(n)
    wide = np.flatnonzero(n_tasks >= min(WIDE, np.sort(n_tasks)[-2]))
    ends = rng.choice(wide, 2, replace=False)
    if narrow:
        ends[1] = rng.choice(np.delete(np.arange(n), ends[0]))
    ranks[ends] = (0.0, 1.0)
    inner_stages = np.setdiff1d(np.arange(n), ends)
    inner = np.linspace(MARGIN, 1 - MARGIN, len(inner_stages)) if len(inner_stages) else np.empty(0)
    ranks[inner_stages] = rng.permutation(inner)
    return ranks


def _quantile_error(p90_s: F8, sigma: float, n_tasks: I8, target: TableColumn) -> F8:
    """Return the larger error of the mixtures' median and 90th percentile, in normal scores."""
    share = n_tasks / n_tasks.sum()
    middle = maths.log(p90_s) - sigma * Z90
    error = np.zeros(len(p90_s))
    for goal, z in ((target.median_s, 0.0), (target.p90_s, Z90)):
        mass = maths.dot(maths.normal_cdf((maths.log(goal) - middle) / sigma), share)
        error = np.maximum(error, np.abs(maths.normal_quantile(np.clip(mass, 1e-6, 1 - 1e-6)) - z))
    return error
