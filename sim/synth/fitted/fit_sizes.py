"""Fitting what stages have, given how many their job has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from sim.base.arrays import F8, I8, Mask, ranges
from sim.dags import Graphs
from sim.describe.flow import rank_correlation
from sim.synth.fitted.draw_joint import draw_jointly
from sim.synth.fitted.fit_joint import ALIKE_IN_ROLES, Binned, Together, fit_unequal, rounded
from sim.synth.fitted.histograms import Histogram, condition_groups
from sim.synth.fitted.joint import BySize, Cells, Joint, OfSize

LEAST_JOBS = 100
"""Numbers of stages that fewer jobs have are pooled with the next."""
DRAWN_JOBS, ROUNDS, GAIN, HIGH = 4_000, 14, 0.5, 6.0
"""Jobs drawn in each round in which correlations are moved; how far towards what is missing; and by
what where the means over tasks rank too high."""


def fit_by_size(
    graphs: Graphs, metrics: Mapping[str, F8], counted: Callable[[str, F8], Histogram]
) -> BySize:
    """Fit the tables and the copula of each range of sizes; of lone stages which values meet."""
    n = graphs.job_n_stages
    groups = [(1, 1)] if (n == 1).any() else []
    if (n > 1).any():
        groups += condition_groups(n[n > 1], LEAST_JOBS)
    parts: dict[int, OfSize] = {}
    for low, high in groups:
        jobs = np.flatnonzero((n >= low) & (n <= high))
        stages = ranges(graphs.job_stage0[jobs], graphs.job_stage0[jobs + 1])
        values = {name: of[stages] for name, of in metrics.items()}
        tables = {name: counted(name, of) for name, of in values.items()}
        parts[low] = (
            OfSize(tables, cells=fit_cells(values))
            if high == 1
            else OfSize(tables, joint=fit_jobs(graphs.take(jobs), values))
        )
    return BySize(parts)


def fit_cells(metrics: Mapping[str, F8]) -> Cells:
    """Count which bins of values meet."""
    role: I8 = np.zeros(len(next(iter(metrics.values()))), dtype=np.int64)
    binned = {name: Binned(values, role) for name, values in metrics.items()}
    places = np.column_stack([one.bin for one in binned.values()])
    distinct, counts = np.unique(places, axis=0, return_counts=True)
    edges = {name: np.round(one.ranks.edges, 9) for name, one in binned.items()}
    return Cells(edges, distinct.T.astype(np.int64), counts.astype(np.int64))


def fit_jobs(graphs: Graphs, metrics: Mapping[str, F8]) -> Joint:
    """Fit a copula to the stages of jobs, so that jobs as wholes come out as they are.

    What a job is as a whole is told by its widest stages, whose attributes have other correlations
    than those of all stages. So the correlations are moved, found by drawing: those within a stage
    until means over tasks have the correlations that they have in the jobs, those of any two stages
    until means over stages do. And where means over tasks are too high, the number of tasks goes
    with a value less within a stage, and more among the stages of a job.
    """
    seen = Together.of(graphs, metrics, ALIKE_IN_ROLES)
    joint = seen.joint(graphs)
    unequal = fit_unequal(joint, graphs, metrics)
    wanted = _of_jobs(graphs, metrics)
    rows = np.arange(max(DRAWN_JOBS, min(graphs.n_jobs, 2 * DRAWN_JOBS))) % graphs.n_jobs
    some = graphs.take(rows)
    tables = {name: Histogram.of(values) for name, values in metrics.items()}
    within, shared = np.zeros_like(seen.within), np.zeros_like(seen.within)
    best = (np.inf, joint)
    for _ in range(ROUNDS):
        joint = replace(seen.moved(within, shared).joint(graphs), unequal=unequal)
        drawn = _of_jobs(some, draw_jointly(joint, tables, some, 0))
        by_tasks, by_stages = _missing(wanted, drawn, seen.of_job)
        high = HIGH * _high(wanted, drawn, seen.names.index("n_tasks"))
        off = float((by_tasks**2 + by_stages**2 + high**2).sum())
        best = min(best, (off, joint), key=lambda one: one[0])
        within = within + GAIN * (by_tasks - high)
        shared = shared + GAIN * (by_stages + high)
    return rounded(best[1])


def _of_jobs(graphs: Graphs, metrics: Mapping[str, F8]) -> F8:
    """Return what jobs are as wholes, (2, M, J): means over tasks and over stages; their tasks."""
    first = graphs.job_stage0[:-1]
    n_tasks = metrics["n_tasks"]
    tasks = np.add.reduceat(n_tasks, first)
    means = [
        [
            tasks if name == "n_tasks" else np.add.reduceat(values * weight, first) / total
            for name, values in metrics.items()
        ]
        for weight, total in ((n_tasks, tasks), (np.ones(len(n_tasks)), graphs.job_n_stages))
    ]
    return np.array(means)


def _missing(wanted: F8, drawn: F8, of_job: Mask) -> tuple[F8, F8]:
    """Return by how much correlations of ranks fall short, of means over tasks and over stages.

    Of a metric with itself it is by how much its means over tasks are spread too little.
    """
    n = wanted.shape[1]
    missing = np.zeros((2, n, n))
    for i in range(n):
        of = np.sort(wanted[0, i])
        spread = [
            float((np.searchsorted(of, x, "left") + np.searchsorted(of, x, "right")).std())
            for x in (wanted[0, i], drawn[0, i])
        ]
        if spread[0] > 0 and not of_job[i]:
            missing[:, i, i] = 1 - spread[1] / spread[0]
        for j in range(i):
            for k in (0, 1):
                pairs = ((k, i, 0, j), (0, i, k, j))
                off = [
                    rank_correlation(wanted[a, b], wanted[c, d])
                    - rank_correlation(drawn[a, b], drawn[c, d])
                    for a, b, c, d in pairs
                ]
                missing[k, i, j] = missing[k, j, i] = np.nan_to_num(np.mean(off))
    return missing[0], missing[1]


def _high(wanted: F8, drawn: F8, n_tasks: int) -> F8:
    """Return by how much means over tasks rank too high, by the pair with the number of tasks.

    They are high if wide stages have more than they should, of what their job has.
    """
    high = np.zeros((len(drawn[0]), len(drawn[0])))
    for i in range(len(high)):
        if i != n_tasks:
            of, x = np.sort(wanted[0, i]), drawn[0, i]
            places = np.searchsorted(of, x, "left") + np.searchsorted(of, x, "right")
            high[i, n_tasks] = high[n_tasks, i] = places.mean() / (2 * len(of)) - 0.5
    return high
