"""One DAG: its tasks' numbers, times and demands, for a structure (`structure`).

What is not published is assumed, in constants (`sim.synth.production_dags.statistics` compares).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8, Mask
from sim.base.random import Stream
from sim.published import numbers
from sim.synth._dag import Dag
from sim.synth.production_dags.shares import divide_work
from sim.synth.production_dags.structure import Structure, critical_stages

_PAPER = numbers("dagps")
MEAN_DEMAND = {
    "cpu": 0.12, "mem": 0.12, "net_read": 0.12, "net_write": 0.01, "disk_read": 0.15,
    "disk_write": 0.09,
}  # fmt: skip
"""Mean demand of a task, as a part of one machine: chosen by `benchmarks.dagps_demands`, whose rule
looks at how much other schemes gain that see disk and network."""
DURATION_P50_S, DURATION_SIGMA = 12.0, 1.1
"""Of a stage that reads others' output, log-normal: the mean of its tasks where it is on the path,
else the longest, so that the path stays the longest."""
SHORTEST_S, LONGEST_S, LONGEST_TASK_S = 0.3, 600.0, 1000.0
"""Of a stage; of a task. §1: sub-second to hundreds of s."""
SOURCE_DURATION = 6.0
"""How many times longer a task runs that reads the job's input; an assumption."""
TASKS_SIGMA = 1.0
"""Spread of the number of tasks of a DAG, log-normal about its median."""
TASK_FACTOR = 1.12
"""Tasks drawn for one that is wanted: whole numbers and one-to-one edges lose some."""
MOST_TASKS = 20_000
"""Of one stage."""
STAGE_SIGMA = 0.7
"""Spread of the shares of work among like stages."""
LEAST_APART, MOST_APART = 1.0, 5.0
"""Logarithms of how many times as much work a stage has that is one of those side by side. All of a
path are ordered: where much work is on the path and most work is unordered, as Table 2 has it, one
stage must hold most of it."""
SIZE_DRAWS = 32
"""Numbers of tasks are drawn this often, and those nearest to what is published are kept."""
WIDTH_WEIGHT, IN_WEIGHT, IN_ENOUGH = 3.0, 1.7, 24
"""What degrees count; what a large in-degree counts against a small out-degree, and what is large
enough."""
UNORDERED_WEIGHT = 50.0
"""What unordered work counts."""
PATH_WEIGHT = 20.0
"""What it counts that another share of the work is on the path than was drawn."""


def draw_dag(structure: Structure, tasks: float, task_sigma: float, rng: Stream) -> Dag:
    """Draw durations, demands and numbers of tasks for a structure; durations of the longest tasks.

    Shares of work come first (`divide_work`), numbers of tasks follow. Of several draws, from even
    to uneven ones, the one is kept in which most work is unordered, the path has its share, few
    tasks wait for a task, and a task waits for several.
    """
    n = len(structure.level)
    source = structure.level == 0
    duration = DURATION_P50_S * maths.exp(DURATION_SIGMA * rng.normal(size=n))
    duration = np.clip(np.where(source, SOURCE_DURATION, 1.0) * duration, SHORTEST_S, LONGEST_S)
    demand = draw_demands(n, rng)
    path = critical_stages(structure, duration)
    group = 2 * path + source
    of_group = divide_work(np.bincount(group, minlength=4) > 0, rng)
    wanted = of_group[group]
    whole = duration * demand.sum(axis=1)
    total = TASK_FACTOR * tasks * maths.exp(TASKS_SIGMA * rng.normal())
    apart = structure.unordered()
    best, n_tasks, longest = -np.inf, np.ones(n, np.int64), duration
    pairs = np.stack([structure.parent, structure.child], axis=1)
    paired = pairs[structure.one_to_one].tolist()
    for k, (first, of_stage) in enumerate(rng.normal(size=(SIZE_DRAWS, 2, n))):
        apart_by = LEAST_APART + (MOST_APART - LEAST_APART) * k / (SIZE_DRAWS - 1)
        beside = _side_by_side(apart, wanted * maths.exp(first))
        weight = maths.exp(STAGE_SIGMA * of_stage + apart_by * beside)
        share = wanted * weight / np.bincount(group, weight, 4)[group] / whole
        drawn = _sizes(share, total, path, task_sigma)
        for p, c in paired:
            drawn[c] = drawn[p]
        longer = longest_over_mean(drawn, task_sigma)
        mean = np.where(path, 1.0, 1.0 / longer)
        work = drawn * whole * mean
        unordered = float(work[_side_by_side(apart, work)].sum() / work.sum())
        off = abs(float(work[path].sum() / work.sum() - of_group[2:].sum()))
        score = UNORDERED_WEIGHT * unordered - PATH_WEIGHT * off
        score -= WIDTH_WEIGHT * _width(structure, drawn)
        if score > best:
            best, n_tasks, longest = score, drawn, duration * mean * longer
    return Dag(
        tuple(f"S{i + 1}" for i in range(n)), n_tasks, longest, demand,
        structure.parent, structure.child, structure.one_to_one,
    )  # fmt: skip


