"""Two sweeps side by side: what was asked differently, and which cells came out differently."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sim.base import files, html
from sim.base.errors import InputError
from sim.base.masking import mask_tree
from sim.base.text import table_lines
from sweep.execution.rebase import AGAINST_BASELINE
from sweep.grid import config_tree
from sweep.report import changes, sheet
from sweep.report.changes import Change
from sweep.stats.arrange import AXES, NOT_METRICS, text
from sweep.stats.metric_format import format_contrast, format_value, in_order
from sweep.store.folder import SweepFolder

SAME, CHANGED, ONLY_A, ONLY_B = "same", "changed", "only in A", "only in B"
FAILS, MENDED, FAILS_TOO = "fails in B", "failed in A", "fails in both"
_NOT_CONFIG = frozenset(("sweep", "words", "config_dirs"))
_NOT_PROVENANCE = frozenset(("command", "seeds"))


@dataclass(frozen=True)
class Pair:
    """A cell as it is in one sweep or both."""

    labels: Mapping[str, str]  # what it is matched by
    # `SAME` (every bit of every metric), `CHANGED`, `ONLY_A`, `ONLY_B`, or which of them failed
    verdict: str
    same_key: bool  # whether both are one cell of the cache
    changes: Mapping[str, tuple[float, float]]  # metrics that differ, in A and B; NaN for none
    values: tuple[Mapping[str, float], Mapping[str, float]] = ({}, {})  # all metrics, in A and B


@dataclass(frozen=True)
class Comparison:
    """What `compare` finds; `config` and `provenance` are (what, in A, in B)."""

    a: str
    b: str
    config: list[tuple[str, str, str]]
    provenance: list[tuple[str, str, str]]
    labels: list[str]
    pairs: list[Pair]

    @property
    def counts(self) -> dict[str, int]:
        """Cells by verdict, those that occur."""
        counted = Counter(pair.verdict for pair in self.pairs)
        order = (SAME, CHANGED, FAILS, MENDED, FAILS_TOO, ONLY_A, ONLY_B)
        return {verdict: counted[verdict] for verdict in order if counted[verdict]}

    @property
    def n_same_by_other_means(self) -> int:
        """Cells with the same bits though their sources, inputs or configuration differ."""
        return sum(pair.verdict == SAME and not pair.same_key for pair in self.pairs)


def compare(a: SweepFolder, b: SweepFolder) -> Comparison:
    """Match the cells of two sweeps by policy, trace, capacity, seed and whatever is swept.

    A key that only one of them sweeps is looked up in the other's configuration of the cell where
    it stands there, so that sweeping one more parameter does not part all cells.
    """
    configs = a.config(), b.config()
    swept = list(dict.fromkeys((*configs[0]["swept"], *configs[1]["swept"])))
    labels = [*AXES, *swept]
    mine, theirs = (_by_label(folder, labels) for folder in (a, b))
    order = [*mine, *(key for key in theirs if key not in mine)]
    # speed-ups over different policies differ without a cell being another
    leaves_out = AGAINST_BASELINE if configs[0]["baseline"] != configs[1]["baseline"] else ()
    pairs = [
        _pair(dict(zip(labels, key, strict=True)), mine.get(key), theirs.get(key), leaves_out)
        for key in order
    ]
    facts = [_provenance(folder) for folder in (a, b)]
    return Comparison(
        a.sweep,
        b.sweep,
        _differences(*({k: v for k, v in c.items() if k not in _NOT_CONFIG} for c in configs)),
        _differences(*facts),
        labels,
        pairs,
    )


Labels = tuple[str, ...]


def _by_label(folder: SweepFolder, labels: Sequence[str]) -> dict[Labels, dict[str, Any]]:
    rows: dict[Labels, dict[str, Any]] = {}
    for row in folder.cells().to_pylist():
        key = tuple(text(row[name] if name in row else _configured(row, name)) for name in labels)
        if key in rows:
            raise InputError(f"{folder.sweep} has several cells {', '.join(filter(None, key))}")
        rows[key] = row
    return rows


def _configured(row: Mapping[str, Any], name: str) -> Any:
    """Value of a key in a cell's own configuration; None if it is not there."""
    value: Any = json.loads(row.get("config") or "{}")
    head, *rest = name.split(".")
    for part in [head, *(["params"] if head == "policy" else []), *rest]:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value if isinstance(value, str | int | float | None) else json.dumps(value)


