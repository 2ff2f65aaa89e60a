"""Statistics of a description: numbers with labels and formats, their tables, and summaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import yaml
from numpy.typing import NDArray

from sim.base import maths
from sim.base.arrays import I8

Kind = Literal["count", "share", "ratio", "number", "seconds", "span"]


@dataclass(frozen=True)
class Statistic:
    """One number of a description, with its label and format."""

    section: str  # its name in tables and code; section and key together are unique
    key: str
    label: str  # its name in printed tables and pages
    value: float  # NaN if it can't be measured
    # format: a whole number, a percentage, a multiple, a plain number, a time in seconds, a time in
    # days, hours or seconds
    kind: Kind = "number"
    group: str = ""  # sub-heading, shared by neighbours
    why: str = ""  # reason why it can't be measured


class Section:
    """Collects the statistics of one section."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.statistics: list[Statistic] = []
        self.group = ""

    def add(
        self, key: str, label: str, value: float, kind: Kind = "number", *, why: str = ""
    ) -> None:
        """Add a statistic; see `Statistic`. Its value is NaN if a reason `why` is given."""
        number = np.nan if why else float(value)
        self.statistics.append(Statistic(self.name, key, label, number, kind, self.group, why))

    def share(
        self, key: str, label: str, hit: NDArray[Any], among: Any = slice(None), *, why: str = ""
    ) -> None:
        """Add the share of True in the mask `hit`, of all or `among` a subset; NaN if empty."""
        self.add(key, label, mean(hit[among]), "share", why=why)


def to_table(numbers: Iterable[tuple[str, Statistic]]) -> pa.Table:
    """Build a table of (dataset, statistic) pairs, one row each, in order."""
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


def format_value(value: float | None, kind: Kind) -> str:
    """Format a value for people: "" for None (not measured), "–" for NaN."""
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
    if kind == "span":
        named = (("d", 86_400.0), ("h", 3600.0), ("s", 1.0))
        unit, size = next((n, s) for n, s in named if abs(value) >= 2 * s or s == 1.0)
        return f"{_rounded(value / size)} {unit}"
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


def mean(values: NDArray[Any], n: I8 | None = None) -> float:
    """Compute the mean, or the share of True in a mask; NaN if empty.

    `n` are the numbers of times that each value occurs, (len(values),); once each by default.
    """
    if not len(values):
        return np.nan
    return float(values.mean() if n is None else (values * n).sum() / n.sum())


def deviation(values: NDArray[Any]) -> float:
    """Compute the population standard deviation; NaN if empty."""
    return float(values.std()) if len(values) else np.nan


def largest(values: NDArray[Any]) -> float:
    """Compute the maximum; NaN if empty."""
    return float(values.max()) if len(values) else np.nan


def quantile(values: NDArray[Any], q: float, n: I8 | None = None) -> float:
    """Compute an interpolated quantile; NaN if empty. See `mean` for `n`."""
    if not len(values):
        return np.nan
    if n is None:
        return float(np.quantile(values, q))
    order = np.argsort(values, kind="stable")
    last = np.cumsum(n[order]) - 1
    rank = q * last[-1]
    around = np.searchsorted(last, [np.floor(rank), np.ceil(rank)])
    return float(np.quantile(values[order[around]], rank - np.floor(rank)))


