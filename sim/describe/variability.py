"""Runtime variability among dependent stages (Tian et al., SoCC 2019, §5, Fig. 7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sim.base import maths
from sim.base.arrays import F8, I8, offsets
from sim.dags.graphs import Graphs
from sim.describe.dataset import Dataset
from sim.describe.statistics import Section, Statistic, largest, quantile
from sim.workload.schema import DEMAND_PREFIX, USED_PREFIX

SET_SIZE = 3
"""Minimum number of stages in a dependent set."""
NEAR = 1.05
"""Maximum ratio of two values that are within 5 %."""
POINTS = 201
"""Number of quantiles that tables of distributions hold."""


@dataclass(frozen=True, eq=False)
class Variation:
    """Variation of one metric within one kind of relation."""

    # "pair": a stage and its child; "set": stages with a common parent or child
    relation: str
    metric: str  # one of `Dataset.stage_metrics`
    # for a pair the child's value over the parent's; for a set the geometric mean of its values
    # over the smallest, so at least 1
    value: F8
    n_left_out: int  # pairs or sets in which a value is zero or unknown

    @property
    def factor(self) -> F8:
        """Ratio of the larger to the smaller value (of a pair), at least 1."""
        return np.maximum(self.value, 1 / self.value)


def variations(data: Dataset) -> list[Variation]:
    """Compute the variation of every metric, in pairs and sets, in jobs of at least six stages."""
    graphs, rows = data.large, data.large_stages
    varied = []
    for relation, measure in (("pair", pairs), ("set", sets)):
        for metric, per_stage in data.stage_metrics.items():
            value, n_left_out = measure(graphs, per_stage[rows])
            varied.append(Variation(relation, metric, value, n_left_out))
    return varied


def pairs(graphs: Graphs, metric: F8) -> tuple[F8, int]:
    """Compute child over parent for each edge, and the number of edges left out."""
    parent, child = metric[graphs.edge_parent], metric[graphs.edge_child]
    known = (parent > 0) & (child > 0)
    return child[known] / parent[known], int((~known).sum())


def sets(graphs: Graphs, metric: F8) -> tuple[F8, int]:
    """Compute geometric mean over minimum of each dependent set, and the number of sets left out.

    The sets are the children of every stage that has three or more, then the parents of every
    stage that has three or more.
    """
    by_child = np.argsort(graphs.edge_child, kind="stable")
    spread = [
        set_variation(metric[graphs.edge_child], graphs.edge0),
        set_variation(metric[graphs.edge_parent[by_child]], offsets(graphs.n_parents)),
    ]
    return np.concatenate([value for value, _ in spread]), sum(n for _, n in spread)


def set_variation(metric: F8, first: I8) -> tuple[F8, int]:
    """Compute geometric mean over minimum of each group, and the number of groups left out."""
    sizes = np.diff(first)
    big = np.flatnonzero(sizes >= SET_SIZE)
    if not len(big):
        return np.empty(0), 0
    members = np.repeat(sizes >= SET_SIZE, sizes)
    values, begin = metric[members], np.cumsum(sizes[big]) - sizes[big]
    known = np.minimum.reduceat(np.where(values > 0, 1, 0), begin) > 0
    logs = maths.log(np.where(values > 0, values, 1.0))
    spread = np.add.reduceat(logs, begin) / sizes[big] - np.minimum.reduceat(logs, begin)
    equal = np.minimum.reduceat(values, begin) == np.maximum.reduceat(values, begin)
    spread[equal] = 0.0  # to the bit
    return maths.exp(np.maximum(spread[known], 0.0)), int((~known).sum())


def measures(name: str, varied: list[Variation], kind: str = "dependent") -> list[Statistic]:
    """Summarise distributions: shares of equal and of distant values, and the extremes."""
    section = Section(name)
    for v in varied:
        factor = v.factor
        if not len(factor) and not v.n_left_out:
            continue
        section.group = f"{kind} {v.relation}s: {metric_label(v.metric)}"
        key = f"{v.relation}_{v.metric}"
        section.add(f"{key}_n", f"{v.relation}s", len(factor), "count")
        section.add(f"{key}_left_out", "left out: zero or unknown", v.n_left_out, "count")
        section.share(f"{key}_equal", "equal", factor == 1)
        section.share(f"{key}_within_5_percent", "within 5 %", factor <= NEAR)
        section.share(f"{key}_below_2", "less than 2× apart", factor < 2)
        section.share(f"{key}_over_5", "over 5× apart", factor > 5)
        section.share(f"{key}_over_10", "over 10× apart", factor > 10)
        section.add(f"{key}_p90", "90th percentile", quantile(factor, 0.9), "ratio")
        section.add(f"{key}_max", "largest", largest(factor), "ratio")
    return section.statistics


def distributions(varied: list[Variation]) -> pa.Table:
    """Return the quantiles of `Variation.value`: relation, metric, q, value; for plots."""
    q = np.linspace(0, 1, POINTS)
    parts = [
        pa.table(
            {
                "relation": [v.relation] * POINTS,
                "metric": [v.metric] * POINTS,
                "q": q,
                "value": np.quantile(v.value, q),
            }
        )
        for v in varied
        if len(v.value)
    ]
    if parts:
        return pa.concat_tables(parts)
    kinds = {"relation": pa.string(), "metric": pa.string()}
    return pa.schema({**kinds, "q": pa.float64(), "value": pa.float64()}).empty_table()


def metric_label(metric: str) -> str:
    """Return the label of a metric of `Dataset.stage_metrics`."""
    if metric.startswith(DEMAND_PREFIX):
        return f"requested {metric.removeprefix(DEMAND_PREFIX)}"
    if metric.startswith(USED_PREFIX):
        return f"used {metric.removeprefix(USED_PREFIX)}"
    return {"duration": "durations", "span": "spans (end − start)", "tasks": "task counts"}[metric]
