"""Attributes of stages drawn jointly: a Gaussian copula over the tables, along each DAG.

Each stage has a latent number for each metric (duration, number of tasks, demands), standard
normal, whose rank picks the metric's value from its table. The latent numbers are the sum of the
job's own and of the stage's, which follow those of the stage's first child: most stages have one
child, so that this keeps the correlation of nearly all parents with their children, along with
that within a stage and that of any two stages of a job. Jobs differ in how much their stages vary
(one of two spreads, as likely), and a stage may take a value over from its child as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.random import stream
from sim.dags import Graphs
from sim.synth.alibaba2018.histograms import Histogram

ROLES = 3
"""Stages without parents, with one, with several: they differ in tasks and demands."""


@dataclass(frozen=True)
class Ranks:
    """How the ranks of one metric's values spread, in each role."""

    edges: F8  # ranks, from 0 to 1, at which bins of values begin and end
    counts: I8  # stages in each bin; R is 1 if roles are not told apart, else `ROLES`

    def rank(self, uniform: F8, role: I8) -> F8:
        """Map uniform numbers within each role to ranks among all stages."""
        out = np.empty(len(uniform))
        for r, counts in enumerate(self.counts):
            cum = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])
            here = role == r if len(self.counts) > 1 else slice(None)
            out[here] = np.interp(uniform[here], cum, self.edges)
        return out


@dataclass(frozen=True)
class Joint:
    """What attributes have to do with each other; M metrics."""

    ranks: dict[str, Ranks]  # by metric: ``duration_s``, ``n_tasks``, ``demand <resource>``
    # the latent numbers that all stages of a job share are ``job @ e``, with e independent
    # standard normal numbers; for the others see `sim.synth.alibaba2018.kernels.joint.follow`
    job: F8
    root: F8
    pull: F8
    noise: F8
    taken_over: F8  # chance that a stage takes the value over from its first child
    # in half of the jobs the variance of what stages do not share is 1 + this times the average,
    # in the others 1 − this
    unequal: float
    # JSON-able: where the numbers come from
    provenance: dict[str, Any] = field(default_factory=dict)


def draw_jointly(
    joint: Joint, tables: dict[str, Histogram], graphs: Graphs, seed: int
) -> dict[str, F8]:
    """Draw all metrics of all stages."""
    from sim.synth.alibaba2018.kernels import joint as kernel

    uniform = latent_uniform(joint, graphs, seed)
    role = np.minimum(graphs.n_parents, ROLES - 1)
    values = np.empty_like(uniform)
    for m, (name, ranks) in enumerate(joint.ranks.items()):
        values[:, m] = tables[name].draw(ranks.rank(uniform[:, m], role))
    kernel.take_over(
        graphs.order,
        graphs.edge0,
        graphs.edge_child,
        _stream(seed, "taken over").random(values.shape),
        joint.taken_over,
        values,
    )
    return {name: values[:, m].copy() for m, name in enumerate(joint.ranks)}


def latent_uniform(joint: Joint, graphs: Graphs, seed: int) -> F8:
    """Draw the latent numbers of all stages, (G, M), as uniforms in their distribution."""
    from scipy.special import ndtr

    from sim.synth.alibaba2018.kernels import joint as kernel

    n = len(joint.ranks)
    latent = _stream(seed, "stage").standard_normal((graphs.n_stages, n))
    kernel.follow(
        graphs.order, graphs.edge0, graphs.edge_child, joint.root, joint.pull, joint.noise, latent
    )
    shared = _stream(seed, "job").standard_normal((graphs.n_jobs, n)) @ joint.job.T
    wide = _stream(seed, "unequal").random(graphs.n_jobs) < 0.5
    variance = 1.0 + joint.unequal * np.where(wide, 1.0, -1.0)
    latent *= np.repeat(np.sqrt(variance), graphs.job_n_stages)[:, None]
    latent += np.repeat(shared, graphs.job_n_stages, axis=0)
    of_job = (joint.job**2).sum(axis=1)
    of_stage = (joint.root**2).sum(axis=1)
    uniform = sum(
        0.5 * ndtr(latent / np.sqrt(of_job + of_stage * (1.0 + sign * joint.unequal)))
        for sign in (1.0, -1.0)
    )
    drawn: F8 = np.minimum(uniform, np.nextafter(1.0, 0.0))
    return drawn


def _stream(seed: int, purpose: str) -> np.random.Generator:
    return stream(seed, "synth", "alibaba2018", "joint", purpose)
