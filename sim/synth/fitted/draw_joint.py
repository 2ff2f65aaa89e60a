"""Draw attributes of stages jointly: by a Gaussian copula along each DAG, or by cells.

Each stage has a standard normal latent number for each metric (duration, number of tasks, demands);
its rank selects the metric's value from the table. A latent number is the sum of one of the job and
one of the stage, which follows that of the stage's first child: most stages have one child, so that
this keeps the correlation of nearly all parents with their children, along with that within a stage
and that of any two stages of a job. Jobs differ in how much their stages vary (one of two spreads,
equally likely), and a stage may copy a value from its child.

The distribution of stage attributes depends on the job's number of stages, not only by a shift: so
ranges of sizes have separate tables and copulas (`BySize`). A job of one stage has no DAG to
follow: its metrics are drawn from the counted combinations of bins (`Cells`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8, ranges
from sim.base.random import Stream, stream
from sim.dags import Graphs
from sim.synth.fitted.histograms import Histogram
from sim.synth.fitted.joint import ROLES, BySize, Cells, Joint

Draws = tuple[F8, F8, F8, F8]


def draw_by_size(
    by_size: BySize, max_tasks: int | None, graphs: Graphs, seed: int
) -> dict[str, F8]:
    """Draw all metrics of all stages from the tables of their job's size."""
    part = by_size.part_of(graphs.job_n_stages)
    names = list(by_size.parts[0].tables)
    drawn = {name: np.empty(graphs.n_stages) for name in names}
    draws = _draws(graphs, len(names), seed)
    for p, size_class in enumerate(by_size.parts):
        jobs = np.flatnonzero(part == p)
        if not len(jobs):
            continue
        stages = ranges(graphs.job_stage0[jobs], graphs.job_stage0[jobs + 1])
        tables = dict(size_class.tables)
        if max_tasks is not None:
            tables["n_tasks"] = tables["n_tasks"].up_to(max(max_tasks, tables["n_tasks"].values[0]))
        if size_class.cells is not None:
            values = draw_cells(size_class.cells, tables, draws[3][stages, 0], draws[3][stages])
        elif size_class.joint is not None:
            part_draws = (draws[0][stages], draws[1][jobs], draws[2][jobs], draws[3][stages])
            values = _draw(size_class.joint, tables, graphs.take(jobs), part_draws)
        for name in names:
            drawn[name][stages] = values[name]
    return drawn


def draw_cells(
    cells: Cells, tables: Mapping[str, Histogram], uniform: F8, within: F8
) -> dict[str, F8]:
    """Draw a cell for each job, and each metric uniformly inside its bin."""
    cum = np.cumsum(cells.counts)
    chosen = np.searchsorted(cum, (uniform * cum[-1]).astype(np.int64), side="right")
    drawn = {}
    for m, (name, edges) in enumerate(cells.edges.items()):
        bin_ = cells.places[m, chosen]
        # the first metric's uniform has chosen the cell; its fractional part is still unused
        position = within[:, m] if m else (uniform * cum[-1]) % 1.0
        rank = edges[bin_] + position * (edges[bin_ + 1] - edges[bin_])
        drawn[name] = tables[name].draw(np.minimum(rank, np.nextafter(1.0, 0.0)))
    return drawn


def draw_jointly(
    joint: Joint, tables: Mapping[str, Histogram], graphs: Graphs, seed: int
) -> dict[str, F8]:
    """Draw all metrics of all stages."""
    return _draw(joint, tables, graphs, _draws(graphs, len(joint.ranks), seed))


def _draws(graphs: Graphs, n: int, seed: int) -> Draws:
    """Draw the random numbers of a copula of `n` metrics: of stages, jobs, jobs, stages."""
    return (
        _stream(seed, "stage").standard_normal((graphs.n_stages, n)),
        _stream(seed, "job").standard_normal((graphs.n_jobs, n)),
        _stream(seed, "unequal").random(graphs.n_jobs),
        _stream(seed, "taken over").random((graphs.n_stages, n)),
    )


