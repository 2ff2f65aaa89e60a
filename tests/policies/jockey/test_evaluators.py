"""The evaluators `predictions` and `progress` against numbers by hand, and on Jockey itself."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from policies.base import Policy
from policies.jockey.indicators import NAMES
from sim.cluster.faults import Slowdowns
from sim.evaluators import evaluate
from tests.policies.jockey.worlds import world


def two_stages(**job) -> sim.Workload:
    """Make a job of four tasks of 60 s and one of 120 s, due in ten minutes, and one without."""
    stages = [
        {"name": "map", "durations_s": [60.0] * 4},
        {"name": "reduce", "durations_s": [120.0], "parents": ["map"]},
    ]
    with_deadline = {"submit_s": 50.0, "deadline_s": 600.0, "stages": stages, **job}
    return sim.Workload.from_jobs([with_deadline, {"submit_s": 0.0, "stages": stages}])


class Foretelling(Policy):
    """Two tokens from the first; what it foretells is given."""

    def prepare(self, world, plan):
        plan.set_jobs(run_limit=2)

    def predicted_s(self, columns, row):
        return np.array([400.0, 300.0, 200.0])

    def predict_progress(self, columns, row, done, tokens, names):
        assert (tokens == 2).all()
        progress = done.mean(axis=1)
        return {
            "x": (progress, 300.0 * (1 - progress)),
            "stuck": (0 * progress, 300.0 + 0 * progress),
        }


def test_jobs_run_alone_with_each_allocation():
    workload, cluster = two_stages(), sim.Cluster.slots(2)
    metrics, table = evaluate(
        "predictions", sim.simulate, workload, cluster, Foretelling(), 0, tokens=(1, 2, 3)
    )
    assert table.to_pydict() == {
        "job": [1, 1, 1],
        "tokens": [1, 2, 3],
        "took_s": [360.0, 240.0, 240.0],
        "predicted_s": [400.0, 300.0, 200.0],
    }
    assert metrics["latency_error"] == pytest.approx((40 / 360 + 60 / 240 + 40 / 240) / 3)


def test_slow_periods_of_the_cluster_count():
    slow = sim.Cluster.slots(2).with_slowdowns(Slowdowns.from_columns([0.0], [1e6], [0.5]))
    _, table = evaluate(
        "predictions", sim.simulate, two_stages(), slow, Foretelling(), 0, tokens=(2,)
    )
    assert table["took_s"].to_pylist() == [480.0]


def test_progress_by_hand():
    """Two maps end at 60 s, two at 120 s, the reduce at 240 s."""
    metrics, table = evaluate(
        "progress", sim.simulate, two_stages(), sim.Cluster.slots(20), Foretelling(), 0
    )
    x = table.filter(np.array(table["indicator"].to_pylist()) == "x")
    assert x["elapsed_s"].to_pylist() == [0.0, 60.0, 120.0, 180.0]
    assert x["progress"].to_pylist() == [0.0, 0.25, 0.5, 0.5]
    assert x["predicted_s"].to_pylist() == [300.0, 285.0, 270.0, 330.0]
    assert metrics["delta_t.x"] == pytest.approx((15 + 15 + 60) / 3 / 240)
    assert metrics["longest_constant.x"] == 0.5  # from 120 s to the end
    assert metrics["delta_t.stuck"] == pytest.approx(60 / 240)
    assert metrics["longest_constant.stuck"] == 1.0


class ThreeSums(Policy):
    """Three progress indicators that move at each end of a task, by unlike amounts."""

    def prepare(self, world, plan):
        plan.set_jobs(run_limit=1)

    def predict_progress(self, columns, row, done, tokens, names):
        share = done[:, 0]
        return {name: (share**power, 0 * share) for name, power in POWERS.items()}


POWERS = {"even": 1, "late": 4, "later": 12}


def test_progress_is_read_in_whole_per_cent_at_each_minute():
    """Forty tasks of 30 s: all sums move every 30 s, so by the ends of tasks they were equal."""
    stages = [{"name": "map", "durations_s": [30.0] * 40}]
    workload = sim.Workload.from_jobs([{"submit_s": 0.0, "deadline_s": 3600.0, "stages": stages}])
    metrics, table = evaluate(
        "progress", sim.simulate, workload, sim.Cluster.slots(1), ThreeSums(), 0
    )
    longest = {name: metrics[f"longest_constant.{name}"] * 20 for name in POWERS}  # minutes
    expected = {}
    for name, power in POWERS.items():
        percent = [int(100 * (minute / 20) ** power + 1e-9) for minute in range(20)]
        expected[name] = max(percent.count(value) for value in percent)
    assert longest == pytest.approx(expected)
    assert expected["even"] < expected["late"] < expected["later"]
    assert table.num_rows == 60


def test_jockeys_simulator_predicts_better_than_amdahls_law_with_few_tokens():
    workload, cluster = world(3600.0), sim.Cluster.slots(60)
    result = {}
    for name in ("jockey", "jockey_amdahl"):
        policy = policies.build(name)
        metrics, table = evaluate("predictions", sim.simulate, workload, cluster, policy, 0)
        result[name] = metrics["latency_error"]
        assert len(table) == 8
    assert result["jockey"] < 0.3
    assert result["jockey"] < result["jockey_amdahl"]


def test_every_indicator_is_followed():
    workload, cluster = world(1800.0), sim.Cluster.slots(60)
    jockey = policies.build("jockey")
    metrics, table = evaluate("progress", sim.simulate, workload, cluster, jockey, 0, step_s=10.0)
    assert {name.partition(".")[2] for name in metrics} == set(NAMES)
    assert all(0 < value < 1 for value in metrics.values())
    progress = table["progress"].to_numpy().reshape(len(NAMES), -1)
    assert (np.diff(progress, axis=1) >= -1e-12).all()
    smooth, worst = metrics["longest_constant.totalwork"], metrics["longest_constant.minstage-inf"]
    assert smooth < worst
