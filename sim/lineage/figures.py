"""The plots of a profile, as plotly figures in plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.base import html
from sim.base.arrays import F8

if TYPE_CHECKING:
    from sim.lineage.store import Store

_POINTS = 200  # of a curve over ranks


@dataclass(frozen=True)
class Figure:
    """One plot: the section it belongs to, a caption, and plotly's ``data`` and ``layout``."""

    section: str
    caption: str
    plot: dict[str, Any]


def figures(of: Store) -> list[Figure]:
    """Draw everything that has something to draw."""
    drawn = [*_prediction(of), *_value(of), *_components(of)]
    return [figure for figure in drawn if any(line["x"] for line in figure.plot["data"])]


def _prediction(of: Store) -> Iterable[Figure]:
    table = of.tables["predictability"]
    recall, precision = table["recall"].to_pylist(), table["precision"].to_pylist()
    line = _line(0, "predictor", recall, precision)
    line["text"] = [f"tr = {tr:g} %" for tr in table["tr"].to_pylist()]
    yield Figure(
        "prediction",
        "Will a dependent come? Precision over recall, a point a threshold",
        _plot([line], "recall", "precision"),
    )
    errors = of.tables["forecast_errors"]
    line = _line(0, "errors", errors["percentage_error"].to_pylist(), errors["q"].to_pylist())
    plot = _plot([line | {"mode": "lines"}], "(forecast − actual) / actual", "share at most")
    plot["layout"]["xaxis"]["range"] = [-1, 2]
    yield Figure("prediction", "When will the first come? Percentage errors", plot)


def _value(of: Store) -> Iterable[Figure]:
    table = of.tables["convergence"]
    lines = [
        _line(at, words, table["round"].to_pylist(), table[column].to_pylist())
        for at, (column, words) in enumerate(
            (("found", "of the mean"), ("found_per_job", "mean of jobs' shares"))
        )
    ]
    yield Figure(
        "value",
        "Share of aggregate value found by each round, of jobs drawn at random",
        _plot(lines, "round", "share", legend=True),
    )
    jobs = of.tables["jobs"]
    lines = [
        _line(at, words, *_by_rank(jobs[column].to_numpy())) | {"mode": "lines"}
        for at, (column, words) in enumerate(
            (("local_value", "local"), ("aggregate_value", "aggregate"))
        )
    ]
    yield Figure(
        "value", "Value by rank of job", _plot(lines, "rank", "downloads", log=True, legend=True)
    )


def _components(of: Store) -> Iterable[Figure]:
    size = of.tables["components"]["n_jobs"].to_numpy()
    yield Figure(
        "components",
        "Jobs of each component, by rank",
        _plot([_line(0, "components", *_by_rank(size.astype(float)))], "rank", "jobs", log=True),
    )


def _by_rank(values: F8) -> tuple[list[int], list[float]]:
    found = np.sort(values[values > 0])[::-1]
    if not len(found):
        return [], []
    rank = np.unique(np.geomspace(1, len(found), _POINTS).astype(np.int64))
    return rank.tolist(), found[rank - 1].tolist()


def _line(number: int, name: str, x: Sequence[Any], y: Sequence[Any]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "name": name,
        "meta": number,
        "x": [_finite(value) for value in x],
        "y": [_finite(value) for value in y],
        "mode": "lines+markers",
        "line": {"width": 2},
        "marker": {"size": 6, "symbol": html.symbol(number)},
    }


def _plot(
    data: list[dict[str, Any]], x: str, y: str, *, log: bool = False, legend: bool = False
) -> dict[str, Any]:
    def axis(title: str) -> dict[str, Any]:
        scale = {"type": "log", "dtick": 1, "exponentformat": "power"} if log else {}
        return {"title": {"text": title}, "zeroline": False, **scale}

    y_axis = axis(y) if log else axis(y) | {"type": "linear", "rangemode": "tozero"}
    return {
        "data": data,
        "layout": {
            "xaxis": axis(x),
            "yaxis": y_axis,
            "hovermode": "closest",
            "showlegend": legend,
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
            "margin": {"l": 64, "r": 16, "t": 56 if legend else 30, "b": 48},
        },
    }


def _finite(value: Any) -> Any:
    return value if value is not None and math.isfinite(value) else None
