"""Degrees, density and chains of DAGs (Tian et al., SoCC 2019, §4.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I8
from sim.dags.graphs import Graphs

LOG_OFFSET = 0.0001
"""What Fig. 4 adds to a CCDF so that its zero shows on a logarithmic axis."""


def in_degree(graphs: Graphs) -> I8:
    """Count the parents of each stage, (G,) int64."""
    return graphs.n_parents


def out_degree(graphs: Graphs) -> I8:
    """Count the children of each stage, (G,) int64."""
    return graphs.n_children


def ccdf(values: NDArray[np.number]) -> tuple[F8, F8]:
    """Return the complementary cumulative distribution of some values: what is *above* each.

    Parameters
    ----------
    values : (N,) number
        At least one.

    Returns
    -------
    x : (K,) float64
        The distinct values, ascending.
    share : (K,) float64
        The share of the values that are larger; 0 for the last. Fig. 4 draws it with
        `LOG_OFFSET` added.
    """
    x, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    return x, 1.0 - np.cumsum(counts) / counts.sum()


def edge_density(graphs: Graphs) -> F8:
    """Divide each job's edges by the most it could have, 2E / (V (V − 1)).

    Returns
    -------
    (J,) float64
        From 0 to 1; NaN for a job of one stage, which can have none.
    """
    n = graphs.job_n_stages
    most = n * (n - 1) / 2
    density: F8 = np.full(len(n), np.nan)
    np.divide(graphs.job_n_edges, most, out=density, where=most > 0)
    return density


def chain_ratio(graphs: Graphs) -> F8:
    """Return the share of each job's stages that have exactly one parent and one child.

    Returns
    -------
    (J,) float64
        C / V, from 0 to below 1: the two ends of a chain are not counted, unless they have one
        parent and one child as well.
    """
    chained = ((graphs.n_parents == 1) & (graphs.n_children == 1)).astype(np.int64)
    if not graphs.n_jobs:
        return np.zeros(0)
    ratio: F8 = np.add.reduceat(chained, graphs.job_stage0[:-1]) / graphs.job_n_stages
    return ratio
