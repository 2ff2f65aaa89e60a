"""Scatter and gather jobs, and what is made of them (Tian et al., SoCC 2019, §4.1)."""

from __future__ import annotations

from sim import dags
from sim.describe.dataset import Dataset
from sim.describe.measure import Measure, Section
from sim.describe.numbers import mean


def shapes(data: Dataset) -> list[Measure]:
    """Share of scatter and gather jobs, and how far the others decompose into such parts."""
    section = Section("shapes")
    graphs = data.dags.at_least(3)
    scatter, gather = dags.is_scatter(graphs), dags.is_gather(graphs)
    neither = dags.is_complex(graphs)
    section.group = "jobs of more than two stages"
    section.add("jobs", "jobs", graphs.n_jobs, "count")
    section.add("scatter", "scatter: at most one parent each", mean(scatter), "share")
    section.add("gather", "gather: at most one child each", mean(gather), "share")
    section.add("both", "both", mean(scatter & gather), "share")
    section.add("neither", "neither", mean(neither), "share")
    complex_ones = graphs.take(neither)
    for k, reading in ((1, "as in the prose"), (2, "as printed")):
        parts = dags.decompose(complex_ones, k)
        section.group = f"decomposition of those that are neither, k = {k} ({reading})"
        section.add(f"overlap_{k}", "stages in both parts", mean(parts.overlap), "share")
        section.add(f"coverage_{k}", "stages in either part", mean(parts.coverage), "share")
    return section.found
