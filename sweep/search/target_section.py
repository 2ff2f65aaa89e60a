"""What the hunts for a target found, in words, a table and a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa

from sweep.report.plots import layout, line
from sweep.report.section import Plot, Section, Table
from sweep.stats.arrange import text
from sweep.stats.metric_format import format_value, style

Row = Mapping[str, Any]

TITLE = "How many machines"


def section(found: pa.Table, config: Mapping[str, Any]) -> Section:
    """Word ``targets.parquet``."""
    rows = found.to_pylist()
    goal, baseline = config["goal"], config["baseline"]
    sentences, tables, plots = [], [], []
    numbers = {name: at for at, name in enumerate(dict.fromkeys(map(_label, rows)))}
    several = len({(row["trace"]) for row in rows}) > 1
    for trace, group in groupby(rows, key=lambda row: row["trace"]):
        members = list(group)
        words = _sentences(members, baseline, goal)
        sentences += [f"{trace}: {sentence}" for sentence in words] if several else words
        tables.append(_table(members, goal, trace if several else ""))
        plots.append(_plot(members, goal, numbers, baseline, trace))
    sure = "; on which side of it a mean is, is 95 % sure"
    alone = "; one seed stands for itself"
    notes = (
        "Least number of machines looked at from capacity "
        f"{text(goal['low'])} to {text(goal['high'])} at which the mean of "
        f"{goal['metric']} over seeds is at "
        f"{'most' if goal['is_most'] else 'least'} {_bound(goal)}"
        f"{sure if max(row['seeds'] for row in rows) > 1 else alone}.",
    )
    title = f"{TITLE} for {_target(goal)}"
    return Section("targets", title, tuple(sentences), tuple(tables), tuple(plots), notes, True)


def _sentences(rows: Sequence[Row], baseline: str | None, goal: Mapping[str, Any]) -> list[str]:
    """Say what each policy needs, beside the baseline or the first that meets the target."""
    met = [row for row in rows if row["machines"] is not None and row["status"] == "met"]
    base = next((row for row in met if row["policy"] == baseline), met[0] if met else None)
    sentences = []
    for row in rows:
        needs = f"{_label(row)} needs"
        if row is base:
            if len(met) == 1 or row["note"]:
                sentences.append(f"{needs} {_machines(row, row['machines'])}{_also(row)}")
        elif row in met and base is not None:
            share, theirs = row["machines"] / base["machines"], text(round(base["machines"], 4))
            both = f"{_machines(row, row['machines'])} for {theirs}"
            needs += f" {share:.2f} of what {_label(base)} needs"
            sentences.append(f"{needs}: {both}{_also(row)}")
        else:
            sentences.append(_otherwise(row, goal) + _also(row))
    return sentences


def _otherwise(row: Row, goal: Mapping[str, Any]) -> str:
    """Say what there is to say of a policy for which no least number was found."""
    label, value = _label(row), row["value"]
    has = f" ({_value(goal, value)})" if value is not None else ""
    if row["status"] == "never":
        most, unit = text(round(row["machines_most"], 4)), row["unit"]
        even = f"even {most} {'is' if most == '1' else 'are'} not enough{has}"
        return f"{label} never meets it in the range up to {most} {unit}: {even if has else ''}"
    at = _machines(row, row["machines"])
    return f"{label} always meets it: {at}, the fewest asked about, are enough{has}"


def _also(row: Row) -> str:
    """Add how near the answer is, where that is not as near as asked, and what else was seen."""
    low, high = (
        None if row[end] is None else text(row[end]) for end in ("machines_low", "machines_high")
    )
    parts = [row["note"]]
    if not row["is_sure"] and row["seeds"]:
        above = "" if low is None else f"surely more than {low}"
        upto = "" if high is None else f"surely no more than {high}"
        if row["status"] != "never" and not high:
            upto = f"even {text(row['machines_most'])} may be too few"
        parts.append(" and ".join(filter(None, (above, upto))))
    return "".join(f"; {part}" for part in parts if part) + "."


def _table(rows: Sequence[Row], goal: Mapping[str, Any], caption: str) -> Table:
    header = ["policy", rows[0]["unit"], "capacity", "left", "all meet it from", goal["metric"]]
    return Table(caption, (*header, "seeds", "cells"), tuple(_entries(row, goal) for row in rows))


def _entries(row: Row, goal: Mapping[str, Any]) -> tuple[str, ...]:
    found = row["status"] if row["machines"] is None else text(round(row["machines"], 4))
    found = f"≤ {found}" if row["status"] == "always" else found
    found = found if row["is_sure"] else f"{found}?"
    ends = [f"{end:.4g}" if end is not None else "?" for end in (row["low"], row["high"])]
    left = f"({ends[0]}, {ends[1]}]" if row["status"] == "met" or not row["is_sure"] else ""
    safe = "" if row["machines_safe"] is None else text(round(row["machines_safe"], 4))
    capacity = "" if row["capacity"] is None else f"{row['capacity']:.4g}"
    half = None if row["value_low"] is None else row["value"] - row["value_low"]
    value = "" if row["value"] is None else _value(goal, row["value"], half)
    counts = f"{row['seeds']}", f"{row['cells']}"
    return _label(row), found, capacity, left, safe, value, *counts


def _plot(
    rows: Sequence[Row],
    goal: Mapping[str, Any],
    numbers: Mapping[str, int],
    baseline: str | None,
    trace: str,
) -> Plot:
    """Draw the metric at all that was looked at, and the target."""
    look = style(goal["metric"])
    scale = 100.0 if look.kind == "percent" else 1.0
    data: list[dict[str, Any]] = []
    for row in rows:
        probes = row["probes"]
        number = numbers[_label(row)]
        halves = [None if p["half"] is None else scale * p["half"] for p in probes]
        data.append(
            {
                "type": "scatter",
                "name": _label(row),
                "meta": number,
                "x": [round(p["machines"], 6) for p in probes],
                "y": [scale * p["mean"] for p in probes],
                "error_y": {"type": "data", "array": halves, "thickness": 1, "width": 3},
                **line(number, row["policy"] == baseline),
            }
        )
    axes = layout(
        {"title": {"text": rows[0]["unit"]}},
        {"ticksuffix": " s" if look.unit == "s" else look.unit},
    )
    axes |= {"showlegend": True, "legend": {"orientation": "h", "y": 1.12}}
    at = scale * goal["bound"]
    axes["shapes"] = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": at, "y1": at}
        | {"line": {"dash": "dash", "width": 1.5, "color": "gray"}}
    ]
    caption = f"{look.label} by {rows[0]['unit']}, {trace}"
    return Plot(caption, {"data": data, "layout": axes}, "the dashed line is the target")


def _label(row: Row) -> str:
    return " ".join(filter(None, (row["policy"], row["settings"])))


def _machines(row: Row, n: float) -> str:
    number = text(round(n, 4))
    return f"{number} {row['unit'].removesuffix('s') if number == '1' else row['unit']}"


def _value(goal: Mapping[str, Any], value: float, half: float | None = None) -> str:
    shown, spread = format_value(goal["metric"], value, float("nan") if half is None else half)
    unit = " s" if style(goal["metric"]).kind == "seconds" else ""
    return f"{shown} ±{spread}{unit}" if spread else f"{shown}{unit}"


def _target(goal: Mapping[str, Any]) -> str:
    sign = "at most" if goal["is_most"] else "at least"
    return f"{goal['metric']} {sign} {_bound(goal)}"


def _bound(goal: Mapping[str, Any]) -> str:
    look = style(goal["metric"])
    is_percent = look.kind == "percent"
    return (
        f"{goal['bound'] * (100 if is_percent else 1):g}{' s' if look.unit == 's' else look.unit}"
    )
