"""``tight_lb``: worked examples, and never above an optimum or a schedule."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import policies
import sim
from sim.bounds import bound_arrays
from sim.bounds.optimum import optimum
from sim.check.makespan import makespan_bound
from tests.sim.bounds.small_jobs import small_job
from tests.sim.bounds.test_bounds import random_workload, stage, workload


def tight(w, cluster):
    bounds_s = bound_arrays(w.columns, cluster, tight=True)
    assert (bounds_s["tight_lb"] >= bounds_s["new_lb"]).all()
    return float(bounds_s["tight_lb"][0])


def test_tasks_of_two_kinds_that_exclude_each_other_run_one_after_the_other():
    w = workload(
        stage("a", [5, 5], cpu=6, mem=1), stage("b", [3], cpu=1, mem=9), stage("c", [2], cpu=5)
    )
    machine = sim.Cluster.machines(1, cpu=10, mem=10)
    # a beside a: 12 cpu; a beside c: 11; b beside a fits, b beside c fits: a, a, c
    assert bound_arrays(w.columns, machine)["new_lb"][0] == pytest.approx(7.3)
    assert tight(w, machine) == pytest.approx(12)
    assert optimum(w, machine) == (12, 12)


def test_a_stage_runs_in_waves():
    w = workload(stage("a", [7] * 5, cpu=4))
    # two tasks a machine, four at once: two waves, where the work alone is 35 * 4 / 20
    assert tight(w, sim.Cluster.machines(2, cpu=10)) == 14
    assert tight(w, sim.Cluster.machines(2.5, cpu=10)) == 7
    v = workload(stage("a", [9, 8, 2, 7, 1], cpu=4))
    # of the five longest on four slots, two share one: at least 1 + 2; of nine, three
    assert tight(v, sim.Cluster.machines(2, cpu=10)) == max(9, (9 + 8 + 2 + 7 + 1) / 4)
    w = workload(stage("a", [9, 8, 7], cpu=6))
    assert tight(w, sim.Cluster.machines(2, cpu=10)) == 8 + 7


def test_work_between_a_head_and_a_tail_counts():
    stages = [
        stage("first", [10]),
        stage("wide", [4] * 6, ["first"]),
        stage("also", [4] * 6, ["first"]),
        stage("last", [10], ["wide"]),
        stage("end", [10], ["also"]),
        stage("free", [1]),
    ]
    w = workload(*stages)
    slots = sim.Cluster.slots(4)
    # "free" forbids a cut; 48 task seconds between two tens, on 4 slots
    assert bound_arrays(w.columns, slots)["new_lb"][0] == 26
    assert tight(w, slots) == 32
    assert optimum(w, slots) == (32, 32)


def test_parts_are_summed():
    a = [stage("a", [5] * 2, cpu=6), stage("b", [3], cpu=5)]
    c = [stage("c", [5] * 2, ["a", "b"], cpu=6), stage("d", [3], ["a", "b"], cpu=5)]
    assert tight(workload(*a, *c), sim.Cluster.machines(1, cpu=10)) == pytest.approx(26)


@pytest.mark.parametrize(
    "w",
    [
        workload(stage("a", [0.0])),
        workload(stage("a", [0.0, 0.0]), stage("b", [0.0], ["a"]), stage("c", [0.0])),
        workload(stage("a", [3.0])),
        workload(stage("a", [3.0], cpu=0), stage("b", [0.0], ["a"])),
    ],
    ids=["zero task", "zero stages", "one task", "no demand"],
)
@pytest.mark.parametrize("cluster", [sim.Cluster.slots(2), sim.Cluster.machines(0.5, cpu=4)])
def test_bounds_of_minimal_jobs(w, cluster):
    best = bound_arrays(w.columns, cluster)["cp_len"][0]
    assert tight(w, cluster) == best
    assert optimum(w, cluster) == (best, best)


def test_an_empty_workload_has_no_bounds():
    empty = sim.Workload.from_tables(
        {"job_id": [], "submit_s": []},
        {"job": [], "n_tasks": [], "duration_s": np.zeros(0)},
        validate=False,
    )
    table = sim.lower_bound(empty, sim.Cluster.slots(1))
    assert table.num_rows == 0
    assert table.column_names[-1] == "tight_lb"


def test_a_dag_without_stages_is_refused_before_there_is_a_bound():
    with pytest.raises(sim.InputError, match="has no stages; it needs at least one"):
        workload()


def test_a_stage_that_lacks_a_resource_demands_none_of_it():
    w = workload(stage("a", [2] * 4, cpu=10), stage("b", [3] * 2, mem=10))
    # a and b demand nothing in common
    assert tight(w, sim.Cluster.machines(1, cpu=10, mem=10)) == 8


def test_a_resource_that_the_cluster_lacks_is_an_error():
    w = workload(stage("a", [1], cpu=1, gpu=1))
    for bound in (tight, optimum):
        with pytest.raises(sim.InputError, match="'gpu', of which the cluster has none"):
            bound(w, sim.Cluster.machines(1, cpu=1))


def test_the_exact_bound_refuses_large_jobs_and_tasks_without_a_machine():
    with pytest.raises(sim.InputError, match="has 201 tasks; the exact bound takes at most 200"):
        optimum(workload(stage("a", [1] * 201)), sim.Cluster.slots(1))
    with pytest.raises(sim.InputError, match="fits no machine"):
        optimum(workload(stage("a", [1], cpu=5)), sim.Cluster.machines(3, cpu=4))


def test_hard_queues_limit_how_many_tasks_run_at_once():
    w = workload(stage("a", [7] * 3, cpu=4), queue="small")
    cluster = sim.Cluster.machines(2, cpu=10)
    assert tight(w, cluster) == 7
    # 12 cpu: three tasks' worth, but 7 cpu only one's
    assert tight(w, cluster.with_queues("hard", {"small": 0.35, "other": 0.6})) == 21


def test_a_resource_that_may_be_overbooked_packs_like_a_fluid():
    w = workload(stage("a", [5] * 2, cpu=1, disk=6), stage("b", [5] * 2, cpu=3, disk=1))
    shape = {"cpu": 4, "disk": 10}
    # a beside a: 12 of 10 disk; a beside b and b alone: 4 cpu, of which two b would need 6
    assert tight(w, sim.Cluster.machines(1, **shape)) == 10
    # stretched, two a take 6 s together, but cpu still holds 40 / 4
    assert tight(w, sim.Cluster.machines(1, **shape, fungible=["disk"])) == 10
    v = workload(stage("a", [5] * 2, disk=6))
    assert tight(v, sim.Cluster.machines(1, **shape)) == 10
    assert tight(v, sim.Cluster.machines(1, **shape, fungible=["disk"])) == 6
    with pytest.raises(sim.InputError, match="does not support overbooking, and disk may"):
        optimum(v, sim.Cluster.machines(1, **shape, fungible=["disk"]))
    only = sim.Cluster.machines(2, disk=10, fungible=["disk"])
    assert tight(v, only) == 5


def test_a_hard_share_of_a_fungible_resource_does_not_bound():
    w = workload(stage("a", [5] * 2, cpu=1, disk=6), queue="small")
    shares = {"small": 0.5, "other": 0.5}
    rigid = sim.Cluster.machines(1, cpu=4, disk=20).with_queues("hard", shares)
    loose = sim.Cluster.machines(1, cpu=4, disk=20, fungible=["disk"]).with_queues("hard", shares)
    assert bound_arrays(w.columns, rigid)["twork"][0] == 6
    assert bound_arrays(w.columns, loose)["twork"][0] == 5 * 2 / 2
    assert makespan_bound(w, loose) == 5


@pytest.mark.parametrize(
    "batch", [*range(3), *(pytest.param(batch, marks=pytest.mark.long) for batch in range(3, 6))]
)
def test_bounds_optimum_and_schedules_are_in_order(batch):
    """Every bound ≤ the optimum ≤ what every registered policy makes of the job."""
    proven, met = 0, 0
    for seed in range(batch * 8, batch * 8 + 8):
        w, cluster = small_job(seed, max_tasks=14, max_stages=6)
        lower, upper = optimum(w, cluster, effort=0.3)
        proven += lower == upper
        bounds_s = bound_arrays(w.columns, cluster, tight=True)
        met += bounds_s["tight_lb"][0] > upper - 1e-9
        for name, value in bounds_s.items():
            assert value[0] <= upper + 1e-9, (seed, name, value[0], upper)
        for name in policies.names():
            if policies.spec(name).rigid_jobs:
                continue
            run = sim.simulate(w, cluster, policies.build(name), seed=0)
            makespan = float(run.job_finish[0])
            assert makespan >= lower - 1e-9, (seed, name)
            for bound, value in bounds_s.items():
                assert value[0] <= makespan + 1e-9, (seed, bound, name)
    assert proven >= 6
    assert met >= 3  # a bound that were far off would pass the rest


@pytest.mark.parametrize("seed", range(4))
def test_the_recursion_over_barriers_is_never_above(seed):
    """R and X as written out: heads over barriers whole, over one-to-one edges by a task."""
    w = random_workload(seed, n_jobs=60)
    cluster = sim.Cluster.machines(2, cpu=3, mem=4)
    bounds_s = bound_arrays(w.columns, cluster, tight=True)["tight_lb"]
    c = w.columns
    whole = [float(v) for v in np.maximum(c.stage_max_s, twork_of_stages(w, cluster))]
    n = np.diff(c.stage_task0)
    above = 0
    for job in range(w.n_jobs):
        rows = range(int(c.job_stage0[job]), int(c.job_stage0[job + 1]))
        graph = nx.DiGraph()
        graph.add_nodes_from(rows)
        for p in rows:
            for e in range(int(c.edge0[p]), int(c.edge0[p + 1])):
                graph.add_edge(p, int(c.edge_child[e]), barrier=c.edge_kind[e] == 0)
        begin, end = {}, {}
        for s in nx.topological_sort(graph):
            begin[s], after = 0.0, 0.0
            for p in graph.predecessors(s):
                if graph.edges[p, s]["barrier"]:
                    begin[s] = max(begin[s], end[p])
                else:
                    if n[s] <= n[p]:
                        begin[s] = max(begin[s], begin[p] + c.stage_min_s[p])
                    if n[s] == n[p]:
                        after = max(after, end[p] + c.stage_min_s[s])
            end[s] = max(begin[s] + whole[s], after)
        assert bounds_s[job] >= max(end.values()) - 1e-9
        above += bounds_s[job] > max(end.values()) + 1e-9
    assert above  # the recursion is not all of it


def twork_of_stages(w, cluster):
    c = w.columns
    total = np.array([cluster.total[cluster.resources.index(r)] for r in c.resources])
    return (c.stage_work[:, None] * (c.stage_demand * c.quantum) / total).max(axis=1)
