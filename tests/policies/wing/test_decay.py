"""Orders that move while jobs wait."""

from __future__ import annotations

import pytest

import policies
from sim.base.errors import InputError
from sim.lineage.worth import WAITS_S, after
from tests.policies.wing.worlds import H, job, order, with_worth


def decaying(rescued):
    """Return two jobs behind another; j0 is worth more until the reader it has comes at 2 h."""
    late = [10.0 if w < 2 * H else 1.0 for w in WAITS_S]
    workload = [job("block", 0, 3.0), job("j0", 0.1, 0.5), job("j1", 0.1, 0.5)]
    given = {
        "value": [0, 0, 0], "compute_s": [1, 1, 1], "agg_value": [0, 10, 5],
        "agg_compute_s": [1, 1, 1],
    }  # fmt: skip
    for column, worth in zip(after("agg_value"), late, strict=True):
        given[column] = [0, worth, 5]
    for column, worth in zip(after("rescued"), late, strict=True):
        given[column] = [0, worth if rescued else 10.0, 5]
    return with_worth(workload, **given)


def test_value_that_is_lost_while_a_job_waits_puts_it_behind():
    oracle = {"knowledge": "oracle"}
    assert order(decaying(True), "wing_agg", **oracle) == ["block", "j0", "j1"]
    assert order(decaying(True), "wing_mil", **oracle) == ["block", "j1", "j0"]
    assert order(decaying(True), "wing_dep", **oracle) == ["block", "j1", "j0"]
    # readers that poll are not lost
    assert order(decaying(False), "wing_mil", **oracle) == ["block", "j1", "j0"]
    assert order(decaying(False), "wing_dep", **oracle) == ["block", "j0", "j1"]


def test_the_order_is_as_fresh_as_asked_for():
    oracle = {"knowledge": "oracle"}
    assert order(decaying(True), "wing_mil", refresh_s=4 * H, **oracle) == ["block", "j0", "j1"]
    with pytest.raises(InputError, match="refresh_s must be a number above 0"):
        policies.build("wing_mil", refresh_s=0.0)
