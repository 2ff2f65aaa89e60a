"""Overview of a sweep: policies by capacities against the baseline, and Pareto fronts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from sweep.report.table import capacity_text, columns_present
from sweep.report.table_model import Cell, Group, TableModel, escape_markdown
from sweep.report.table_model import to_markdown as table_to_markdown
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import format_contrast, format_value, is_fraction, style
from sweep.stats.summary import Block, Summary
from sweep.stats.verdict import Standing, Verdict

TIED = "="
MEAN, TAIL = "jct_mean_s", "jct_p99_s"


@dataclass(frozen=True)
class Picture:
    """Heat map of one trace and settings: a row a policy, a cell a capacity, empty for none."""

    label: str  # of the values shown
    table: TableModel
    notes: tuple[str, ...]


def pictures(verdicts: Sequence[Verdict]) -> list[Picture]:
    """Build a picture for each trace and settings."""
    by_world = groupby(verdicts, key=lambda verdict: (verdict.trace, verdict.settings))
    return [_picture(list(group)) for _, group in by_world]


def _picture(verdicts: Sequence[Verdict]) -> Picture:
    first = verdicts[0]
    metric, label = first.metric, style(first.metric).label
    policies = dict.fromkeys(s.policy for verdict in verdicts for s in verdict.standings)
    oracles = {s.policy for verdict in verdicts for s in verdict.standings if s.is_oracle}
    by_policy = [{s.policy: s for s in verdict.standings} for verdict in verdicts]
    scores = [
        {name: _score(metric, s, standings) for name, s in standings.items()}
        for standings in by_policy
    ]
    largest = (
        max((abs(score) for standings in scores for score in standings.values()), default=0.0)
        or 1.0
    )
    rows = tuple(
        (
            f"{policy} (oracle)" if policy in oracles else policy,
            tuple(
                _cell(metric, standings, policy, score[policy] / largest)
                if policy in score
                else Cell()
                for standings, score in zip(by_policy, scores, strict=True)
            ),
        )
        for policy in policies
    )
    if first.baseline is not None:
        relation = "difference from" if is_fraction(metric) else "times better than"
        label = f"{label}, {relation} {first.baseline}"
    cells = [cell for _, row_cells in rows for cell in row_cells]
    notes = []
    if any("best" in cell.style for cell in cells):
        aside = ", oracles aside" if oracles else ""
        notes.append(f"bold: the best mean and all not significantly different from it{aside}")
    if any(cell.mark for cell in cells):
        notes.append(f"{TIED}: exactly equal to the best")
    title = ", ".join((first.trace, *(f"{key}={value}" for key, value in first.settings)))
    heads = [(text(v.capacity), *[f"({m})" for m in [v.machines] if m]) for v in verdicts]
    table = TableModel(tuple(heads), (Group("", rows),), "capacity", title, "picture")
    return Picture(label, table, (*notes, *filter(None, map(_capacity_note, verdicts))))


def _capacity_note(verdict: Verdict) -> str:
    """Write the offered load and the stretch of arrivals at a capacity, if known."""
    load, scale = (verdict.about.get(name) for name in ("offered_load", "arrival_scale"))
    parts = [
        "" if load is None else f"offered load {load:.2f}",
        "" if scale is None or scale == 1 else f"arrivals stretched {scale:.3g} times",
    ]
    facts = ", ".join(filter(None, parts))
    return f"capacity {text(verdict.capacity)}: {facts}" if facts else ""


def _score(metric: str, standing: Standing, standings: Mapping[str, Standing]) -> float:
    """Score a policy against the baseline, or else the worst: larger is better, 0 for equal."""
    comparison = standing.against
    better = style(metric).better
    if comparison is not None and math.isfinite(comparison.estimate):
        if standing.is_ratio:
            return math.log(comparison.estimate)
        return -comparison.estimate if better == "lower" else comparison.estimate
    if any(other.against is not None for other in standings.values()):
        return 0.0
    values = [other.value for other in standings.values()]
    return max(values) - standing.value if better == "lower" else standing.value - min(values)


def _cell(metric: str, standings: Mapping[str, Standing], policy: str, score: float) -> Cell:
    """Build the cell of a policy at a capacity; `score` gives its colour on the page."""
    standing, comparison = standings[policy], standings[policy].against
    mean = format_value(metric, standing.value)[0]
    mean += " s" if style(metric).kind == "seconds" else ""
    shown, interval = mean, ""
    if comparison is not None:
        statistic = "ratio" if standing.is_ratio else "difference"
        amount, interval = format_contrast(
            metric, statistic, comparison.estimate, comparison.low, comparison.high
        )
        shown = amount or mean
    runnable = [s for s in standings.values() if not s.is_oracle] or list(standings.values())
    is_best = standing.is_best and not all(other.is_best for other in runnable)
    classes = ["more"] * (score > 0) + ["less"] * (score < 0) + ["best"] * is_best
    return Cell(
        shown,
        mark=f" {TIED}" * standing.is_tied,
        style=" ".join(classes),
        about=" ".join(filter(None, (f"{style(metric).label} {mean}", interval))),
        weight=round(abs(score), 3),
    )


def fronts(summary: Summary, block: Block) -> Iterator[tuple[int, list[int]]]:
    """Yield the Pareto front of mean and tail by capacity: columns that no other beats in both.

    Oracles are left out.
    """
    if not {MEAN, TAIL} <= set(summary.metrics):
        return
    mean, tail = (summary.metrics.index(name) for name in (MEAN, TAIL))
    for k in range(len(block.capacities)):
        points = {
            c: (float(block.mean[k, c, mean]), float(block.mean[k, c, tail]))
            for c in columns_present(summary, block)
            if np.isfinite(block.mean[k, c, [mean, tail]]).all()
            and not summary.columns[c].is_oracle
        }
        if len(points) > 1:
            front = [
                c
                for c, (x, y) in points.items()
                if not any(a <= x and b <= y and (a, b) != (x, y) for a, b in points.values())
            ]
            yield k, sorted(front, key=lambda c: points[c])


def to_markdown(pictures: Sequence[Picture], summary: Summary) -> str:
    """Write the pictures as tables, and the fronts as sentences."""
    lines: list[str] = []
    for picture in pictures:
        title = f"{picture.table.title}: " if len(pictures) > 1 else ""
        lines += [escape_markdown(f"{title}{picture.label}"), "", table_to_markdown(picture.table)]
        lines += ["; ".join(picture.notes), ""] if picture.notes else []
    for block in summary.blocks:
        title = f"{block.title} at capacity" if len(summary.blocks) > 1 else "At capacity"
        for k, front in fronts(summary, block):
            names = ", ".join(summary.columns[c].label for c in front)
            where = f"{title} {capacity_text(block, k)}"
            sentence = (
                f"{where}, no policy has both a lower mean and a lower p99 JCT than: {names}."
            )
            lines += [escape_markdown(sentence) + "  "]
    return "\n".join(lines).rstrip() + "\n" if lines else ""