def _pair(
    labels: Mapping[str, str],
    a: Mapping[str, Any] | None,
    b: Mapping[str, Any] | None,
    leaves_out: Sequence[str],
) -> Pair:
    if a is None or b is None:
        return Pair(labels, ONLY_B if a is None else ONLY_A, False, {})
    same_key = a["key"] == b["key"]
    failed = (a["status"] == "failed", b["status"] == "failed")
    if any(failed):
        verdict = FAILS_TOO if all(failed) else MENDED if failed[0] else FAILS
        return Pair(labels, verdict, same_key, {})
    values = [_metrics(row, (*labels, *leaves_out)) for row in (a, b)]
    names = in_order(list(dict.fromkeys((*values[0], *values[1]))))
    differing = {
        name: ends
        for name in names
        if repr((ends := (values[0].get(name, math.nan), values[1].get(name, math.nan)))[0])
        != repr(ends[1])
    }
    return Pair(labels, CHANGED if differing else SAME, same_key, differing, (values[0], values[1]))


def _metrics(row: Mapping[str, Any], labels: Sequence[str]) -> dict[str, float]:
    skip = {*NOT_METRICS, *labels}
    return {
        name: float(value)
        for name, value in row.items()
        if name not in skip and isinstance(value, float)
    }


def _provenance(folder: SweepFolder) -> dict[str, Any]:
    facts = {k: v for k, v in folder.provenance().items() if k not in _NOT_PROVENANCE}
    inputs: dict[str, list[str]] = {}
    for workload in facts.pop("inputs", []):
        inputs.setdefault(workload["trace"], []).append(workload["digest"][:12])
    return facts | {"inputs": inputs}


