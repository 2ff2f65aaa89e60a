"""Levels of stages and what edges span (Tian et al., SoCC 2019, §7.1)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sim import dags
from sim.base.arrays import I4
from sim.dags.graphs import Graphs
from sim.describe.dataset import Dataset
from sim.describe.measure import Measure, Section
from sim.describe.numbers import mean


def levels(data: Dataset) -> tuple[list[Measure], pa.Table]:
    """Share of edges between adjacent levels, and `level_table` of all whole jobs."""
    section = Section("levels")
    level = dags.compact_levels(data.dags)
    _spans(section, "", "all jobs", data.dags, level)
    large = data.large
    _spans(section, "large_", "jobs of six and more stages", large, dags.compact_levels(large))
    return section.found, level_table(data.dags, level)


def level_table(graphs: Graphs, level: I4) -> pa.Table:
    """Return how stages are spread over the levels (Fig. 10)."""
    counts = dags.level_counts(graphs, level)
    n_jobs = np.bincount(dags.path_lengths(graphs, level), minlength=len(counts))
    length, at = np.nonzero(np.tri(len(counts), dtype=bool) & (n_jobs > 0)[:, None])
    length, at = length[at > 0], at[at > 0]
    n = counts[length, at]
    return pa.table(
        {
            "length": length,
            "n_jobs": n_jobs[length],
            "level": at,
            "n": n,
            "share": n / counts.sum(axis=1)[length],
        }
    )


def _spans(section: Section, prefix: str, words: str, graphs: Graphs, level: I4) -> None:
    spans = dags.edge_spans(graphs, level)
    section.group = words
    section.add(f"{prefix}edges", "edges", graphs.n_edges, "count")
    section.add(f"{prefix}one_level", "span one level", mean(spans == 1), "share")
    section.add(f"{prefix}mean_span", "levels spanned, mean", mean(spans))
