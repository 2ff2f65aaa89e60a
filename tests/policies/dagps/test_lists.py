"""List schedules equal the simulator's runs; with them DAGPS is as good as every list."""

from dataclasses import dataclass

import numpy as np
import pytest

import policies
import sim
from policies.base import Policy
from policies.dagps.build_schedule import best_list, build_schedule, shared_resources
from policies.dagps.dag import demand_quanta, one_job, ordered_parts
from policies.dagps.lists import ListRunner, list_keys, without_demands
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
    return dag, ListRunner(dag, capacity, np.isin(cluster.resources, cluster.fungible))


def checked_mask(cluster, names):
    return np.isin(cluster.resources, names)


def assert_same(placement, result):
    tasks = result.tasks
    np.testing.assert_array_equal(placement.begin, tasks["start_s"].to_numpy())
    np.testing.assert_array_equal(placement.end, tasks["finish_s"].to_numpy())
    np.testing.assert_array_equal(placement.machine, tasks["machine"].to_numpy())
    assert placement.span_s == result.job_finish[0]


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("checked", [(*RIGID, *FUNGIBLE), RIGID])
def test_a_list_run_equals_the_simulator(seed, checked):
    """Same begins, ends and machines to the bit, with and without overbooked resources."""
    workload, cluster = small_job(seed, max_tasks=40)
    cluster = shared(workload, cluster)
    dag, runner = lists(workload, cluster)
    for name, key in zip(LISTS, list_keys(dag), strict=True):
        policy = policies.build(name, fit="skip", fit_resources=checked)
        result = sim.simulate(workload, cluster, policy, record="tasks")
        placement = runner.run(key, checked_mask(cluster, checked))
        assert_same(placement, result)
        assert runner.run(key, checked_mask(cluster, checked), placement.span_s) is None
        assert runner.run(key, checked_mask(cluster, checked), placement.span_s * 1.01) is not None


@pytest.mark.parametrize("seed", range(25))
def test_packing_machines_equal_tetris(seed):
    workload, cluster = small_job(seed, max_tasks=40)
    dag, runner = lists(workload, cluster)
    result = sim.simulate(workload, cluster, policies.build("tetris", m=0, rp=1), record="tasks")
    placement = runner.run(np.arange(len(dag.order)), np.ones(len(AMOUNT), bool), packs=True)
    assert_same(placement, result)


@dataclass(frozen=True)
class Listed(Policy):
    """Stages in the order of `KEY`."""

    def prepare(self, world, plan):
        plan.set_stages(key=np.array(KEY))


KEY: list[float] = []


def one_stage_a_task(workload):
    """The same job with each task a stage of its own, and an edge for each pair of tasks."""
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
    workload, cluster = small_job(seed, max_tasks=25)
    cluster = shared(workload, cluster)
    _, runner = lists(workload, cluster)
    split = one_stage_a_task(workload)
    for again in range(3):
        key = stream(seed, "tests", "lists", again).permutation(len(workload.columns.task_duration))
        KEY[:] = key.tolist()
        for checked in ((*RIGID, *FUNGIBLE), RIGID):
            policy = Listed(fit="skip", fit_resources=checked)
            result = sim.simulate(split, cluster, policy, record="tasks")
            assert_same(runner.run(key, checked_mask(cluster, checked)), result)


def test_slots_and_stages_that_take_no_time():
    stages = [
        {"name": "a", "durations_s": [2, 0, 0]},
        {"name": "b", "durations_s": [0, 0], "parents": ["a"]},
        {"name": "c", "durations_s": [1], "parents": {"a": "one_to_one", "b": "one_to_one"}},
    ]
    workload = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    cluster = sim.Cluster.slots(2)
    _, runner = lists(workload, cluster)
    policy = policies.build("bfs", fit="skip")
    tasks = sim.simulate(workload, cluster, policy, record="tasks").tasks
    placement = runner.run(np.array([0, 1, 2]), np.ones(1, bool))
    np.testing.assert_array_equal(placement.begin, tasks["start_s"].to_numpy())
    np.testing.assert_array_equal(placement.end, tasks["finish_s"].to_numpy())
    assert build_schedule(workload, cluster).makespan_s == 3


