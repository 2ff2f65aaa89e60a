"""The heterogeneity amplifier, and demands rescaled to other machines."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim.base.errors import InputError
from sim.transforms import amplify, fit_machines


def workload(*stages):
    jobs = [
        {"submit_s": 0.0, "stages": [{"durations_s": d, "demand": {"cpu": c}}]} for d, c in stages
    ]
    return sim.Workload.from_jobs(jobs)


def test_amplify_increases_values_above_the_mean_and_decreases_those_below():
    result = amplify(workload(([1.0], 2.0), ([3.0], 4.0), ([8.0], 9.0)), 2.0)
    assert result.tasks["duration_s"].to_pylist() == [0.5, 1.5, 16.0]
    assert result.stages["demand_cpu"].to_pylist() == [1.0, 2.0, 18.0]


def test_amplify_moves_extremes_by_the_ratio():
    plain = sim.synthesize("alibaba2018", jobs=500, seed=2)
    result = amplify(plain, 1.5, metrics=["duration_s"])
    before, after = plain.stage_duration_s, result.stage_duration_s
    assert after.max() == 1.5 * before.max()
    assert after.min() == before.min() / 1.5
    assert (np.argsort(before, kind="stable") == np.argsort(after, kind="stable")).all()
    assert result.stages["demand_mem"].equals(plain.stages["demand_mem"])
    assert result.meta["transforms"] == [{"heterogeneity": 1.5, "metrics": ["duration_s"]}]


def test_amplify_changes_tasks_of_one_stage_separately():
    result = amplify(workload(([1.0, 2.0, 9.0], 1.0)), 3.0, metrics=["duration_s"])
    assert result.tasks["duration_s"].to_pylist() == pytest.approx([1 / 3, 2 / 3, 27])


def test_heterogeneity_of_synthesize_is_amplify():
    result = sim.synthesize("alibaba2018", jobs=200, heterogeneity=2.0)
    expected = amplify(sim.synthesize("alibaba2018", jobs=200), 2.0)
    assert result.digest == expected.digest


@pytest.mark.parametrize(
    ("ratio", "metrics", "message"),
    [
        (0, None, "ratio must be a number above 0, not 0"),
        (float("nan"), None, "ratio must be a number above 0"),
        (2, ["duration"], "unknown metric 'duration'; did you mean 'duration_s'"),
        (2, ["demand_mem"], "unknown metric 'demand_mem'"),
    ],
)
def test_amplify_refuses_invalid_values(ratio, metrics, message):
    with pytest.raises(InputError, match=message):
        amplify(workload(([1.0], 1.0)), ratio, metrics)


def one_job(*demands, tasks=2):
    stage = [{"durations_s": [1.0] * tasks, "demand": {"cpu": c, "mem": m}} for c, m in demands]
    return sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stage}])


def demands(workload):
    columns = (workload.stages[name].to_pylist() for name in ("demand_cpu", "demand_mem"))
    return [round(amount, 9) for pair in zip(*columns, strict=True) for amount in pair]


def test_fit_machines_keeps_the_share_of_the_machine():
    workload = one_job((24, 50), (1, 3))
    result = fit_machines(workload, {"cpu": 48, "mem": 10}, {"cpu": 96, "mem": 100})
    assert demands(result) == [12, 5, 0.5, 0.3]


def test_fit_machines_cuts_demands_that_still_do_not_fit():
    result = fit_machines(one_job((200, 50), (96, 1)), {"cpu": 8}, {"cpu": 96})
    assert demands(result) == [8, 50, 8, 1]


def test_fit_machines_fits_the_largest_demand_without_a_source():
    result = fit_machines(one_job((20, 6), (5, 2)), {"cpu": 10, "mem": 64})
    assert demands(result) == [10, 6, 2.5, 2]


def test_fit_machines_changes_only_demands_and_is_noted():
    before = sim.synthesize("alibaba2018", jobs=40)
    after = fit_machines(before, {"mem": 50}, {"mem": 100})
    assert after.jobs.equals(before.jobs)
    assert after.stage_edges.equals(before.stage_edges)
    assert (after.stage_duration_s == before.stage_duration_s).all()
    assert after.stages["demand_cpu"].equals(before.stages["demand_cpu"])
    assert after.meta["transforms"] == [{"machine": {"mem": 50}}]
    assert after.meta["synth"] == before.meta["synth"]


def test_machine_of_synthesize_is_fit_machines():
    result = sim.synthesize("alibaba2018", jobs=300, machine={"cpu": 4, "mem": 1})
    plain = sim.synthesize("alibaba2018", jobs=300)
    assert result.stages["demand_cpu"].to_numpy().max() <= 4
    assert result.stages["demand_mem"].to_numpy().max() <= 1
    np.testing.assert_allclose(
        result.stages["demand_mem"].to_numpy(), plain.stages["demand_mem"].to_numpy() / 100
    )
    np.testing.assert_allclose(
        result.stages["demand_cpu"].to_numpy(), plain.stages["demand_cpu"].to_numpy() / 24
    )


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        ({"cpus": 4}, "unknown resource 'cpus'; did you mean 'cpu'"),
        ({"cpu": 0}, "machine must be a mapping from a text to a number above 0"),
        ({"cpu": float("inf")}, "a number above 0"),
        ({"cpu": "many"}, "a number above 0, not {'cpu': 'many'}"),
    ],
)
def test_fit_machines_refuses_invalid_machines(machine, message):
    with pytest.raises(InputError, match=message):
        fit_machines(one_job((1, 1)), machine)
