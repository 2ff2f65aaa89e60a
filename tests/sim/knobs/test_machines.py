"""Cluster configuration: demands keep their share of a machine, and fit."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim.base.errors import InputError
from sim.knobs import fit_machines


def workload(*demands, tasks=2):
    stage = [{"durations_s": [1.0] * tasks, "demand": {"cpu": c, "mem": m}} for c, m in demands]
    return sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stage}])


def demands(of):
    columns = (of.stages[name].to_pylist() for name in ("demand_cpu", "demand_mem"))
    return [round(amount, 9) for pair in zip(*columns, strict=True) for amount in pair]


def test_a_demand_keeps_its_share_of_the_machine():
    made = fit_machines(workload((24, 50), (1, 3)), {"cpu": 48, "mem": 10}, {"cpu": 96, "mem": 100})
    assert demands(made) == [12, 5, 0.5, 0.3]


def test_what_still_does_not_fit_is_cut_to_the_machine():
    made = fit_machines(workload((200, 50), (96, 1)), {"cpu": 8}, {"cpu": 96})
    assert demands(made) == [8, 50, 8, 1]


def test_without_a_source_the_largest_demand_is_made_to_fit_and_small_ones_stay():
    made = fit_machines(workload((20, 6), (5, 2)), {"cpu": 10, "mem": 64})
    assert demands(made) == [10, 6, 2.5, 2]


def test_all_else_stays_and_the_knob_is_noted():
    before = sim.synthesize("alibaba2018", jobs=40)
    after = fit_machines(before, {"mem": 50}, {"mem": 100})
    assert after.jobs.equals(before.jobs)
    assert after.stage_edges.equals(before.stage_edges)
    assert (after.stage_duration_s == before.stage_duration_s).all()
    assert after.stages["demand_cpu"].equals(before.stages["demand_cpu"])
    assert after.meta["knobs"] == [{"machine": {"mem": 50}}]
    assert after.meta["synth"] == before.meta["synth"]


def test_synthesized_demands_fit_the_machine_asked_for():
    made = sim.synthesize("alibaba2018", jobs=300, machine={"cpu": 4, "mem": 1})
    plain = sim.synthesize("alibaba2018", jobs=300)
    assert made.stages["demand_cpu"].to_numpy().max() <= 4
    assert made.stages["demand_mem"].to_numpy().max() <= 1
    np.testing.assert_allclose(
        made.stages["demand_mem"].to_numpy(), plain.stages["demand_mem"].to_numpy() / 100
    )
    np.testing.assert_allclose(
        made.stages["demand_cpu"].to_numpy(), plain.stages["demand_cpu"].to_numpy() / 24
    )


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        ({"cpus": 4}, "unknown resource 'cpus'; did you mean 'cpu'"),
        ({"cpu": 0}, "the machine's cpu must be positive and finite, not 0"),
        ({"cpu": float("inf")}, "must be positive and finite"),
        ({"cpu": "many"}, "must be positive and finite, not 'many'"),
    ],
)
def test_wrong_machines_are_errors(machine, message):
    with pytest.raises(InputError, match=message):
        fit_machines(workload((1, 1)), machine)
