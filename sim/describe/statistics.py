"""One number of a description, tables of them, and summaries that are NaN of nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim import dags

Kind = Literal["count", "share", "ratio", "number", "seconds"]


@dataclass(frozen=True)
class Statistic:
    """One number."""

    section: str  # what it is called in tables and in code; the two together are unique
    key: str
    label: str  # what it is called before people
    value: float  # naN where there is nothing to measure
    # how it is shown: a whole number, a percentage, a multiple, a plain number, a time
    kind: Kind = "number"
    group: str = ""  # sub-heading; neighbours with the same one are shown under it


class Section:
    """Gathers the measures of one section."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: list[Statistic] = []
        self.group = ""

    def add(self, key: str, label: str, value: float, kind: Kind = "number") -> None:
        """Add a measure; see `Statistic`."""
        self.found.append(Statistic(self.name, key, label, float(value), kind, self.group))


def to_table(numbers: Iterable[tuple[str, Statistic]]) -> pa.Table:
    """Make a table of measures of datasets, a row each, in their order."""
    rows = list(numbers)
    return pa.table(
        {
            "dataset": pa.array([name for name, _ in rows], pa.string()),
            "section": pa.array([m.section for _, m in rows], pa.string()),
            "group": pa.array([m.group for _, m in rows], pa.string()),
            "key": pa.array([m.key for _, m in rows], pa.string()),
            "label": pa.array([m.label for _, m in rows], pa.string()),
            "kind": pa.array([m.kind for _, m in rows], pa.string()),
            "value": pa.array([float(m.value) for _, m in rows], pa.float64()),
        }
    )


def shown(value: float | None, kind: Kind) -> str:
    """Word a value for people: "" for None, which was not measured, "–" for NaN."""
    if value is None:
        return ""
    if np.isnan(value):
        return "–"
    if kind == "count":
        return f"{value:,.0f}"
    if kind == "share":
        return f"{100 * value:.2f} %"
    if kind == "ratio":
        return f"{_rounded(value)}×"
    if kind == "seconds":
        return f"{_rounded(value)} s"
    return _rounded(value)


def _rounded(value: float) -> str:
    size = abs(value)
    if np.isinf(value):
        return "∞" if value > 0 else "-∞"
    if size >= 1000 or value == 0:
        return f"{value:,.0f}"
    if size < 0.001:
        return f"{value:.1e}"
    return f"{value:.{1 if size >= 10 else 2 if size >= 1 else 3}f}"


def mean(values: NDArray[Any]) -> float:
    """Return the mean; of a mask, the share."""
    return float(values.mean()) if len(values) else np.nan


def deviation(values: NDArray[Any]) -> float:
    """Return the standard deviation (of the values as they are, not of a sample)."""
    return float(values.std()) if len(values) else np.nan


def largest(values: NDArray[Any]) -> float:
    """Return the largest."""
    return float(values.max()) if len(values) else np.nan


def quantile(values: NDArray[Any], q: float) -> float:
    """Return a quantile, interpolated."""
    return float(np.quantile(values, q)) if len(values) else np.nan


def slope(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the slope of the least-squares line; NaN through points of one x."""
    return dags.slope(x, y) if len(x) and (x != x[0]).any() else np.nan
