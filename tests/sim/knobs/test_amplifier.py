"""The heterogeneity amplifier: extremes further from the average, by the ratio asked for."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim.base.errors import InputError
from sim.knobs import amplify


def workload(*stages):
    jobs = [
        {"submit_s": 0.0, "stages": [{"durations_s": d, "demand": {"cpu": c}}]} for d, c in stages
    ]
    return sim.Workload.from_jobs(jobs)


def test_above_the_average_grows_and_below_shrinks():
    made = amplify(workload(([1.0], 2.0), ([3.0], 4.0), ([8.0], 9.0)), 2.0)
    assert made.tasks["duration_s"].to_pylist() == [0.5, 1.5, 16.0]
    assert made.stages["demand_cpu"].to_pylist() == [1.0, 2.0, 18.0]


def test_extremes_are_the_ratio_further_from_the_average():
    plain = sim.synthesize("alibaba2018", jobs=500, seed=2)
    made = amplify(plain, 1.5, metrics=["duration_s"])
    before, after = plain.stage_duration_s, made.stage_duration_s
    assert after.max() == 1.5 * before.max()
    assert after.min() == before.min() / 1.5
    assert (np.argsort(before, kind="stable") == np.argsort(after, kind="stable")).all()
    assert made.stages["demand_mem"].equals(plain.stages["demand_mem"])
    assert made.meta["knobs"] == [{"heterogeneity": 1.5, "of": ["duration_s"]}]


def test_tasks_of_one_stage_are_told_apart():
    made = amplify(workload(([1.0, 2.0, 9.0], 1.0)), 3.0, metrics=["duration_s"])
    assert made.tasks["duration_s"].to_pylist() == pytest.approx([1 / 3, 2 / 3, 27])


def test_it_is_an_option_of_synthesize():
    made = sim.synthesize("alibaba2018", jobs=200, heterogeneity=2.0)
    wanted = amplify(sim.synthesize("alibaba2018", jobs=200), 2.0)
    assert made.digest == wanted.digest


@pytest.mark.parametrize(
    ("ratio", "metrics", "message"),
    [
        (0, None, "ratio must be positive and finite, not 0"),
        (float("nan"), None, "ratio must be positive and finite"),
        (2, ["duration"], "unknown metric 'duration'; did you mean 'duration_s'"),
        (2, ["demand_mem"], "unknown metric 'demand_mem'"),
    ],
)
def test_wrong_values_are_errors(ratio, metrics, message):
    with pytest.raises(InputError, match=message):
        amplify(workload(([1.0], 1.0)), ratio, metrics)
