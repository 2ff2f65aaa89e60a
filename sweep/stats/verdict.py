"""Verdict of a sweep: the best policy on each trace at each capacity, and its lead.

The best is the best that can be run. Oracles, which know a truth beforehand such as durations, are
compared with it: what that knowledge would be worth.

Computed once from the cells; the terminal, the reports, ``verdict.json`` and MLflow show it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.cluster.load import CLUSTER_COLUMNS
from sweep.stats.arrange import (
    ArrangedCells,
    CapacityGroup,
    Column,
    Settings,
    arrange,
    by_capacity,
    is_counted,
    machines_text,
)
from sweep.stats.best import Best, best_of, compare_metric, is_ratio, next_distinguishable
from sweep.stats.cell_columns import Rows, to_float64
from sweep.stats.common import Common, common_seeds
from sweep.stats.inference import ALPHA, EXACT, FEW, Paired, holm, interval
from sweep.stats.metric_format import format_contrast, is_fraction, style, value_text
from sweep.stats.scope import Scope, scope_of
from sweep.stats.sentence import Facts, Oracle, Words, quantile, ratio_words, sentence, words

BOUND, WAIT, UTILIZATION = "gap_lb_p50", "wait_mean_s", "utilization"
DEFAULT_METRICS = ("deadlines_missed", "value_attained", "jct_mean_s")
"""Metric of a verdict: the first of these that the workload has, else one with a direction."""


@dataclass(frozen=True)
class Standing:
    """Result of one policy, and its comparison with the baseline."""

    policy: str
    by_seed: Mapping[int, float]  # the same seeds for all policies of a verdict
    against: Paired | None  # None without a baseline, and of the baseline itself
    is_ratio: bool  # `against` is of ratios (times better), not of differences
    is_best: bool
    is_tied: bool  # equal to the best with every seed
    is_oracle: bool = False  # knows a truth that nobody knows beforehand

    @property
    def value(self) -> float:
        """Mean over the seeds."""
        return self.mean(self.by_seed)

    def mean(self, seeds: Iterable[int]) -> float:
        """Mean over some of the seeds."""
        return float(np.mean([self.by_seed[seed] for seed in sorted(seeds)]))


@dataclass(frozen=True)
class Verdict:
    """Best policies on one trace, under one setting of the other parameters, at one capacity."""

    trace: str
    settings: Settings
    capacity: float
    metric: str
    # of the policies that can be run: the best mean and all not significantly different from it,
    # best first; only if all are oracles, the best oracle
    best: tuple[str, ...]
    value: float | None  # mean of the first; None if it is infinite
    interval: tuple[float, float] | None  # 95 %, of that mean; None with one seed
    baseline: str | None
    # times and ratios: baseline / best, so how many times better; fractions: best - baseline;
    # None without a baseline
    against_baseline: float | None
    against_interval: tuple[float, float] | None
    gap_lb_p50: float | None  # mean of the first
    n_seeds: int
    sentence: str
    machines: str  # such as ``41 machines``; empty where not known
    about: Mapping[str, float]  # means over the cells of those of `CLUSTER_COLUMNS` that are known
    standings: tuple[Standing, ...]  # in the order of the columns
    oracles: tuple[Oracle, ...] = ()  # best first
    scope: Scope = field(default_factory=Scope)  # seeds and jobs of the numbers
    words: Words = field(default_factory=Words)  # the sentence in parts

    @property
    def is_decided(self) -> bool:
        """True if some policy that can be run is significantly worse than the best, or exactly."""
        return not all(standing.is_best for standing in self.runnable)

    @property
    def runnable(self) -> Sequence[Standing]:
        """Standings of the policies that can be run, or of all if none can."""
        return [s for s in self.standings if not s.is_oracle] or list(self.standings)

    def standing(self, policy: str) -> Standing | None:
        """Return the standing of a policy; None if it is not ranked."""
        return next((s for s in self.standings if s.policy == policy), None)

    def as_json(self) -> dict[str, Any]:
        """Return the entry of ``verdict.json``."""
        return {
            "trace": self.trace,
            "settings": dict(self.settings),
            "capacity": self.capacity,
            **{name: self.about.get(name) for name in CLUSTER_COLUMNS},
            "metric": self.metric,
            "best": list(self.best),
            "value": self.value,
            "interval": self.interval and list(self.interval),
            "baseline": self.baseline,
            "against_baseline": self.against_baseline,
            "against_interval": self.against_interval and list(self.against_interval),
            "gap_lb_p50": self.gap_lb_p50,
            "n_seeds": self.n_seeds,
            "scope": self.scope.as_json(),
            "oracles": [_oracle_json(oracle) for oracle in self.oracles],
            "sentence": self.sentence,
        }


def verdicts(cells: pa.Table, config: Mapping[str, Any]) -> list[Verdict]:
    """Compute the verdicts of a sweep from its cells and its configuration (``config.yaml``)."""
    requested = (config.get("verdict") or {}).get("metric")
    arranged = arrange(cells, config["swept"], config["baseline"])
    results = []
    for (trace, settings), block_rows in arranged.blocks.items():
        metric = choose_metric(arranged, block_rows, requested)
        if metric is None:
            continue
        for group in by_capacity(arranged, block_rows):
            common = common_seeds(arranged.without_oracles(group.by_seed(arranged, metric)))
            best = best_of(metric, common, is_bootstrap=arranged.is_bootstrap)
            if best is not None:
                is_fixed = bool(config.get("is_fixed"))
                location = (trace, settings, group)
                results.append(_verdict(arranged, location, metric, best, is_fixed))
    return results


def with_remarks(verdicts: Sequence[Verdict], remarks: Mapping[str, str]) -> list[Verdict]:
    """Append a trace's remark to the sentence of its first verdict."""
    left = dict(remarks)
    return [
        dataclasses.replace(verdict, sentence=f"{verdict.sentence} {left.pop(verdict.trace)}")
        if verdict.trace in left
        else verdict
        for verdict in verdicts
    ]


