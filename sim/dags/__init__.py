"""Structural analysis of DAGs (Tian et al., SoCC 2019, §4, §6.1, §7.1): functions of `Graphs`."""

from sim.dags.graphs import Graphs
from sim.dags.levels import (
    compact_levels,
    critical_path_length,
    edge_spans,
    level_counts,
    longest_path_levels,
    path_lengths,
)
from sim.dags.patterns import classes, decompose, is_complex, is_gather, is_scatter
from sim.dags.properties import (
    ccdf,
    chain_ratio,
    edge_density,
    mean_by_size,
    width,
)
from sim.dags.random_dags import uniform_dags

__all__ = [
    "Graphs",
    "ccdf",
    "chain_ratio",
    "classes",
    "compact_levels",
    "critical_path_length",
    "decompose",
    "edge_density",
    "edge_spans",
    "is_complex",
    "is_gather",
    "is_scatter",
    "level_counts",
    "longest_path_levels",
    "mean_by_size",
    "path_lengths",
    "uniform_dags",
    "width",
]
