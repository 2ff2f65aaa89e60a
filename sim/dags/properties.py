"""Properties of DAGs (Tian et al., SoCC 2019, §4.2), and distances between two sets (§7.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import F8, I8
from sim.dags.graphs import Graphs
from sim.dags.levels import critical_path_length, longest_path_levels

PROPERTIES = (
    "critical_path_length",
    "edge_density",
    "chain_ratio",
    "maximum_parallelism",
    "in_degree",
    "out_degree",
)
"""Properties that are compared: the first four of each DAG, the degrees of each stage."""


def ccdf(values: NDArray[np.number]) -> tuple[F8, F8]:
    """Return the distinct values, ascending, and the share *above* each."""
    x, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    return x, 1.0 - np.cumsum(counts) / counts.sum()


def edge_density(graphs: Graphs) -> F8:
    """Divide each job's edges by the maximum number, 2E / (V (V − 1)); NaN for one stage."""
    n = graphs.job_n_stages
    max_edges = n * (n - 1) / 2
    density: F8 = np.full(len(n), np.nan)
    np.divide(graphs.job_n_edges, max_edges, out=density, where=max_edges > 0)
    return density


def chain_ratio(graphs: Graphs) -> F8:
    """Return the share of each job's stages with exactly one parent and one child, (J,) float64."""
    chained = ((graphs.n_parents == 1) & (graphs.n_children == 1)).astype(np.int64)
    if not graphs.n_jobs:
        return np.zeros(0)
    return np.add.reduceat(chained, graphs.job_stage0[:-1]) / graphs.job_n_stages


def width(graphs: Graphs) -> I8:
    """Compute the maximum number of stages of each job that can run at one time, (J,) int64.

    That is the exact width of the partial order of the edges: the largest set of stages without a
    path between any two. The widest level is a lower bound of it, often too low. Takes up to n² / 8
    bytes for a job of n stages; InputError if its edges form a cycle.
    """
    from sim.dags.kernels import levels as kernel

    widths = np.empty(graphs.n_jobs, dtype=np.int64)
    levels = longest_path_levels(graphs)
    kernel.widths(
        graphs.job_stage0,
        graphs.order,
        graphs.edge0,
        graphs.edge_child,
        graphs.n_parents,
        levels,
        widths,
    )
    return widths


def mean_by_size(n_stages: NDArray[np.integer], values: ArrayLike) -> tuple[I8, F8, I8]:
    """Average values over the jobs of each number of stages: sizes, means, numbers of jobs."""
    sizes, index, counts = np.unique(n_stages, return_inverse=True, return_counts=True)
    total = np.bincount(index, weights=np.asarray(values, dtype=np.float64))
    return sizes.astype(np.int64), total / counts, counts.astype(np.int64)


def properties(graphs: Graphs) -> dict[str, F8]:
    """Compute the six properties."""
    columns: tuple[NDArray[np.number], ...] = (
        critical_path_length(graphs),
        edge_density(graphs),
        chain_ratio(graphs),
        width(graphs),
        graphs.n_parents,
        graphs.n_children,
    )
    return {name: x.astype(np.float64) for name, x in zip(PROPERTIES, columns, strict=True)}


def distance(a: ArrayLike, b: ArrayLike) -> float:
    """Return the two-sample Kolmogorov-Smirnov distance."""
    a, b = np.sort(np.asarray(a, dtype=np.float64)), np.sort(np.asarray(b, dtype=np.float64))
    x = np.concatenate([a, b])
    gap = np.searchsorted(a, x, side="right") / len(a)
    gap -= np.searchsorted(b, x, side="right") / len(b)
    return float(np.abs(gap).max())


def distances(a: dict[str, F8], b: dict[str, F8]) -> dict[str, float]:
    """Return the distance of each of the `properties` of two sets of DAGs."""
    return {name: distance(a[name], b[name]) for name in PROPERTIES}
