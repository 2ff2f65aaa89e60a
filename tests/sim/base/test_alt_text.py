"""Texts of plots for people who do not see them."""

from __future__ import annotations

from typing import Any

import pytest

from sim.base.html.alt_text import MAX_SERIES, alt_text


def titled(x: str, y: str) -> dict[str, Any]:
    return {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}}}


LONG = list(range(100))


@pytest.mark.parametrize(
    ("data", "layout", "expected"),
    [
        (
            [{"name": "las", "x": [0.69, 0.99], "y": [5.0, 7.0], "text": ["5.0 ±1", "7.0"],
              "customdata": [0.7, 1.0]}],
            titled("capacity", ""),
            "Curves by capacity. las 5.0 ±1 at 0.7, 7.0 at 1.",
        ),
        (
            [{"type": "bar", "name": "fifo", "x": ["fifo"], "y": [12.0], "text": ["12.0 ±3"]},
             {"type": "bar", "name": "las", "x": ["las"], "y": [None], "text": ["–"]}],
            titled("", "mean JCT"),
            "Bars of mean JCT. fifo 12.0 ±3; las.",
        ),
        (
            [{"name": "fifo", "x": [10, 20, 3000], "y": [0.3, 0.6, 1.0]}],
            titled("JCT, s", "share of jobs"),
            "Curves of share of jobs by JCT, s. fifo: half within 20, 90 % within 3,000.",
        ),
        (
            [{"name": "fifo", "x": [1, 2, 3, 4], "y": [0.5, 9.0, 0.1, 2.0]}],
            titled("time", "use"),
            "Curves of use by time. fifo from 0.5 at 1 to 2 at 4, between 0.1 and 9.",
        ),
        (
            [{"name": "fifo", "x": LONG, "y": LONG}],
            titled("time", "use"),
            "Curves of use by time. fifo between 0 and 99, median 50.",
        ),
        (
            [{"type": "box", "name": "a", "median": [0.25]}, {"type": "box", "name": "b"}],
            titled("", "density"),
            "Boxes of density. a: medians from 0.25 to 0.25; b.",
        ),
        (
            [{"name": "j", "base": [0.0, 2.0], "x": [1.0, 3.0], "y": [0, 1]}],
            titled("time, s", ""),
            "Gantt chart of 2 bars on 2 lines, from 0 to 5.",
        ),
        ([], {}, "An empty plot."),
    ],
)  # fmt: skip
def test_a_plot_in_words(data: list[dict[str, Any]], layout: dict[str, Any], expected: str) -> None:
    assert alt_text({"data": data, "layout": layout}) == expected


def test_many_series_are_counted() -> None:
    data = [{"name": f"p{n}", "x": [1], "y": [n]} for n in range(MAX_SERIES + 4)]
    assert alt_text({"data": data, "layout": {}}).endswith("p7 7 at 1; 4 more series.")