def _sizes(share: F8, total: float, path: Mask, sigma: float) -> I8:
    """Divide about so many tasks among stages; `share` is of work, over the longest task's."""
    n_tasks = np.ones(len(share), np.int64)
    shorter = np.ones(len(share))
    for _ in range(3):
        raw = share / shorter
        n_tasks = np.clip(np.rint(total * raw / raw.sum()), 1, MOST_TASKS).astype(np.int64)
        shorter = np.where(path, 1.0, 1.0 / longest_over_mean(n_tasks, sigma))
    return n_tasks


def longest_over_mean(n_tasks: I8, sigma: float) -> F8:
    """Tell about how many times as long as their mean the longest of so many tasks lasts."""
    z = maths.normal_quantile((n_tasks - 0.375) / (n_tasks + 0.25))
    return np.maximum(1.0, maths.exp(sigma * z - sigma * sigma / 2))


def draw_task_s(dag: Dag, sigma: float, rng: Stream) -> F8:
    """Draw what each task lasts, s, from the longest of each stage.

    They are the quantiles of a log-normal, as many as there are tasks (Blom's plotting positions),
    in random order: a stage's longest task, and so the critical path, is what was drawn.
    """
    stage = np.repeat(np.arange(len(dag.n_tasks)), dag.n_tasks)
    order = np.lexsort((rng.random(len(stage)), stage))
    rank = order - (np.cumsum(dag.n_tasks) - dag.n_tasks)[stage]
    z = maths.normal_quantile((rank + 0.625) / (dag.n_tasks[stage] + 0.25))
    longest = maths.normal_quantile((dag.n_tasks - 0.375) / (dag.n_tasks + 0.25))[stage]
    seconds = dag.duration_s[stage] * maths.exp(sigma * (z - longest))
    return np.clip(seconds, SHORTEST_S, LONGEST_TASK_S)


def _width(structure: Structure, n_tasks: I8) -> float:
    """Score the degrees of tasks: the smaller, the fewer wait for one and the more one awaits."""
    n = len(n_tasks)
    wide = ~structure.one_to_one
    into = np.bincount(structure.child, np.where(wide, n_tasks[structure.parent], 1), n)
    out = np.bincount(structure.parent, np.where(wide, n_tasks[structure.child], 1), n)
    of_out, of_into = maths.log1p(np.stack([out, np.minimum(into, IN_ENOUGH)]))
    return float(np.average(of_out - IN_WEIGHT * of_into, weights=n_tasks))


def _side_by_side(apart: Mask, worth: F8) -> Mask:
    """Pick stages that are unordered among each other, the one of greatest worth first."""
    free = np.ones(len(worth), bool)
    picked = np.zeros(len(worth), bool)
    for s in np.argsort(-worth, kind="stable").tolist():
        if free[s]:
            picked[s] = True
            free &= apart[s]
    return picked


def draw_demands(n: int, rng: Stream) -> F8:
    """Draw what a task of each of `n` stages holds of the six resources, (n, 6)."""
    columns = []
    for name, cov in _PAPER["table1"].items():
        mu, sigma = capped_log_normal(MEAN_DEMAND[name], cov)
        columns.append(np.minimum(1.0, maths.exp(mu + sigma * rng.normal(size=n))))
    return np.stack(columns, axis=1)


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
