"""The whole of a sweep in one picture: policies by capacities, each beside the baseline."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from sweep.report.table import capacity_text, columns_present
from sweep.report.table_model import Cell, Group, TableModel, escape_markdown
from sweep.report.table_model import to_markdown as written
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import format_contrast, format_value, is_fraction, style
from sweep.stats.summary import Block, Summary
from sweep.stats.verdict import Standing, Verdict

TIED = "="
MEAN, TAIL = "jct_mean_s", "jct_p99_s"


@dataclass(frozen=True)
class Picture:
    """The picture of one trace and settings: a row a policy, a cell a capacity, empty for none."""

    label: str  # what is shown, in words
    sheet: TableModel
    notes: tuple[str, ...]


def pictures(verdicts: Sequence[Verdict]) -> list[Picture]:
    """Make a picture for each trace and settings."""
    by_world = groupby(verdicts, key=lambda one: (one.trace, one.settings))
    return [_picture(list(group)) for _, group in by_world]


def _picture(verdicts: Sequence[Verdict]) -> Picture:
    first = verdicts[0]
    metric, label = first.metric, style(first.metric).label
    policies = dict.fromkeys(s.policy for one in verdicts for s in one.standings)
    by_policy = [{s.policy: s for s in one.standings} for one in verdicts]
    scores = [{name: _score(metric, s, of) for name, s in of.items()} for of in by_policy]
    most = max((abs(score) for of in scores for score in of.values()), default=0.0) or 1.0
    rows = tuple(
        (
            policy,
            tuple(
                _spot(metric, of, policy, score[policy] / most) if policy in score else Cell()
                for of, score in zip(by_policy, scores, strict=True)
            ),
        )
        for policy in policies
    )
    if first.baseline is not None:
        how = "difference from" if is_fraction(metric) else "times better than"
        label = f"{label}, {how} {first.baseline}"
    cells = [cell for _, of_policy in rows for cell in of_policy]
    notes = []
    if any("best" in cell.look for cell in cells):
        notes.append("bold: the best mean, and what no test tells from it")
    if any(cell.mark for cell in cells):
        notes.append(f"{TIED}: exactly tied")
    title = ", ".join((first.trace, *(f"{key}={value}" for key, value in first.settings)))
    heads = [(text(v.capacity), *[f"({m})" for m in [v.machines] if m]) for v in verdicts]
    made = TableModel(tuple(heads), (Group("", rows),), "capacity", title, "picture")
    return Picture(label, made, (*notes, *filter(None, map(_world, verdicts))))


def _world(verdict: Verdict) -> str:
    """Say what a capacity is besides its machines, as far as that is known: load, arrivals."""
    load, scale = (verdict.about.get(name) for name in ("offered_load", "arrival_scale"))
    parts = [
        "" if load is None else f"offered load {load:.2f}",
        "" if scale is None or scale == 1 else f"arrivals stretched {scale:.3g} times",
    ]
    said = ", ".join(filter(None, parts))
    return f"capacity {text(verdict.capacity)}: {said}" if said else ""


def _score(metric: str, standing: Standing, others: Mapping[str, Standing]) -> float:
    """How much better than the baseline, or than the worst; more is better, 0 for the same."""
    found = standing.against
    better = style(metric).better
    if found is not None and math.isfinite(found.estimate):
        if standing.is_ratio:
            return math.log(found.estimate)
        return -found.estimate if better == "lower" else found.estimate
    if any(other.against is not None for other in others.values()):
        return 0.0
    values = [other.value for other in others.values()]
    return max(values) - standing.value if better == "lower" else standing.value - min(values)


def _spot(metric: str, standings: Mapping[str, Standing], policy: str, score: float) -> Cell:
    """Show a policy at a capacity; the page's colour follows how much better than the baseline."""
    standing, found = standings[policy], standings[policy].against
    mean = format_value(metric, standing.value)[0]
    mean += " s" if style(metric).kind == "seconds" else ""
    shown, interval = mean, ""
    if found is not None:
        kind = "ratio" if standing.is_ratio else "difference"
        by, interval = format_contrast(metric, kind, found.estimate, found.low, found.high)
        shown = by or mean
    is_best = standing.is_best and not all(one.is_best for one in standings.values())
    look = ["more"] * (score > 0) + ["less"] * (score < 0) + ["best"] * is_best
    return Cell(
        shown,
        mark=f" {TIED}" * standing.is_tied,
        look=" ".join(look),
        about=" ".join(filter(None, (f"{style(metric).label} {mean}", interval))),
        weight=round(abs(score), 3),
    )


def fronts(summary: Summary, block: Block) -> Iterator[tuple[int, list[int]]]:
    """By capacity, the columns that none beats in both mean and tail; none where not known."""
    if not {MEAN, TAIL} <= set(summary.metrics):
        return
    mean, tail = (summary.metrics.index(name) for name in (MEAN, TAIL))
    for k in range(len(block.capacities)):
        points = {
            c: (float(block.mean[k, c, mean]), float(block.mean[k, c, tail]))
            for c in columns_present(summary, block)
            if np.isfinite(block.mean[k, c, [mean, tail]]).all()
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
        title = f"{picture.sheet.title}: " if len(pictures) > 1 else ""
        lines += [escape_markdown(f"{title}{picture.label}"), "", written(picture.sheet)]
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
