"""One DAG: levels, cut here and there by a barrier for everything; its tasks' times and demands.

What is not published is assumed, in constants, so that depth and the DAGs that split come out as
published (`sim.synth.production_dags.statistics`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8, Mask
from sim.base.random import Stream
from sim.published import numbers
from sim.synth._dag import Dag

_PAPER = numbers("dagps")
DEPTH_P50 = _PAPER["dags"]["depth_p50"]
DEPTH_SIGMA = 0.6
"""Spread of the number of levels, log-normal about the published median."""
MOST_LEVELS = 40
MORE_SOURCES = 1.5
"""Stages of the first level beyond one, on average; geometric."""
MORE_STAGES = 1.0
"""Stages of any other level beyond one, on average; geometric."""
CUT = 0.065
"""How often all stages of a level wait for everything before it."""
SECOND_PARENT = 0.35
"""How often a stage reads another stage of its segment too."""
OUTPUT = 0.35
"""How often what no stage reads so far stays an output of its segment."""
ONE_TO_ONE = 0.15
"""How often an edge within a segment is one-to-one, where its child has no other such parent."""


@dataclass(frozen=True, eq=False)
class Structure:
    """Stages of a DAG by level, and its edges, each (e,); parents have lower numbers."""

    level: I8
    parent: I8
    child: I8
    one_to_one: Mask

    def unordered(self) -> Mask:
        """Tell which pairs of stages are no ancestors of each other, (g, g)."""
        below = np.zeros((len(self.level), len(self.level)), bool)
        for p, c in zip(self.parent[::-1].tolist(), self.child[::-1].tolist(), strict=True):
            below[p] |= below[c]
            below[p, c] = True
        return ~(below | below.T)


def draw_structure(rng: Stream) -> Structure:
    """Draw the stages and edges of one DAG.

    At a *cut* all stages of a level read every stage that none has read: everything after it waits
    for everything before it.
    """
    n_levels = int(
        np.clip(np.rint(DEPTH_P50 * maths.exp(DEPTH_SIGMA * rng.normal())), 1, MOST_LEVELS)
    )
    more = np.full(n_levels, MORE_STAGES)
    more[0] = MORE_SOURCES
    width = rng.geometric(1 / (1 + more))
    first = np.concatenate([[0], np.cumsum(width)]).tolist()
    level = np.repeat(np.arange(n_levels), width)
    edges: dict[tuple[int, int], bool] = {}
    segment = 0  # its first stage
    for k in range(1, n_levels + 1):
        if k < n_levels and rng.random() >= CUT:
            _add_level(edges, segment, first[k - 1 : k + 2], rng)
            continue
        outputs = _outputs(edges, segment, first, level[: first[k]].tolist(), rng)
        if k < n_levels:
            new = range(first[k], first[k + 1])
            edges.update(((p, s), False) for p in outputs for s in new)
        segment = first[k]
    pairs = sorted(edges)
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    one_to_one = np.array([edges[pair] for pair in pairs], bool)
    return Structure(level, ends[:, 0].copy(), ends[:, 1].copy(), one_to_one)


def _add_level(
    edges: dict[tuple[int, int], bool], segment: int, first: list[int], rng: Stream
) -> None:
    """Let each stage of the last of two levels read the one before, and perhaps another stage."""
    before, begin, end = first
    for s in range(begin, end):
        parents = {int(rng.integers(before, begin))}
        if rng.random() < SECOND_PARENT:
            parents.add(int(rng.integers(segment, begin)))
        paired = False
        for p in sorted(parents):
            edges[p, s] = not paired and rng.random() < ONE_TO_ONE
            paired |= edges[p, s]


def _outputs(
    edges: dict[tuple[int, int], bool],
    segment: int,
    first: list[int],
    level: list[int],
    rng: Stream,
) -> list[int]:
    """Find what stays unread at the end of a segment; let later stages read some of the rest."""
    read = {p for p, _ in edges}
    outputs = []
    for s in range(segment, len(level)):
        if s not in read:
            after = first[level[s] + 1]
            if after < len(level) and rng.random() >= OUTPUT:
                edges[s, int(rng.integers(after, len(level)))] = False
            else:
                outputs.append(s)
    return outputs


MEAN_DEMAND = {
    "cpu": 0.12, "mem": 0.12, "net_read": 0.04, "net_write": 0.005, "disk_read": 0.05,
    "disk_write": 0.03,
}  # fmt: skip
"""Mean demand of a task, as a part of one machine; an assumption."""
DURATION_P50_S, DURATION_SIGMA = 12.0, 1.1
"""Of a task without parents' output to wait for, log-normal; §1: sub-second to hundreds of s."""
SHORTEST_S, LONGEST_S = 0.3, 600.0
SOURCE_DURATION = 6.0
"""How many times longer a task runs that reads the job's input; an assumption."""
TASKS_SIGMA = 1.0
"""Spread of the number of tasks of a DAG, log-normal about its median."""
TASK_FACTOR = 1.12
"""Tasks drawn for one that is wanted: whole numbers and one-to-one edges lose some."""
MOST_TASKS = 20_000
"""Of one stage."""
SHARE_SIGMA = 4.5
"""Spread of the shares of work among like stages; the larger, the more one stage dominates."""
SIZE_DRAWS = 24
"""Numbers of tasks are drawn this often, and those nearest to what is published are kept."""
IN_WEIGHT, IN_ENOUGH = 1.7, 24
"""What a large in-degree counts against a small out-degree, and what is large enough."""
UNORDERED_WEIGHT = 20.0
"""What unordered work counts against both."""
MOST_TRIES = 50
PATH_SHARES = (0.201, 0.176, 0.173, 0.148, 0.303)
FIRST_SHARES = (0.049, 0.215, 0.212, 0.238, 0.286)
"""Histograms that the shares of work are drawn from, so that Table 2 is what comes out: in a chain
all work is on the path, shares that a structure can't have are drawn again, and tasks are whole."""
_MOST_WORK = {where: parts[-1] for where, parts in _PAPER["table2"].items()}
_EITHER_ABOVE = _PAPER["dags"]["either_above"]
BOTH_ABOVE = _MOST_WORK["critical path"] + _MOST_WORK["unconstrained"] - _EITHER_ABOVE
"""DAGs with more than 80 % of their work on the path, and more than 80 % without parents."""


