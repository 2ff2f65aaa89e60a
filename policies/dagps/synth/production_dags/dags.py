"""One DAG: numbers, durations and demands of the tasks for a structure (`structure`).

Constants are assumptions where the paper is silent
(`policies.dagps.synth.production_dags.statistics` compares the results with the published numbers).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from policies.dagps.synth.drawn_dag import Dag
from policies.dagps.synth.production_dags.shares import divide_work
from policies.dagps.synth.production_dags.structure import Structure, critical_stages
from sim.base import maths
from sim.base.arrays import F8, I8, Mask
from sim.base.random import Stream
from sim.published import numbers

_PAPER = numbers("dagps")
CPU_MEM = 0.12
IO = {"net_read": 0.12, "net_write": 0.015, "disk_read": 0.15, "disk_write": 0.09}
"""Mean demands of a task, as fractions of one machine: one number for cpu and for memory, and those
of reads and writes, times a factor. Chosen by `benchmarks.dagps_demands`, whose rule compares the
gains of other schemes that see disk and network."""
MAX_NET_WRITE = 0.01
"""Maximum of the mean demand of net_write. A variation of 7.08 with a demand of at most a machine
allows a mean of at most 1 / (1 + 7.08²) = 2 %, and a capped log-normal with a sigma of at most 4
one of 1.1 %."""
DURATION_P50_S = 12.0
"""Median duration of a stage that reads others' output, log-normal: the mean of its tasks if it is
on the critical path, else the longest, so that the path stays the longest."""
SHORTEST_S, LONGEST_S, LONGEST_TASK_S = 0.3, 600.0, 1000.0
"""Range of the duration of a stage; maximum of a task. §1: sub-second to hundreds of s."""
TASKS_SIGMA = 1.0
"""Spread of the number of tasks of a DAG, log-normal about its median."""
TASK_FACTOR = 1.12
"""Ratio of drawn to target tasks: rounding and one-to-one edges lose some."""
MAX_TASKS = 20_000
"""Maximum number of tasks of a stage."""
MIN_UNORDERED, MAX_UNORDERED = 1.0, 5.0
"""Range of the logarithm of the extra work of unordered stages. All stages of a path are ordered:
where much work is on the path and most work is unordered, as in Table 2, one stage must have most
of it."""
SIZE_DRAWS = 32
"""Number of draws of the numbers of tasks, from which the one nearest to the published is taken."""
WIDTH_WEIGHT, IN_WEIGHT, IN_ENOUGH = 3.0, 1.7, 24
"""Weight of degrees in the score; weight of a large in-degree relative to a small out-degree, and
the in-degree beyond which it counts no more."""
UNORDERED_WEIGHT = 50.0
"""Weight of unordered work in the score."""
PATH_WEIGHT = 20.0
"""Weight of the error of the path's share of work in the score."""


@dataclass(frozen=True)
class Assumed:
    """Numbers that the paper does not print.

    Attributes
    ----------
    duration_sigma : float
        Spread of the logarithm of the duration of stages.
    source_duration : float
        Factor of the duration of stages that read the job's input.
    stage_sigma : float
        Spread of the shares of work among stages of a group.
    cpu_mem : float
        Mean demand of a task for cpu, and for memory, as a fraction of a machine.
    io_factor : float
        Factor of the mean demands for reads and writes, `IO`.
    """

    duration_sigma: float = 1.1
    source_duration: float = 6.0
    stage_sigma: float = 0.7
    cpu_mem: float = CPU_MEM
    io_factor: float = 1.0

    def mean_demand(self) -> dict[str, float]:
        """Return the mean demands of a task for the six resources."""
        io = {name: self.io_factor * mean for name, mean in IO.items()}
        io["net_write"] = min(io["net_write"], MAX_NET_WRITE)
        return {"cpu": self.cpu_mem, "mem": self.cpu_mem, **io}


def draw_dag(
    structure: Structure, tasks: float, task_sigma: float, assumed: Assumed, rng: Stream
) -> Dag:
    """Draw numbers of tasks, demands, and durations of the longest tasks for a structure.

    Shares of work are drawn first (`divide_work`); numbers of tasks follow. Of several draws, from
    even to uneven ones, the one with the best score is taken: most work is unordered, the path has
    its share, few tasks wait for a task, and a task waits for several.
    """
    n = len(structure.level)
    source = structure.level == 0
    duration = DURATION_P50_S * maths.exp(assumed.duration_sigma * rng.normal(size=n))
    factor = np.where(source, assumed.source_duration, 1.0)
    duration = np.clip(factor * duration, SHORTEST_S, LONGEST_S)
    demand = draw_demands(n, assumed.mean_demand(), rng)
    path = critical_stages(structure, duration)
    group = 2 * path + source
    group_share = divide_work(np.bincount(group, minlength=4) > 0, rng)
    target = group_share[group]
    task_work = duration * demand.sum(axis=1)
    total = TASK_FACTOR * tasks * maths.exp(TASKS_SIGMA * rng.normal())
    is_unordered = structure.unordered()
    best, n_tasks, longest = -np.inf, np.ones(n, np.int64), duration
    pairs = np.stack([structure.parent, structure.child], axis=1)
    paired = pairs[structure.one_to_one].tolist()
    for k, (order_noise, stage_noise) in enumerate(rng.normal(size=(SIZE_DRAWS, 2, n))):
        extra = MIN_UNORDERED + (MAX_UNORDERED - MIN_UNORDERED) * k / (SIZE_DRAWS - 1)
        antichain = _antichain(is_unordered, target * maths.exp(order_noise))
        weight = maths.exp(assumed.stage_sigma * stage_noise + extra * antichain)
        share = target * weight / np.bincount(group, weight, 4)[group] / task_work
        drawn = _divide_tasks(share, total, path, task_sigma)
        for p, c in paired:
            drawn[c] = drawn[p]
        longest_ratio = longest_over_mean(drawn, task_sigma)
        mean = np.where(path, 1.0, 1.0 / longest_ratio)
        work = drawn * task_work * mean
        unordered = float(work[_antichain(is_unordered, work)].sum() / work.sum())
        path_error = abs(float(work[path].sum() / work.sum() - group_share[2:].sum()))
        score = UNORDERED_WEIGHT * unordered - PATH_WEIGHT * path_error
        score -= WIDTH_WEIGHT * _degree_score(structure, drawn)
        if score > best:
            best, n_tasks, longest = score, drawn, duration * mean * longest_ratio
    return Dag(
        tuple(f"S{i + 1}" for i in range(n)), n_tasks, longest, demand,
        structure.parent, structure.child, structure.one_to_one,
    )  # fmt: skip


