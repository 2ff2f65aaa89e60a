"""The plots of a description, as plotly figures in plain data; a colour a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sim.base import html
from sim.describe.overview import POPULATION_WORDS
from sim.describe.statistics import Description
from sim.describe.variability import metric_words

LENGTHS = (8, 12, 16, 20)
"""Critical path lengths that Fig. 10 shows."""
_FEW = 60  # points of a line that still get a marker each
_DASHES = ("solid", "dash", "dot")


@dataclass(frozen=True)
class Figure:
    """One plot: the section it belongs to, a caption, and plotly's ``data`` and ``layout``."""

    section: str
    caption: str
    plot: dict[str, Any]


def figures(of: Description) -> list[Figure]:
    """Draw everything that has something to draw."""
    drawn = [
        *_hourly(of), *_degrees(of), *_boxes(of), *_by_size(of),
        *_variations(of, "variability", "dependent"), *_classes(of),
        *_variations(of, "recurring", "recurring"), *_levels(of),
    ]  # fmt: skip
    return [figure for figure in drawn if figure.plot["data"]]


def _hourly(of: Description) -> Iterable[Figure]:
    """Draw the first dataset's hours: all jobs, and those with dependencies, both ways."""
    if "hourly" not in of.tables:
        return
    table = of.tables["hourly"].filter(pc.equal(of.tables["hourly"]["dataset"], of.names[0]))
    for column in table.column_names[4:]:
        if column == "jobs_submitted" or table[column].null_count:
            continue
        lines = []
        for (population, words), dash in zip(POPULATION_WORDS.items(), _DASHES, strict=True):
            rows = table.filter(pc.equal(table["population"], population))
            line = _line(0, words, rows["hour"], rows[column])
            lines.append(line | {"mode": "lines", "line": {"width": 1.5, "dash": dash}})
        plot = _plot(lines, "hour of the trace", "", legend=True)
        yield Figure("hourly", _hourly_caption(column), plot)


def _hourly_caption(column: str) -> str:
    resource = column.removesuffix("_hours")
    if resource == column:
        return "Jobs running at any moment of an hour"
    return f"In use, mean of each hour: {resource}"


def _degrees(of: Description) -> Iterable[Figure]:
    for direction, words in (("in", "parents"), ("out", "children")):
        lines = []
        for number, name, table in _by_dataset(of, "degrees"):
            rows = table.filter(
                pc.and_(
                    pc.equal(table["direction"], direction),
                    pc.and_(pc.greater(table["degree"], 0), pc.greater(table["n"], 0)),
                )
            )
            lines.append(_line(number, name, rows["degree"], rows["at_least"]))
        plot = _plot(lines, words, "share of stages", x_log=True, y_log=True)
        yield Figure("structure", f"Stages with at least so many {words}", plot)


def _boxes(of: Description) -> Iterable[Figure]:
    for measure in ("edge density", "chain ratio"):
        boxes = []
        for number, name, table in _by_dataset(of, "quantiles"):
            rows = table.filter(pc.equal(table["measure"], measure))
            low, q1, median, q3, high = rows["value"].to_pylist()
            if math.isnan(median):
                continue
            boxes.append(
                {
                    "type": "box",
                    "name": name,
                    "meta": number,
                    "x": [name],
                    "lowerfence": [low],
                    "q1": [q1],
                    "median": [median],
                    "q3": [q3],
                    "upperfence": [high],
                    "line": {"width": 1.5},
                }
            )
        plot = _plot(boxes, "", "")
        plot["layout"]["yaxis"]["range"] = [-0.02, 1.02]
        words = f"{measure.capitalize()}: percentiles 1, 25, 50, 75 and 99"
        yield Figure("structure", words, plot)


def _by_size(of: Description) -> Iterable[Figure]:
    for column, words in (("width", "Maximum parallelism"), ("length", "Critical path length")):
        lines = []
        for number, name, table in _by_dataset(of, "by_size"):
            line = _line(number, name, table["n_stages"], table[column])
            hover = "%{y:.2f} stages, mean of %{customdata:,} jobs"
            lines.append(line | {"customdata": table["n_jobs"].to_pylist(), "hovertemplate": hover})
        plot = _plot(lines, "stages", "stages")
        yield Figure("structure", f"{words}: mean over the jobs of each number of stages", plot)