def draw_dag(structure: Structure, tasks: float, rng: Stream) -> Dag:
    """Draw durations, demands and numbers of tasks for a structure.

    Shares of work come first (`divide_work`), numbers of tasks follow. Of several draws the one is
    kept in which most work is unordered, few tasks wait for a task, and a task waits for several.
    """
    n = len(structure.level)
    source = structure.level == 0
    duration = DURATION_P50_S * maths.exp(DURATION_SIGMA * rng.normal(size=n))
    duration = np.clip(np.where(source, SOURCE_DURATION, 1.0) * duration, SHORTEST_S, LONGEST_S)
    demand = draw_demands(n, rng)
    group = 2 * critical_stages(structure, duration) + source
    wanted = divide_work(np.bincount(group, minlength=4) > 0, rng)[group]
    of_one = duration * demand.sum(axis=1)
    total = TASK_FACTOR * tasks * maths.exp(TASKS_SIGMA * rng.normal())
    apart = structure.unordered()
    best, n_tasks = -np.inf, np.ones(n, np.int64)
    pairs = np.stack([structure.parent, structure.child], axis=1)
    paired = pairs[structure.one_to_one].tolist()
    for weight in maths.exp(SHARE_SIGMA * rng.normal(size=(SIZE_DRAWS, n))):
        raw = wanted * weight / np.bincount(group, weight, 4)[group] / of_one
        drawn = np.clip(np.rint(total * raw / raw.sum()), 1, MOST_TASKS).astype(np.int64)
        for p, c in paired:
            drawn[c] = drawn[p]
        score = UNORDERED_WEIGHT * _unordered(apart, drawn * of_one) - _width(structure, drawn)
        if score > best:
            best, n_tasks = score, drawn
    return Dag(
        tuple(f"S{i + 1}" for i in range(n)), n_tasks, duration, demand,
        structure.parent, structure.child, structure.one_to_one,
    )  # fmt: skip


def _width(structure: Structure, n_tasks: I8) -> float:
    """Score the degrees of tasks: the smaller, the fewer wait for one and the more one awaits."""
    n = len(n_tasks)
    wide = ~structure.one_to_one
    into = np.bincount(structure.child, np.where(wide, n_tasks[structure.parent], 1), n)
    out = np.bincount(structure.parent, np.where(wide, n_tasks[structure.child], 1), n)
    of_out, of_into = maths.log1p(np.stack([out, np.minimum(into, IN_ENOUGH)]))
    return float(np.average(of_out - IN_WEIGHT * of_into, weights=n_tasks))


