"""Fig. 5 of the paper, with numbers of our own, and how value decays."""

from __future__ import annotations

import numpy as np
import pytest

from sim.lineage.dependencies import plain_edges
from sim.lineage.fast import aggregate
from sim.lineage.single_hop import Downloads
from sim.lineage.value import value_functions

HOUR = 3600.0
A, B, C, D, E = range(5)
EDGES = plain_edges(5, [A, A, C, C], [B, C, D, E])
LOCAL = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
SUBMIT = np.array([0.0, 1.0, 2.0, 3.0, 3.0]) * HOUR
NO_DOWNLOADS = Downloads(np.empty(0, np.int32), np.empty(0), np.empty(0, np.int32))


def test_aggregate_values_of_figure_5():
    assert aggregate(EDGES, LOCAL).tolist() == [15, 2, 12, 4, 5]


@pytest.mark.parametrize(
    ("hours", "worth"), [(0, 15), (1, 15), (1.01, 13), (2, 13), (2.01, 1), (99, 1)]
)
def test_value_of_a_decays_as_figure_5_draws_it(hours, worth):
    whole = aggregate(EDGES, LOCAL)
    functions = value_functions(EDGES, NO_DOWNLOADS, SUBMIT, whole, local=LOCAL)
    assert functions.at(A, hours * HOUR) == worth


def test_downloads_before_completion_are_lost():
    edges = plain_edges(2, [0], [1])
    downloads = Downloads(
        np.array([0, 0, 1], np.int32), np.array([5.0, 9.0, 20.0]), np.array([2, 1, 4], np.int32)
    )
    local = downloads.per_job(2)
    assert local.tolist() == [3, 4]
    functions = value_functions(edges, downloads, np.array([0.0, 7.0]), aggregate(edges, local))
    at = functions.at(np.array([0, 0, 0, 0, 0, 1]), np.array([5.0, 6.0, 7.0, 8.0, 10.0, 0.0]))
    assert at.tolist() == [7, 5, 5, 1, 0, 4]


def test_a_job_gives_each_input_an_equal_share():
    edges = plain_edges(4, [0, 1, 2], [2, 2, 3])
    assert aggregate(edges, np.array([0.0, 0.0, 1.0, 8.0])).tolist() == [4.5, 4.5, 9, 8]
