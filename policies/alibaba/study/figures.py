"""Quality of synthesized dependencies, compared with real ones (SoCC 2019, §7.3)."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.dags.properties import distance
from sweep.questions.papers.figures import (
    Findings,
    column,
    compare_seeds,
    grouped,
    jct_s,
    mean,
    published,
    sort_by_figure,
)
from sweep.questions.papers.studies.ranks import order_kept, taus
from sweep.report.findings import Finding, FinishedSweep

REAL = "alibaba_hour"
VARIANTS = {"alibaba_hour_printed": "Algorithm 2 as printed", "alibaba_hour_rewired": "improved"}
"""Traces with synthesized dependencies, and the variant of the generator."""
RANKED = "alibaba_hour_rewired"
"""The trace whose ranks of policies are compared."""
PROPERTIES = (
    *("critical_path_length", "edge_density", "chain_ratio"),
    *("maximum_parallelism", "in_degree", "out_degree"),
)


def static(finished: FinishedSweep) -> Findings:
    """Compute the distance of each property of DAGs by generator, and its excess over the ideal."""
    generators = grouped(finished.cells, "evaluator.generator")
    for generator, cells in generators.items():
        for name in PROPERTIES:
            figure, label = f"KS distance, {generator}", name.replace("_", " ")
            paper = published("alibaba", "distances", generator, name)
            expected = {"at_most": 0.065} if generator == "improved" else {}
            yield from mean(figure, label, column(cells, f"ks_{name}"), paper=paper, **expected)
    for name in PROPERTIES:
        excess = compare_seeds(generators, ("improved", "ideal"), f"ks_{name}", operator.sub)
        yield from mean("improved less ideal", name.replace("_", " "), excess, at_most=0.02)


def dynamic(finished: FinishedSweep) -> Findings:
    """Compare completion times, cell by cell (Fig. 13)."""
    for trace, variant in VARIANTS.items():
        for (policy, capacity), cells in finished.group_by("policy", "capacity").items():
            distances, ratios = [], []
            for real, other in _pairs(cells, trace):
                jcts = (_finite_jct_s(finished.table(row)) for row in (real, other))
                distances.append(distance(*jcts))
                ratios.append(other["jct_mean_s"] / real["jct_mean_s"])
            figure, group = f"Fig. 13, {variant}", f"{policy}, capacity {capacity:g}"
            label = f"KS distance of the JCTs, {group}"
            yield from mean(figure, label, distances, at_most=0.05)
            label = f"mean JCT, synthesized over real, {group}"
            yield from mean(figure, label, ratios, at_least=0.95, at_most=1.05)


@sort_by_figure
def ranking(finished: FinishedSweep) -> Findings:
    """Compute Kendall's tau of mean JCTs by capacity, and the share of clear pairs in order.

    Tau-b gives nearly equal pairs of policies the same weight as any other. So the share of pairs
    that keep their order is given too, of those that clearly differ on the real jobs: the 95 %
    interval of their difference, paired over seeds, excludes 0.
    """
    for (capacity,), cells in finished.group_by("capacity").items():
        names = sorted({row["policy"] for row in cells})
        seeds = sorted({row["seed"] for row in cells})
        jct = np.full((2, len(names), len(seeds)), np.nan)
        for pair in _pairs(cells, RANKED):
            for kind, row in enumerate(pair):
                jct[kind, names.index(row["policy"]), seeds.index(row["seed"])] = row["jct_mean_s"]
        group = f"{len(names)} policies, capacity {capacity:g}"
        yield Finding.from_seeds("Kendall's tau of mean JCT", group, taus(jct[0], jct[1]))
        yield order_kept(jct[0], jct[1], group)


def _pairs(cells: list[dict[str, Any]], trace: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Match the cells of the two traces by policy, capacity and seed: (real, synthesized)."""
    key = ("policy", "capacity", "seed")
    rewired = {tuple(row[n] for n in key): row for row in cells if row["trace"] == trace}
    real = [row for row in cells if row["trace"] == REAL]
    return [(row, rewired[k]) for row in real if (k := tuple(row[n] for n in key)) in rewired]


def _finite_jct_s(jobs: pa.Table) -> F8:
    jct = jct_s(jobs)
    return jct[~np.isnan(jct)]
