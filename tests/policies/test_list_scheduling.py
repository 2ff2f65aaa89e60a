"""Policies that look at a job's DAG order as their definition says, on small examples."""

import numpy as np
import pytest

import policies
import sim
from tests.policies.small import run, stage, stage_starts

# short -> end and long -> end; deep is two steps away but its path is short
DAG = [
    stage("short", 1.0),
    stage("long", 5.0),
    stage("mid", 1.0, parents=["short"]),
    stage("wide", 2.0, 2.0),
    stage("end", 3.0, parents=["long"]),
]


def test_critical_path_goes_first_inside_a_job():
    r = run("critical_path", [{"submit_s": 0.0, "stages": DAG}])
    # paths: short 2, long 8, mid 1, wide 2, end 3; of equals the row decides
    assert stage_starts(r) == ["long", "end", "short", "wide", "mid"]


def test_bfs_takes_the_shallow_stages_first():
    r = run("bfs", [{"submit_s": 0.0, "stages": DAG}])
    assert stage_starts(r) == ["short", "long", "wide", "mid", "end"]


TWO = [
    {"submit_s": 0.0, "stages": [stage("a1", 2.0), stage("a2", 1.0, parents=["a1"])]},
    {"submit_s": 0.0, "stages": [stage("b1", 1.0), stage("b2", 9.0, parents=["b1"])]},
]


@pytest.mark.parametrize(
    ("policy", "across", "order"),
    [
        ("critical_path", "jobs", ["a1", "a2", "b1", "b2"]),
        ("critical_path", "stages", ["b1", "b2", "a1", "a2"]),
        ("bfs", "jobs", ["a1", "a2", "b1", "b2"]),
        ("bfs", "stages", ["a1", "b1", "a2", "b2"]),
    ],
)
def test_order_between_jobs_is_a_parameter(policy, across, order):
    assert stage_starts(run(policy, TWO, across=across)) == order


def run_stages(policy, stages, cluster, **params):
    w = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    return sim.simulate(w, cluster, policies.build(policy, **params), record="tasks")


def narrow(name, durations, *parents, cpu=1):
    return {
        "name": name,
        "durations_s": durations,
        "demand": {"cpu": cpu},
        "parents": list(parents),
    }


def test_coffman_graham_does_not_look_at_durations():
    """A stage that two wait for goes before a longer path of one: a label is no length."""
    stages = [
        narrow("long", [1]),
        narrow("wide", [1]),
        narrow("after long", [9], "long"),
        narrow("after wide", [1], "wide"),
        narrow("after both", [1], "wide", "long"),
        narrow("last", [1], "after wide", "after both"),
    ]
    cg = run_stages("coffman_graham", stages, sim.Cluster.slots(1))
    cp = run_stages("critical_path", stages, sim.Cluster.slots(1))
    assert np.argsort(cg.task_start).tolist() == [1, 0, 3, 4, 2, 5]
    assert np.argsort(cp.task_start).tolist() == [0, 2, 1, 3, 4, 5]


def test_strip_keeps_levels_apart_and_the_longest_goes_first_in_each():
    """Stage c could run beside b and does not: it lies on the level before."""
    stages = [narrow("a", [2]), narrow("b", [6], "a"), narrow("c", [1]), narrow("d", [1.5])]
    strip = run_stages("strip", stages, sim.Cluster.slots(2))
    # half of 8 s: b runs across it; before it a runs across half of 2 s, as d does; c ends by then
    assert strip.task_start.tolist() == [1, 3, 0, 1]
    assert strip.job_finish[0] == 9
    assert run_stages("critical_path", stages, sim.Cluster.slots(2)).job_finish[0] == 8


def test_strip_takes_the_levels_of_each_job_in_turn():
    jobs = [
        {"submit_s": float(t), "stages": [narrow("a", [2, 2]), narrow("b", [1, 1], "a")]}
        for t in range(2)
    ]
    w = sim.Workload.from_jobs(jobs)
    r = sim.simulate(w, sim.Cluster.slots(3), policies.build("strip"), record="tasks")
    # the second job takes the slot that is left, then one that the first leaves
    assert r.task_start.tolist() == [0, 0, 2, 2, 1, 3, 5, 5]


def test_heft_runs_by_rank_and_backfills():
    stages = [
        narrow("short", [1], cpu=2),
        narrow("head", [2], cpu=3),
        narrow("tail", [5], "head", cpu=3),
        narrow("beside", [4], cpu=1),
    ]
    cluster = sim.Cluster.machines(1, cpu=4)
    assert run_stages("heft", stages, cluster).task_start.tolist() == [7, 0, 2, 0]


@pytest.mark.parametrize("policy", ["critical_path", "heft", "strip"])
def test_inside_a_stage_the_longest_task_goes_first(policy):
    stages = [narrow("a", [1, 6, 4])]
    assert run_stages(policy, stages, sim.Cluster.slots(1)).task_start.tolist() == [10, 0, 6]


def test_inside_a_stage_the_task_of_the_longest_path_goes_first():
    stages = [
        narrow("a", [2, 1]),
        {**narrow("b", [1, 9]), "parents": {"a": "one_to_one"}},
    ]
    r = run_stages("critical_path", stages, sim.Cluster.slots(1))
    assert r.task_start[:2].tolist() == [1, 0]
    assert r.job_finish[0] == 13


def test_breadth_first_and_coffman_graham_know_no_durations_inside_a_stage():
    for policy in ("bfs", "coffman_graham"):
        r = run_stages(policy, [narrow("a", [1, 6, 4])], sim.Cluster.slots(1))
        assert r.task_start.tolist() == [0, 1, 7]


def test_heft_returns_the_makespan_of_its_offline_schedule():
    stages = [narrow("a", [2], cpu=3), narrow("b", [3], cpu=3), narrow("c", [1], cpu=1)]
    w = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    cluster = sim.Cluster.machines(1, cpu=3)
    # b 0 to 3, a 3 to 5, c 5 to 6: nothing fits beside b or a
    assert policies.build("heft").built_s(w, cluster) == 6
    assert np.isnan(policies.build("critical_path").built_s(w, cluster))
