"""Plots of a description, as plotly figures in plain data; one colour per dataset."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sim.base.html.figures import Figure, line, plot
from sim.describe.overview import POPULATION_WORDS
from sim.describe.statistics import Description
from sim.describe.variability import metric_label

LENGTHS = (8, 12, 16, 20)
"""Critical path lengths in Fig. 10."""
_DASHES = ("solid", "dash", "dot")


def figures(description: Description) -> list[Figure]:
    """Build the figures that have data."""
    drawn = [
        *_waiting(description), *_hourly(description), *_degrees(description),
        *_boxes(description), *_by_size(description),
        *_variations(description, "variability", "dependent"), *_classes(description),
        *_variations(description, "recurring", "recurring"), *_levels(description),
    ]  # fmt: skip
    return [figure for figure in drawn if figure.plot["data"]]


def _waiting(description: Description) -> Iterable[Figure]:
    """Plot the share of tasks that would wait against capacity, a plot a resource."""
    if "waiting" not in description.tables:
        return
    for resource in pc.unique(description.tables["waiting"]["resource"]).to_pylist():
        lines, ranges = [], []
        for number, name, table in _by_dataset(description, "waiting"):
            rows = table.filter(pc.equal(table["resource"], resource))
            if not rows.num_rows:
                continue
            shares = [100 * share for share in rows["share"].to_pylist()]
            lines.append(line(number, name, rows["capacity"].to_pylist(), shares))
            mean, peak = rows["mean"][0].as_py(), rows["capacity"][0].as_py()
            ranges.append(f"{name}: from {_amount(mean)} (mean use) to {_amount(peak)} (largest)")
        drawn = _plot(lines, f"capacity, {resource}", "% of tasks that wait", x_log=True)
        words = f"Capacities at which tasks wait, {resource}. {'; '.join(ranges)}"
        yield Figure("load", words, drawn)


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _hourly(description: Description) -> Iterable[Figure]:
    """Plot the first dataset's hours: all jobs, and jobs with dependencies by both definitions."""
    if "hourly" not in description.tables:
        return
    table = description.tables["hourly"].filter(
        pc.equal(description.tables["hourly"]["dataset"], description.names[0])
    )
    for column in table.column_names[4:]:
        if column == "jobs_submitted" or table[column].null_count:
            continue
        lines = []
        for (population, label), dash in zip(POPULATION_WORDS.items(), _DASHES, strict=True):
            rows = table.filter(pc.equal(table["population"], population))
            if not pc.max(rows[column]).as_py():  # no dependencies
                continue
            trace = _line(0, label, rows["hour"], rows[column])
            lines.append(trace | {"mode": "lines", "line": {"width": 1.5, "dash": dash}})
        chart = _plot(lines, "hour of the trace", "", legend=True)
        yield Figure("hourly", _hourly_caption(column), chart)


def _hourly_caption(column: str) -> str:
    resource = column.removesuffix("_hours")
    if resource == column:
        return "Jobs running at any time in an hour"
    return f"Hourly mean use if no task waits: {resource}"


def _degrees(description: Description) -> Iterable[Figure]:
    for direction, words in (("in", "parents"), ("out", "children")):
        lines = []
        for number, name, table in _by_dataset(description, "degrees"):
            rows = table.filter(
                pc.and_(
                    pc.equal(table["direction"], direction),
                    pc.and_(pc.greater(table["degree"], 0), pc.greater(table["n"], 0)),
                )
            )
            lines.append(_line(number, name, rows["degree"], rows["at_least"]))
        drawn = _plot(lines, words, "share of stages", x_log=True, y_log=True)
        yield Figure("structure", f"Share of stages with at least N {words}", drawn)


def _boxes(description: Description) -> Iterable[Figure]:
    for measure in ("edge density", "chain ratio"):
        boxes = []
        for number, name, table in _by_dataset(description, "quantiles"):
            rows = table.filter(pc.equal(table["measure"], measure))
            low, q1, median, q3, high = rows["value"].to_pylist()
            if math.isnan(median):
                continue
            boxes.append(
                {
                    "type": "box", "name": name, "meta": number, "x": [name],
                    "lowerfence": [low], "q1": [q1], "median": [median], "q3": [q3],
                    "upperfence": [high], "line": {"width": 1.5},
                }
            )  # fmt: skip
        drawn = _plot(boxes, "", "")
        drawn["layout"]["yaxis"]["range"] = [-0.02, 1.02]
        words = f"{measure.capitalize()}: percentiles 1, 25, 50, 75 and 99"
        yield Figure("structure", words, drawn)


