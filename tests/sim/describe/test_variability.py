"""Dependent pairs and sets of §5."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sim.base.arrays import offsets
from sim.dags.graphs import Graphs
from sim.describe import variability
from tests.sim.describe.workloads import LARGE, by_key, dataset, job, with_columns


def graph(n, edges):
    parent, child = np.array(edges, dtype=np.int32).reshape(-1, 2).T
    return Graphs.from_edges(np.array(n), parent, child)


def test_a_pair_is_the_child_over_the_parent():
    g = graph([3], [(0, 1), (0, 2), (1, 2)])
    value, n_left_out = variability.pairs(g, np.array([2.0, 8.0, 1.0]))
    assert value.tolist() == [4.0, 0.5, 0.125]
    assert n_left_out == 0
    v = variability.Variation("pair", "tasks", value, 0)
    assert v.factor.tolist() == [4.0, 2.0, 8.0]


@pytest.mark.parametrize("unknown", [0.0, np.nan])
def test_pairs_and_sets_with_a_zero_or_unknown_value_are_left_out(unknown):
    g = graph([5], [(0, 1), (0, 2), (0, 3), (3, 4)])
    metric = np.array([2.0, 4.0, unknown, 4.0, 4.0])
    value, n_left_out = variability.pairs(g, metric)
    assert (value.tolist(), n_left_out) == ([2.0, 2.0, 1.0], 1)
    value, n_left_out = variability.sets(g, metric)
    assert (value.tolist(), n_left_out) == ([], 1)


def test_a_set_is_the_geometric_mean_over_the_smallest():
    # stage 0 has the children 1, 2, 3 (a set); 4 has the parents 1, 2, 3 (a set) and 5 has two
    g = graph([6], [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4), (1, 5), (2, 5)])
    value, n_left_out = variability.sets(g, np.array([9.0, 1.0, 10.0, 100.0, 9.0, 9.0]))
    assert value == pytest.approx([10.0, 10.0])
    assert n_left_out == 0
    equal, _ = variability.sets(g, np.full(6, 0.3))
    assert equal.tolist() == [1.0, 1.0]


def test_set_spread_against_a_loop():
    rng = np.random.default_rng(7)
    for _ in range(30):
        sizes = rng.integers(0, 7, 20)
        values = rng.choice(
            [0.0, 0.5, 1.0, 3.0, 400.0, np.nan], sizes.sum(), p=[0.03, 0.3, 0.3, 0.2, 0.15, 0.02]
        )
        expected, left_out, begin = [], 0, 0
        for size in sizes:
            part = values[begin : begin + size]
            begin += size
            if size >= 3 and (part > 0).all():
                expected.append(math.prod(part) ** (1 / size) / part.min())
            elif size >= 3:
                left_out += 1
        spread, n_left_out = variability.set_variation(values, offsets(sizes))
        assert spread == pytest.approx(expected, rel=1e-9)
        assert n_left_out == left_out
        assert (spread >= 1).all()


def test_only_jobs_of_six_and_more_stages_count():
    small = job(0.0, {"a": "", "b": "a"}, b={"durations_s": [1000.0]})
    large = job(
        1.0,
        LARGE,
        a={"durations_s": [1.0, 3.0]},  # mean 2
        b={"durations_s": [2.0], "demand": {"cpu": 4.0}},
        c={"durations_s": [4.0]},
        d={"durations_s": [8.0]},
        e={"durations_s": [0.0]},
        f={"durations_s": [2.0]},
    )
    data = dataset(small, large)
    by_name = {(v.relation, v.metric): v for v in variability.variations(data)}
    assert set(by_name) == {
        (r, m) for r in ("pair", "set") for m in ("duration", "tasks", "demand_cpu")
    }
    duration = by_name["pair", "duration"]
    assert (duration.value.tolist(), duration.n_left_out) == ([1.0, 2.0, 4.0], 4)
    assert by_name["pair", "tasks"].value.tolist() == [0.5] * 3 + [1.0] * 4
    assert by_name["pair", "demand_cpu"].value.tolist() == [4, 1, 1, 0.25, 1, 1, 1]
    sets = by_name["set", "duration"]
    assert sets.value == pytest.approx([2.0, 2.0])  # b, c, d: children of a, parents of e
    summary = by_key(variability.measures("variability", [duration]))
    assert summary == pytest.approx(
        {
            "pair_duration_n": 3,
            "pair_duration_left_out": 4,
            "pair_duration_equal": 1 / 3,
            "pair_duration_within_5_percent": 1 / 3,
            "pair_duration_below_2": 1 / 3,
            "pair_duration_over_5": 0,
            "pair_duration_over_10": 0,
            "pair_duration_p90": 3.6,
            "pair_duration_max": 4,
        }
    )


def test_what_a_loader_measured_or_filled_in_is_told_apart():
    data = with_columns(
        dataset(job(0.0, LARGE)),
        span_s=np.array([5.0, 0.0, np.nan, 7.0, 7.0, 7.0], np.float32),
        guessed=np.array([0, 0, 1, 2, 3, 0], np.int8),
        used_cpu=np.array([1.0, 2.0, np.nan, 0.0, 1.0, 1.0]),
    )
    metrics = {name: values.tolist() for name, values in data.stage_metrics.items()}
    nan = np.nan
    np.testing.assert_equal(
        metrics,
        {
            "duration": [10.0, 0.0, nan, 10.0, 10.0, 10.0],
            "span": [5.0, 0.0, nan, 7.0, 7.0, 7.0],
            "tasks": [1.0, 1.0, nan, 1.0, nan, 1.0],
            "demand_cpu": [1.0, 1.0, 1.0, nan, nan, 1.0],
            "used_cpu": [1.0, 2.0, nan, 0.0, 1.0, 1.0],
        },
    )
    words = [m.group for m in variability.measures("v", variability.variations(data))]
    assert "dependent pairs: used cpu" in words
    assert "dependent pairs: spans (end − start)" in words


def test_distributions_hold_quantiles():
    v = variability.Variation("pair", "tasks", np.arange(1.0, 202.0), 0)
    table = variability.distributions([v, variability.Variation("set", "tasks", np.empty(0), 3)])
    assert table.num_rows == variability.POINTS
    assert table["value"].to_pylist() == pytest.approx(list(range(1, 202)))
    assert set(table["relation"].to_pylist()) == {"pair"}
    assert variability.distributions([]).num_rows == 0
    assert variability.distributions([]).schema == table.schema


def test_nothing_left_is_said_by_a_count_alone():
    some = variability.Variation("pair", "tasks", np.empty(0), 3)
    none = variability.Variation("set", "tasks", np.empty(0), 0)
    summary = by_key(variability.measures("variability", [some, none]))
    assert summary["pair_tasks_left_out"] == 3
    assert np.isnan(summary["pair_tasks_equal"])
    assert not any(key.startswith("set") for key in summary)
