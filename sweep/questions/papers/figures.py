"""Building blocks of studies: means by group, comparisons by seed, the paper's numbers.

A group is the cells that share a label. A study yields the findings of these functions, as in
``yield from mean("Fig. 3", "wing", column(cells, "value_attained", 100.0))``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8
from sim.published import Printed
from sweep.questions.papers import printed
from sweep.report.agreement import wilson
from sweep.report.findings import Finding, FinishedSweep
from sweep.stats import interval

Row = dict[str, Any]
Groups = Mapping[str, Sequence[Row]]
Findings = Iterator[Finding]
Study = Callable[[FinishedSweep], Iterable[Finding]]


def sort_by_figure(study: Study) -> Study:
    """Decorate a study: findings of a figure are adjacent, in order of first appearance."""

    @wraps(study)
    def sorted_study(finished: FinishedSweep) -> Findings:
        figures: dict[str, list[Finding]] = {}
        for finding in study(finished):
            figures.setdefault(finding.figure, []).append(finding)
        for findings in figures.values():
            yield from findings

    return sorted_study


def published(paper: str = "", *keys: object) -> Printed:
    """Format the paper's number under these keys; empty if it has none."""
    return printed.text(paper, *keys) if keys else Printed("")


def within(number: float, fraction: float) -> dict[str, float]:
    """Return the expected range of a finding: a number, give or take a fraction of it."""
    return {"at_least": number * (1 - fraction), "at_most": number * (1 + fraction)}


def grouped(cells: Iterable[Row], *columns: str, label: str = "{}") -> dict[str, list[Row]]:
    """Group cells by some of their columns, in order of first appearance."""
    groups: dict[str, list[Row]] = {}
    for row in cells:
        groups.setdefault(label.format(*(row[key] for key in columns)), []).append(row)
    return groups


def with_metric(cells: Iterable[Row], metric: str) -> list[Row]:
    """Keep the cells that have a number for a metric."""
    return [row for row in cells if row.get(metric) is not None and row[metric] == row[metric]]


def column(cells: Iterable[Row], metric: str, scale: float = 1.0) -> list[float]:
    """Return a metric of each cell, scaled."""
    return [scale * row[metric] for row in cells]


def match_seeds(groups: Groups, pair: Sequence[str]) -> list[tuple[Row, Row]]:
    """Match the cells of two groups by seed."""
    a, b = ({row["seed"]: row for row in groups.get(name, ())} for name in pair)
    return [(a[seed], b[seed]) for seed in sorted(a.keys() & b.keys())]


def compare_seeds(
    groups: Groups, pair: Sequence[str], metric: str, compare: Callable[[float, float], float]
) -> list[float]:
    """Compare two groups seed by seed: empty if one has no cells, NaN if they share no seed."""
    if not all(groups.get(name) for name in pair):
        return []
    return [compare(a[metric], b[metric]) for a, b in match_seeds(groups, pair)] or [math.nan]


def percent_reduction(value: float, base: float) -> float:
    """Return the reduction from a base value, in percent of that base."""
    return 100.0 * (1.0 - value / base)


def ratio(groups: Groups, pair: Sequence[str], metric: str, scale: float = 1.0) -> list[float]:
    """Divide a group's mean by another's; empty if one has no cells, and 1 for two zeros."""
    if not all(groups.get(name) for name in pair):
        return []
    numerator, denominator = (interval(column(groups[name], metric, scale))[0] for name in pair)
    return [
        numerator / denominator if denominator != 0.0 else 1.0 if numerator == 0.0 else math.inf
    ]


def jct_s(jobs: pa.Table) -> F8:
    """Return the completion time of each job of a cell's table."""
    return np.asarray(jobs["finish_s"].to_numpy() - jobs["submit_s"].to_numpy(), dtype=np.float64)


def mean(figure: str, quantity: str, values: Sequence[float], **fields: Any) -> Findings:
    """Yield the mean of values with its confidence interval; nothing without values."""
    if values:
        yield Finding.from_seeds(figure, quantity, values, **fields)


def means(
    figure: str,
    groups: Groups,
    metric: str,
    scale: float = 1.0,
    paper: Sequence[Any] = (),
    **fields: Any,
) -> Findings:
    """Yield each group's mean beside the paper's number under `paper` and the group's label."""
    for label, cells in groups.items():
        values = column(cells, metric, scale)
        yield from mean(figure, label, values, paper=published(*paper, label), **fields)


def share(figure: str, quantity: str, outcomes: Sequence[float], **fields: Any) -> Findings:
    """Yield the share of runs with an outcome (1, or else 0), %, with Wilson's interval.

    Student's interval would have no width where all runs end alike.
    """
    values = [outcome for outcome in outcomes if outcome == outcome]
    if values:
        low, high = wilson(sum(values), len(values))
        ours = 100.0 * sum(values) / len(values)
        yield Finding(figure, quantity, ours, 100.0 * low, 100.0 * high, **fields)


def mean_ratio(
    figure: str, groups: Groups, pair: Sequence[str], metric: str, **fields: Any
) -> Findings:
    """Yield the ratio of two groups' means over the seeds of both; nothing without such seeds.

    The interval is Student's of the seeds' deviations from that ratio (the delta method).
    """
    matched = match_seeds(groups, pair)
    if matched:
        over, under = (np.array(column(cells, metric)) for cells in zip(*matched, strict=True))
        ours = float(over.mean() / under.mean())
        error, low, high = interval((over - ours * under) / under.mean())
        low, high = (ours + end - error for end in (low, high))
        yield Finding(figure, " over ".join(pair), ours, low, high, n=len(matched), **fields)
