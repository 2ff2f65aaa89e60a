"""Prediction: shares, thresholds and errors worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sim.base.errors import InputError
from sim.lineage.dependencies import plain_edges
from sim.lineage.predict import (
    best_threshold,
    by_threshold,
    first_uses,
    forecast,
    learn,
    percentage_errors,
)

# template 0 runs at 0, 10, 20, 30 and (tested) 100, 110; 1 and 2 read what it makes
TEMPLATE = np.array([0, 1, 0, 1, 2, 0, 1, 0, 0, 1, 1, 0, 2], np.int32)
SUBMIT = np.array([0, 2, 10, 14, 15, 20, 28, 30, 100, 105, 106, 110, 118], float)
EDGES = plain_edges(13, [0, 2, 2, 5, 8, 8, 11], [1, 3, 4, 6, 9, 10, 12])
RECURS = np.ones(3, bool)


USES = first_uses(EDGES, TEMPLATE, SUBMIT, RECURS)
TESTED = np.flatnonzero(SUBMIT >= 100)


def model(end=50.0):
    return learn(USES.where(USES.come_s < end), TEMPLATE, end > SUBMIT, 3)


def test_first_uses_take_the_first_job_of_each_template():
    columns = (USES.job, USES.template, USES.come_s, USES.time_s)
    assert list(zip(*(c.tolist() for c in columns), strict=True)) == [
        (0, 1, 2.0, 2.0),
        (2, 1, 14.0, 4.0),
        (2, 2, 15.0, 5.0),
        (5, 1, 28.0, 8.0),
        (8, 1, 105.0, 5.0),
        (11, 2, 118.0, 8.0),
    ]


def test_learnt_shares_and_medians():
    found = model()
    assert found.upstream.tolist() == [0, 0]
    assert found.downstream.tolist() == [1, 2]
    assert found.share.tolist() == [0.75, 0.25]
    assert found.time_s.tolist() == [4.0, 5.0]


def test_what_came_after_the_end_is_not_learnt():
    found = model(22.0)
    assert found.share.tolist() == [2 / 3, 1 / 3]
    assert found.time_s.tolist() == [3.0, 5.0]


def test_forecast_against_what_came():
    found = forecast(model(), USES, TEMPLATE, TESTED, 3)
    rows = zip(found.job, found.template, found.share, found.came, strict=True)
    assert [tuple(float(x) for x in row) for row in rows] == [
        (8, 1, 0.75, 1),
        (8, 2, 0.25, 0),
        (11, 1, 0.75, 0),
        (11, 2, 0.25, 1),
    ]
    assert found.precision_recall(20) == (0.5, 1.0)
    assert found.precision_recall(50) == (0.5, 0.5)
    assert np.isnan(found.precision_recall(80)[0])
    said, actual = found.errors_s(20)
    assert said.tolist() == [4, 5]
    assert actual.tolist() == [5, 8]


def test_table_over_thresholds():
    found = forecast(model(), USES, TEMPLATE, TESTED, 3)
    table = by_threshold(found, (0, 25, 30, 75, 80))
    assert table["precision"].to_pylist()[:4] == [0.5, 0.5, 0.5, 0.5]
    assert table["recall"].to_pylist() == [1, 1, 0.5, 0.5, 0]
    first = table.to_pylist()[0]
    assert first["rmse_s"] == pytest.approx(np.sqrt((1 + 9) / 2))
    assert first["mae_s"] == 2  # the median of 1 and 3
    assert first["within_20"] == 0.5
    assert first["over_2x"] == 0
    assert best_threshold(table) == 0


def test_a_pair_that_the_model_does_not_know_is_missed_not_predicted():
    found = forecast(model(5.0), USES, TEMPLATE, TESTED, 3)
    assert found.share.tolist() == [1, 1, -1]
    assert found.precision_recall(0) == (0.5, 0.5)


def test_percentage_errors_and_nothing_to_predict():
    assert percentage_errors(np.array([2.0, 3.0, 1.0]), np.array([1.0, 4.0, 0.0])).tolist() == [
        1.0,
        -0.25,
    ]
    nobody = forecast(model(), USES, TEMPLATE, TESTED[:0], 3)
    with pytest.raises(InputError, match="nothing recurs"):
        best_threshold(by_threshold(nobody))
