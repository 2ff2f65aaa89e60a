"""Comparison of two sweeps: differences of configuration, provenance and results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from sim.base import files, html
from sim.base.masking import mask_tree
from sim.base.text import table_lines
from sweep.execution.baseline_metrics import AGAINST_BASELINE
from sweep.grid import config_tree
from sweep.questions.compare import changes
from sweep.questions.compare.changes import Change
from sweep.questions.compare.matching import CHANGED, SAME, VERDICTS, Matched, Metric, match
from sweep.report import table_model
from sweep.stats.cell_columns import AXES
from sweep.stats.cell_columns import Rows as Numbers
from sweep.stats.metric_format import format_contrast, format_value
from sweep.store.folder import SweepFolder

_NOT_CONFIG = frozenset(("sweep", "words", "config_dirs"))
_NOT_PROVENANCE = frozenset(("command", "seeds"))


@dataclass(frozen=True)
class Comparison:
    """Result of `compare`; `config` and `provenance` hold (key, value in A, value in B)."""

    config: list[tuple[str, str, str]]
    provenance: list[tuple[str, str, str]]
    matched: Matched
    other_jobs: tuple[str, ...] = ()  # traces of which no workload is in both

    @property
    def a(self) -> str:
        """Id of the first sweep."""
        return self.matched.folders[0].sweep

    @property
    def b(self) -> str:
        """Id of the second sweep."""
        return self.matched.folders[1].sweep

    @property
    def counts(self) -> dict[str, int]:
        """Number of cells by verdict, for verdicts that occur."""
        counted = np.bincount(self.matched.verdict, minlength=len(VERDICTS)).tolist()
        return {verdict: n for verdict, n in zip(VERDICTS, counted, strict=True) if n}

    @property
    def n_same_by_other_means(self) -> int:
        """Number of cells with equal bits though sources, inputs or configuration differ."""
        return int(np.count_nonzero(self.matched.has(SAME) & ~self.matched.same_key))

    @cached_property
    def by_metric(self) -> list[list[str]]:
        """A row for each changed metric: number of cells, mean change, largest change."""
        rows = []
        for metric in self.matched.metrics():
            pairs = np.flatnonzero(metric.differs)
            if len(pairs):
                rows.append((pairs[0], _metric_row(self.matched, metric, pairs)))
        return [row for _, row in sorted(rows, key=itemgetter(0))]  # by the first changed cell

    @cached_property
    def tested(self) -> list[Change]:
        """Changes over the seeds of each policy, trace, capacity and swept parameter."""
        return changes.changes(self.matched)


def compare(a: SweepFolder, b: SweepFolder) -> Comparison:
    """Match the cells of two sweeps by policy, trace, capacity, seed and all swept keys.

    A key that only one of them sweeps is looked up in the other's configuration of the cell, so
    that cells still match when one more parameter is swept.
    """
    configs = a.config(), b.config()
    swept = list(dict.fromkeys((*configs[0]["swept"], *configs[1]["swept"])))
    # speed-ups over different baselines differ though the cells do not
    leaves_out = AGAINST_BASELINE if configs[0]["baseline"] != configs[1]["baseline"] else ()
    facts = [_provenance(folder) for folder in (a, b)]
    inputs_a, inputs_b = (fact["inputs"] for fact in facts)
    other_jobs = tuple(
        trace for trace in inputs_a.keys() & inputs_b if not {*inputs_a[trace]} & {*inputs_b[trace]}
    )
    return Comparison(
        _differences(*({k: v for k, v in c.items() if k not in _NOT_CONFIG} for c in configs)),
        _differences(*facts),
        match(a, b, [*AXES, *swept], leaves_out),
        tuple(sorted(other_jobs)),
    )


def _provenance(folder: SweepFolder) -> dict[str, Any]:
    facts = {k: v for k, v in folder.provenance().items() if k not in _NOT_PROVENANCE}
    inputs: dict[str, list[str]] = {}
    for workload in facts.pop("inputs", []):
        inputs.setdefault(workload["trace"], []).append(workload["digest"][:12])
    return facts | {"inputs": inputs}


def _differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return the keys whose values differ, in the order of A, then of B; secrets are masked."""
    leaves_a, leaves_b = _leaves(mask_tree(a)), _leaves(mask_tree(b))
    return [
        (key, leaves_a.get(key, ""), leaves_b.get(key, ""))
        for key in dict.fromkeys((*leaves_a, *leaves_b))
        if leaves_a.get(key, "") != leaves_b.get(key, "")
    ]


def _leaves(tree: Mapping[str, Any]) -> dict[str, str]:
    """Return values as texts by dotted key."""
    return {
        key: ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        for key, value in config_tree.leaves(tree)
        if value is not None
    }


Rows = tuple[list[str], list[list[str]]]
_TEMPLATES = Path(__file__).parent / "templates"
MAX_CELLS = 500
"""Cells that the pages list; unchanged cells come last."""
MAX_PRINTED = 24
"""Tests that the terminal lists, significant ones first."""
MAX_WIDTH = 60


def summary(comparison: Comparison) -> list[str]:
    """Summarize the results of the comparison in a few lines."""
    n_cells = len(comparison.matched)
    words = [f"{n} {verdict}" for verdict, n in comparison.counts.items()]
    lines = [f"{n_cells} cell{'s' * (n_cells != 1)}: {', '.join(words)}"]
    if comparison.n_same_by_other_means:
        lines.append(
            f"{comparison.n_same_by_other_means} of the same cells were computed twice: sources, "
            "inputs or configuration differ, the results are identical"
        )
    if comparison.other_jobs:
        traces = ", ".join(comparison.other_jobs)
        lines.append(
            f"no workload of {traces} is in both: cells of one seed are of other jobs, so that a "
            "change is not of policies or clusters alone"
        )
    return lines


