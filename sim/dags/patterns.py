"""Scatter and gather: jobs that are trees, and parts of jobs (Tian et al., SoCC 2019, §4.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.base.errors import InputError
from sim.dags.graphs import Graphs


def is_scatter(graphs: Graphs) -> Mask:
    """Tell which jobs have more than two stages, each with at most one parent, (J,) bool."""
    return (graphs.job_n_stages > 2) & (_most(graphs, graphs.n_parents) <= 1)


def is_gather(graphs: Graphs) -> Mask:
    """Tell which jobs have more than two stages, each with at most one child, (J,) bool.

    A chain is both a scatter and a gather job, as is a job without edges.
    """
    return (graphs.job_n_stages > 2) & (_most(graphs, graphs.n_children) <= 1)


def is_complex(graphs: Graphs) -> Mask:
    """Tell which jobs have more than two stages and are neither scatter nor gather, (J,) bool."""
    return (graphs.job_n_stages > 2) & ~is_scatter(graphs) & ~is_gather(graphs)


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The scatter and the gather component of each of J jobs with G stages in all."""

    scatter: Mask  # whether a stage is in its job's scatter and gather component
    gather: Mask
    overlap: F8  # share of the job's stages that are in both
    coverage: F8  # share of the job's stages that are in one or both


def decompose(graphs: Graphs, k: int = 1) -> Decomposition:
    """Find the scatter and gather components of jobs (Algorithm 1).

    The scatter component is what is left when stages of more than `k` parents are pruned, then
    those that stand alone, until there are none; the gather component likewise with children.
    Stages are pruned one by one in the order of their rows (the paper's footnote 4).

    The paper says `k` = 1 in its prose and prints 2. Its printed second rule, which prunes what
    has no parent and less than two children, would eat every chain from its head; but chains are
    scatter and gather jobs by the paper's own words. So a head of a chain stays here, as it does
    if the printed 2 is off by one in that rule as well.

    Parameters
    ----------
    graphs : Graphs
        Usually of the jobs that are neither pattern as a whole, ``g.take(is_complex(g))``.
    k : int
        At least 1.

    Raises
    ------
    InputError
        If `k` is less than 1.
    """
    if k < 1:
        raise InputError(f"k is the most parents a stage may keep, at least 1, not {k}")
    scatter = _scatter(graphs, k)
    gather = _scatter(graphs.reversed, k)
    return Decomposition(
        scatter, gather, _share(graphs, scatter & gather), _share(graphs, scatter | gather)
    )


def _scatter(graphs: Graphs, k: int) -> Mask:
    from sim.dags.kernels import decompose as kernel

    kept = np.empty(graphs.n_stages, dtype=np.bool_)
    back = graphs.reversed
    kernel.find_scatter(
        graphs.job_stage0, graphs.edge0, graphs.edge_child, back.edge0, back.edge_child, k, kept
    )
    return kept


def _most(graphs: Graphs, degree: I8) -> I8:
    if not graphs.n_jobs:
        return np.zeros(0, dtype=np.int64)
    most: I8 = np.maximum.reduceat(degree, graphs.job_stage0[:-1])
    return most


def _share(graphs: Graphs, chosen: Mask) -> F8:
    if not graphs.n_jobs:
        return np.zeros(0)
    counts = np.add.reduceat(chosen.astype(np.int64), graphs.job_stage0[:-1])
    share: F8 = counts / graphs.job_n_stages
    return share