def _unordered(apart: Mask, work: F8) -> float:
    """Add up the work of unordered stages, the greatest first, as a share."""
    free = np.ones(len(work), bool)
    total = 0.0
    for s in np.argsort(-work, kind="stable"):
        if free[s]:
            total += work[s]
            free &= apart[s]
    return total / float(work.sum())


def draw_demands(n: int, rng: Stream) -> F8:
    """Draw what a task of each of `n` stages holds of the six resources, (n, 6)."""
    columns = []
    for name, cov in _PAPER["table1"].items():
        mu, sigma = capped_log_normal(MEAN_DEMAND[name], cov)
        columns.append(np.minimum(1.0, maths.exp(mu + sigma * rng.normal(size=n))))
    return np.stack(columns, axis=1)


def divide_work(exists: Mask, rng: Stream) -> F8:
    """Draw how the work divides among four groups of stages, ``2 * on_path + source``, (4,).

    What is on the path and without parents is drawn nearer to the least it can be.
    """
    for _ in range(MOST_TRIES):
        path, first = draw_shares(rng)
        if not (exists[0] or exists[1]):
            path = 1.0
        if not exists[2]:
            first = 1.0
        low = max(0.0, path + first - 1) if exists[1] else first
        high = min(path, first) if exists[0] else path + first - 1
        if low <= high and high >= 0:
            both = low + (high - low) * _fourth(rng.random())
            share = np.array([1 - path - first + both, first - both, path - both, both])
            if (share[~exists] <= 1e-9).all() and (share >= -1e-9).all():
                return share.clip(min=0.0)
    return exists.astype(np.float64) / float(exists.sum())


def _fourth(x: float) -> float:
    return x * x * x * x


def draw_shares(rng: Stream) -> tuple[float, float]:
    """Draw the shares of work on the critical path and in stages without parents, by histogram.

    More than 80 % are in both as published; else most work on the path goes with least in sources.
    """
    top = PATH_SHARES[-1] / sum(PATH_SHARES)
    both = min(top, BOTH_ABOVE)
    u, v, w = rng.random(3)
    if u < 1 - top:
        v = top - both + v * (1 - top)
    elif w * top < both:
        v = 1 - both * v
    else:
        v = (top - both) * v
    return _of_fifths(PATH_SHARES, u), _of_fifths(FIRST_SHARES, v)


def _of_fifths(histogram: tuple[float, ...], u: float) -> float:
    reached = np.cumsum([0.0, *histogram])
    return float(maths.interp(u * reached[-1], reached, np.linspace(0, 1, 6)))


@cache
def capped_log_normal(mean: float, cov: float) -> tuple[float, float]:
    """Find mu and sigma with which min(1, exp(mu + sigma Z)) has that mean and variation."""

    def moment(mu: float, sigma: float, k: int) -> float:
        inside = maths.exp(k * mu + (k * sigma) ** 2 / 2) * maths.normal_cdf(
            -mu / sigma - k * sigma
        )
        return float(inside + maths.normal_cdf(mu / sigma))

    def mu_of(sigma: float) -> float:
        return maths.root(lambda mu: moment(mu, sigma, 1) - mean, -60.0, 0.0)

    def excess(sigma: float) -> float:
        mu = mu_of(sigma)
        return float(np.sqrt(moment(mu, sigma, 2) / moment(mu, sigma, 1) ** 2 - 1) - cov)

    sigma = maths.root(excess, 0.05, 6.0)
    return mu_of(sigma), sigma


def critical_stages(structure: Structure, duration: F8) -> Mask:
    """Find the stages of the longest path; parents have lower numbers, and edges are sorted."""
    n = len(duration)
    tail = duration.copy()
    after = np.full(n, -1)
    for p, c in zip(structure.parent[::-1].tolist(), structure.child[::-1].tolist(), strict=True):
        if duration[p] + tail[c] > tail[p]:
            tail[p] = duration[p] + tail[c]
            after[p] = c
    critical = np.zeros(n, bool)
    s = int(np.argmax(tail))
    while s >= 0:
        critical[s] = True
        s = int(after[s])
    return critical
