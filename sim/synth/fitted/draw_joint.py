"""Drawing what stages have jointly: a Gaussian copula along each DAG, or cells for lone stages.

Each stage has a latent number for each metric (duration, number of tasks, demands), standard
normal, whose rank picks the metric's value from its table. The latent numbers are the sum of the
job's own and of the stage's, which follow those of the stage's first child: most stages have one
child, so that this keeps the correlation of nearly all parents with their children, along with that
within a stage and that of any two stages of a job. Jobs differ in how much their stages vary (one
of two spreads, as likely), and a stage may take a value over from its child as it is.

What a job's stages have depends on how many they are, not only by a shift: so jobs of different
sizes have tables and a copula of their own (`BySize`). A job of one stage has no DAG to follow, and
its metrics meet as they were counted to meet.
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
    by_size: BySize, most_tasks: int | None, graphs: Graphs, seed: int
) -> dict[str, F8]:
    """Draw all metrics of all stages, given the number of their job's."""
    part = by_size.part_of(graphs.job_n_stages)
    names = list(by_size.parts[0].tables)
    drawn = {name: np.empty(graphs.n_stages) for name in names}
    draws = _draws(graphs, len(names), seed)
    for p, of in enumerate(by_size.parts):
        jobs = np.flatnonzero(part == p)
        if not len(jobs):
            continue
        stages = ranges(graphs.job_stage0[jobs], graphs.job_stage0[jobs + 1])
        tables = dict(of.tables)
        if most_tasks is not None:
            tables["n_tasks"] = tables["n_tasks"].up_to(
                max(most_tasks, tables["n_tasks"].values[0])
            )
        if of.cells is not None:
            found = draw_cells(of.cells, tables, draws[3][stages, 0], draws[3][stages])
        elif of.joint is not None:
            some = graphs.take(jobs)
            of_jobs = (draws[1][jobs], draws[2][jobs])
            found = _draw(of.joint, tables, some, (draws[0][stages], *of_jobs, draws[3][stages]))
        for name in names:
            drawn[name][stages] = found[name]
    return drawn


def draw_cells(
    cells: Cells, tables: Mapping[str, Histogram], uniform: F8, within: F8
) -> dict[str, F8]:
    """Draw a cell for each job, and each metric evenly inside its bin."""
    cum = np.cumsum(cells.counts)
    chosen = np.searchsorted(cum, (uniform * cum[-1]).astype(np.int64), side="right")
    drawn = {}
    for m, (name, edges) in enumerate(cells.edges.items()):
        place = cells.places[m, chosen]
        # the first metric's uniform has chosen the cell; what is below its digits is still free
        at = within[:, m] if m else (uniform * cum[-1]) % 1.0
        rank = edges[place] + at * (edges[place + 1] - edges[place])
        drawn[name] = tables[name].draw(np.minimum(rank, np.nextafter(1.0, 0.0)))
    return drawn


def draw_jointly(
    joint: Joint, tables: Mapping[str, Histogram], graphs: Graphs, seed: int
) -> dict[str, F8]:
    """Draw all metrics of all stages."""
    return _draw(joint, tables, graphs, _draws(graphs, len(joint.ranks), seed))


def _draws(graphs: Graphs, n: int, seed: int) -> Draws:
    """Draw what a copula of `n` metrics is made of: of stages, of jobs, of jobs, of stages."""
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
    chance.take_over(
        graphs.order, graphs.edge0, graphs.edge_child, draws[3], joint.taken_over, values
    )
    return {name: values[:, m].copy() for m, name in enumerate(joint.ranks)}


def _latent_uniform(joint: Joint, graphs: Graphs, draws: Draws) -> F8:
    """Make the latent numbers of all stages, (G, M), as uniforms in their distribution."""
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
    of_job = (joint.job**2).sum(axis=1)
    of_stage = (joint.root**2).sum(axis=1)
    uniform = sum(
        0.5 * maths.normal_cdf(latent / np.sqrt(of_job + of_stage * (1.0 + sign * joint.unequal)))
        for sign in (1.0, -1.0)
    )
    drawn: F8 = np.minimum(uniform, np.nextafter(1.0, 0.0))
    return drawn


def _stream(seed: int, purpose: str) -> Stream:
    return stream(seed, "synth", "alibaba2018", "joint", purpose)


def longest_over_mean(task_s: F8, task0: I8) -> F8:
    """Return each stage's longest task over their mean, at least 1; 1 where all are 0 s."""
    total = np.add.reduceat(task_s, task0[:-1])
    longest = np.maximum.reduceat(task_s, task0[:-1])
    mean = total / np.diff(task0)
    return np.maximum(np.where(mean > 0, longest / np.where(mean > 0, mean, 1.0), 1.0), 1.0)


def spread_tasks(mean_s: F8, longest: F8, n_tasks: I8, seed: int) -> F8:
    """Draw the durations of each stage's tasks, (T,), of a given mean and longest.

    The others are spread as the quantiles of a lognormal distribution that has such a longest
    among as many, and are scaled to the mean; the tasks come in random order.
    """
    n_tasks = n_tasks.astype(np.int64)
    task0 = np.concatenate([[0], np.cumsum(n_tasks)])
    stage = np.repeat(np.arange(len(n_tasks)), n_tasks)
    number = np.arange(task0[-1]) - task0[:-1][stage]  # of each task among its stage's
    random = _stream(seed, "order of tasks").random(len(stage))
    order = np.lexsort((random, stage))
    most = np.minimum(longest, n_tasks)
    extreme = maths.normal_quantile(1.0 - 0.5 / n_tasks)
    wanted = maths.log(most)  # = extreme · σ − σ² / 2, of which σ is the lesser root
    sigma = extreme - np.sqrt(np.maximum(extreme**2 - 2 * wanted, 0.0))
    part = maths.exp(sigma[stage] * maths.normal_quantile((number + 0.5) / n_tasks[stage]))
    last = number == n_tasks[stage] - 1
    part[last] = 0.0
    rest = np.bincount(stage, part, len(n_tasks))
    part *= np.divide(n_tasks - most, rest, out=np.zeros(len(rest)), where=rest > 0)[stage]
    part[last] = most
    task_s = np.empty(len(stage))
    task_s[order] = mean_s[stage] * np.minimum(part, most[stage])
    return task_s