def _divide_tasks(share: F8, total: float, path: Mask, sigma: float) -> I8:
    """Divide about `total` tasks among stages by `share` of work, relative to the longest task."""
    n_tasks = np.ones(len(share), np.int64)
    scale = np.ones(len(share))
    for _ in range(3):
        raw = share / scale
        n_tasks = np.clip(np.rint(total * raw / raw.sum()), 1, MAX_TASKS).astype(np.int64)
        scale = np.where(path, 1.0, 1.0 / longest_over_mean(n_tasks, sigma))
    return n_tasks


def longest_over_mean(n_tasks: I8, sigma: float) -> F8:
    """Estimate the ratio of the longest to the mean duration of `n_tasks` tasks."""
    z = maths.normal_quantile((n_tasks - 0.375) / (n_tasks + 0.25))
    return np.maximum(1.0, maths.exp(sigma * z - sigma * sigma / 2))


def draw_task_s(dag: Dag, sigma: float, rng: Stream) -> F8:
    """Draw the duration of each task, s, given the longest of each stage.

    The durations are the quantiles of a log-normal at Blom's plotting positions, in random order:
    so a stage's longest task, and with it the critical path, is as drawn.
    """
    stage = np.repeat(np.arange(len(dag.n_tasks)), dag.n_tasks)
    order = np.lexsort((rng.random(len(stage)), stage))
    rank = order - (np.cumsum(dag.n_tasks) - dag.n_tasks)[stage]
    z = maths.normal_quantile((rank + 0.625) / (dag.n_tasks[stage] + 0.25))
    longest = maths.normal_quantile((dag.n_tasks - 0.375) / (dag.n_tasks + 0.25))[stage]
    seconds = dag.duration_s[stage] * maths.exp(sigma * (z - longest))
    return np.clip(seconds, SHORTEST_S, LONGEST_TASK_S)


def _degree_score(structure: Structure, n_tasks: I8) -> float:
    """Score the degrees of tasks: small if few tasks wait for one and it waits for many."""
    n = len(n_tasks)
    is_barrier = ~structure.one_to_one
    in_degree = np.bincount(structure.child, np.where(is_barrier, n_tasks[structure.parent], 1), n)
    out_degree = np.bincount(structure.parent, np.where(is_barrier, n_tasks[structure.child], 1), n)
    log_out, log_in = maths.log1p(np.stack([out_degree, np.minimum(in_degree, IN_ENOUGH)]))
    return float(np.average(log_out - IN_WEIGHT * log_in, weights=n_tasks))


def _antichain(is_unordered: Mask, weight: F8) -> Mask:
    """Pick an antichain of stages greedily, in order of falling weight."""
    free = np.ones(len(weight), bool)
    picked = np.zeros(len(weight), bool)
    for s in np.argsort(-weight, kind="stable").tolist():
        if free[s]:
            picked[s] = True
            free &= is_unordered[s]
    return picked


def draw_demands(n: int, mean: Mapping[str, float], rng: Stream) -> F8:
    """Draw the demand of a task for the six resources in each of `n` stages, (n, 6)."""
    columns = []
    for name, cov in _PAPER["table1"].items():
        mu, sigma = capped_log_normal(mean[name], cov)
        columns.append(np.minimum(1.0, maths.exp(mu + sigma * rng.normal(size=n))))
    return np.stack(columns, axis=1)


@cache
def capped_log_normal(mean: float, cov: float) -> tuple[float, float]:
    """Find mu and sigma for which min(1, exp(mu + sigma Z)) has that mean and variation."""

    def moment(mu: float, sigma: float, k: int) -> float:
        inside = maths.exp(k * mu + (k * sigma) ** 2 / 2) * maths.normal_cdf(
            -mu / sigma - k * sigma
        )
        return float(inside + maths.normal_cdf(mu / sigma))

    def mu_for(sigma: float) -> float:
        return maths.root(lambda mu: moment(mu, sigma, 1) - mean, -60.0, 0.0)

    def excess(sigma: float) -> float:
        mu = mu_for(sigma)
        return float(np.sqrt(moment(mu, sigma, 2) / moment(mu, sigma, 1) ** 2 - 1) - cov)

    sigma = maths.root(excess, 0.05, 6.0)
    return mu_for(sigma), sigma
