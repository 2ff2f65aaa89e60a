"""Verdict of a sweep: the best policy on each trace at each capacity, and its lead.

The best is the best that can be run. Oracles, which know a truth beforehand such as durations, are
compared with it: what that knowledge would be worth.

Computed once from the cells; the terminal, the reports, ``verdict.json`` and MLflow show it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.cluster.load import CLUSTER_COLUMNS
from sweep.stats import contrasts
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
from sweep.stats.best import Best, best_of, compare_metric, next_distinguishable
from sweep.stats.cell_columns import Rows, to_float64
from sweep.stats.inference import ALPHA, EXACT, FEW, Paired, holm, interval
from sweep.stats.metric_format import format_contrast, format_value, is_fraction, style
from sweep.stats.sentence import Facts, Oracle, Words, ratio_words, sentence, words

BOUND, WAIT, UTILIZATION = "gap_lb_p50", "wait_mean_s", "utilization"
DEFAULT_METRICS = ("deadlines_missed", "value_attained", "jct_mean_s")
"""Metric of a verdict: the first of these that the workload has, else one with a direction."""


@dataclass(frozen=True)
class Standing:
    """Result of one policy, and its comparison with the baseline."""

    policy: str
    value: float  # the mean over seeds
    against: Paired | None  # None without a baseline, and of the baseline itself
    is_ratio: bool  # `against` is of ratios (times better), not of differences
    is_best: bool
    is_tied: bool  # equal to the best with every seed
    is_oracle: bool = False  # knows a truth that nobody knows beforehand


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
    words: Words = field(default_factory=Words)  # the sentence in parts

    @property
    def is_decided(self) -> bool:
        """True if some policy that can be run is significantly worse than the best, or exactly."""
        runnable = [s for s in self.standings if not s.is_oracle] or list(self.standings)
        return not all(standing.is_best for standing in runnable)

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
            "oracles": [_oracle_json(oracle) for oracle in self.oracles],
            "sentence": self.sentence,
        }


def verdicts(cells: pa.Table, config: Mapping[str, Any]) -> list[Verdict]:
    """Compute the verdicts of a sweep from its cells and its configuration (``config.yaml``)."""
    requested = (config.get("verdict") or {}).get("metric")
    arranged = arrange(cells, config["swept"], config["baseline"])
    results = []
    for (trace, settings), block_rows in arranged.blocks.items():
        metric = _metric(arranged, block_rows, requested)
        if metric is None:
            continue
        paired = _against_baseline(arranged, block_rows, metric)
        for group in by_capacity(arranged, block_rows):
            best = best_of(
                metric,
                arranged.without_oracles(group.by_seed(arranged, metric)),
                is_bootstrap=arranged.is_bootstrap,
            )
            if best is not None:
                by_column = {
                    c: comparison for (k, c), comparison in paired.items() if k == group.capacity
                }
                is_fixed = bool(config.get("is_fixed"))
                location = (trace, settings, group)
                results.append(_verdict(arranged, location, metric, best, by_column, is_fixed))
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


def _metric(arranged: ArrangedCells, block_rows: Rows, requested: str | None) -> str | None:
    candidates = [
        name
        for name in ([requested] if requested else [*DEFAULT_METRICS, *arranged.metrics])
        if name in arranged.metrics
        and style(name).better is not None
        and not np.isnan(arranged.values(name, block_rows)).all()
    ]
    return candidates[0] if candidates else None


def _against_baseline(
    arranged: ArrangedCells, block_rows: Rows, metric: str
) -> dict[tuple[float, int], tuple[Paired, bool]]:
    """Compare each policy with the baseline, by capacity and column; empty without a baseline."""
    values = partial(arranged.values, metric)
    return {
        (capacity, column): compare_metric(
            metric,
            values(paired_rows.policy_rows),
            values(paired_rows.baseline_rows),
            is_bootstrap=arranged.is_bootstrap,
        )
        for capacity, column, paired_rows in contrasts.pairs(arranged, block_rows)
    }


def _verdict(
    arranged: ArrangedCells,
    location: tuple[str, Settings, CapacityGroup],
    metric: str,
    best: Best,
    paired: Mapping[int, tuple[Paired, bool]],
    is_fixed: bool,
) -> Verdict:
    trace, settings, group = location
    columns = list(arranged.columns.values())
    values = group.by_seed(arranged, metric)
    first_values = values[:, best.first][~np.isnan(values[:, best.first])]
    mean, low, high = interval(first_values, is_bootstrap=arranged.is_bootstrap)
    comparison, is_ratio = paired.get(best.first, _NO_COMPARISON)
    against_baseline = None if comparison is None else _finite(comparison.estimate)
    if columns[best.first].is_baseline:
        against_baseline = 0.0 if is_fraction(metric) else 1.0
    present = np.flatnonzero(~np.isnan(values).all(axis=0)).tolist()
    means = {index: float(np.nanmean(values[:, index])) for index in present}
    oracles = _oracles(metric, columns, values, means, best, arranged.is_bootstrap)
    standings = tuple(
        Standing(
            policy=column.label,
            value=means[index],
            against=paired.get(index, _NO_COMPARISON)[0],
            is_ratio=paired.get(index, _NO_COMPARISON)[1],
            is_best=index in best.members,
            is_tied=index in best.tied or (index == best.first and bool(best.tied)),
            is_oracle=column.is_oracle,
        )
        for index, column in enumerate(columns)
        if index in means
    )
    gap, next_pair = _mean(arranged, group, BOUND, best.first), next_distinguishable(best)
    wait = _mean(arranged, group, WAIT)
    # several variants of the baseline are named by their policy
    baselines = [column for column in columns if column.is_baseline]
    baseline = baselines[0].label if len(baselines) == 1 else baselines and baselines[0].policy
    facts = Facts(
        location=(trace, settings, group.capacity, machines_text(arranged, group.rows)),
        is_counted=is_counted(arranged, group.rows),
        metric=metric,
        best=tuple(columns[index].label for index in best.members),
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
                    *paired.get(index, _NO_COMPARISON),
                    in_words=columns[best.first].is_baseline,
                ),
            )
            for index in best.order
            if index not in best.members and not columns[index].is_baseline
        ),
        is_tested=best.is_tested,
        next_distinguishable=next_pair and (columns[next_pair[0]].label, next_pair[1]),
        value=(mean, low, high),
        baseline=baseline or None,
        against=comparison,
        is_ratio=is_ratio,
        gap=gap,
        n_seeds=len(first_values),
        is_fixed=is_fixed,
        waits=None if wait is None else wait > 0,
        utilization=_mean(arranged, group, UTILIZATION),
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
        n_seeds=len(first_values),
        sentence=sentence(facts),
        machines=facts.location[-1],
        about=_cluster_facts(arranged, group.rows),
        standings=standings,
        oracles=oracles,
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
    compared = [
        compare_metric(metric, values[:, i], first, is_bootstrap=is_bootstrap) for i in oracles
    ]
    adjusted_p = holm(np.array([paired.p for paired, _ in compared], dtype=np.float64))
    return tuple(
        Oracle(
            policy=columns[i].label,
            knows=columns[i].knows,
            value=means[i],
            against_best=paired,
            is_ratio=is_ratio,
            is_distinct=paired.test in (EXACT, FEW) or bool(p <= ALPHA),
        )
        for i, (paired, is_ratio), p in zip(oracles, compared, adjusted_p, strict=True)
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


_NO_COMPARISON = (None, False)


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
    unit = " s" if style(metric).kind == "seconds" else ""
    return format_value(metric, value)[0].replace("%", " %") + unit


def _mean(
    arranged: ArrangedCells, group: CapacityGroup, metric: str, column: int | slice = slice(None)
) -> float | None:
    """Average a metric over seeds, and over columns unless one is named; None without values."""
    if metric not in arranged.metrics:
        return None
    values = group.by_seed(arranged, metric)[:, column]
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else None


def _cluster_facts(arranged: ArrangedCells, rows: Rows) -> dict[str, float]:
    names = [name for name in CLUSTER_COLUMNS if name in arranged.cells.column_names]
    values = {name: to_float64(arranged.cells, name)[rows] for name in names}
    present = {name: column[~np.isnan(column)] for name, column in values.items()}
    return {name: float(np.mean(column)) for name, column in present.items() if len(column)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