def _by_size(description: Description) -> Iterable[Figure]:
    for column, words in (("width", "Maximum parallelism"), ("length", "Critical path length")):
        lines = []
        for number, name, table in _by_dataset(description, "by_size"):
            hover = {
                "customdata": table["n_jobs"].to_pylist(),
                "hovertemplate": "%{y:.2f} stages, mean of %{customdata:,} jobs",
            }
            lines.append(_line(number, name, table["n_stages"], table[column]) | hover)
        caption = f"{words}: mean over the jobs of each number of stages"
        yield Figure("structure", caption, _plot(lines, "stages", "stages"))


def _variations(description: Description, name: str, kind: str) -> Iterable[Figure]:
    if name not in description.tables:
        return
    section = "variability" if name == "variability" else "recurrence"
    table = description.tables[name]
    rows_of_first = table.filter(pc.equal(table["dataset"], description.names[0]))
    metrics = list(dict.fromkeys(rows_of_first["metric"].to_pylist()))
    for relation in ("pair", "set"):
        for metric in metrics:
            lines = []
            for number, dataset, rows in _by_dataset(description, name):
                selected = rows.filter(
                    pc.and_(pc.equal(rows["relation"], relation), pc.equal(rows["metric"], metric))
                )
                lines.append(_line(number, dataset, selected["value"], selected["q"]))
            words = metric_label(metric)
            across = {
                ("pair", "dependent"): "child over parent",
                ("pair", "recurring"): "run over previous run",
            }.get((relation, kind), "geometric mean over the smallest")
            drawn = [trace | {"mode": "lines"} for trace in lines if trace["x"]]
            caption = f"{kind.capitalize()} {relation}s: {words}"
            yield Figure(section, caption, _plot(drawn, across, "cumulative share", x_log=True))


def _classes(description: Description) -> Iterable[Figure]:
    lines = []
    for number, name, table in _by_dataset(description, "classes"):
        rows = table.filter(pc.greater(table["counterparts"], 0))
        lines.append(_line(number, name, rows["counterparts"], rows["at_least"]))
    drawn = [trace for trace in lines if trace["x"]]
    caption = "Jobs isomorphic to at least N other jobs"
    yield Figure("recurrence", caption, _plot(drawn, "other jobs", "share of jobs", x_log=True))


def _levels(description: Description) -> Iterable[Figure]:
    for length in _lengths(description):
        bars = []
        for number, name, table in _by_dataset(description, "levels"):
            rows = table.filter(pc.equal(table["length"], length))
            if rows.num_rows:
                bars.append(
                    {
                        "type": "bar",
                        "name": name,
                        "meta": number,
                        "x": rows["level"].to_pylist(),
                        "y": [100 * share for share in rows["share"].to_pylist()],
                        "hovertemplate": "%{y:.1f} %",
                        "customdata": rows["n_jobs"].to_pylist(),
                    }
                )
        caption = f"Stages by level, critical path of {length}"
        yield Figure("levels", caption, _plot(bars, "level", "% of stages"))


def _lengths(description: Description) -> Sequence[int]:
    """Choose Fig. 10's lengths that the first dataset has, else its four most common from 2 up."""
    table = description.tables["levels"]
    rows = table.filter(pc.equal(table["dataset"], description.names[0]))
    n_jobs = dict(zip(rows["length"].to_pylist(), rows["n_jobs"].to_pylist(), strict=True))
    shown = [length for length in LENGTHS if length in n_jobs]
    if len(shown) > 1:
        return shown
    common = sorted((-n, length) for length, n in n_jobs.items() if length > 1)
    return sorted(length for _, length in common[: len(LENGTHS)])


def _by_dataset(description: Description, table: str) -> Iterable[tuple[int, str, pa.Table]]:
    if table not in description.tables:
        return
    whole = description.tables[table]
    for number, name in enumerate(description.names):
        yield number, name, whole.filter(pc.equal(whole["dataset"], name))


def _line(number: int, name: str, x: pa.ChunkedArray, y: pa.ChunkedArray) -> dict[str, Any]:
    return line(number, name, x.to_pylist(), y.to_pylist())


def _plot(data: list[dict[str, Any]], x: str, y: str, **chosen: bool) -> dict[str, Any]:
    hover = "x unified" if data and data[0]["type"] != "box" else "closest"
    return plot(data, x, y, hover=hover, **chosen)
