"""One number of a description, summaries that are NaN of nothing, and all of them as an outcome."""

from __future__ import annotations

import os
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
from sim.base.errors import InputError
from sim.base.files import atomic_write

Kind = Literal["count", "share", "ratio", "number", "seconds", "span"]


@dataclass(frozen=True)
class Statistic:
    """One number."""

    section: str  # what it is called in tables and in code; the two together are unique
    key: str
    label: str  # what it is called before people
    value: float  # naN where there is nothing to measure
    # how it is shown: a whole number, a percentage, a multiple, a plain number, a time in seconds,
    # a time in days, hours or seconds
    kind: Kind = "number"
    group: str = ""  # sub-heading; neighbours with the same one are shown under it
    why: str = ""  # why there is nothing to measure


class Section:
    """Gathers the measures of one section."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: list[Statistic] = []
        self.group = ""

    def add(
        self, key: str, label: str, value: float, kind: Kind = "number", *, why: str = ""
    ) -> None:
        """Add a measure; see `Statistic`. It is NaN where it is said why there is none."""
        number = np.nan if why else float(value)
        self.found.append(Statistic(self.name, key, label, number, kind, self.group, why))

    def share(
        self, key: str, label: str, hit: NDArray[Any], among: Any = slice(None), *, why: str = ""
    ) -> None:
        """Add what part of all, or of those `among` them, is hit; NaN of nothing."""
        self.add(key, label, mean(hit[among]), "share", why=why)


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


def write_tables(
    tables: Mapping[str, pa.Table], folder: str | os.PathLike[str]
) -> tuple[Path, list[Path]]:
    """Write a Parquet file a table; return the folder, which is made if need be, and the files."""
    import pyarrow.parquet as pq

    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"can't make the folder: {error}", file=target) from error
    paths = [target / f"{name}.parquet" for name in tables]
    for path, table in zip(paths, tables.values(), strict=True):
        with atomic_write(path) as file:
            pq.write_table(table, file, compression="zstd")
    return target, paths


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
    return maths.slope(x, y) if len(x) and (x != x[0]).any() else np.nan


def words_of(file: Path) -> dict[str, dict[str, Any]]:
    """Read what is said of each section: ``title``, ``note``, and what its page wants beside."""
    words: dict[str, dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return words


_WORDS = words_of(Path(__file__).with_name("sections.yaml"))
SECTIONS: dict[str, str] = {key: words["title"] for key, words in _WORDS.items()}
"""Sections in their order, and their headings; § are of Tian et al., SoCC 2019."""
NOTES: dict[str, str] = {key: words.get("note", "") for key, words in _WORDS.items()}


NOTHING: dict[str, str] = {key: words.get("nothing", "") for key, words in _WORDS.items()}
"""Why a section may have nothing to say."""
_FLOW = ("arrivals", "sizes", "load", "users")
_OF_DEPENDENCIES = "…"  # how labels of the overview begin that split what is above them


@dataclass(frozen=True)
class Row:
    """One line of a printed table: a number a dataset (None: not measured), and the paper's."""

    group: str
    label: str
    kind: Kind
    values: tuple[float | None, ...]
    paper: float | None

    def known(self, *, zero: bool = True) -> bool:
        """Tell whether any value is there, or any but 0."""
        there = [value for value in (*self.values, self.paper) if value is not None]
        return any(not np.isnan(value) and (zero or value != 0) for value in there)


@dataclass(frozen=True, eq=False)
class Description:
    """What is known of some datasets.

    Attributes
    ----------
    names : tuple of str
        The datasets; the first is the one described, the others stand beside it.
    statistics : mapping of str to list of Statistic
        By dataset.
    tables : mapping of str to pyarrow.Table
        Longer ones, of all datasets (column ``dataset``); ``jobs`` is of the first alone.
    paper : mapping of (section, key) to float
        What the paper reports of the first; empty if it is not of the paper's trace.
    """

    names: tuple[str, ...]
    statistics: Mapping[str, Sequence[Statistic]]
    tables: Mapping[str, pa.Table]
    paper: Mapping[tuple[str, str], float]

    def value(self, section: str, key: str, dataset: str | None = None) -> float:
        """Return one number, of the first dataset unless told otherwise.

        Raises
        ------
        KeyError
            If the dataset has no such number.
        """
        for m in self.statistics[dataset or self.names[0]]:
            if (m.section, m.key) == (section, key):
                return m.value
        raise KeyError((section, key))

    def is_flat(self) -> bool:
        """Tell whether no dataset has a dependency."""
        edges = [m.value for n in self.names for m in self.statistics[n] if m.key == "edges"]
        return not any(edges)

    def order(self) -> list[str]:
        """Return the sections: of jobs without dependencies first what else there is to them."""
        first = _FLOW if self.is_flat() else ()
        return [*first, *(section for section in SECTIONS if section not in first)]

    def told(self, section: str) -> list[Row]:
        """Return the rows of a section that tell anything: none where all are zero or unknown.

        Groups of which nothing is known are left out; where nothing depends on anything, so is what
        the overview says of dependencies.
        """
        rows = self.rows(section)
        if section == "overview" and self.is_flat():
            rows = [row for row in rows if not row.label.startswith(_OF_DEPENDENCIES)]
        if not NOTHING[section]:
            return rows
        if not any(row.known(zero=False) for row in rows):
            return []
        known = {row.group for row in rows if row.known()}
        return [row for row in rows if row.group in known]

    def silent(self) -> list[tuple[str, str]]:
        """Return title and reason of each section that has nothing to say."""
        return [
            (SECTIONS[section], NOTHING[section])
            for section in self.order()
            if NOTHING[section] and not self.told(section)
        ]

    def rows(self, section: str) -> list[Row]:
        """Return the lines of a section, groups together: of what the first dataset has.

        Of what was read (section ``input``), every dataset's.
        """
        by_group: dict[str, dict[str, Statistic]] = {}
        by_name = {
            name: {m.key: m for m in self.statistics[name] if m.section == section}
            for name in self.names
        }
        wanted = self.names if section == "input" else self.names[:1]
        for name in wanted:
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

    def groups(self, section: str) -> Iterator[tuple[str, list[Row]]]:
        """Return the lines of a section that tell anything by sub-heading."""
        for group, rows in groupby(self.told(section), key=lambda row: row.group):
            yield group, list(rows)
