"""How alike two sets of DAGs are (Tian et al., SoCC 2019, §7.3, Figs. 11 and 12)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sim.base.arrays import F8
from sim.dags.degrees import chain_ratio, edge_density, in_degree, out_degree
from sim.dags.graphs import Graphs
from sim.dags.levels import critical_path_length
from sim.dags.width import width

PROPERTIES = (
    "critical_path_length",
    "edge_density",
    "chain_ratio",
    "maximum_parallelism",
    "in_degree",
    "out_degree",
)
"""What is compared: the first four of each DAG, the degrees of each stage."""

OF_STAGES = PROPERTIES[4:]


def properties(graphs: Graphs) -> dict[str, F8]:
    """Measure the six properties."""
    measured: tuple[NDArray[np.number], ...] = (
        critical_path_length(graphs),
        edge_density(graphs),
        chain_ratio(graphs),
        width(graphs),
        in_degree(graphs),
        out_degree(graphs),
    )
    return {name: of.astype(np.float64) for name, of in zip(PROPERTIES, measured, strict=True)}


def distance(one: ArrayLike, two: ArrayLike) -> float:
    """Return the two-sample Kolmogorov-Smirnov distance."""
    a, b = np.sort(np.asarray(one, dtype=np.float64)), np.sort(np.asarray(two, dtype=np.float64))
    at = np.concatenate([a, b])
    gap = np.searchsorted(a, at, side="right") / len(a)
    gap -= np.searchsorted(b, at, side="right") / len(b)
    return float(np.abs(gap).max())


def distances(one: dict[str, F8], two: dict[str, F8]) -> dict[str, float]:
    """Return the distance of each property of two sets of DAGs, from what `properties` gives."""
    return {name: distance(one[name], two[name]) for name in PROPERTIES}