def choose_metric(arranged: ArrangedCells, block_rows: Rows, requested: str | None) -> str | None:
    """Return the metric that is judged; None if no candidate has a direction and values."""
    candidates = [
        name
        for name in ([requested] if requested else [*DEFAULT_METRICS, *arranged.metrics])
        if name in arranged.metrics
        and style(name).better is not None
        and not np.isnan(arranged.values(name, block_rows)).all()
    ]
    return candidates[0] if candidates else None


def _against_baseline(
    arranged: ArrangedCells, metric: str, best: Best, values: F8
) -> dict[int, Paired]:
    """Compare the columns of `values` with their baselines; empty for those that are not ranked."""
    compared = {}
    for column, baseline in enumerate(arranged.baselines):
        if baseline is not None and not np.isnan(values[:, [column, baseline]]).any():
            compared[column] = compare_metric(
                metric,
                values[:, column],
                values[:, baseline],
                is_ratio=best.is_ratio,
                is_bootstrap=arranged.is_bootstrap,
            )
    return compared


def _corrected(best: Best, baseline: int | None) -> tuple[float, int] | None:
    """Return p after Holm's correction and the number of tests, if p alone tells the two apart."""
    if baseline not in best.order[1:]:
        return None
    index = best.order[1:].index(baseline)
    p = float(best.adjusted_p[index])
    n_tests = int(np.count_nonzero(~np.isnan(best.adjusted_p)))
    return (p, n_tests) if best.comparisons[index].p <= ALPHA < p else None


def _with_oracles(arranged: ArrangedCells, best: Best, by_seed: F8) -> F8:
    """Return the values on the common seeds, with those of oracles that have all of them."""
    values = best.common.values.copy()
    for index, column in enumerate(arranged.columns.values()):
        theirs = best.common.rows(by_seed)[:, index]
        if column.is_oracle and not np.isnan(theirs).any():
            values[:, index] = theirs
    return values


def _verdict(
    arranged: ArrangedCells,
    location: tuple[str, Settings, CapacityGroup],
    metric: str,
    best: Best,
    is_fixed: bool,
) -> Verdict:
    trace, settings, group = location
    columns, common = list(arranged.columns.values()), best.common
    values = _with_oracles(arranged, best, group.by_seed(arranged, metric))
    paired = _against_baseline(arranged, metric, best, values)
    first_values = values[:, best.first]
    is_bootstrap = arranged.is_bootstrap
    mean, low, high = interval(first_values, span=style(metric).span, is_bootstrap=is_bootstrap)
    half = interval(first_values, is_bootstrap=is_bootstrap)[2] - mean
    comparison = paired.get(best.first)
    against_baseline = None if comparison is None else _finite(comparison.estimate)
    if columns[best.first].is_baseline:
        against_baseline = 0.0 if is_fraction(metric) else 1.0
    means = {
        index: float(column.mean())
        for index, column in enumerate(values.T)
        if not np.isnan(column).any()
    }
    oracles = _oracles(metric, columns, values, means, best, arranged.is_bootstrap)
    seeds = np.unique(arranged.seed[group.rows])[list(common.seeds)].tolist()
    standings = tuple(
        Standing(
            policy=column.label,
            by_seed=dict(zip(seeds, values[:, index].tolist(), strict=True)),
            against=paired.get(index),
            is_ratio=best.is_ratio,
            is_best=index in best.members,
            is_tied=index in best.tied or (index == best.first and bool(best.tied)),
            is_oracle=column.is_oracle,
        )
        for index, column in enumerate(columns)
        if index in means
    )
    gap, next_pair = _mean(arranged, group, BOUND, common, best.first), next_distinguishable(best)
    wait = _mean(arranged, group, WAIT, common)
    # several variants of the baseline are named by their policy
    baselines = [column for column in columns if column.is_baseline]
    baseline = baselines[0].label if len(baselines) == 1 else baselines and baselines[0].policy
    facts = Facts(
        location=(trace, settings, group.capacity, machines_text(arranged, group.rows)),
        is_counted=is_counted(arranged, group.rows),
        metric=metric,
        best=tuple(columns[index].label for index in best.members),
        best_mean=columns[best.best_mean].label,
        n_tied=len(best.tied),
        n_policies=len(best.order),
        oracles=oracles,
        is_oracle=columns[best.first].is_oracle,
        runners_up=tuple(
            (
                columns[index].label,
                _standing_text(
                    metric,
                    means[index],
                    paired.get(index),
                    best.is_ratio,
                    in_words=columns[best.first].is_baseline,
                ),
            )
            for index in best.order
            if index not in best.members and not columns[index].is_baseline
        ),
        is_tested=best.is_tested,
        next_distinguishable=next_pair and (columns[next_pair[0]].label, next_pair[1]),
        value=(mean, half),
        draws=quantile(first_values.tolist(), is_lower_better=style(metric).better == "lower")
        if arranged.is_bootstrap
        else None,
        baseline=baseline or None,
        against=comparison,
        is_ratio=best.is_ratio,
        gap=gap,
        n_seeds=len(seeds),
        is_fixed=is_fixed,
        waits=None if wait is None else wait > 0,
        utilization=_mean(arranged, group, UTILIZATION, common),
        scope=scope_of(arranged, group, metric, best.common),
        corrected=_corrected(best, arranged.baselines[best.first]),
    )
    return Verdict(
        trace=trace,
        settings=settings,
        capacity=group.capacity,
        metric=metric,
        best=facts.best,
        value=_finite(mean),
        interval=None if math.isnan(low) else (low, high),
        baseline=facts.baseline,
        against_baseline=against_baseline,
        against_interval=None
        if comparison is None or math.isnan(comparison.low)
        else (comparison.low, comparison.high),
        gap_lb_p50=gap,
        n_seeds=len(seeds),
        sentence=sentence(facts),
        machines=facts.location[-1],
        about=_cluster_facts(arranged, group.rows),
        standings=standings,
        oracles=oracles,
        scope=facts.scope,
        words=words(facts),
    )


