"""Charts for papers: labels of ticks."""

from __future__ import annotations

import itertools

import pytest

from sweep.report.drawing import Chart, Panel, paper_figure

CAPACITIES = (
    (0.7, 0.8, 0.9, 1.0, 1.5, 2.0),
    (0.25, 0.5, 0.75, 1.0),
    (0.5, 0.51, 0.52, 0.53, 2.0),
    tuple(k / 20 for k in range(8, 40)),
)


@pytest.mark.parametrize("size", [(3.4, 2.4), (2.0, 2.0), None])
@pytest.mark.parametrize("capacities", CAPACITIES)
def test_no_label_of_a_capacity_overlaps_another(
    capacities: tuple[float, ...], size: tuple[float, float] | None
) -> None:
    values = [*range(len(capacities))]
    trace = {"type": "scatter", "mode": "lines+markers", "x": [*capacities], "y": values,
             "name": "fifo", "meta": 0, "marker": {"symbol": "circle"},
             "line": {"dash": "solid"}}  # fmt: skip
    figure = paper_figure(Chart([Panel("t", [trace], capacities)], "capacity", "s", size=size))
    figure.draw_without_rendering()
    (axes,) = figure.axes
    labels = [label for label in axes.get_xticklabels() if label.get_text()]
    boxes = [label.get_window_extent() for label in labels]
    assert all(left.x1 <= right.x0 for left, right in itertools.pairwise(boxes))
    texts = [label.get_text() for label in labels]
    assert (texts[0], texts[-1]) == (f"{capacities[0]:g}", f"{capacities[-1]:g}")
    assert len(axes.get_xticks()) == len(capacities)
    if capacities == CAPACITIES[0] and size != (2.0, 2.0):
        assert len(texts) == len(capacities)
