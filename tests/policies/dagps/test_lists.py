"""Schedules by lists are the simulator's own; with them DAGPS loses to none of the lists."""

from dataclasses import dataclass

import numpy as np
import pytest

import policies
import sim
from policies.base import Policy
from policies.dagps.build_schedule import build_schedule, followed, shared_resources
from policies.dagps.dag import demand_quanta, one_job, parts
from policies.dagps.lists import Lists, lists_of, without
from sim.base.random import stream
from tests.policies.dagps import reference
from tests.policies.dagps.dags import check_feasible
from tests.sim.bounds.small_jobs import AMOUNT, small_job

FUNGIBLE = ("disk", "net")
RIGID = ("cpu", "mem")
LISTS = ("bfs", "critical_path", "coffman_graham")


def shared(workload, cluster):
    return sim.Cluster.machines(len(cluster.capacity), fungible=FUNGIBLE, **AMOUNT)


def lists(workload, cluster):
    demand, capacity = demand_quanta(workload.columns, cluster)
    dag = one_job(workload.columns, demand, 0, workload.columns.task_duration)
    return dag, Lists(dag, capacity, np.isin(cluster.resources, cluster.fungible))


def looked_at(cluster, names):
    return np.isin(cluster.resources, names)


def assert_same(placed, result):
    tasks = result.tasks
    np.testing.assert_array_equal(placed.begin, tasks["start_s"].to_numpy())
    np.testing.assert_array_equal(placed.end, tasks["finish_s"].to_numpy())
    np.testing.assert_array_equal(placed.machine, tasks["machine"].to_numpy())
    assert placed.span_s == result.job_finish[0]


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("looks", [(*RIGID, *FUNGIBLE), RIGID])
def test_a_list_takes_what_it_takes_in_the_simulator(seed, looks):
    """Same begins, ends and machines to the bit, whether or not resources are overbooked."""
    workload, cluster = small_job(seed, most_tasks=40)
    cluster = shared(workload, cluster)
    dag, ready = lists(workload, cluster)
    for name, key in zip(LISTS, lists_of(dag), strict=True):
        policy = policies.build(name, fit="skip", fit_resources=looks)
        result = sim.simulate(workload, cluster, policy, record="tasks")
        placed = ready.run(key, looked_at(cluster, looks))
        assert_same(placed, result)
        assert ready.run(key, looked_at(cluster, looks), placed.span_s) is None
        assert ready.run(key, looked_at(cluster, looks), placed.span_s * 1.01) is not None


@pytest.mark.parametrize("seed", range(25))
def test_machines_that_pack_take_what_tetris_gives_them(seed):
    workload, cluster = small_job(seed, most_tasks=40)
    dag, ready = lists(workload, cluster)
    result = sim.simulate(workload, cluster, policies.build("tetris"), record="tasks")
    placed = ready.run(np.arange(len(dag.order)), np.ones(len(AMOUNT), bool), packs=True)
    assert_same(placed, result)


@dataclass(frozen=True)
class Listed(Policy):
    """Stages by keys that are given."""

    def prepare(self, world, plan):
        plan.set_stages(key=np.array(KEY))


KEY: list[float] = []


def one_stage_a_task(workload):
    """The same job with every task a stage of its own, and an edge for each pair that waits."""
    c = workload.columns
    graph = reference.Graph(one_job(c, c.stage_demand, 0, c.task_duration))
    stage = np.repeat(np.arange(len(c.stage_job)), np.diff(c.stage_task0))
    rows = workload.stages.to_pylist()
    stages = [
        {
            "name": f"t{t}",
            "durations_s": [c.task_duration[t]],
            "demand": {r: rows[stage[t]][f"demand_{r}"] for r in AMOUNT},
            "parents": [f"t{p}" for p in graph.parents[t]],
        }
        for t in range(len(stage))
    ]
    return sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])


@pytest.mark.parametrize("seed", range(12))
def test_any_order_of_tasks_is_followed_over_both_kinds_of_edges(seed):
    workload, cluster = small_job(seed, most_tasks=25)
    cluster = shared(workload, cluster)
    _, ready = lists(workload, cluster)
    split = one_stage_a_task(workload)
    for again in range(3):
        key = stream(seed, "tests", "lists", again).permutation(len(workload.columns.task_duration))
        KEY[:] = key.tolist()
        for looks in ((*RIGID, *FUNGIBLE), RIGID):
            policy = Listed(fit="skip", fit_resources=looks)
            result = sim.simulate(split, cluster, policy, record="tasks")
            assert_same(ready.run(key, looked_at(cluster, looks)), result)


def test_slots_and_stages_that_take_no_time():
    stages = [
        {"name": "a", "durations_s": [2, 0, 0]},
        {"name": "b", "durations_s": [0, 0], "parents": ["a"]},
        {"name": "c", "durations_s": [1], "parents": {"a": "one_to_one", "b": "one_to_one"}},
    ]
    workload = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    cluster = sim.Cluster.slots(2)
    _, ready = lists(workload, cluster)
    policy = policies.build("bfs", fit="skip")
    tasks = sim.simulate(workload, cluster, policy, record="tasks").tasks
    placed = ready.run(np.array([0, 1, 2]), np.ones(1, bool))
    np.testing.assert_array_equal(placed.begin, tasks["start_s"].to_numpy())
    np.testing.assert_array_equal(placed.end, tasks["finish_s"].to_numpy())
    assert build_schedule(workload, cluster).makespan_s == 3


