"""A slow, plain reading of cells: rows as dictionaries, one loop at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats


@dataclass
class Reading:
    """Values of a metric in the cells of one trace and capacity."""

    by_policy: dict[str, dict[int, float]]  # value by seed of the policies that count
    ranked: list[str]
    unranked: list[str]
    seeds: list[int]  # common to the ranked
    n_planned: int
    baseline: str | None
    metric: str
    all_oracles: bool

    @property
    def n_seeds(self) -> int:
        return len(self.seeds)

    @property
    def is_lower_better(self) -> bool:
        return self.metric != "value_attained"

    def values(self, policy: str) -> list[float]:
        return [self.by_policy[policy][seed] for seed in self.seeds]

    @property
    def by_ratio(self) -> bool:
        """Ratios are compared: no fraction, no infinity, and zeros only where all are zero."""
        if self.metric == "value_attained":
            return False
        for seed in self.seeds:
            values = [self.by_policy[policy][seed] for policy in self.ranked]
            if not all(map(math.isfinite, values)):
                return False
            if min(values) <= 0 and max(values) > 0:
                return False
        return True

    def statistic(self, policy: str) -> float:
        """Geometric mean where ratios are compared, else the mean."""
        values = self.values(policy)
        if self.by_ratio:
            return math.exp(math.fsum(math.log(v) for v in values if v > 0) / len(values))
        return float(np.mean(values))

    def gain(self, policy: str, other: str) -> float:
        """Lead of a policy over another, relative; NaN if both are infinite."""
        a, b = self.statistic(policy), self.statistic(other)
        if self.is_lower_better:
            a, b = -a, -b
        with np.errstate(invalid="ignore"):
            return (a - b) / max(1e-300, min(abs(a), abs(b))) if a != b else 0.0

    def p(self, policy: str, other: str) -> float:
        a, b = np.array(self.values(policy)), np.array(self.values(other))
        if not (np.isfinite(a).all() and np.isfinite(b).all()) or len(a) < 3:
            return math.nan
        differences = a - b
        if self.by_ratio:
            is_zero = (a == 0) & (b == 0)
            differences = np.log(np.where(is_zero, 1, a)) - np.log(np.where(is_zero, 1, b))
        if np.ptp(differences) <= 1e-11 * max(1.0, float(np.abs(differences).max())):
            return math.nan
        return float(stats.ttest_1samp(differences, 0.0).pvalue)

    def holm(self, first: str) -> list[float]:
        p = [math.nan if policy == first else self.p(policy, first) for policy in self.ranked]
        return corrected(p)

    def all_equal(self) -> bool:
        return all(
            math.isclose(a, b, rel_tol=1e-11)
            for policy in self.ranked
            for a, b in zip(self.values(policy), self.values(self.ranked[0]), strict=True)
        )


def corrected(p: list[float]) -> list[float]:
    """Correct by Holm's method."""
    order = sorted((value, k) for k, value in enumerate(p) if not math.isnan(value))
    adjusted, largest = [math.nan] * len(p), 0.0
    for rank, (value, k) in enumerate(order):
        largest = max(largest, value * (len(order) - rank))
        adjusted[k] = min(1.0, largest)
    return adjusted


def read(rows: list[dict[str, Any]], metric: str, capacity: float, baseline: str | None) -> Reading:
    """Read the rows of one capacity."""
    placed = [row for row in rows if row["capacity"] == capacity]
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    oracles = {row["policy"] for row in rows if row.get("is_oracle")}
    by_policy: dict[str, dict[int, float]] = {policy: {} for policy in policies}
    for row in placed:
        if row["status"] != "failed" and not math.isnan(row[metric]):
            by_policy[row["policy"]][row["seed"]] = row[metric]
    counted = [p for p in policies if p not in oracles]
    all_oracles = not any(by_policy[p] for p in counted)
    if all_oracles:
        counted = policies
    n_any = len({seed for p in counted for seed in by_policy[p]})
    ranked = [p for p in counted if by_policy[p] and 2 * len(by_policy[p]) >= n_any]

    def common() -> list[int]:
        sets = [set(by_policy[p]) for p in ranked]
        return sorted(set.intersection(*sets)) if sets else []

    while len(ranked) > 1 and 2 * len(common()) < n_any:
        fewest = min(len(by_policy[p]) for p in ranked)
        ranked.remove([p for p in ranked if len(by_policy[p]) == fewest][-1])
    return Reading(
        by_policy=by_policy,
        ranked=ranked,
        unranked=[p for p in counted if p not in ranked],
        seeds=common(),
        n_planned=len({row["seed"] for row in placed}),
        baseline=baseline,
        metric=metric,
        all_oracles=all_oracles,
    )