def metrics(comparison: Comparison) -> Rows:
    """Return the table of changed metrics, in the order of their first changed cells."""
    return ["metric", "cells", "mean change", "largest change"], comparison.by_metric


def _metric_row(matched: Matched, metric: Metric, pairs: Numbers) -> list[str]:
    change = metric.b[pairs] - metric.a[pairs]
    is_finite = np.isfinite(change)
    mean = _change(metric.name, float(change[is_finite].mean())) if is_finite.any() else ""
    largest = pairs[np.argmax(np.where(is_finite, np.abs(change), -1.0))]
    ends = (float(end[largest]) for end in (metric.a, metric.b))
    values = " → ".join(format_value(metric.name, end)[0] or "none" for end in ends)
    return [metric.name, str(len(pairs)), mean, f"{values} ({_label(matched.labels_of(largest))})"]


def cells(comparison: Comparison, n: int = MAX_CELLS) -> Rows:
    """Return the table of up to `n` cells, changed ones first: labels, verdict, changes."""
    matched = comparison.matched
    label_names = [
        name for name, codes in matched.codes.items() if _any(matched.texts[name], codes)
    ]
    rank = np.ones(len(matched)) - matched.has(CHANGED) + matched.has(SAME)
    shown = np.argsort(rank, kind="stable")[:n].tolist()
    changed: dict[int, list[tuple[str, float, float]]] = {pair: [] for pair in shown}
    for metric in matched.metrics():
        for pair in (pair for pair in shown if metric.differs[pair]):
            changed[pair].append((metric.name, float(metric.a[pair]), float(metric.b[pair])))
    rows = []
    for pair in shown:
        labels = matched.labels_of(pair)
        changes_text = "; ".join(_changes(changed[pair]))
        rows.append(
            [*(labels[name] for name in label_names), matched.verdict_of(pair), changes_text]
        )
    return [*label_names, "", "changes"], rows


def _any(texts: Sequence[str], codes: Numbers) -> bool:
    return bool(np.array([bool(text) for text in texts])[codes].any())


def _changes(changed: Sequence[tuple[str, float, float]]) -> Iterator[str]:
    for name, *ends in changed[:3]:
        texts = [format_value(name, end)[0] or "none" for end in ends]
        if texts[0] == texts[1]:
            texts = [repr(end) for end in ends]
        yield f"{name} {texts[0]} → {texts[1]}"
    if len(changed) > 3:
        yield f"and {len(changed) - 3} more"


def _change(metric: str, change: float) -> str:
    return format_contrast(metric, "difference", change, math.nan, math.nan)[0]


def _label(labels: Mapping[str, str]) -> str:
    named = ("capacity", "seed")
    return ", ".join(f"{k} {v}" if k in named else v for k, v in labels.items() if v)


def print_comparison(comparison: Comparison) -> None:
    """Print the differences; the single cells are on the pages."""
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
    tested = comparison.tested
    if tested:
        print(f"\n{changes.LEGEND}\n")
        print("\n".join(table_lines(*changes.rows(tested[:MAX_PRINTED]))))
    if len(tested) > MAX_PRINTED:
        print(f"and {len(tested) - MAX_PRINTED} more in the report")


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
    """Write the comparison as Markdown."""
    parts = [f"# {comparison.a} and {comparison.b}", "  \n".join(_lead(comparison))]
    parts += [
        f"## {title}\n\n"
        + table_model.to_markdown(table_model.from_texts(*rows, kind="texts")).rstrip()
        for title, rows in [*_sections(comparison), *_tables(comparison)]
    ]
    return "\n\n".join(parts) + "\n"


def _lead(comparison: Comparison) -> list[str]:
    return [*summary(comparison), *([changes.LEGEND] if comparison.tested else [])]


def to_html(comparison: Comparison) -> str:
    """Write the comparison as a self-contained page."""
    context: dict[str, Any] = {
        "a": comparison.a,
        "b": comparison.b,
        "lines": _lead(comparison),
        "tables": [
            table_model.from_texts(*rows, kind="texts", title=title)
            for title, rows in [*_sections(comparison), *_tables(comparison)]
        ],
        "css": html.css(),
    }
    text: str = html.environment(_TEMPLATES).get_template("compare.html.j2").render(context)
    return text


def _sections(comparison: Comparison) -> list[tuple[str, Rows]]:
    sections = [("Configuration", comparison.config), ("Provenance", comparison.provenance)]
    header = ["key", "A", "B"]
    return [(title, (header, [list(row) for row in rows])) for title, rows in sections if rows]


def _tables(comparison: Comparison) -> list[tuple[str, Rows]]:
    tables = [("Metrics that changed", metrics(comparison))] if metrics(comparison)[1] else []
    tested = comparison.tested
    if tested:
        title = "Changes over seeds" + _left_out(len(tested) - MAX_CELLS)
        tables.append((title, changes.rows(tested[:MAX_CELLS])))
    shown = cells(comparison)
    n_left = len(comparison.matched) - len(shown[1])
    return [*tables, ("Cells" + _left_out(n_left), shown)]


def _left_out(n: int) -> str:
    return f" ({n} more not shown)" if n > 0 else ""


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_WIDTH else line[: MAX_WIDTH - 1] + "…"
