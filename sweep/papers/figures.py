"""Figures of finished cells: means by group, seeds compared, the paper's numbers beside.

A group is the cells that share a label. A study yields what these functions give, as in
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
from sim.published import numbers
from sweep.report.findings import Finding, FinishedSweep
from sweep.stats import interval

Row = dict[str, Any]
Groups = Mapping[str, Sequence[Row]]
Findings = Iterator[Finding]
Study = Callable[[FinishedSweep], Iterable[Finding]]


def together(study: Study) -> Study:
    """Let a study give the findings of one figure one after the other, first figures first."""

    @wraps(study)
    def by_figure(finished: FinishedSweep) -> Findings:
        figures: dict[str, list[Finding]] = {}
        for finding in study(finished):
            figures.setdefault(finding.figure, []).append(finding)
        for findings in figures.values():
            yield from findings

    return by_figure


def printed(paper: str = "", *keys: object) -> str:
    """Return a paper's number as it is shown: nothing where there is none under these keys."""
    value: Any = numbers(paper) if keys else ""
    for key in keys:
        value = value.get(key, "") if isinstance(value, Mapping) else ""
    return f"{value:g}" if isinstance(value, int | float) else value


def near(number: float, part: float) -> dict[str, float]:
    """Return bounds that are a part of a number away from it."""
    return {"at_least": number * (1 - part), "at_most": number * (1 + part)}


def grouped(cells: Iterable[Row], *columns: str, label: str = "{}") -> dict[str, list[Row]]:
    """Group cells by some of their columns, in order of first appearance."""
    groups: dict[str, list[Row]] = {}
    for row in cells:
        groups.setdefault(label.format(*(row[key] for key in columns)), []).append(row)
    return groups


def known(cells: Iterable[Row], metric: str) -> list[Row]:
    """Leave out cells without a number."""
    return [row for row in cells if row.get(metric) is not None and row[metric] == row[metric]]


def column(cells: Iterable[Row], metric: str, scale: float = 1.0) -> list[float]:
    """Return a metric of each cell, scaled."""
    return [scale * row[metric] for row in cells]


def pairs(groups: Groups, pair: Sequence[str]) -> list[tuple[Row, Row]]:
    """Match the cells of two groups by seed."""
    a, b = ({row["seed"]: row for row in groups.get(name, ())} for name in pair)
    return [(a[seed], b[seed]) for seed in sorted(a.keys() & b.keys())]


def paired(
    groups: Groups, pair: Sequence[str], metric: str, how: Callable[[float, float], float]
) -> list[float]:
    """Compare two groups seed by seed: nothing where one has no cells, NaN where none is shared."""
    if not all(groups.get(name) for name in pair):
        return []
    return [how(a[metric], b[metric]) for a, b in pairs(groups, pair)] or [math.nan]


def percent_less(a: float, b: float) -> float:
    """Return by how many percent of the second the first is less."""
    return 100.0 * (1.0 - a / b)


def ratio(groups: Groups, pair: Sequence[str], metric: str, scale: float = 1.0) -> list[float]:
    """Divide a group's mean by another's; nothing where one has no cells. Two zeros are as much."""
    if not all(groups.get(name) for name in pair):
        return []
    more, less = (interval(column(groups[name], metric, scale))[0] for name in pair)
    return [more / less if less != 0.0 else 1.0 if more == 0.0 else math.inf]


def jct_s(jobs: pa.Table) -> F8:
    """Return how long each job of a cell's table took."""
    return np.asarray(jobs["finish_s"].to_numpy() - jobs["submit_s"].to_numpy(), dtype=np.float64)


def mean(figure: str, what: str, of: Sequence[float], **others: Any) -> Findings:
    """Give the mean of values, with its interval; nothing without values."""
    if of:
        yield Finding.from_seeds(figure, what, of, **others)


def means(
    figure: str, groups: Groups, metric: str, scale: float = 1.0, paper: Sequence[Any] = ()
) -> Findings:
    """Give each group's mean beside the number that the paper has, under its label, in `paper`."""
    for what, cells in groups.items():
        of = column(cells, metric, scale)
        yield from mean(figure, what, of, paper=printed(*paper, what))
