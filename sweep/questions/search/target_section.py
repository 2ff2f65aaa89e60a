"""Report section of target searches: sentences, a table and a plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from sweep.questions.search.section_builder import Row, SectionPart, build_section
from sweep.report.plots import error_bars, layout, line
from sweep.report.section import Plot, Section
from sweep.stats.arrange import month_text
from sweep.stats.cell_columns import text
from sweep.stats.metric_format import ends_text, interval_of, style, value_text

Goal = Mapping[str, Any]

TITLE = "Smallest cluster"
RED = 107
"""Number of the target line's colour: no policy's checkbox hides it."""


def build(targets: pa.Table, config: Mapping[str, Any]) -> Section:
    """Build the section of ``targets.parquet``."""
    rows, goal, baseline = targets.to_pylist(), config["goal"], config["baseline"]
    numbers = {name: index for index, name in enumerate(dict.fromkeys(map(_label, rows)))}
    sure = "; each decision whether a mean meets the target has 95 % confidence"
    single_seed = "; with one seed, its value is taken as exact"
    is_bootstrap = bool(config.get("bootstrap"))
    if is_bootstrap:
        sure = "; the range is its 95 % interval, as draws of the log spread"
    kind, between = goal.get("nodes"), f"{text(goal['low'])} and {text(goal['high'])}"
    tried = f"between capacity {between}"
    if kind:
        tried = f"between {between} times today's {kind}, beside all others as they are,"
    note = (
        f"Smallest number of {rows[0]['unit']} tried {tried} at which the mean of {goal['metric']} "
        f"over seeds is {_bound(goal)}"
        f"{sure if max(row['seeds'] for row in rows) > 1 else single_seed}. Sizes in between were "
        "not tried: where a metric is not monotone, some may miss the target."
    )

    def build_part(members: list[Row], _: str) -> SectionPart:
        unit = members[0]["unit"]
        has_costs = any(row.get("cost_month") is not None for row in members)
        share = "of today's" if kind else "capacity"
        header = ["policy", unit, share, "95 % range", "met at all tried from", goal["metric"]]
        header += ["a month"] * has_costs
        return SectionPart(
            [
                *_sentences(members, baseline, goal, is_bootstrap=is_bootstrap),
                *_cheapest(members),
            ],
            (*header, "seeds", "cells"),
            (_entries(row, goal, has_costs, is_bootstrap) for row in members),
            [_plot(members, goal, numbers, baseline)],
        )

    heading = f"Fewest {kind} machines" if kind else TITLE
    title = f"{heading} with {goal['metric']} {_bound(goal)}"
    bound = title.partition(" with ")[2]
    size = f"the smallest number of {kind} machines with" if kind else "the smallest cluster on"
    question = f"What is {size} which {{jobs}} have {bound}, by policy?"
    template = Section("targets", title, (), notes=(note,), is_answer=True, question=question)
    return build_section(template, rows, ["trace"], build_part)


def _sentences(
    rows: Sequence[Row], baseline: str | None, goal: Goal, *, is_bootstrap: bool = False
) -> list[str]:
    """Write the needs of each policy, relative to the baseline or the first that has a result."""
    met = [row for row in rows if row["status"] == "met"]
    base = next((row for row in met if row["policy"] == baseline), met[0] if met else None)
    sentences = []
    for row in rows:
        label, machines = _label(row), _machines(row, "machines")
        value_text = "" if row["value"] is None else f" ({_value(goal, row['value'])})"
        if row["status"] == "never":
            largest = _machines(row, "machines_most")
            sentence = f"{label} misses the target even with {largest}, the most tried{value_text}"
        elif row["status"] == "always":
            sentence = f"{label} needs at most {machines}, the fewest tried{value_text}"
        elif base is None or row is base:
            sentence = f"{label} needs {machines}"
            if len(met) > 1 and not row["note"] and not is_bootstrap:
                continue  # the others say it
        else:
            share = row["machines"] / base["machines"]
            ratio = "" if share == 1 else f"{share:.2f} times "
            sentence = f"{label} needs {machines}, {ratio}as many as {_label(base)}"
            if ratio:
                sentence += f", which needs {text(round(base['machines'], 4))}"
        remarks = _range(row) if is_bootstrap else _uncertainty(row)
        sentences.append(f"{sentence}{remarks}.")
    return sentences


def _range(row: Row) -> str:
    """Write the 95 % interval of a need, over draws of the log, and remarks."""
    low, high = row["machines_low"], row["machines_high"]
    ends = [] if low is None else [f"more than {text(low)}"]
    ends += [] if high is None else [f"at most {text(high)}"]
    if high is None and row["status"] != "never":
        ends.append(f"even {text(row['machines_most'])} may be too few")
    remarks = (f"95 % interval: {', '.join(ends)}" if ends else "", row["note"])
    return "".join(f"; {part}" for part in remarks if part)


def _uncertainty(row: Row) -> str:
    """Write remarks, and the confidence interval if it is wider than the tolerance."""
    ends = []
    if not row["is_sure"] and row["seeds"]:
        if row["machines_low"] is not None:
            ends.append(f"surely more than {text(row['machines_low'])}")
        if row["machines_high"] is not None:
            ends.append(f"surely at most {text(row['machines_high'])}")
        elif row["status"] != "never":
            ends.append(f"even {text(row['machines_most'])} may be too few")
    return "".join(f"; {part}" for part in (row["note"], " and ".join(ends)) if part)


def _cheapest(rows: Sequence[Row]) -> list[str]:
    """Name the cheapest cluster that meets the target, of each policy with several to choose of."""
    priced = [row for row in rows if row.get("cost_month") is not None]
    sentences = []
    for policy in dict.fromkeys(row["policy"] for row in priced):
        choices = [row for row in priced if row["policy"] == policy]
        best = min(choices, key=lambda row: row["cost_month"])
        about = [_machines(best, "machines"), *([best["settings"]] if len(choices) > 1 else [])]
        cost = month_text(best["cost_month"])
        sentences.append(
            f"The cheapest cluster for {policy} costs {cost} ({', '.join(filter(None, about))})."
        )
    return sentences


def _entries(row: Row, goal: Goal, has_costs: bool, is_bootstrap: bool) -> tuple[str, ...]:
    machines = row["status"] if row["machines"] is None else text(round(row["machines"], 4))
    machines = f"≤ {machines}" if row["status"] == "always" else machines
    limits = [f"{end:.4g}" if end is not None else "?" for end in (row["low"], row["high"])]
    span = f"({limits[0]}, {limits[1]}]" if row["status"] == "met" or not row["is_sure"] else ""
    safe = "" if row["machines_safe"] is None else text(round(row["machines_safe"], 4))
    capacity = "" if row["capacity"] is None else f"{row['capacity']:.4g}"
    ends = (math.nan if row[end] is None else row[end] for end in ("value_low", "value_high"))
    value = "" if row["value"] is None else ends_text(goal["metric"], row["value"], *ends)
    counts = f"{row['seeds']}", f"{row['cells']}"
    cost = (month_text(row["cost_month"] or 0.0).removesuffix(" a month"),) * has_costs
    machines += "?" * (not row["is_sure"] and not is_bootstrap)
    return _label(row), machines, capacity, span, safe, value, *cost, *counts


def _plot(
    rows: Sequence[Row], goal: Goal, numbers: Mapping[str, int], baseline: str | None
) -> Plot:
    """Draw the metric at all sizes tried, filled where it meets the target, and the target."""
    metric_style, unit = style(goal["metric"]), rows[0]["unit"]
    scale = 100.0 if metric_style.kind == "percent" else 1.0
    data: list[dict[str, Any]] = []
    for row in rows:
        probes = [probe for probe in row["probes"] if probe["mean"] is not None]
        number = numbers[_label(row)]
        drawn = line(number, row["policy"] == baseline)
        symbol = drawn["marker"]["symbol"]
        symbols = [symbol if probe["is_met"] else f"{symbol}-open" for probe in probes]
        data.append(
            {
                "type": "scatter",
                "name": _label(row),
                "meta": number,
                "x": [round(probe["machines"], 6) for probe in probes],
                "y": [scale * probe["mean"] for probe in probes],
                "error_y": error_bars(
                    [p["mean"] for p in probes], [_ends(goal, p) for p in probes], scale
                ),
                **drawn,
                "marker": {"size": 8, "symbol": symbols},
            }
        )
    x, y = ([value for trace in data for value in trace[axis]] for axis in "xy")
    bound = scale * goal["bound"]
    target = {
        "type": "scatter",
        "mode": "lines+text",
        "name": "target",
        "meta": RED,
        "x": [min(x, default=0.0), max(x, default=1.0)],
        "y": [bound, bound],
        "text": [f"target: {_bound(goal)}", ""],
        "textposition": "top right",
        "line": {"width": 2.5, "dash": "dashdot"},
        "marker": {},
        "hoverinfo": "skip",
    }
    suffix = " s" if metric_style.unit == "s" else metric_style.unit
    axes = layout({"title": {"text": unit}, **_scale(x, "")}, _scale([*y, bound], suffix))
    axes |= {"showlegend": True}
    note = "filled marks meet the target, open ones do not"
    return Plot(
        f"{metric_style.label} by {unit}, {rows[0]['trace']}",
        {"data": [*data, target], "layout": axes},
        note,
    )


def _scale(values: Sequence[float], suffix: str) -> dict[str, Any]:
    """Return an axis for these values: a log scale where they span more than a decade."""
    if not values or min(values) <= 0 or max(values) < 10 * min(values):
        return {"type": "linear", "ticksuffix": suffix}
    low, high = (int(f"{end:e}".partition("e")[2]) for end in (min(values), max(values)))
    steps = (1, 2, 5) if high - low < 3 else (1,)
    ticks = [step * 10.0**power for power in range(low, high + 1) for step in steps]
    ticks = [tick for tick in ticks if min(values) <= tick <= max(values)]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{t:,g}{suffix}" for t in ticks]}


def _label(row: Row) -> str:
    oracle = "(oracle)" if row.get("is_oracle") else ""
    return " ".join(filter(None, (row["policy"], row["settings"], oracle)))


def _machines(row: Row, column: str) -> str:
    if row[column] is None:
        return ""
    number = text(round(row[column], 4))
    return f"{number} {row['unit'].removesuffix('s') if number == '1' else row['unit']}"


def _ends(goal: Goal, probe: Row) -> tuple[float, float] | None:
    half = probe["half"]
    return None if half is None else interval_of(goal["metric"], probe["mean"], half)


def _value(goal: Goal, value: float) -> str:
    return value_text(goal["metric"], value)


def _bound(goal: Goal) -> str:
    """Write the target, such as ``at most 600 s``."""
    metric_style = style(goal["metric"])
    bound = goal["bound"] * (100 if metric_style.kind == "percent" else 1)
    unit = " s" if metric_style.unit == "s" else metric_style.unit
    return f"at {'most' if goal['is_most'] else 'least'} {bound:g}{unit}"
