"""Policies that look at a job's DAG order as their definition says, on small examples."""

import numpy as np

import policies
import sim
from policies.heft import heft_schedule, upward_rank
from tests.policies.dagps.dags import capacities, make_dag


def run(policy, stages, cluster, **params):
    w = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    return sim.simulate(w, cluster, policies.build(policy, **params), record="tasks")


def stage(name, durations, *parents, cpu=1):
    return {
        "name": name,
        "durations_s": durations,
        "demand": {"cpu": cpu},
        "parents": list(parents),
    }


def test_coffman_graham_does_not_look_at_durations():
    """A stage that two wait for goes before a longer path of one: a label is no length."""
    stages = [
        stage("long", [1]),
        stage("wide", [1]),
        stage("after long", [9], "long"),
        stage("after wide", [1], "wide"),
        stage("after both", [1], "wide", "long"),
        stage("last", [1], "after wide", "after both"),
    ]
    cg = run("coffman_graham", stages, sim.Cluster.slots(1))
    cp = run("critical_path", stages, sim.Cluster.slots(1))
    assert np.argsort(cg.task_start).tolist() == [1, 0, 3, 4, 2, 5]
    assert np.argsort(cp.task_start).tolist() == [0, 2, 1, 3, 4, 5]


def test_strip_keeps_levels_apart_and_the_longest_goes_first_in_each():
    """Stage c could run beside b and does not: it lies on the level before."""
    stages = [stage("a", [2]), stage("b", [6], "a"), stage("c", [1]), stage("d", [1.5])]
    strip = run("strip", stages, sim.Cluster.slots(2))
    # half of 8 s: b runs across it; before it a runs across half of 2 s, as d does; c ends by then
    assert strip.task_start.tolist() == [1, 3, 0, 1]
    assert strip.job_finish[0] == 9
    assert run("critical_path", stages, sim.Cluster.slots(2)).job_finish[0] == 8


def test_strip_takes_the_levels_of_each_job_in_turn():
    jobs = [
        {"submit_s": float(t), "stages": [stage("a", [2, 2]), stage("b", [1, 1], "a")]}
        for t in range(2)
    ]
    w = sim.Workload.from_jobs(jobs)
    r = sim.simulate(w, sim.Cluster.slots(3), policies.build("strip"), record="tasks")
    # the second job takes the slot that is left, then one that the first leaves
    assert r.task_start.tolist() == [0, 0, 2, 2, 1, 3, 5, 5]


def heft_ranks(dag):
    return upward_rank(dag.order, dag.edge0, dag.edge_child, dag.edge_kind, dag.task0, dag.duration)


def test_heft_ranks_by_the_longest_path_and_fills_holes():
    """The last of the ranks is short enough for the hole before the second."""
    dag = make_dag([1, 1, 1, 1], [2, 3, 3, 1], [[4, 1], [4, 1], [1, 4], [3, 1]], [(0, 1, 0)])
    assert heft_ranks(dag).tolist() == [5, 3, 3, 1]
    assert heft_schedule(dag, capacities(1)).begin.tolist() == [0, 2, 5, 5]
    dag = make_dag([1, 1, 1], [4, 3, 1], [[3, 1], [2, 1], [1, 1]], [])
    assert heft_schedule(dag, capacities(1)).begin.tolist() == [0, 4, 0]


def test_heft_runs_by_rank_and_lets_pass_what_fills_a_hole():
    stages = [
        stage("short", [1], cpu=2),
        stage("head", [2], cpu=3),
        stage("tail", [5], "head", cpu=3),
        stage("beside", [4], cpu=1),
    ]
    cluster = sim.Cluster.machines(1, cpu=4)
    assert run("heft", stages, cluster).task_start.tolist() == [7, 0, 2, 0]


def test_heft_knows_means_where_the_critical_path_knows_the_longest():
    """One straggler makes no stage urgent on average."""
    stages = [stage("even", [4, 4]), stage("straggler", [6, 1])]
    one = sim.Cluster.slots(1)
    assert np.argsort(run("heft", stages, one).task_start).tolist() == [0, 1, 2, 3]
    assert np.argsort(run("critical_path", stages, one).task_start).tolist() == [2, 3, 0, 1]
