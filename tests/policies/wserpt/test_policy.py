"""Worth over expected remaining work: equal to what it generalises, and each part by hand."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from policies.check.unknown import recurring
from policies.wing.lineage.worth import COLUMNS
from policies.wserpt.policy import WSERPT
from policies.wserpt.worth import Fixed
from tests.policies.jockey.worlds import training_of
from tests.policies.small import ONE, job, run, runs_of, stage, stage_starts, started

PLAIN = {"sizes": "true", "worth": "one", "urgency": 0.0, "order": "given", "ageing": 0.0}


@pytest.mark.parametrize("source", ["true", "declared"])
def test_with_all_parts_taken_away_it_is_srpt(source):
    workload, cluster = recurring(1, COLUMNS), sim.Cluster.slots(4)
    mine, known = (
        sim.simulate(workload, cluster, policies.build(name, **parameters), record="tasks")
        for name, parameters in (
            ("wserpt", PLAIN | {"sizes": source}),
            ("srpt", {"knowledge": source}),
        )
    )
    np.testing.assert_array_equal(mine.task_start, known.task_start)


def test_a_wide_job_that_nobody_knows_has_pilots_and_a_known_one_has_none():
    new = job("a", 0, [5.0] * 40), job("b", 0, [1.0] * 40)
    result = run("wserpt", new, sim.Cluster.slots(2), ageing=0.0)
    # both pilots run, and then the shorter job
    assert sorted(result.task_start[[0, 40]].tolist()) == [0, 0]
    assert result.job_finish[1] < result.job_finish[0]
    known = [*runs_of("p", *[[4.0] * 40] * 6), job("x", 1e4, [4.0] * 40, template="p")]
    result = run("wserpt", known, sim.Cluster.slots(40), ageing=0.0)
    assert (result.task_start[-40:] == 1e4).all()


def test_urgency_lets_a_job_with_a_close_deadline_go_first():
    jobs = [job("a", 0, [9.0]), job("b", 0, [3.0]), job("c", 0, [4.0], deadline_s=14.0)]
    assert started(run("wserpt", jobs, **PLAIN)) == "bca"
    assert started(run("wserpt", jobs, **PLAIN | {"urgency": 10.0})) == "cba"
    jobs[2]["deadline_s"] = 1e6
    assert started(run("wserpt", jobs, **PLAIN | {"urgency": 10.0})) == "bca"


def due(jobs, deadline_s, **parameters):
    """Run jobs of which the last has a deadline, and a template that ran once for 4 s."""
    jobs[-1] |= {"deadline_s": deadline_s, "template": "a"}
    before = sim.simulate(
        sim.Workload.from_jobs([job("t", 0, [4.0], template="a")]),
        ONE, policies.build("fifo"), record="tasks",
    )  # fmt: skip
    workload = sim.Workload.from_jobs(jobs).with_training(training_of(before, "a"))
    policy = policies.build("wserpt", **PLAIN | {"urgency": 10.0} | parameters)
    return sim.simulate(workload, ONE, policy)


def test_urgency_goes_by_recorded_runs_and_a_deadline_that_none_meets_gives_way():
    jobs = [job("a", 0, [9.0]), job("b", 0, [3.0]), job("c", 0, [4.0])]
    assert started(due(jobs, 5.0, late=0.0)) == "cba"  # by its recorded run, at 1.2 times 4 s
    assert started(due(jobs, 4.5, late=0.0)) == "bca"
    assert started(due(jobs, 4.5, late=1.0)) == "cba"
    assert started(due(jobs, 4.5, late=0.0, urgency_by="slack")) == "cba"
    assert started(due(jobs, 1e6, late=0.0)) == "bca"


def test_a_gang_has_no_model():
    jobs = [job("a", 0, [9.0], min_tasks=1), job("c", 0, [4.0], min_tasks=1)]
    model, slack = (due(jobs, 4.5, urgency_by=by).job_start for by in ("model", "slack"))
    np.testing.assert_array_equal(model, slack)


def test_ageing_lets_a_long_job_start_that_short_ones_would_pass_for_ever():
    jobs = [job("long", 0.0, [60.0]), *(job(f"s{i}", 10.0 * i, [10.0]) for i in range(40))]
    assert run("wserpt", jobs, **PLAIN).job_start[0] == 400.0
    assert run("wserpt", jobs, **PLAIN | {"ageing": 1.0}).job_start[0] < 200.0


def test_the_longest_expected_path_goes_first_inside_a_job():
    stages = [stage("a", 1.0), stage("b", 1.0), stage("c", 9.0, parents=["b"])]
    jobs = [{"submit_s": 0.0, "stages": stages}]
    assert stage_starts(run("wserpt", jobs, **PLAIN)) == ["a", "b", "c"]
    for order in ("path", "dagps"):
        result = run("wserpt", jobs, **PLAIN | {"order": order})
        assert stage_starts(result)[0] == "b", order


def test_priority_and_value_are_worth():
    jobs = [job("a", 0, [4.0]), job("b", 0, [6.0], priority=1)]
    assert started(run("wserpt", jobs, **PLAIN | {"worth": "priority"})) == "ba"
    workload = recurring(2, COLUMNS)
    history = workload.history
    assert {"agg_value", "agg_compute_s"} <= set(history.column_names)
    starts = [
        sim.simulate(
            workload, sim.Cluster.slots(3), policies.build("wserpt", **PLAIN | {"worth": worth})
        ).job_start
        for worth in ("one", "own", "aggregate", "decaying")
    ]
    assert all((other != starts[0]).any() for other in starts[1:])


def test_a_factor_of_its_own_is_one_method():
    class NarrowFirst(WSERPT):
        def factors(self, world, plan):
            return [*super().factors(world, plan), Fixed(1 / world.columns.job_n_tasks)]

    jobs = [job("a", 0, [1.0] * 4), job("b", 0, [5.0])]
    workload, cluster = sim.Workload.from_jobs(jobs), sim.Cluster.slots(1)
    assert started(sim.simulate(workload, cluster, WSERPT(**PLAIN))) == "ab"
    assert started(sim.simulate(workload, cluster, NarrowFirst(**PLAIN))) == "ba"


def test_reservations_let_no_later_job_delay_a_wide_one():
    jobs = [
        job("a", 0, [10.0], min_tasks=1),
        job("wide", 1, [3.0, 3.0], min_tasks=2),
        job("c", 2, [20.0], min_tasks=1),
        job("d", 2, [7.0], min_tasks=1),
    ]
    result = run(
        "wserpt", jobs, sim.Cluster.slots(2), **PLAIN | {"placement": "reserve", "sizes": "both"}
    )
    assert np.isfinite(result.job_finish).all()
    result = run("wserpt", jobs, sim.Cluster.slots(2), **PLAIN | {"placement": "reserve"})
    assert result.job_start.tolist() == [0.0, 10.0, 13.0, 2.0]


def test_where_several_resources_are_scarce_machines_are_held_for_the_first_that_does_not_fit():
    def single(name, submit_s, seconds, cpu):
        demand = {"cpu": cpu, "mem": 1}
        return {"submit_s": submit_s, "stages": [{"durations_s": [seconds], "demand": demand}]}

    jobs = [single("a", 0, 10.0, 2), single("large", 1, 3.0, 4), single("small", 2, 20.0, 1)]
    cluster = sim.Cluster.machines(1, cpu=4, mem=4)
    assert run("wserpt", jobs, cluster, **PLAIN).job_start.tolist() == [0.0, 10.0, 13.0]
    skipping = run("wserpt", jobs, cluster, **PLAIN | {"placement": "skip"})
    assert skipping.job_start.tolist() == [0.0, 22.0, 2.0]
    gang = [job("g", 0, [1.0, 1.0], min_tasks=2), *jobs]
    assert np.isfinite(run("wserpt", gang, cluster, **PLAIN).job_finish).all()  # which holds none