def _variations(of: Description, name: str, kind: str) -> Iterable[Figure]:
    if name not in of.tables:
        return
    section = "variability" if name == "variability" else "recurrence"
    table = of.tables[name]
    mine = table.filter(pc.equal(table["dataset"], of.names[0]))
    metrics = list(dict.fromkeys(mine["metric"].to_pylist()))
    for relation in ("pair", "set"):
        for metric in metrics:
            lines = []
            for number, dataset, rows in _by_dataset(of, name):
                chosen = rows.filter(
                    pc.and_(pc.equal(rows["relation"], relation), pc.equal(rows["metric"], metric))
                )
                lines.append(_line(number, dataset, chosen["value"], chosen["q"]))
            words = metric_words(metric)
            across = {
                ("pair", "dependent"): "child over parent",
                ("pair", "recurring"): "a run over the one before",
            }.get((relation, kind), "geometric mean over the smallest")
            drawn = [line | {"mode": "lines"} for line in lines if line["x"]]
            plot = _plot(drawn, across, "share at most", x_log=True)
            yield Figure(section, f"{kind.capitalize()} {relation}s: {words}", plot)


def _classes(of: Description) -> Iterable[Figure]:
    lines = []
    for number, name, table in _by_dataset(of, "classes"):
        rows = table.filter(pc.greater(table["counterparts"], 0))
        lines.append(_line(number, name, rows["counterparts"], rows["at_least"]))
    plot = _plot([line for line in lines if line["x"]], "other jobs", "share of jobs", x_log=True)
    yield Figure("recurrence", "Jobs isomorphic to at least so many others", plot)


def _levels(of: Description) -> Iterable[Figure]:
    for length in _lengths(of):
        bars = []
        for number, name, table in _by_dataset(of, "levels"):
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
        plot = _plot(bars, "level", "% of stages")
        yield Figure("levels", f"Stages by level, critical path of {length}", plot)


def _lengths(of: Description) -> Sequence[int]:
    """Choose the lengths of Fig. 10 that the first dataset has, or its four commonest of 2 up."""
    table = of.tables["levels"]
    rows = table.filter(pc.equal(table["dataset"], of.names[0]))
    n_jobs = dict(zip(rows["length"].to_pylist(), rows["n_jobs"].to_pylist(), strict=True))
    wanted = [length for length in LENGTHS if length in n_jobs]
    if len(wanted) > 1:
        return wanted
    common = sorted((-n, length) for length, n in n_jobs.items() if length > 1)
    return sorted(length for _, length in common[: len(LENGTHS)])


def _by_dataset(of: Description, table: str) -> Iterable[tuple[int, str, pa.Table]]:
    if table not in of.tables:
        return
    whole = of.tables[table]
    for number, name in enumerate(of.names):
        yield number, name, whole.filter(pc.equal(whole["dataset"], name))


def _line(number: int, name: str, x: pa.ChunkedArray, y: pa.ChunkedArray) -> dict[str, Any]:
    points = [_finite(value) for value in x.to_pylist()]
    return {
        "type": "scatter", "name": name, "meta": number, "x": points,
        "y": [_finite(value) for value in y.to_pylist()],
        "mode": "lines+markers" if len(points) <= _FEW else "lines",
        "line": {"width": 2, "dash": "solid" if number < html.N_COLOURS else "dot"},
        "marker": {"size": 6, "symbol": html.symbol(number)},
    }  # fmt: skip


def _plot(
    data: list[dict[str, Any]],
    x: str,
    y: str,
    *,
    x_log: bool = False,
    y_log: bool = False,
    legend: bool = False,
) -> dict[str, Any]:
    def axis(title: str, is_log: bool) -> dict[str, Any]:
        layout: dict[str, Any] = {"title": {"text": title}, "zeroline": False}
        if is_log:
            layout |= {"type": "log", "dtick": 1, "exponentformat": "power"}
        return layout

    layout = {
        "xaxis": axis(x, x_log),
        "yaxis": axis(y, y_log) | ({} if y_log else {"type": "linear", "rangemode": "tozero"}),
        "hovermode": "x unified" if data and data[0]["type"] != "box" else "closest",
        "showlegend": legend,
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        "margin": {"l": 64, "r": 16, "t": 56 if legend else 30, "b": 48},
    }
    return {"data": data, "layout": layout}


def _finite(value: Any) -> Any:
    return value if value is not None and math.isfinite(value) else None
