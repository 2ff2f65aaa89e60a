"""Quality of synthesized dependencies beside real ones (SoCC 2019, §7.3)."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.dags.properties import distance
from sweep.papers.figures import Findings, column, grouped, jct_s, mean, paired, printed, together
from sweep.papers.studies.ranks import pairs_kept, taus
from sweep.report.findings import Finding, FinishedSweep

REAL, REWIRED = "alibaba_hour", "alibaba_hour_rewired"
PROPERTIES = (
    *("critical_path_length", "edge_density", "chain_ratio"),
    *("maximum_parallelism", "in_degree", "out_degree"),
)


def static(finished: FinishedSweep) -> Findings:
    """Give the distance of each property of DAGs by generator, and of the default to the ideal."""
    generators = grouped(finished.cells, "evaluator.generator")
    for generator, cells in generators.items():
        for name in PROPERTIES:
            figure, what = f"KS distance, {generator}", name.replace("_", " ")
            paper = printed("alibaba", "distances", generator, name)
            wanted = {"at_most": 0.065} if generator == "improved" else {}
            yield from mean(figure, what, column(cells, f"ks_{name}"), paper=paper, **wanted)
    for name in PROPERTIES:
        more = paired(generators, ("improved", "ideal"), f"ks_{name}", operator.sub)
        yield from mean("improved less ideal", name.replace("_", " "), more, at_most=0.02)


def dynamic(finished: FinishedSweep) -> Findings:
    """Compare completion times, cell by cell (Fig. 13)."""
    for (policy, capacity), cells in finished.group_by("policy", "capacity").items():
        off, ratio = [], []
        for real, other in _pairs(cells):
            off.append(distance(_ended(finished.table(real)), _ended(finished.table(other))))
            ratio.append(other["jct_mean_s"] / real["jct_mean_s"])
        where = f"{policy}, capacity {capacity:g}"
        what = f"mean JCT, synthesized over real, {where}"
        yield Finding.from_seeds("Fig. 13", f"KS distance of the JCTs, {where}", off, at_most=0.05)
        yield Finding.from_seeds("Fig. 13", what, ratio, at_least=0.95, at_most=1.05)


@together
def ranking(finished: FinishedSweep) -> Findings:
    """Give Kendall's tau of mean JCTs at each capacity, and how clear differences are kept.

    Tau-b counts pairs of policies that are within a hair of each other as much as any. So the
    share of pairs that keep their order is given too, of those that differ on the real jobs: the
    95 % interval of their difference, paired over seeds, leaves 0 out.
    """
    for (capacity,), cells in finished.group_by("capacity").items():
        names = sorted({row["policy"] for row in cells})
        seeds = sorted({row["seed"] for row in cells})
        jct = np.full((2, len(names), len(seeds)), np.nan)
        for both in _pairs(cells):
            for kind, row in enumerate(both):
                jct[kind, names.index(row["policy"]), seeds.index(row["seed"])] = row["jct_mean_s"]
        where = f"{len(names)} policies, capacity {capacity:g}"
        yield Finding.from_seeds("Kendall's tau of mean JCT", where, taus(jct[0], jct[1]))
        yield pairs_kept(jct[0], jct[1], where)


def _pairs(cells: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Match the cells of the two traces by policy, capacity and seed: (real, synthesized)."""
    key = ("policy", "capacity", "seed")
    others = {tuple(row[k] for k in key): row for row in cells if row["trace"] == REWIRED}
    real = [row for row in cells if row["trace"] == REAL]
    return [(row, others[where]) for row in real if (where := tuple(row[k] for k in key)) in others]


def _ended(jobs: pa.Table) -> F8:
    jct = jct_s(jobs)
    return jct[~np.isnan(jct)]
