"""What differs between two sweeps, as text for terminal, Markdown and HTML."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sim.base import files, html
from sim.base.text import table_lines
from sweep.report.compare import CHANGED, SAME, Comparison, Pair
from sweep.report.table_view import escaped, piped
from sweep.stats.metric_format import format_contrast, format_value

Rows = tuple[list[str], list[list[str]]]
_TEMPLATES = Path(__file__).parent / "templates"
MAX_CELLS = 500
"""Cells that the pages list; whatever is the same comes last."""
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
    parts = [f"# {comparison.a} and {comparison.b}", "  \n".join(summary(comparison))]
    for title, (header, rows) in [*_sections(comparison), *_tables(comparison)]:
        lines = [_escaped(header), piped(["---"] * len(header)), *map(_escaped, rows)]
        parts.append(f"## {title}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def to_html(comparison: Comparison) -> str:
    """Write it as one page that loads nothing."""
    context: dict[str, Any] = {
        "a": comparison.a,
        "b": comparison.b,
        "lines": summary(comparison),
        "tables": [*_sections(comparison), *_tables(comparison)],
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
    shown = cells(comparison)
    n_left = len(comparison.pairs) - len(shown[1])
    return [*tables, (f"Cells ({n_left} more are not shown)" if n_left else "Cells", shown)]


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONG else line[: LONG - 1] + "…"


def _escaped(texts: Sequence[str]) -> str:
    return piped([escaped(text) for text in texts])