def test_overbooking_shortens_a_schedule_unless_candidates_are_the_papers():
    """Two tasks of 0.6 of a disk each take 1.2 times as long in parallel, 2 times in sequence."""
    job = {"submit_s": 0.0, "stages": [{"durations_s": [10, 10], "demand": {"cpu": 1, "disk": 6}}]}
    workload = sim.Workload.from_jobs([job])
    cluster = sim.Cluster.machines(1, cpu=2, disk=10, fungible=["disk"])
    assert build_schedule(workload, cluster, candidates="paper").makespan_s == 20
    schedule = build_schedule(workload, cluster)
    assert schedule.makespan_s == pytest.approx(12)
    assert schedule.begin_s.tolist() == [0, 0]
    for policy, expected_s in (({}, 12), ({"candidates": "paper"}, 20)):
        assert policies.build("dagps", **policy).built_s(workload, cluster) == pytest.approx(
            expected_s
        )
    rigid = sim.Cluster.machines(1, cpu=2, disk=10)
    assert build_schedule(workload, rigid).makespan_s == 20
    with pytest.raises(sim.InputError, match="'paper' or 'more', not 'all'"):
        shared_resources(cluster, "all")


@pytest.mark.parametrize("seed", range(12))
def test_a_schedule_is_never_longer_than_the_papers_or_a_list(seed):
    workload, cluster = small_job(seed, max_tasks=40)
    papers = build_schedule(workload, cluster, candidates="paper").makespan_s
    for variant in (cluster, shared(workload, cluster)):
        schedule = build_schedule(workload, variant)
        assert schedule.makespan_s <= papers * (1 + 1e-12)
        assert schedule.begin_s.min() == 0
        assert schedule.makespan_s == schedule.end_s.max()
        for name in LISTS:
            for checked in ((), RIGID)[: 1 + len(variant.fungible)]:
                policy = policies.build(name, fit="skip", fit_resources=checked)
                list_s = sim.simulate(workload, variant, policy).job_finish[0]
                assert schedule.makespan_s <= list_s * (1 + 1e-12)
    rigid = build_schedule(workload, cluster)
    tetris = sim.simulate(workload, cluster, policies.build("tetris", m=0, rp=1)).job_finish[0]
    assert rigid.makespan_s <= tetris * (1 + 1e-12)
    demand, capacity = demand_quanta(workload.columns, cluster)
    dag = one_job(workload.columns, demand, 0, workload.columns.task_duration)
    graph = reference.Graph(dag)
    check_feasible(graph, capacity, rigid.begin_s, rigid.end_s, rigid.machine, slack=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_a_single_job_follows_its_list_and_no_other_list_is_shorter(seed):
    """Each stage has one task, so that profiles of stages are true."""
    workload, cluster = small_job(seed, max_tasks=25)
    workload = one_stage_a_task(workload)
    for variant in (cluster, shared(workload, cluster)):
        demand, capacity = demand_quanta(workload.columns, variant)
        dag = one_job(workload.columns, demand, 0, workload.columns.task_duration)
        fungible = shared_resources(variant, "more")
        position, checked, span_s = best_list(dag, capacity, 128, fungible)
        run = sim.simulate(workload, variant, policies.build("dagps", knowledge="true"))
        assert run.job_finish[0] == pytest.approx(span_s, rel=1e-12)
        if len(ordered_parts(dag)) == 1:
            _, runner = lists(workload, variant)
            assert_same(runner.run(position, checked), run)
        for name in LISTS:
            for names in ((), RIGID)[: 1 + len(variant.fungible)]:
                policy = policies.build(name, fit="skip", fit_resources=names)
                list_s = sim.simulate(workload, variant, policy).job_finish[0]
                assert run.job_finish[0] <= list_s * (1 + 1e-12)


def test_a_list_is_followed_by_an_only_job_alone_and_unless_configured():
    """Two tasks of 0.6 of a disk, and a rule that overbooks only where it gains at once."""
    stages = [{"durations_s": [10, 10], "demand": {"cpu": 1, "disk": 6}}]
    late = [{"durations_s": [1], "demand": {"cpu": 1}}]
    single = [{"submit_s": 0.0, "stages": stages}]
    two_jobs = [*single, {"submit_s": 90.0, "stages": late}]
    cluster = sim.Cluster.machines(1, cpu=2, disk=10, fungible=["disk"])

    def second_start(jobs, **policy):
        built = policies.build("dagps", **policy)
        run = sim.simulate(sim.Workload.from_jobs(jobs), cluster, built, record="tasks")
        return run.tasks["start_s"].to_pylist()[1]

    by_score = second_start(two_jobs)
    assert by_score == 0 or by_score == 10
    assert second_start(single) == 0
    assert second_start(single, overbook=False) == 10
    assert second_start(single, fit_resources=("cpu", "disk"), overbook=False) == 10
    for policy in ({"candidates": "paper"}, {"order_weight": 0.5}):
        assert second_start(single, **policy) == by_score


def test_only_fungible_demands_are_dropped():
    workload, cluster = small_job(3)
    dag, _ = lists(workload, cluster)
    left = without_demands(dag, np.array([False, False, True, True])).demand
    np.testing.assert_array_equal(left[:, :2], dag.demand[:, :2])
    assert not left[:, 2:].any()
