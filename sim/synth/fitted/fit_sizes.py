"""Fit the attributes of stages separately for ranges of job sizes (numbers of stages)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from sim.base.arrays import F8, I8, Mask, ranges
from sim.base.correlation import rank_correlation
from sim.dags import Graphs
from sim.synth.fitted.draw_joint import draw_jointly
from sim.synth.fitted.fit_joint import SAME_IN_ROLES, Binned, Correlations, fit_unequal, round_edges
from sim.synth.fitted.histograms import Histogram, condition_groups
from sim.synth.fitted.joint import BySize, Cells, Joint, SizeClass

MIN_JOBS = 100
"""Sizes that fewer jobs have are pooled with the next."""
DRAWN_JOBS, ROUNDS, GAIN, HIGH = 4_000, 14, 0.5, 6.0
"""Adjustment of correlations: jobs drawn in each round, number of rounds, step as a part of the
error, and weight of the error of means over tasks that rank too high."""


def fit_by_size(
    graphs: Graphs, metrics: Mapping[str, F8], counted: Callable[[str, F8], Histogram]
) -> BySize:
    """Fit tables and a copula for each range of sizes; joint cells for jobs of one stage."""
    n = graphs.job_n_stages
    groups = [(1, 1)] if (n == 1).any() else []
    if (n > 1).any():
        groups += condition_groups(n[n > 1], MIN_JOBS)
    parts: dict[int, SizeClass] = {}
    for low, high in groups:
        jobs = np.flatnonzero((n >= low) & (n <= high))
        stages = ranges(graphs.job_stage0[jobs], graphs.job_stage0[jobs + 1])
        values = {name: column[stages] for name, column in metrics.items()}
        tables = {name: counted(name, column) for name, column in values.items()}
        parts[low] = (
            SizeClass(tables, cells=fit_cells(values))
            if high == 1
            else SizeClass(tables, joint=fit_jobs(graphs.take(jobs), values))
        )
    return BySize(parts)


def fit_cells(metrics: Mapping[str, F8]) -> Cells:
    """Count the combinations of bins that occur."""
    role: I8 = np.zeros(len(next(iter(metrics.values()))), dtype=np.int64)
    binned = {name: Binned(values, role) for name, values in metrics.items()}
    cell_bins = np.column_stack([metric.bin for metric in binned.values()])
    cells, counts = np.unique(cell_bins, axis=0, return_counts=True)
    edges = {name: np.round(metric.ranks.edges, 9) for name, metric in binned.items()}
    return Cells(edges, cells.T.astype(np.int64), counts.astype(np.int64))


def fit_jobs(graphs: Graphs, metrics: Mapping[str, F8]) -> Joint:
    """Fit a copula to the stages of jobs, so that totals and means of jobs are matched too.

    The attributes of a whole job are dominated by its widest stages, which have other correlations
    than all stages. So the correlations are adjusted in rounds of drawing: those within a stage
    until means over tasks have the correlations of the actual jobs, those of any two stages until
    means over stages do. Where means over tasks are too high, the correlation of a value with the
    number of tasks is lowered within a stage, and raised among the stages of a job.
    """
    correlations = Correlations.estimate(graphs, metrics, SAME_IN_ROLES)
    joint = correlations.joint(graphs)
    unequal = fit_unequal(joint, graphs, metrics)
    target = _job_means(graphs, metrics)
    rows = np.arange(max(DRAWN_JOBS, min(graphs.n_jobs, 2 * DRAWN_JOBS))) % graphs.n_jobs
    sample = graphs.take(rows)
    tables = {name: Histogram.count(values) for name, values in metrics.items()}
    within, shared = np.zeros_like(correlations.within), np.zeros_like(correlations.within)
    best = (np.inf, joint)
    for _ in range(ROUNDS):
        joint = replace(correlations.moved(within, shared).joint(graphs), unequal=unequal)
        drawn = _job_means(sample, draw_jointly(joint, tables, sample, 0))
        by_tasks, by_stages = _shortfall(target, drawn, correlations.is_constant)
        excess = HIGH * _excess(target, drawn, correlations.names.index("n_tasks"))
        error = float((by_tasks**2 + by_stages**2 + excess**2).sum())
        best = min(best, (error, joint), key=lambda item: item[0])
        within = within + GAIN * (by_tasks - excess)
        shared = shared + GAIN * (by_stages + excess)
    return round_edges(best[1])


def _job_means(graphs: Graphs, metrics: Mapping[str, F8]) -> F8:
    """Return jobs' means over tasks and over stages, (2, M, J); of `n_tasks` the sum."""
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


def _shortfall(target: F8, drawn: F8, is_constant: Mask) -> tuple[F8, F8]:
    """Return the shortfall of rank correlations of means over tasks, and of means over stages.

    On the diagonal it is the missing spread of a metric's means over tasks.
    """
    n = target.shape[1]
    missing = np.zeros((2, n, n))
    for i in range(n):
        ascending = np.sort(target[0, i])
        spread = [
            float(
                (
                    np.searchsorted(ascending, x, "left") + np.searchsorted(ascending, x, "right")
                ).std()
            )
            for x in (target[0, i], drawn[0, i])
        ]
        if spread[0] > 0 and not is_constant[i]:
            missing[:, i, i] = 1 - spread[1] / spread[0]
        for j in range(i):
            for k in (0, 1):
                pairs = ((k, i, 0, j), (0, i, k, j))
                shortfall = [
                    rank_correlation(target[a, b], target[c, d])
                    - rank_correlation(drawn[a, b], drawn[c, d])
                    for a, b, c, d in pairs
                ]
                missing[k, i, j] = missing[k, j, i] = np.nan_to_num(np.mean(shortfall))
    return missing[0], missing[1]


def _excess(target: F8, drawn: F8, n_tasks: int) -> F8:
    """Return the excess rank of means over tasks, at the metric's pair with the number of tasks.

    They are too high if wide stages have larger values than they should, relative to their job.
    """
    excess = np.zeros((len(drawn[0]), len(drawn[0])))
    for i in range(len(excess)):
        if i != n_tasks:
            ascending, x = np.sort(target[0, i]), drawn[0, i]
            ranks = np.searchsorted(ascending, x, "left") + np.searchsorted(ascending, x, "right")
            excess[i, n_tasks] = excess[n_tasks, i] = ranks.mean() / (2 * len(ascending)) - 0.5
    return excess