def _oracles(
    metric: str,
    columns: Sequence[Column],
    values: F8,
    means: Mapping[int, float],
    best: Best,
    is_bootstrap: bool,
) -> tuple[Oracle, ...]:
    """Compare the oracles with the best policy that can be run; empty if none can."""
    oracles = [index for index in means if index not in best.order]
    oracles.sort(key=lambda i: -means[i] if style(metric).better == "higher" else means[i])
    first = values[:, best.first]
    by_ratio = [is_ratio(metric, values[:, [i, best.first]]) for i in oracles]
    compared = [
        compare_metric(metric, values[:, i], first, is_ratio=ratio, is_bootstrap=is_bootstrap)
        for i, ratio in zip(oracles, by_ratio, strict=True)
    ]
    adjusted_p = holm(np.array([paired.p for paired in compared], dtype=np.float64))
    return tuple(
        Oracle(
            policy=columns[i].label,
            knows=columns[i].knows,
            value=means[i],
            against_best=paired,
            is_ratio=ratio,
            is_distinct=paired.test in (EXACT, FEW) or bool(p <= ALPHA),
        )
        for i, paired, ratio, p in zip(oracles, compared, by_ratio, adjusted_p, strict=True)
    )


def _oracle_json(oracle: Oracle) -> dict[str, Any]:
    low, high = oracle.against_best.low, oracle.against_best.high
    return {
        "policy": oracle.policy,
        "knows": oracle.knows,
        "value": _finite(oracle.value),
        "against_best": _finite(oracle.against_best.estimate),
        "against_interval": None if math.isnan(low) else [low, high],
    }


def _standing_text(
    metric: str, value: float, comparison: Paired | None, is_ratio: bool, *, in_words: bool
) -> str:
    """Write a policy's result: its ratio or difference to the baseline, without one its mean.

    Behind a baseline that is best a ratio is ``1.08 times longer``, not ``0.93×``.
    """
    if comparison is not None and math.isfinite(comparison.estimate):
        if is_ratio and in_words:
            return ratio_words(metric, comparison.estimate)[0]
        statistic = "ratio" if is_ratio else "difference"
        return format_contrast(metric, statistic, comparison.estimate, math.nan, math.nan)[0]
    return value_text(metric, value)


def _mean(
    arranged: ArrangedCells,
    group: CapacityGroup,
    metric: str,
    common: Common,
    column: int | None = None,
) -> float | None:
    """Average a metric over the common seeds and the ranked policies, or one; None without values.

    None also where one of these has no finite value.
    """
    if metric not in arranged.metrics:
        return None
    columns = list(common.ranked) if column is None else [column]
    values = common.rows(group.by_seed(arranged, metric))[:, columns]
    return float(values.mean()) if values.size and np.isfinite(values).all() else None


def _cluster_facts(arranged: ArrangedCells, rows: Rows) -> dict[str, float]:
    names = [name for name in CLUSTER_COLUMNS if name in arranged.cells.column_names]
    values = {name: to_float64(arranged.cells, name)[rows] for name in names}
    present = {name: column[~np.isnan(column)] for name, column in values.items()}
    return {name: float(np.mean(column)) for name, column in present.items() if len(column)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
