"""Density, chains, degrees, parallelism and critical paths (Tian et al., SoCC 2019, §4.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sim import dags
from sim.base.arrays import F8, I8
from sim.dags.graphs import Graphs
from sim.describe.measure import Measure, Section
from sim.describe.numbers import deviation, largest, mean, quantile, slope

PERCENTILES = (1, 25, 50, 75, 99)
"""Those of Fig. 5's boxes."""


@dataclass(frozen=True, eq=False)
class Shape:
    """What §4.2 measures of each of J DAGs, (J,) each."""

    n_stages: I8
    density: F8
    chain_ratio: F8
    width: F8
    length: F8


def shape(graphs: Graphs) -> Shape:
    """Measure every DAG, exactly."""
    return Shape(
        graphs.job_n_stages,
        dags.edge_density(graphs),
        dags.chain_ratio(graphs),
        dags.width(graphs).astype(np.float64),
        dags.critical_path_length(graphs).astype(np.float64),
    )


def structure(graphs: Graphs, of: Shape) -> list[Measure]:
    """Summarise density, chains, degrees, parallelism and critical paths."""
    section = Section("structure")
    section.group = "jobs"
    section.add("jobs", "of six and more stages", graphs.n_jobs, "count")
    for key, words, per_job in (
        ("density", "edge density", of.density),
        ("chain_ratio", "chain ratio", of.chain_ratio),
    ):
        section.group = words
        for p in PERCENTILES:
            section.add(f"{key}_p{p:02}", f"percentile {p}", quantile(per_job, p / 100))
    for key, words, degree in (
        ("in_degree", "parents of a stage", dags.in_degree(graphs)),
        ("out_degree", "children of a stage", dags.out_degree(graphs)),
    ):
        section.group = words
        section.add(f"{key}_mean", "mean", mean(degree))
        section.add(f"{key}_at_most_3", "at most 3", mean(degree <= 3), "share")
        section.add(f"{key}_at_most_9", "at most 9", mean(degree <= 9), "share")
        section.add(f"{key}_max", "most", largest(degree), "count")
    for key, words, per_job in (
        ("width", "maximum parallelism, stages", of.width),
        ("length", "critical path length, stages", of.length),
    ):
        size, per_size, _ = dags.mean_by_size(of.n_stages, per_job)
        section.group = words
        section.add(f"{key}_mean", "mean over jobs", mean(per_job))
        section.add(f"{key}_sd", "standard deviation over jobs", deviation(per_job))
        section.add(f"{key}_size_mean", "mean over sizes' means", mean(per_size))
        section.add(f"{key}_size_sd", "standard deviation over those", deviation(per_size))
        section.add(f"{key}_slope", "slope over sizes' means", slope(size, per_size))
        section.add(f"{key}_job_slope", "slope over jobs", slope(of.n_stages, per_job))
    return section.found


def quantiles(of: Shape) -> pa.Table:
    """Return percentiles of density and chain ratio (Fig. 5): measure, percentile, value."""
    parts = {"edge density": of.density, "chain ratio": of.chain_ratio}
    return pa.table(
        {
            "measure": np.repeat(list(parts), len(PERCENTILES)).tolist(),
            "percentile": list(PERCENTILES) * len(parts),
            "value": np.concatenate(
                [
                    np.percentile(v, PERCENTILES) if len(v) else np.full(len(PERCENTILES), np.nan)
                    for v in parts.values()
                ]
            ),
        }
    )


def degrees(graphs: Graphs) -> pa.Table:
    """Return how many stages have how many parents and children (Fig. 4)."""
    parts = []
    for direction, degree in (("in", graphs.n_parents), ("out", graphs.n_children)):
        n = np.bincount(degree, minlength=1)
        above = n[::-1].cumsum()[::-1] / max(len(degree), 1)
        parts.append(
            pa.table(
                {
                    "direction": [direction] * len(n),
                    "degree": np.arange(len(n)),
                    "n": n,
                    "at_least": above,
                }
            )
        )
    return pa.concat_tables(parts)


def by_size(of: Shape) -> pa.Table:
    """Return means over the jobs of each number of stages (Fig. 6)."""
    size, width, n = dags.mean_by_size(of.n_stages, of.width)
    length = dags.mean_by_size(of.n_stages, of.length)[1]
    return pa.table({"n_stages": size, "n_jobs": n, "width": width, "length": length})