def slope(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Compute the slope of the least-squares line; NaN if all x are equal."""
    return maths.slope(x, y) if len(x) and (x != x[0]).any() else np.nan


def load_sections(file: Path) -> dict[str, dict[str, Any]]:
    """Load the sections of a page from YAML: ``title``, ``note``, and the page's own settings."""
    sections: dict[str, dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return sections


_SECTIONS = load_sections(Path(__file__).with_name("sections.yaml"))
SECTIONS: dict[str, str] = {key: section["title"] for key, section in _SECTIONS.items()}
"""Sections in order, with their headings; § are of Tian et al., SoCC 2019."""
NOTES: dict[str, str] = {key: section.get("note", "") for key, section in _SECTIONS.items()}
EMPTY_REASONS: dict[str, str] = {
    key: section.get("nothing", "") for key, section in _SECTIONS.items()
}
"""Reason why a section may be empty."""
_FLOW = ("arrivals", "sizes", "load", "users")
_SUBDIVISION = "…"  # labels of the overview that divide the number above begin with it


@dataclass(frozen=True)
class Row:
    """One line of a printed table: a number per dataset (None: not measured), and the paper's."""

    group: str
    label: str
    kind: Kind
    values: tuple[float | None, ...]
    paper: float | None

    def known(self, *, zero: bool = True) -> bool:
        """Test for a known value; with `zero=False`, for one that is not 0."""
        values = [value for value in (*self.values, self.paper) if value is not None]
        return any(not np.isnan(value) and (zero or value != 0) for value in values)


@dataclass(frozen=True, eq=False)
class Description:
    """Statistics and tables of one dataset and its comparators.

    Attributes
    ----------
    names : tuple of str
        The datasets; the first is the one described, the others are comparators.
    statistics : mapping of str to list of Statistic
        By dataset.
    tables : mapping of str to pyarrow.Table
        Tables of all datasets (column ``dataset``); ``jobs`` covers the first only.
    paper : mapping of (section, key) to float
        The paper's values for the first; empty if it is not the paper's trace.
    """

    names: tuple[str, ...]
    statistics: Mapping[str, Sequence[Statistic]]
    tables: Mapping[str, pa.Table]
    paper: Mapping[tuple[str, str], float]

    def value(self, section: str, key: str, dataset: str | None = None) -> float:
        """Return one number, of the first dataset by default.

        Raises
        ------
        KeyError
            If the dataset has no such number.
        """
        for m in self.statistics[dataset or self.names[0]]:
            if (m.section, m.key) == (section, key):
                return m.value
        raise KeyError((section, key))

    def has_no_dependencies(self) -> bool:
        """Test that no dataset has a dependency."""
        edges = [m.value for n in self.names for m in self.statistics[n] if m.key == "edges"]
        return not any(edges)

    def order(self) -> list[str]:
        """Return the sections in order; arrivals and sizes first if there are no dependencies."""
        first = _FLOW if self.has_no_dependencies() else ()
        return [*first, *(section for section in SECTIONS if section not in first)]

    def visible_rows(self, section: str) -> list[Row]:
        """Return the rows of a section to show: none if all are zero or unknown.

        Groups without known values are left out. Without any dependencies, so are the overview's
        rows about them.
        """
        rows = self.rows(section)
        if section == "overview" and self.has_no_dependencies():
            rows = [row for row in rows if not row.label.startswith(_SUBDIVISION)]
        if not EMPTY_REASONS[section]:
            return rows
        if not any(row.known(zero=False) for row in rows):
            return []
        known = {row.group for row in rows if row.known()}
        return [row for row in rows if row.group in known]

    def empty_sections(self) -> list[tuple[str, str]]:
        """Return title and reason of each empty section."""
        return [
            (SECTIONS[section], EMPTY_REASONS[section])
            for section in self.order()
            if EMPTY_REASONS[section] and not self.visible_rows(section)
        ]

    def rows(self, section: str) -> list[Row]:
        """Return the rows of a section, groups together: the statistics of the first dataset.

        For section ``input``, those of every dataset.
        """
        by_group: dict[str, dict[str, Statistic]] = {}
        by_name = {
            name: {m.key: m for m in self.statistics[name] if m.section == section}
            for name in self.names
        }
        sources = self.names if section == "input" else self.names[:1]
        for name in sources:
            for key, m in by_name[name].items():
                by_group.setdefault(m.group, {}).setdefault(key, m)
        return [
            Row(
                m.group,
                m.label,
                m.kind,
                tuple(by_name[n][key].value if key in by_name[n] else None for n in self.names),
                self.paper.get((section, key)),
            )
            for group in by_group.values()
            for key, m in group.items()
        ]

    def visible_groups(self, section: str) -> Iterator[tuple[str, list[Row]]]:
        """Yield the rows of a section to show, by sub-heading."""
        for group, rows in groupby(self.visible_rows(section), key=lambda row: row.group):
            yield group, list(rows)
