"""Machines that are lost and come back."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from sim.cluster.faults import Outages, draw_outages
from sim.engine.plan import Event

INF = float("inf")


def workload(*durations_s, submit_s=0.0, **more):
    stages = [{"durations_s": list(durations_s), "demand": {"slot": 1}}]
    return sim.Workload.from_jobs([{"submit_s": submit_s, "stages": stages, **more}])


def run(w, n, outages, policy="fifo"):
    cluster = sim.Cluster.machines(n, slot=1).with_outages(Outages.from_columns(*outages))
    return sim.simulate(w, cluster, policies.build(policy), record="tasks")


def test_tasks_of_a_lost_machine_start_again_on_another():
    result = run(workload(5.0, 3.0), 3, ([0], [2.0], [INF]))
    assert result.task_start.tolist() == [2.0, 0.0]
    assert result.task_finish.tolist() == [7.0, 3.0]
    assert result.task_machine.tolist() == [2, 1]
    assert result.job_start.tolist() == [0.0]  # when it first had a machine
    (stop,) = result.stops.select(["machine", "start_s", "stop_s", "reason"]).to_pylist()
    assert [*stop.values()] == [0, 0.0, 2.0, "machine lost"]


def test_tasks_of_the_only_machine_wait_until_it_is_back():
    result = run(workload(5.0), 1, ([0], [2.0], [10.0]))
    assert result.task_finish.tolist() == [15.0]


def test_a_task_that_ends_at_the_moment_of_the_loss_has_ended():
    result = run(workload(2.0, 1.0), 1, ([0], [2.0], [4.0]))
    assert result.task_finish.tolist() == [2.0, 5.0]


def test_a_pool_is_one_machine():
    cluster = sim.Cluster.slots(2).with_outages(Outages.from_columns([0], [1.0], [4.0]))
    result = sim.simulate(workload(2.0, 2.0, 2.0), cluster, policies.build("fifo"))
    assert result.job_finish.tolist() == [8.0]


def test_loss_of_all_machines_names_the_jobs():
    with pytest.raises(sim.base.errors.DeadlockError, match="job-0"):
        run(workload(5.0), 1, ([0], [2.0], [INF]))


def test_a_policy_is_told_of_losses_and_returns():
    class Watcher:
        name, events = "watcher", Event.FAULT

        def begin(self, world, plan):
            self.received = []

        def react(self, memory, batch, world, plan):
            self.received += [(batch.now, r) for r in batch.rows(Event.FAULT).tolist()]

    watcher = Watcher()
    cluster = sim.Cluster.machines(2, slot=1)
    cluster = cluster.with_outages(Outages.from_columns([1, 0], [1.0, 2.0], [2.0, 3.0]))
    sim.simulate(workload(9.0), cluster, watcher)
    assert watcher.received == [(1.0, 1), (2.0, 0), (2.0, 1), (3.0, 0)]


@pytest.mark.parametrize("policy", ["slearn", "bayes", "slearn_dag"])
def test_a_pilot_whose_machine_is_lost_runs_again_and_its_job_ends(policy):
    jobs = [
        {"submit_s": i, "user": "u", "stages": [{"durations_s": [4.0] * 8, "demand": {"slot": 1}}]}
        for i in range(6)
    ]
    lost = ([0, 1, 2, 3], [1.0, 1.0, 2.0, 6.0], [INF, 30.0, 40.0, 50.0])
    cluster = sim.Cluster.machines(6, slot=1).with_outages(Outages.from_columns(*lost))
    result = sim.simulate(sim.Workload.from_jobs(jobs), cluster, policies.build(policy))
    assert np.isfinite(result.job_finish).all()
    assert not result.job_failed.any()


def test_drawn_outages_are_as_often_and_as_long_as_asked():
    outages = draw_outages(400, 3, mtbf_s=100.0, repair_s=20.0, until_s=5000.0)
    down = (np.minimum(outages.up_s, 5000.0) - outages.down_s).sum() / (400 * 5000.0)
    assert down == pytest.approx(20 / 120, rel=0.03)
    assert np.mean(outages.up_s - outages.down_s) == pytest.approx(20.0, rel=0.03)
    more = draw_outages(500, 3, mtbf_s=100.0, repair_s=20.0, until_s=5000.0)
    first = more.machine < 400
    for column, more_column in zip(outages.columns, more.columns, strict=True):
        np.testing.assert_array_equal(column, more_column[first])
    assert len(draw_outages(3, 0, mtbf_s=1e12, repair_s=1.0, until_s=1.0)) == 0


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (([-1], [0.0], [1.0]), "machine is negative"),
        (([0], [-1.0], [1.0]), "before 0"),
        (([0], [1.0], [1.0]), "must end after it begins"),
        (([0, 0], [3.0, 1.0], [4.0, 3.5]), "outage 0 .* is lost already"),
        (([0, 1], [3.0], [4.0]), "2, 1 and 1 rows"),
    ],
)
def test_outages_that_can_not_be_are_named(rows, text):
    with pytest.raises(sim.InputError, match=text):
        Outages.from_columns(*rows)


def test_outages_of_a_machine_that_is_not_there():
    with pytest.raises(sim.InputError, match="valid: 0 to 1"):
        sim.Cluster.machines(2, cpu=1).with_outages(Outages.from_columns([2], [0.0], [1.0]))
