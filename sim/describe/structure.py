"""Shape of DAGs: scatter and gather (§4.1), structure (§4.2) and levels (§7.1).

§ are of Tian et al., SoCC 2019.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sim import dags
from sim.base.arrays import F8, I4, I8
from sim.dags.graphs import Graphs
from sim.describe.dataset import Dataset
from sim.describe.statistics import Section, Statistic, deviation, largest, mean, quantile, slope

PERCENTILES = (1, 25, 50, 75, 99)
"""Percentiles of the boxes in Fig. 5."""


@dataclass(frozen=True, eq=False)
class Shape:
    """Properties of J DAGs in §4.2, (J,) each."""

    n_stages: I8
    density: F8
    chain_ratio: F8
    width: F8
    length: F8


def measure_shape(graphs: Graphs) -> Shape:
    """Compute the properties of every DAG exactly."""
    return Shape(
        graphs.job_n_stages, dags.edge_density(graphs), dags.chain_ratio(graphs),
        dags.width(graphs).astype(np.float64), dags.critical_path_length(graphs).astype(np.float64),
    )  # fmt: skip


def structure(graphs: Graphs, shape: Shape) -> list[Statistic]:
    """Summarise density, chains, degrees, parallelism and critical paths."""
    section = Section("structure")
    section.group = "jobs"
    section.add("jobs", "of six or more stages", graphs.n_jobs, "count")
    for key, words, per_job in (
        ("density", "edge density", shape.density),
        ("chain_ratio", "chain ratio", shape.chain_ratio),
    ):
        section.group = words
        for p in PERCENTILES:
            section.add(f"{key}_p{p:02}", f"percentile {p}", quantile(per_job, p / 100))
    for key, words, degree in (
        ("in_degree", "parents of a stage", graphs.n_parents),
        ("out_degree", "children of a stage", graphs.n_children),
    ):
        section.group = words
        section.add(f"{key}_mean", "mean", mean(degree))
        section.share(f"{key}_at_most_3", "at most 3", degree <= 3)
        section.share(f"{key}_at_most_9", "at most 9", degree <= 9)
        section.add(f"{key}_max", "maximum", largest(degree), "count")
    for key, words, per_job in (
        ("width", "maximum parallelism, stages", shape.width),
        ("length", "critical path length, stages", shape.length),
    ):
        size, per_size, _ = dags.mean_by_size(shape.n_stages, per_job)
        section.group = words
        section.add(f"{key}_mean", "mean over jobs", mean(per_job))
        section.add(f"{key}_sd", "standard deviation over jobs", deviation(per_job))
        section.add(f"{key}_size_mean", "mean over the means by job size", mean(per_size))
        section.add(
            f"{key}_size_sd", "standard deviation over the means by job size", deviation(per_size)
        )
        section.add(f"{key}_slope", "slope of the means by job size", slope(size, per_size))
        section.add(f"{key}_job_slope", "slope over all jobs", slope(shape.n_stages, per_job))
    return section.statistics


def quantiles(shape: Shape) -> pa.Table:
    """Return percentiles of density and chain ratio (Fig. 5): measure, percentile, value."""
    parts = {"edge density": shape.density, "chain ratio": shape.chain_ratio}
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
    """Build the distributions of numbers of parents and children (Fig. 4)."""
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


def by_size(shape: Shape) -> pa.Table:
    """Build the means over the jobs of each number of stages (Fig. 6)."""
    size, width, n = dags.mean_by_size(shape.n_stages, shape.width)
    length = dags.mean_by_size(shape.n_stages, shape.length)[1]
    return pa.table({"n_stages": size, "n_jobs": n, "width": width, "length": length})


READINGS = (
    ("", 2, 2, "as printed"),
    ("_prose", 1, 2, "second reading: no stage of two parents"),
    ("_isolated", 2, 1, "second reading: heads of chains stay"),
    ("_both", 1, 1, "second reading: both"),
)
"""Readings of Algorithm 1: key, `max_parents` and `min_children` of `decompose`, words."""


def shapes(data: Dataset) -> list[Statistic]:
    """Compute shares of scatter and gather jobs, and decompose the others into such parts."""
    section = Section("shapes")
    graphs = data.dags.at_least(3)
    scatter, gather = dags.is_scatter(graphs), dags.is_gather(graphs)
    neither = dags.is_complex(graphs)
    section.group = "jobs of more than two stages"
    section.add("jobs", "jobs", graphs.n_jobs, "count")
    section.share("scatter", "scatter: each stage has at most one parent", scatter)
    section.share("gather", "gather: each stage has at most one child", gather)
    section.share("both", "both", scatter & gather)
    section.share("neither", "neither", neither)
    complex_jobs = graphs.take(neither)
    for key, max_parents, min_children, reading in READINGS:
        parts = dags.decompose(complex_jobs, max_parents, min_children)
        section.group = f"decomposition of jobs that are neither, {reading}"
        section.share(f"overlap{key}", "stages in both parts", parts.overlap)
        section.share(f"coverage{key}", "stages in either part", parts.coverage)
    return section.statistics


def levels(data: Dataset) -> tuple[list[Statistic], pa.Table]:
    """Compute the share of edges between adjacent levels, and `level_table` of all whole jobs."""
    section = Section("levels")
    level = dags.compact_levels(data.dags)
    _spans(section, "", "all jobs", data.dags, level)
    large = data.large
    _spans(section, "large_", "jobs of six or more stages", large, dags.compact_levels(large))
    return section.statistics, level_table(data.dags, level)


def level_table(graphs: Graphs, level: I4) -> pa.Table:
    """Build the distribution of stages over levels, by path length (Fig. 10)."""
    counts = dags.level_counts(graphs, level)
    n_jobs = np.bincount(dags.path_lengths(graphs, level), minlength=len(counts))
    length, level_ = np.nonzero(np.tri(len(counts), dtype=bool) & (n_jobs > 0)[:, None])
    length, level_ = length[level_ > 0], level_[level_ > 0]
    n = counts[length, level_]
    return pa.table(
        {
            "length": length,
            "n_jobs": n_jobs[length],
            "level": level_,
            "n": n,
            "share": n / counts.sum(axis=1)[length],
        }
    )


def _spans(section: Section, prefix: str, words: str, graphs: Graphs, level: I4) -> None:
    spans = dags.edge_spans(graphs, level)
    section.group = words
    section.add(f"{prefix}edges", "edges", graphs.n_edges, "count")
    section.share(f"{prefix}one_level", "span one level", spans == 1)
    section.add(f"{prefix}mean_span", "levels spanned, mean", mean(spans))
