"""Variation and load as an evaluator."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sim
from policies.slearn.task_variation import jobs_over_space, jobs_over_time
from sim import Cluster, evaluators

DAY_S = 86_400.0


def recurring(n: int = 60) -> sim.Workload:
    """A job every day, of one user, whose tasks differ."""
    return sim.Workload.from_jobs(
        [
            {
                "submit_s": DAY_S * index,
                "user": "u",
                "stages": [{"durations_s": [10.0 + index % 5, 20.0 + index]}],
            }
            for index in range(n)
        ]
    )


def test_jobs_are_measured_once_the_longest_window_is_full() -> None:
    w = recurring()
    metrics, table = evaluators.evaluate("variation", None, w, Cluster.slots(2), None, 0)  # type: ignore[arg-type]
    assert not evaluators.uses_policy("variation")
    assert table["job"].to_pylist() == list(range(14, 60))
    time = jobs_over_time(w, 7 * DAY_S)[14:]
    assert table["over_time_7d"].to_pylist() == time.tolist()
    assert metrics["over_time_7d_p90"] == np.quantile(time, 0.9)
    assert metrics["over_space_p50"] == np.quantile(jobs_over_space(w)[14:], 0.5)
    assert metrics["over_time_3d_p50"] != metrics["over_time_14d_p50"]
    assert metrics["thin"] == 1.0
    assert metrics["load_max"] == pytest.approx((14 + 79) / 2000)


def test_a_sample_is_drawn_by_the_seed() -> None:
    def drawn(seed: int) -> list[int]:
        chosen = {"sample": 9}
        arguments = (None, recurring(), Cluster.slots(2), None, seed)
        rows: list[int] = evaluators.evaluate("variation", *arguments, **chosen)[1][
            "job"
        ].to_pylist()  # type: ignore[arg-type]
        return rows

    assert len(drawn(0)) == 9
    assert drawn(0) == drawn(0) != drawn(1)


def test_jobs_alone_of_their_kind_and_of_one_task_have_no_variation() -> None:
    w = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": [{"durations_s": [1.0]}]}])
    metrics, _ = evaluators.evaluate("variation", None, w, Cluster.machines(1, cpu=4), None, 0)  # type: ignore[arg-type]
    assert math.isnan(metrics["over_time_3d_p50"])
    assert math.isnan(metrics["over_space_p90"])
    assert "load_p50" not in metrics
