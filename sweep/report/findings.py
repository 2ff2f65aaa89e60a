"""What a study found in a sweep that is over: its figures beside those of its source, judged."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import compress
from typing import Any

import pyarrow as pa

from sweep.report import table_model
from sweep.report.table_model import Group, TableModel
from sweep.stats import interval
from sweep.store.cache import Cache

SAME, CLOSE, DIFFERS = "same", "close", "differs"

WITHIN_SAME, WITHIN_CLOSE = 0.05, 0.25
"""How far from the source's figure, as a part of it."""

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_EXACT = re.compile(rf"(?:about |slightly below )?{_NUMBER}")
_WHOLE = re.compile(rf"{_NUMBER}, rounded")
_PART = re.compile(rf"{_NUMBER} of {_NUMBER}")
_LEAST = re.compile(rf"(?:more than |≥ ){_NUMBER}|{_NUMBER} or more")
_MOST = re.compile(rf"(?:less than |≤ ){_NUMBER}|{_NUMBER} at most")


@dataclass(frozen=True)
class Finding:
    """One figure."""

    figure: str  # of the source, such as ``Fig. 13``; rows of one are kept together
    what: str  # what was measured; empty for what is plotted but not tabulated
    ours: float  # the value and its 95 % confidence interval (NaN where there is none)
    low: float = math.nan
    high: float = math.nan
    paper: str = ""  # what the source has; empty where it has nothing
    at_least: float = -math.inf  # what is wanted; infinite where nothing is
    at_most: float = math.inf
    curve: str = ""  # of which curve it is a point, if of any
    along: str = ""  # what that is plotted along, and where the point is there
    at: float = math.nan

    @classmethod
    def from_seeds(cls, figure: str, what: str, values: Sequence[float], **others: Any) -> Finding:
        """Make one of the mean over seeds, with Student's interval."""
        mean, low, high = interval(values)
        return cls(figure, what, mean, low, high, **others)

    @property
    def expected(self) -> str:
        """What is wanted, in signs; empty if nothing is."""
        low = f"≥ {self.at_least:g}" if math.isfinite(self.at_least) else ""
        high = f"≤ {self.at_most:g}" if math.isfinite(self.at_most) else ""
        return ", ".join(filter(None, (low, high)))

    @property
    def is_met(self) -> bool:
        """Whether the value is as wanted."""
        return self.at_least <= self.ours <= self.at_most


@dataclass(frozen=True)
class FinishedSweep:
    """A sweep that is over, for a study to look at."""

    cells: list[dict[str, Any]]  # the rows of ``cells.parquet`` that did not fail
    config: Mapping[str, Any]  # the sweep's ``config.yaml``
    cache: Cache

    def table(self, row: Mapping[str, Any]) -> pa.Table:
        """Read what a cell's metrics were computed from; of a simulation, a row a job."""
        result = self.cache.get(row["key"])
        assert result is not None, "a cell that did not fail is kept"
        assert result.jobs is not None
        return result.jobs

    def group_by(self, *keys: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
        """Group the cells by some of their columns, in order of first appearance."""
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in self.cells:
            groups.setdefault(tuple(row[key] for key in keys), []).append(row)
        return groups


def to_table(findings: Sequence[Finding]) -> pa.Table:
    """Make columns of them."""
    rows = [
        {
            **asdict(finding),
            "wanted": finding.expected,
            "met": finding.is_met if finding.expected else None,
        }
        for finding in findings
    ]
    schema = pa.schema(
        [
            ("figure", pa.string()),
            ("what", pa.string()),
            *((name, pa.float64()) for name in ("ours", "low", "high")),
            ("paper", pa.string()),
            ("at_least", pa.float64()),
            ("at_most", pa.float64()),
            ("curve", pa.string()),
            ("along", pa.string()),
            ("at", pa.float64()),
            ("wanted", pa.string()),
            ("met", pa.bool_()),
        ]
    )
    return pa.Table.from_pylist(rows, schema)


_HEADER = ("figure", "what", "ours", "95 % interval", "paper", "verdict", "wanted", "met")
_ALWAYS = ("figure", "what", "ours")


def to_text(table: pa.Table) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Word them: a header, and a row of texts each; a column in which nothing stands is left out.

    A figure is named in its first row alone.
    """
    rows = []
    before = None
    for row in table.to_pylist():
        if not row["what"]:
            continue
        between = f"{_number(row['low'])} to {_number(row['high'])}"
        rows.append(
            (
                "" if row["figure"] == before else row["figure"],
                row["what"],
                _number(row["ours"]),
                "" if math.isnan(row["low"]) else between,
                row["paper"],
                verdict(
                    *(row[key] for key in ("ours", "low", "high", "paper")),
                    percent="%" in row["figure"],
                ),
                row["wanted"],
                {True: "yes", False: "no", None: ""}[row["met"]],
            )
        )
        before = row["figure"]
    used = [n in _ALWAYS or any(row[i] for row in rows) for i, n in enumerate(_HEADER)]
    header, *kept = (tuple(compress(row, used)) for row in [_HEADER, *rows])
    return header, kept


def to_markdown(table: pa.Table) -> str:
    """Write them as a Markdown table."""
    return table_model.to_markdown(table_model.from_texts(*to_text(table), kind="texts"))


def grouped(table: pa.Table) -> TableModel:
    """Make a table of them, figure by figure."""
    header, rows = to_text(table)
    groups: list[tuple[str, list[tuple[str, ...]]]] = []
    for figure, *texts in rows:
        if figure or not groups:
            groups.append((figure, []))
        groups[-1][1].append(tuple(texts))
    made = tuple(
        Group(figure, table_model.from_texts(header[1:], of_figure).groups[0].rows)
        for figure, of_figure in groups
    )
    return TableModel(tuple((name,) for name in header[2:]), made, header[1], "Findings")


def verdict(ours: float, low: float, high: float, paper: str, *, percent: bool = False) -> str:
    """Tell whether a figure is the source's, near it, or another."""
    if not math.isfinite(ours):
        return ""
    if match := _LEAST.fullmatch(paper):
        least = float(match[1] or match[2])
        return SAME if max(ours, high) >= least else _by_distance(ours, least)
    if match := _MOST.fullmatch(paper):
        most = float(match[1] or match[2])
        return SAME if min(ours, low) <= most else _by_distance(ours, most)
    half = 0.0
    if match := _WHOLE.fullmatch(paper):
        theirs, half = float(match[1]), 0.5
    elif match := _PART.fullmatch(paper):
        theirs = float(match[1]) / float(match[2]) * (100.0 if percent else 1.0)
    elif match := _EXACT.fullmatch(paper):
        theirs = float(match[1])
    else:
        return ""
    if min(ours, low) <= theirs + half and max(ours, high) >= theirs - half:
        return SAME
    return _by_distance(ours, theirs)


def _by_distance(ours: float, theirs: float) -> str:
    off = abs(ours - theirs)
    # a sum of decimals may miss its bound by a rounding
    for name, part in ((SAME, WITHIN_SAME), (CLOSE, WITHIN_CLOSE)):
        if off <= part * abs(theirs) * (1 + 1e-9):
            return name
    return DIFFERS


def source_sentence(source: str) -> str:
    """Word what the figures stand beside; nothing, where a source says ``Beyond ...``."""
    return f"{source}." if source.startswith("Beyond") else f"Beside {source}."


def _number(value: float) -> str:
    if value != value or math.isinf(value):
        return str(value)
    digits = 0 if abs(value) >= 1000 else 4 if abs(value) < 0.1 else 3 if abs(value) < 10 else 1
    return f"{value:,.{digits}f}"
