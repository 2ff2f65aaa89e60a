"""Findings of a study: figures computed from a finished sweep, judged against the source's."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import compress
from typing import Any

import pyarrow as pa

from sweep.report import agreement, table_model
from sweep.report.table_model import Group, TableModel
from sweep.stats import interval
from sweep.store.cache import Cache

Excluded = Callable[[Mapping[str, Any]], str]
"""Reason why a row of a table of findings is not counted; empty if it is."""


@dataclass(frozen=True)
class Finding:
    """One measured value and its counterpart in the source."""

    figure: str  # of the source, such as ``Fig. 13``; rows of one figure stand together
    quantity: str  # empty for a point that is plotted but not tabulated
    ours: float  # the value and its 95 % confidence interval (NaN where there is none)
    low: float = math.nan
    high: float = math.nan
    paper: str = ""  # the source's value; empty where it has none
    at_least: float = -math.inf  # expected range; infinite where nothing is expected
    at_most: float = math.inf
    curve: str = ""  # name of the curve that this is a point of; empty for none
    along: str = ""  # label of that curve's x axis
    x: float = math.nan
    exact: bool = False  # no seed changes it: it needs no interval
    n: int = 0  # values of which the interval is Student's; 0 if it is another's, or unknown

    @classmethod
    def from_seeds(
        cls, figure: str, quantity: str, values: Sequence[float], **fields: Any
    ) -> Finding:
        """Build a finding from the mean over seeds, with Student's interval."""
        mean, low, high = interval(values)
        return cls(figure, quantity, mean, low, high, n=len(values), **fields)

    @property
    def number(self) -> str:
        """Keys of the source's number as JSON; empty if it is no `sim.published.Printed`."""
        path = getattr(self.paper, "path", ())
        return json.dumps(path, ensure_ascii=False) if path else ""

    @property
    def expected(self) -> str:
        """Expected range, such as ``≥ 2``; empty if nothing is expected."""
        low = f"≥ {self.at_least:g}" if math.isfinite(self.at_least) else ""
        high = f"≤ {self.at_most:g}" if math.isfinite(self.at_most) else ""
        return ", ".join(filter(None, (low, high)))

    @property
    def is_met(self) -> bool:
        """True if the value lies in the expected range."""
        return self.at_least <= self.ours <= self.at_most


@dataclass(frozen=True)
class FinishedSweep:
    """A finished sweep, the input of a study."""

    cells: list[dict[str, Any]]  # the rows of ``cells.parquet`` that did not fail
    config: Mapping[str, Any]  # the sweep's ``config.yaml``
    cache: Cache

    def table(self, row: Mapping[str, Any]) -> pa.Table:
        """Read the table that a cell's metrics were computed from; of a simulation, a row a job."""
        result = self.cache.get(row["key"])
        assert result is not None, "a cell that did not fail is cached"
        assert result.jobs is not None
        return result.jobs

    def group_by(self, *keys: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
        """Group the cells by some of their columns, in order of first appearance."""
        groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in self.cells:
            groups.setdefault(tuple(row[key] for key in keys), []).append(row)
        return groups


def to_table(findings: Sequence[Finding]) -> pa.Table:
    """Build the table of findings (``findings.parquet``)."""
    rows = [
        {
            **asdict(finding),
            "what": finding.quantity,
            "number": finding.number,
            "one_draw": getattr(finding.paper, "is_one_draw", False),
            "at": finding.x,
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
            ("number", pa.string()),
            ("at_least", pa.float64()),
            ("at_most", pa.float64()),
            ("curve", pa.string()),
            ("along", pa.string()),
            ("at", pa.float64()),
            ("exact", pa.bool_()),
            ("n", pa.int32()),
            ("one_draw", pa.bool_()),
            ("wanted", pa.string()),
            ("met", pa.bool_()),
        ]
    )
    return pa.Table.from_pylist(rows, schema)


_HEADER = (
    *("figure", "what", "ours", "95 % interval", "paper", "verdict", "not counted"),
    *("wanted", "met"),
)
_ALWAYS = ("figure", "what", "ours")


def to_text(
    table: pa.Table, excluded: Excluded | None = None
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Format findings as texts: a header, and a row for each; empty columns are left out.

    Only the first row of a figure has its name.
    """
    rows = []
    before = None
    for row in table.to_pylist():
        if not row["what"]:
            continue
        judged = verdict(row)
        rows.append(
            (
                "" if row["figure"] == before else row["figure"],
                row["what"],
                number(row["ours"]),
                _interval(row),
                row["paper"],
                judged,
                excluded(row) if excluded and judged else "",
                row["wanted"],
                {True: "yes", False: "no", None: ""}[row["met"]],
            )
        )
        before = row["figure"]
    used = [n in _ALWAYS or any(row[i] for row in rows) for i, n in enumerate(_HEADER)]
    header, *body = (tuple(compress(row, used)) for row in [_HEADER, *rows])
    return header, body


def verdict(row: Mapping[str, Any]) -> str:
    """Judge a row of the table of findings against the source's number."""
    return agreement.verdict(
        *(row[key] for key in ("ours", "low", "high", "paper")),
        percent="%" in row["figure"],
        exact=row.get("exact", False),
        n=(row.get("n") or 0) if row.get("one_draw") else None,
    )


def _interval(row: Mapping[str, Any]) -> str:
    if row.get("exact"):
        return "exact"
    return "" if math.isnan(row["low"]) else f"{number(row['low'])} to {number(row['high'])}"


def to_markdown(table: pa.Table, excluded: Excluded | None = None) -> str:
    """Write findings as a Markdown table."""
    texts = to_text(table, excluded)
    return table_model.to_markdown(table_model.from_texts(*texts, kind="texts"))


def grouped(table: pa.Table) -> TableModel:
    """Build a table of findings, grouped by figure."""
    header, rows = to_text(table)
    groups: list[tuple[str, list[tuple[str, ...]]]] = []
    for figure, *texts in rows:
        if figure or not groups:
            groups.append((figure, []))
        groups[-1][1].append(tuple(texts))
    tables = tuple(
        Group(figure, table_model.from_texts(header[1:], figure_rows).groups[0].rows)
        for figure, figure_rows in groups
    )
    return TableModel(tuple((name,) for name in header[2:]), tables, header[1], "Findings")


def source_sentence(source: str) -> str:
    """Write the sentence that names the source; a source ``Beyond ...`` stands as it is."""
    return f"{source}." if source.startswith("Beyond") else f"Beside {source}."


def number(value: float) -> str:
    """Format a value of a page."""
    if value != value or math.isinf(value):
        return str(value)
    digits = 0 if abs(value) >= 1000 else 4 if abs(value) < 0.1 else 3 if abs(value) < 10 else 1
    return f"{value:,.{digits}f}"
