"""The plots of a description, as plotly figures in plain data; a colour a dataset."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sim.base.html.figures import Figure, line, plot
from sim.describe.overview import POPULATION_WORDS
from sim.describe.statistics import Description
from sim.describe.variability import metric_words

LENGTHS = (8, 12, 16, 20)
"""Critical path lengths that Fig. 10 shows."""
_DASHES = ("solid", "dash", "dot")


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
            if not pc.max(rows[column]).as_py():  # nothing depends on anything
                continue
            drawn = _line(0, words, rows["hour"], rows[column])
            lines.append(drawn | {"mode": "lines", "line": {"width": 1.5, "dash": dash}})
        of_hours = _plot(lines, "hour of the trace", "", legend=True)
        yield Figure("hourly", _hourly_caption(column), of_hours)


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
        drawn = _plot(lines, words, "share of stages", x_log=True, y_log=True)
        yield Figure("structure", f"Stages with at least so many {words}", drawn)


def _boxes(of: Description) -> Iterable[Figure]:
    for measure in ("edge density", "chain ratio"):
        boxes = []
        for number, name, table in _by_dataset(of, "quantiles"):
            rows = table.filter(pc.equal(table["evaluator"], measure))
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


def _by_size(of: Description) -> Iterable[Figure]:
    for column, words in (("width", "Maximum parallelism"), ("length", "Critical path length")):
        lines = []
        for number, name, table in _by_dataset(of, "by_size"):
            own = {
                "customdata": table["n_jobs"].to_pylist(),
                "hovertemplate": "%{y:.2f} stages, mean of %{customdata:,} jobs",
            }
            lines.append(_line(number, name, table["n_stages"], table[column]) | own)
        caption = f"{words}: mean over the jobs of each number of stages"
        yield Figure("structure", caption, _plot(lines, "stages", "stages"))


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
            drawn = [each | {"mode": "lines"} for each in lines if each["x"]]
            caption = f"{kind.capitalize()} {relation}s: {words}"
            yield Figure(section, caption, _plot(drawn, across, "share at most", x_log=True))


def _classes(of: Description) -> Iterable[Figure]:
    lines = []
    for number, name, table in _by_dataset(of, "classes"):
        rows = table.filter(pc.greater(table["counterparts"], 0))
        lines.append(_line(number, name, rows["counterparts"], rows["at_least"]))
    drawn = [each for each in lines if each["x"]]
    caption = "Jobs isomorphic to at least so many others"
    yield Figure("recurrence", caption, _plot(drawn, "other jobs", "share of jobs", x_log=True))


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
        caption = f"Stages by level, critical path of {length}"
        yield Figure("levels", caption, _plot(bars, "level", "% of stages"))


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
    return line(number, name, x.to_pylist(), y.to_pylist())


def _plot(data: list[dict[str, Any]], x: str, y: str, **chosen: bool) -> dict[str, Any]:
    hover = "x unified" if data and data[0]["type"] != "box" else "closest"
    return plot(data, x, y, hover=hover, **chosen)