def test_overbooking_what_is_shared_shortens_a_schedule_and_the_papers_own_can_be_had():
    """Two tasks of 0.6 of a disk side by side take 1.2 times as long, one by one twice."""
    job = {"submit_s": 0.0, "stages": [{"durations_s": [10, 10], "demand": {"cpu": 1, "disk": 6}}]}
    workload = sim.Workload.from_jobs([job])
    cluster = sim.Cluster.machines(1, cpu=2, disk=10, fungible=["disk"])
    assert build_schedule(workload, cluster, candidates="paper").makespan_s == 20
    found = build_schedule(workload, cluster)
    assert found.makespan_s == pytest.approx(12)
    assert found.begin_s.tolist() == [0, 0]
    for policy, wanted in (({}, 12), ({"candidates": "paper"}, 20)):
        assert policies.build("dagps", **policy).built_s(workload, cluster) == pytest.approx(wanted)
    rigid = sim.Cluster.machines(1, cpu=2, disk=10)
    assert build_schedule(workload, rigid).makespan_s == 20
    with pytest.raises(sim.InputError, match="'paper' or 'more', not 'all'"):
        shared_resources(cluster, "all")


@pytest.mark.parametrize("seed", range(12))
def test_it_is_never_longer_than_the_papers_own_nor_than_a_list(seed):
    workload, cluster = small_job(seed, most_tasks=40)
    papers = build_schedule(workload, cluster, candidates="paper").makespan_s
    for given in (cluster, shared(workload, cluster)):
        found = build_schedule(workload, given)
        assert found.makespan_s <= papers * (1 + 1e-12)
        assert found.begin_s.min() == 0
        assert found.makespan_s == found.end_s.max()
        for name in LISTS:
            for looks in ((), RIGID)[: 1 + len(given.fungible)]:
                policy = policies.build(name, fit="skip", fit_resources=looks)
                took = sim.simulate(workload, given, policy).job_finish[0]
                assert found.makespan_s <= took * (1 + 1e-12)
    rigid = build_schedule(workload, cluster)
    tetris = sim.simulate(workload, cluster, policies.build("tetris")).job_finish[0]
    assert rigid.makespan_s <= tetris * (1 + 1e-12)
    demand, capacity = demand_quanta(workload.columns, cluster)
    dag = one_job(workload.columns, demand, 0, workload.columns.task_duration)
    graph = reference.Graph(dag)
    check_feasible(graph, capacity, rigid.begin_s, rigid.end_s, rigid.machine, slack=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_a_job_alone_follows_its_list_and_takes_no_longer_than_by_any_other(seed):
    """Each stage has one task, so that profiles of stages are true."""
    workload, cluster = small_job(seed, most_tasks=25)
    workload = one_stage_a_task(workload)
    for given in (cluster, shared(workload, cluster)):
        demand, capacity = demand_quanta(workload.columns, given)
        dag = one_job(workload.columns, demand, 0, workload.columns.task_duration)
        fungible = shared_resources(given, "more")
        place, looks, span_s = followed(dag, capacity, 128, fungible)
        run = sim.simulate(workload, given, policies.build("dagps"), record="tasks")
        assert run.job_finish[0] == pytest.approx(span_s, rel=1e-12)
        if len(parts(dag)) == 1:
            _, ready = lists(workload, given)
            assert_same(ready.run(place, looks), run)
        for name in LISTS:
            for names in ((), RIGID)[: 1 + len(given.fungible)]:
                policy = policies.build(name, fit="skip", fit_resources=names)
                took = sim.simulate(workload, given, policy).job_finish[0]
                assert run.job_finish[0] <= took * (1 + 1e-12)


def test_a_list_is_followed_by_an_only_job_alone_and_unless_told_otherwise():
    """Two tasks of 0.6 of a disk, and a rule that overbooks only where it gains at once."""
    stages = [{"durations_s": [10, 10], "demand": {"cpu": 1, "disk": 6}}]
    late = [{"durations_s": [1], "demand": {"cpu": 1}}]
    one = [{"submit_s": 0.0, "stages": stages}]
    two = [*one, {"submit_s": 90.0, "stages": late}]
    cluster = sim.Cluster.machines(1, cpu=2, disk=10, fungible=["disk"])

    def second_start(jobs, **policy):
        built = policies.build("dagps", **policy)
        run = sim.simulate(sim.Workload.from_jobs(jobs), cluster, built, record="tasks")
        return run.tasks["start_s"].to_pylist()[1]

    by_score = second_start(two)
    assert by_score == 0 or by_score == 10
    assert second_start(one) == 0
    assert second_start(one, overbook=False) == 10
    assert second_start(one, fit_resources=("cpu", "disk"), overbook=False) == 10
    for policy in ({"candidates": "paper"}, {"order_weight": 0.5}):
        assert second_start(one, **policy) == by_score


def test_demands_are_left_out_of_what_is_shared_alone():
    workload, cluster = small_job(3)
    dag, _ = lists(workload, cluster)
    left = without(dag, np.array([False, False, True, True])).demand
    np.testing.assert_array_equal(left[:, :2], dag.demand[:, :2])
    assert not left[:, 2:].any()
