"""Splits of completion times: each reason by hand, and all against a slow reading."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sim
from sim.cluster.faults import Outages
from sweep.questions.why.attempts import read_attempts
from sweep.questions.why.splits import Splitter
from tests.sweep.questions.why.worlds import Bound, job, random_jobs, run, slow_reading, split

TWO_SLOTS = sim.Cluster.slots(2)


def seconds(captured: Any, name: str) -> dict[str, float]:
    return {reason: value for reason, value in split(captured, name).seconds.items() if value}


def test_no_slot_behind_a_job_that_ran_already() -> None:
    captured = run([job("a", 0.0, [5.0]), job("b", 1.0, [2.0])], sim.Cluster.slots(1))
    assert seconds(captured, "a") == {"running": 5.0}
    assert seconds(captured, "b") == {"running": 2.0, "no slot": 4.0}
    assert split(captured, "b").behind == {(0, "ran already"): 4.0}
    assert split(captured, "b").stages == {1: 4.0}


def test_who_overtook_it_is_told_from_who_came_before() -> None:
    jobs = [
        job("runs", 0.0, [4.0]),
        job("before", 1.0, [1.0]),
        job("long", 2.0, [9.0]),
        job("later", 3.0, [2.0]),
    ]
    waited = split(run(jobs, sim.Cluster.slots(1), "srpt"), "long")
    assert waited.seconds == {"running": 9.0, "no slot": 5.0}
    assert waited.behind == {
        (0, "ran already"): 2.0,
        (1, "came before"): 1.0,
        (3, "came later"): 2.0,
    }


def test_a_job_waits_for_its_own_tasks() -> None:
    waited = split(run([job("wide", 0.0, [3.0, 3.0, 1.0])], TWO_SLOTS), "wide")
    assert waited.seconds == {"running": 1.0, "no slot": 3.0}
    assert waited.behind == {(0, "its own tasks"): 3.0}


def test_the_short_resource_is_named_and_its_holders_are_in_front() -> None:
    jobs = [
        job("cpus", 0.0, [5.0], demand={"cpu": 4, "mem": 1}),
        job("mems", 0.0, [7.0], demand={"cpu": 0, "mem": 6}),
        job("needs mem", 1.0, [1.0], demand={"cpu": 0, "mem": 2}),
    ]
    captured = run(jobs, sim.Cluster.machines(1, cpu=4, mem=8))
    waited = split(captured, "needs mem")
    assert waited.seconds == {"running": 1.0, "no mem": 4.0}
    assert waited.behind == pytest.approx({(0, "ran already"): 4 / 7, (1, "ran already"): 24 / 7})


def test_room_in_pieces() -> None:
    jobs = [
        job("cpus", 0.0, [5.0], demand={"cpu": 4, "mem": 0}),
        job("mems", 0.0, [7.0], demand={"cpu": 1, "mem": 8}),
        job("both", 1.0, [1.0], demand={"cpu": 1, "mem": 1}),
    ]
    captured = run(jobs, sim.Cluster.machines(2, cpu=4, mem=8))
    assert seconds(captured, "both") == {"running": 1.0, "in pieces": 4.0}


def test_order_keeps_room_for_the_job_in_front() -> None:
    jobs = [
        job("half", 0.0, [5.0]),
        job("wide", 1.0, [3.0, 3.0], min_tasks=2),
        job("small", 2.0, [1.0]),
    ]
    waited = split(run(jobs, TWO_SLOTS), "small")
    assert waited.seconds == {"running": 1.0, "blocked": 3.0, "no slot": 3.0}
    assert waited.behind == {(1, "came before"): 6.0}


def test_a_reservation_keeps_room_for_the_job_in_front() -> None:
    jobs = [
        job("half", 0.0, [5.0], min_tasks=1, requested_s=5.0),
        job("wide", 1.0, [3.0, 3.0], min_tasks=2, requested_s=3.0),
        job("long", 2.0, [9.0], min_tasks=1, requested_s=9.0),
    ]
    waited = split(run(jobs, TWO_SLOTS, "easy"), "long")
    assert waited.seconds == {"running": 9.0, "reserved": 3.0, "no slot": 3.0}
    assert waited.behind == {(1, "came before"): 6.0}


@pytest.mark.parametrize("counted", ["running_jobs", "cpu"])
def test_a_cap_holds_a_job_while_there_is_room(counted: str) -> None:
    jobs = [
        job("a", 0.0, [5.0], user="u"),
        job("b", 1.0, [2.0], user="u"),
        job("other", 1.0, [1.0], user="v"),
    ]
    cluster = sim.Cluster.machines(1, cpu=3)
    limits = [{"of": counted, "at_most": 1, "by": "user"}]
    captured = run(jobs, cluster.with_limits(limits))
    assert seconds(captured, "b") == {"running": 2.0, "cap": 4.0}
    assert split(captured, "b").behind == {(0, "ran already"): 4.0}
    assert seconds(captured, "other") == {"running": 1.0}


def test_a_cap_in_minutes_goes_down_every_five_minutes() -> None:
    jobs = [
        job("a", 0.0, [580.0], user="u", requested_s=600.0),
        job("b", 0.0, [580.0], user="u", requested_s=600.0),
        job("other", 0.0, [1.0], user="v", requested_s=60.0),
    ]
    limits = [{"of": "cpu_minutes", "at_most": 15, "by": "user"}]
    captured = run(jobs, sim.Cluster.machines(1, cpu=3).with_limits(limits))
    assert seconds(captured, "b") == {"running": 580.0, "cap": 300.0}
    assert split(captured, "b").behind == {(0, "came before"): 300.0}
    assert seconds(captured, "other") == {"running": 1.0}


@pytest.mark.parametrize(("lend", "waits"), [(2, {}), (1, {"quota": 4.0})])
def test_a_quota_holds_a_job_while_there_is_room(lend: int, waits: dict[str, float]) -> None:
    jobs = [
        job("a", 0.0, [5.0] * 2, queue="x"),
        job("b", 1.0, [2.0], queue="x"),
        job("c", 1.0, [9.0], queue="alone"),
    ]
    quotas = {
        "x": {"parent": "org", "nominal": {"cpu": 1}},
        "y": {"parent": "org", "nominal": {"cpu": 2}, "lend": {"cpu": lend}},
        "alone": {"nominal": {"cpu": 1}},
    }
    captured = run(jobs, sim.Cluster.machines(1, cpu=4).with_quotas(quotas))
    assert seconds(captured, "b") == {"running": 2.0, **waits}
    assert split(captured, "b").behind == ({(0, "ran already"): 4.0} if waits else {})
    assert seconds(captured, "c") == {"running": 9.0}


def test_a_gang_waits_for_all_its_room() -> None:
    jobs = [job("half", 0.0, [5.0]), job("gang", 1.0, [3.0, 2.0], min_tasks=2)]
    captured = run([*jobs, job("last", 2.0, [1.0])], TWO_SLOTS)
    assert seconds(captured, "gang") == {"running": 3.0, "no slot": 4.0}
    # its second slot is held to the end of the gang
    assert seconds(captured, "last") == {"running": 1.0, "blocked": 3.0, "no slot": 3.0}


def test_a_gang_waits_for_room_in_one_rack() -> None:
    """Two racks of two CPUs have one free each until 5: room for two, but not in one of them."""
    racks = sim.Cluster.machines(4, cpu=1).with_topology({"levels": {"rack": {"size": 2}}})
    jobs = [
        *(
            job(name, 0.0, [s, s], min_tasks=2, topology_required="rack")
            for name, s in (("a", 5.0), ("b", 9.0))
        ),
        job("c", 1.0, [1.0, 1.0], min_tasks=2, topology_required="rack"),
    ]
    assert seconds(run(jobs, racks), "c") == {"running": 1.0, "no cpu": 4.0}
    jobs = [
        job(name, 0.0, [s], demand={"cpu": 1})
        for name, s in (("a", 7.0), ("b", 5.0), ("d", 9.0), ("e", 5.0))
    ]
    captured = run([*jobs, job("c", 1.0, [1.0, 1.0], min_tasks=2, topology_required="rack")], racks)
    assert seconds(captured, "c") == {"running": 1.0, "no cpu": 4.0, "domain": 2.0}
    assert split(captured, "c").behind


def test_pilots_hold_the_other_tasks_back() -> None:
    captured = run([job("a", 0.0, [2.0] * 3)], sim.Cluster.slots(5), Bound(gate=1))
    assert seconds(captured, "a") == {"running": 2.0, "pilots": 2.0}


def test_a_run_limit_holds_tasks_back() -> None:
    captured = run([job("a", 0.0, [2.0] * 3)], sim.Cluster.slots(5), Bound(limit=1))
    assert seconds(captured, "a") == {"running": 2.0, "limit": 4.0}


def test_a_hard_share_is_in_use() -> None:
    jobs = [
        job("a", 0.0, [5.0], queue="x"),
        job("b", 1.0, [2.0], queue="x"),
        job("c", 1.0, [1.0], queue="y"),
    ]
    cluster = TWO_SLOTS.with_queues("hard", {"x": 0.5, "y": 0.5})
    captured = run(jobs, cluster)
    assert seconds(captured, "b") == {"running": 2.0, "share": 4.0}
    assert split(captured, "b").behind == {(0, "ran already"): 4.0}
    assert seconds(captured, "c") == {"running": 1.0}


def test_machines_out_of_service() -> None:
    outages = [{"machine": 0, "from_s": 1.0, "until_s": 6.0, "drain": True}]
    cluster = sim.Cluster.machines(1, cpu=2).with_outages(Outages.parse(outages))
    captured = run([job("a", 0.0, [3.0]), job("b", 2.0, [1.0])], cluster)
    assert seconds(captured, "b") == {"running": 1.0, "closed": 4.0}


def test_a_begin_time_keeps_a_job_back() -> None:
    jobs = [job("a", 0.0, [6.0, 6.0]), job("b", 1.0, [1.0], begin_s=4.0)]
    captured = run(jobs, TWO_SLOTS)
    assert seconds(captured, "b") == {"running": 1.0, "not released": 3.0, "no slot": 2.0}


def test_a_job_comes_when_it_is_free_to_start() -> None:
    jobs = [job("b", 0.0, [1.0], begin_s=3.0), job("a", 2.0, [6.0])]
    waited = split(run(jobs, sim.Cluster.slots(1)), "b")
    assert waited.seconds == {"running": 1.0, "not released": 3.0, "no slot": 5.0}
    assert waited.behind == {(1, "ran already"): 5.0}


def test_lags_of_stages_and_launches() -> None:
    stages = [
        {"name": "map", "durations_s": [2.0]},
        {"name": "join", "durations_s": [3.0], "parents": ["map"]},
    ]
    cluster = TWO_SLOTS.with_stage_lag(0.5)
    captured = run([{"job_id": "a", "submit_s": 0.0, "stages": stages}], cluster)
    assert seconds(captured, "a") == {"running": 5.0, "lag": 0.5}
    captured = run([job("a", 0.0, [2.0])], TWO_SLOTS.with_launch(0.25))
    assert seconds(captured, "a") == {"running": 2.0, "lag": 0.25}


def test_what_ran_in_vain() -> None:
    workload = sim.Workload.from_jobs([job("a", 0.0, [4.0])])
    failing = workload.with_failures({"task": [0], "after_s": [1.5], "lost": [-1]})
    assert seconds(run(failing, TWO_SLOTS), "a") == {"running": 4.0, "run again": 1.5}


def test_what_gangs_hold_for_no_task_is_not_told() -> None:
    jobs = [
        job("elastic", 0.0, [1.0, 1.0, 5.0], min_tasks=2),
        job("b", 0.5, [1.0]),
    ]
    waited = seconds(run(jobs, TWO_SLOTS), "b")
    assert waited["running"] == 1.0
    assert waited["no slot"] == 0.5
    assert waited["gang slots"] == 5.0  # a slot that the gang holds to its end


@pytest.mark.parametrize("cluster", [sim.Cluster.slots(3), sim.Cluster.machines(2, cpu=4, mem=5)])
@pytest.mark.parametrize("policy", ["fifo", "srpt"])
def test_splits_equal_a_slow_reading(policy: str, cluster: sim.Cluster) -> None:
    rng = np.random.default_rng(7)
    reasons: set[str] = set()
    for _ in range(12):
        captured = run(random_jobs(rng), cluster, policy)
        splitter = Splitter(read_attempts(captured))
        for row in range(captured.result.workload.n_jobs):
            got = splitter.split(row)
            expected, behind = slow_reading(captured.result, row)
            jct = captured.result.job_finish[row] - captured.result.job_submit[row]
            assert sum(got.seconds.values()) == pytest.approx(jct, rel=1e-12)
            assert sum(got.stages.values()) == pytest.approx(got.wait_s, rel=1e-12)
            assert _positive(got.seconds) == pytest.approx(_positive(expected))
            assert _positive(got.behind) == pytest.approx(_positive(behind))
            reasons |= _positive(got.seconds).keys()
    assert reasons >= ({"running", "no slot"} if cluster.unit else {"no cpu", "no mem", "blocked"})


def _positive(values: dict[Any, float]) -> dict[Any, float]:
    return {key: value for key, value in values.items() if value > 1e-12}