def _differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Leaves that differ, in the order of A, then of B; secrets masked."""
    mine, theirs = _leaves(mask_tree(a)), _leaves(mask_tree(b))
    return [
        (key, mine.get(key, ""), theirs.get(key, ""))
        for key in dict.fromkeys((*mine, *theirs))
        if mine.get(key, "") != theirs.get(key, "")
    ]


def _leaves(tree: Mapping[str, Any]) -> dict[str, str]:
    """Values by dotted key, as texts."""
    return {
        key: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in config_tree.leaves(tree)
        if value is not None
    }


Rows = tuple[list[str], list[list[str]]]
_TEMPLATES = Path(__file__).parent / "templates"
MAX_CELLS = 500
"""Cells that the pages list; whatever is the same comes last."""
MOST_PRINTED = 24
"""Tests that the terminal lists, those that are significant first."""
LONG = 60


def summary(comparison: Comparison) -> list[str]:
    """Say in a few lines how the cells came out."""
    n_cells = len(comparison.pairs)
    words = [f"{n} {verdict}" for verdict, n in comparison.counts.items()]
    lines = [f"{n_cells} cell{'s' * (n_cells != 1)}: {', '.join(words)}"]
    if comparison.n_same_by_other_means:
        lines.append(
            f"{comparison.n_same_by_other_means} of the same cells were computed twice: sources, "
            "inputs or configuration differ, the bits do not"
        )
    return lines


def metrics(comparison: Comparison) -> Rows:
    """Give a row a metric that changed: in how many cells, by how much on average and at most."""
    names = dict.fromkeys(name for pair in comparison.pairs for name in pair.changes)
    rows = []
    for name in names:
        cells = [pair for pair in comparison.pairs if name in pair.changes]
        ends = np.array([pair.changes[name] for pair in cells])
        change = ends[:, 1] - ends[:, 0]
        known = np.isfinite(change)
        mean = _change(name, float(change[known].mean())) if known.any() else ""
        most = int(np.argmax(np.where(known, np.abs(change), -1.0)))
        values = " → ".join(format_value(name, end)[0] or "none" for end in ends[most])
        rows.append([name, str(len(cells)), mean, f"{values} ({_label(cells[most])})"])
    return ["metric", "cells", "mean change", "largest change"], rows


def tested(comparison: Comparison) -> list[Change]:
    """Test what changed, over the seeds of each policy, trace, capacity and swept parameter."""
    both = (pair for pair in comparison.pairs if pair.verdict in (SAME, CHANGED))
    return changes.changes((pair.labels, *pair.values) for pair in both)


def cells(comparison: Comparison, n: int = MAX_CELLS) -> Rows:
    """Give a row a cell, up to `n`, those that changed first: its labels and what changed."""
    pairs = comparison.pairs
    used = [name for name in comparison.labels if any(pair.labels[name] for pair in pairs)]
    order = sorted(pairs, key=lambda pair: (pair.verdict != CHANGED, pair.verdict == SAME))
    rows = [
        [*(pair.labels[name] for name in used), pair.verdict, "; ".join(_changes(pair))]
        for pair in order[:n]
    ]
    return [*used, "", "what changed"], rows


def _changes(pair: Pair) -> Iterator[str]:
    for name, ends in list(pair.changes.items())[:3]:
        texts = [format_value(name, end)[0] or "none" for end in ends]
        if texts[0] == texts[1]:
            texts = [repr(end) for end in ends]
        yield f"{name} {texts[0]} → {texts[1]}"
    if len(pair.changes) > 3:
        yield f"and {len(pair.changes) - 3} more"


def _change(metric: str, change: float) -> str:
    return format_contrast(metric, "difference", change, math.nan, math.nan)[0]


def _label(pair: Pair) -> str:
    named = ("capacity", "seed")
    return ", ".join(f"{k} {v}" if k in named else v for k, v in pair.labels.items() if v)


def print_comparison(comparison: Comparison) -> None:
    """Print what differs; the cells themselves are on the pages."""
    print(f"A: {comparison.a}\nB: {comparison.b}")
    for title, differences in _sections(comparison):
        print(f"\n{title}:")
        header, rows = differences
        print("\n".join(table_lines(header, [[_cut(cell) for cell in row] for row in rows])))
    print()
    print("\n".join(summary(comparison)))
    header, rows = metrics(comparison)
    if rows:
        print()
        print("\n".join(table_lines(header, rows)))
    found = tested(comparison)
    if found:
        print(f"\n{changes.LEGEND}\n")
        print("\n".join(table_lines(*changes.rows(found[:MOST_PRINTED]))))
    if len(found) > MOST_PRINTED:
        print(f"and {len(found) - MOST_PRINTED} more, on the pages")


def write(comparison: Comparison, results: Path) -> tuple[Path, Path]:
    """Write ``comparisons/A--B.md`` and ``.html`` under a folder of results.

    The same sweeps give the same bytes; each file is replaced as a whole.
    """
    base = results / "comparisons" / f"{comparison.a}--{comparison.b}"
    markdown, page = Path(f"{base}.md"), Path(f"{base}.html")
    files.write_text(markdown, to_markdown(comparison))
    files.write_text(page, to_html(comparison))
    return markdown, page


def to_markdown(comparison: Comparison) -> str:
    """Write it as Markdown."""
    parts = [f"# {comparison.a} and {comparison.b}", "  \n".join(_lead(comparison))]
    parts += [
        f"## {title}\n\n" + sheet.to_markdown(sheet.of_texts(*rows, kind="texts")).rstrip()
        for title, rows in [*_sections(comparison), *_tables(comparison)]
    ]
    return "\n\n".join(parts) + "\n"


def _lead(comparison: Comparison) -> list[str]:
    return [*summary(comparison), *([changes.LEGEND] if tested(comparison) else [])]


def to_html(comparison: Comparison) -> str:
    """Write it as one page that loads nothing."""
    context: dict[str, Any] = {
        "a": comparison.a,
        "b": comparison.b,
        "lines": _lead(comparison),
        "tables": [
            sheet.of_texts(*rows, kind="texts", title=title)
            for title, rows in [*_sections(comparison), *_tables(comparison)]
        ],
        "css": html.css(),
    }
    text: str = html.environment(_TEMPLATES).get_template("compare.html.j2").render(context)
    return text


def _sections(comparison: Comparison) -> list[tuple[str, Rows]]:
    sections = [("Configuration", comparison.config), ("Provenance", comparison.provenance)]
    header = ["what", "A", "B"]
    return [(title, (header, [list(row) for row in rows])) for title, rows in sections if rows]


def _tables(comparison: Comparison) -> list[tuple[str, Rows]]:
    tables = [("Metrics that changed", metrics(comparison))] if metrics(comparison)[1] else []
    found = tested(comparison)
    if found:
        title = "What changed, over seeds" + _left_out(len(found) - MAX_CELLS)
        tables.append((title, changes.rows(found[:MAX_CELLS])))
    shown = cells(comparison)
    n_left = len(comparison.pairs) - len(shown[1])
    return [*tables, ("Cells" + _left_out(n_left), shown)]


def _left_out(n: int) -> str:
    return f" ({n} more are not shown)" if n > 0 else ""


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONG else line[: LONG - 1] + "…"