def _draw(
    joint: Joint, tables: Mapping[str, Histogram], graphs: Graphs, draws: Draws
) -> dict[str, F8]:
    from sim.synth.fitted.kernels import chance  # loads numba

    uniform = _latent_uniform(joint, graphs, draws)
    role = np.minimum(graphs.n_parents, ROLES - 1)
    values = np.empty_like(uniform)
    for m, (name, ranks) in enumerate(joint.ranks.items()):
        values[:, m] = tables[name].draw(ranks.rank(uniform[:, m], role))
    chance.copy_from_child(
        graphs.order, graphs.edge0, graphs.edge_child, draws[3], joint.taken_over, values
    )
    return {name: values[:, m].copy() for m, name in enumerate(joint.ranks)}


def _latent_uniform(joint: Joint, graphs: Graphs, draws: Draws) -> F8:
    """Return the latent numbers of all stages, (G, M), mapped to uniforms by their distribution."""
    from sim.synth.fitted.kernels import chance  # loads numba

    latent = draws[0]
    chance.follow(
        graphs.order, graphs.edge0, graphs.edge_child, joint.root, joint.pull, joint.noise, latent
    )
    shared = maths.dot(draws[1], joint.job.T)
    wide = draws[2] < 0.5
    variance = 1.0 + joint.unequal * np.where(wide, 1.0, -1.0)
    latent *= np.repeat(np.sqrt(variance), graphs.job_n_stages)[:, None]
    latent += np.repeat(shared, graphs.job_n_stages, axis=0)
    job_variance = (joint.job**2).sum(axis=1)
    stage_variance = (joint.root**2).sum(axis=1)
    uniform = sum(
        0.5
        * maths.normal_cdf(
            latent / np.sqrt(job_variance + stage_variance * (1.0 + sign * joint.unequal))
        )
        for sign in (1.0, -1.0)
    )
    clipped: F8 = np.minimum(uniform, np.nextafter(1.0, 0.0))
    return clipped


def _stream(seed: int, purpose: str) -> Stream:
    return stream(seed, "synth", "alibaba2018", "joint", purpose)


def longest_over_mean(task_s: F8, task0: I8) -> F8:
    """Return each stage's longest task over their mean, at least 1; 1 where all are 0 s."""
    total = np.add.reduceat(task_s, task0[:-1])
    longest = np.maximum.reduceat(task_s, task0[:-1])
    mean = total / np.diff(task0)
    return np.maximum(np.where(mean > 0, longest / np.where(mean > 0, mean, 1.0), 1.0), 1.0)


def spread_tasks(mean_s: F8, longest: F8, n_tasks: I8, seed: int) -> F8:
    """Draw the durations of each stage's tasks, (T,), with a given mean and maximum.

    The others are the quantiles of a lognormal distribution with that expected maximum among as
    many tasks, scaled to the mean. The tasks are in random order.
    """
    n_tasks = n_tasks.astype(np.int64)
    task0 = np.concatenate([[0], np.cumsum(n_tasks)])
    stage = np.repeat(np.arange(len(n_tasks)), n_tasks)
    number = np.arange(task0[-1]) - task0[:-1][stage]  # of each task among its stage's
    random = _stream(seed, "order of tasks").random(len(stage))
    order = np.lexsort((random, stage))
    max_over_mean = np.minimum(longest, n_tasks)
    extreme = maths.normal_quantile(1.0 - 0.5 / n_tasks)
    log_max = maths.log(max_over_mean)  # = extreme · σ − σ² / 2, of which σ is the lesser root
    sigma = extreme - np.sqrt(np.maximum(extreme**2 - 2 * log_max, 0.0))
    relative = maths.exp(sigma[stage] * maths.normal_quantile((number + 0.5) / n_tasks[stage]))
    last = number == n_tasks[stage] - 1
    relative[last] = 0.0
    rest = np.bincount(stage, relative, len(n_tasks))
    relative *= np.divide(n_tasks - max_over_mean, rest, out=np.zeros(len(rest)), where=rest > 0)[
        stage
    ]
    relative[last] = max_over_mean
    task_s = np.empty(len(stage))
    task_s[order] = mean_s[stage] * np.minimum(relative, max_over_mean[stage])
    return task_s
