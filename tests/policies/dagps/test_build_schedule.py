"""BuildSchedule: equal to the reference, feasible, near the optimum; the order it passes on."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from policies.dagps import build_schedule as build_schedule_module
from policies.dagps.build_schedule import (
    build_schedule,
    heft_schedule,
    most_compact,
    schedule,
)
from policies.dagps.dag import demand_quanta, one_job, ordered_parts, sub_dag, upward_rank
from policies.dagps.offline_order import offline_order
from policies.dagps.span_bounds import exact_unit_s
from sim.base import disk_cache
from sim.base.random import stream
from sim.bounds.optimum import optimum
from tests.examples import examples
from tests.policies.dagps import reference
from tests.policies.dagps.dags import (
    EXACT,
    capacities,
    check_feasible,
    dags,
    make_dag,
)
from tests.policies.dagps.reference import Graph
from tests.sim.bounds.small_jobs import small_job


@settings(max_examples=examples(120), deadline=None)
@given(dags(max_stages=4, max_tasks=3, durations_from=EXACT), st.integers(1, 2), st.booleans())
def test_search_equals_the_reference(dag, n_machines, small):
    """Pruning, sharing spaces and stopping at the lower bound change nothing."""
    capacity = capacities(n_machines, small and n_machines > 1)
    best = reference.build_schedule(dag, capacity)
    actual = most_compact(dag, capacity, None)
    assert actual.span_s == best.span
    tasks = zip(actual.begin.tolist(), actual.end.tolist(), actual.machine.tolist(), strict=True)
    assert dict(enumerate(tasks)) == best.placed


@settings(max_examples=examples(200), deadline=None)
@given(dags(), st.integers(1, 3), st.sampled_from([1, 3, None]))
def test_schedules_are_feasible(dag, n_machines, max_candidates):
    capacity = capacities(n_machines)
    s = schedule(dag, capacity, max_candidates)
    graph = reference.Graph(dag)
    check_feasible(graph, capacity, s.begin_s, s.end_s, s.machine, slack=1e-9)
    assert s.begin_s.min() == 0
    assert s.makespan_s == s.end_s.max()
    assert sorted(s.order.tolist()) == list(range(len(dag.duration)))
    assert (np.diff(s.begin_s[s.order]) >= 0).all()


@settings(max_examples=examples(120), deadline=None)
@given(dags(max_stages=7))
def test_parts_are_totally_ordered_and_follow_each_other(dag):
    graph = reference.Graph(dag)
    cut = ordered_parts(dag)
    assert sorted(np.concatenate(cut).tolist()) == list(range(len(dag.order)))
    before = []
    for stages in cut:
        _, tasks = sub_dag(dag, stages)
        for t in before:
            assert set(tasks.tolist()) <= graph.reachable([t], graph.children)
        before += tasks.tolist()


@settings(max_examples=examples(80), deadline=None)
@given(dags(), st.integers(1, 30), st.booleans(), st.booleans())
def test_machines_beyond_the_number_of_tasks_change_nothing(dag, n_machines, small, shares):
    """As many equal machines as tasks suffice; of unequal machines all are used."""
    capacity = capacities(n_machines, small and n_machines > 1)
    shared = np.array([False, True]) if shares else None
    actual = schedule(dag, capacity, 16, shared)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "policies.dagps.build_schedule.usable_machines", lambda capacity, n_tasks: capacity
        )
        expected = schedule(dag, capacity, 16, shared)
    for name, value in vars(expected).items():
        np.testing.assert_array_equal(value, getattr(actual, name))


def test_a_chain_of_barriers_splits_and_no_choice_of_thresholds_spans_its_parts():
    dag = make_dag([2, 3, 1], [4, 4, 1, 1, 1, 2], [[2, 2]] * 3, [(0, 1, 0), (1, 2, 0)])
    assert [p.tolist() for p in ordered_parts(dag)] == [[0], [1], [2]]
    assert schedule(dag, capacities(1)).begin_s.tolist() == [0, 0, 4, 4, 5, 6]


def test_a_task_waits_for_its_counterpart_only():
    one_to_one = make_dag([2, 2], [1, 3, 5, 1], [[1, 1]] * 2, [(0, 1, 1)])
    assert schedule(one_to_one, capacities(1)).makespan_s == 6
    barrier = make_dag([2, 2], [1, 3, 5, 1], [[1, 1]] * 2, [(0, 1, 0)])
    assert schedule(barrier, capacities(1)).makespan_s == 8


def test_tasks_without_a_counterpart_wait_for_nothing():
    dag = make_dag([1, 3], [5, 1, 1, 1], [[1, 1]] * 2, [(0, 1, 1)])
    s = schedule(dag, capacities(1))
    assert s.makespan_s == 6
    assert s.begin_s[1] == 5


# ---- the workload's side


def work(stages, **more):
    return sim.Workload.from_jobs([{"submit_s": 3.0, "stages": stages, **more}])


def test_profiles_are_true_durations_or_means_of_stages():
    w = work([{"durations_s": [1, 5, 3]}, {"durations_s": [2]}])
    cluster = sim.Cluster.machines(2, cpu=1)
    assert build_schedule(w, cluster).makespan_s == 6
    s = build_schedule(w, cluster, profile="stage")
    assert (s.end_s - s.begin_s).tolist() == [3, 3, 3, 2]
    assert s.makespan_s == 6


def test_slots_hold_one_task_each():
    s = build_schedule(work([{"durations_s": [1] * 6}]), sim.Cluster.slots(4))
    assert s.makespan_s == 2


def test_one_stage_of_one_task():
    s = build_schedule(work([{"durations_s": [7]}]), sim.Cluster.machines(3, cpu=1))
    assert (s.begin_s.tolist(), s.machine.tolist(), s.order.tolist()) == ([0], [0], [0])
    assert s.makespan_s == 7


def test_an_empty_dag_has_an_empty_schedule():
    s = schedule(make_dag([], [], np.zeros((0, 2)), []), capacities(2))
    assert len(s.begin_s) == len(s.order) == 0
    assert s.makespan_s == 0


@pytest.mark.parametrize("profile", ["task", "stage"])
def test_stages_that_take_no_time_keep_their_place_in_the_order(profile):
    w = work(
        [
            {"name": "a", "durations_s": [2]},
            {"name": "b", "durations_s": [0, 0], "parents": ["a"]},
            {"name": "c", "durations_s": [1], "parents": ["b"]},
        ]
    )
    s = build_schedule(w, sim.Cluster.machines(1, cpu=1), profile=profile)
    assert s.begin_s.tolist() == [0, 2, 2, 2]
    assert s.order.tolist() == [0, 1, 2, 3]
    assert s.makespan_s == 3


def test_a_dag_that_takes_no_time_at_all():
    w = work([{"name": "a", "durations_s": [0]}, {"durations_s": [0], "parents": ["a"]}])
    s = build_schedule(w, sim.Cluster.machines(1, cpu=1))
    assert s.begin_s.tolist() == [0, 0]
    assert s.makespan_s == 0


def test_a_task_that_no_machine_holds_is_an_error():
    w = work([{"durations_s": [1], "demand": {"cpu": 2, "mem": 9}}])
    with pytest.raises(sim.InputError, match="no machine holds a task of stage 0") as error:
        build_schedule(w, sim.Cluster.machines(5, cpu=4, mem=8))
    assert error.value.rule == "demand too large"


def test_a_resource_that_only_some_machine_has_enough_of():
    w = work([{"durations_s": [1, 1], "demand": {"cpu": 2}}])
    s = build_schedule(w, sim.Cluster.machines(1.5, cpu=2))
    assert s.machine.tolist() == [0, 0]
    assert s.makespan_s == 2


def test_a_resource_that_the_cluster_lacks_is_an_error():
    w = work([{"durations_s": [1], "demand": {"cpu": 1, "memo": 1}}])
    with pytest.raises(sim.InputError, match="'memo'; did you mean 'mem'") as error:
        build_schedule(w, sim.Cluster.machines(1, cpu=4, mem=8))
    assert error.value.rule == "missing resource"


def test_a_resource_that_the_tasks_do_not_name_is_not_held():
    w = work([{"durations_s": [1] * 4, "demand": {"cpu": 1}}])
    assert build_schedule(w, sim.Cluster.machines(1, cpu=4, mem=8)).makespan_s == 1


@pytest.mark.parametrize("n", [0, -3])
def test_max_candidates_must_be_positive(n):
    w = work([{"durations_s": [1]}])
    with pytest.raises(sim.InputError, match="max_candidates must be at least 1"):
        build_schedule(w, sim.Cluster.slots(1), max_candidates=n)


def test_a_job_that_is_not_there_is_an_error():
    with pytest.raises(sim.InputError, match="no job 1; valid: 0 to 0"):
        build_schedule(work([{"durations_s": [1]}]), sim.Cluster.slots(1), 1)


NEAR = 1e-9


def single_tasks(seed, n=6):
    """A job of `n` stages of one task each, with barriers, for one machine."""
    rng = stream(seed, "tests", "single tasks", n)
    stages = []
    for i in range(n):
        parents = [f"s{p}" for p in range(i) if rng.random() < 1.2 / i]
        demand = {"cpu": int(rng.integers(1, 11)), "mem": int(rng.integers(0, 11))}
        durations = [int(rng.integers(1, 10))]
        stages.append(
            {"name": f"s{i}", "durations_s": durations, "demand": demand, "parents": parents}
        )
    workload = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    return workload, sim.Cluster.machines(1, cpu=10, mem=10)


@pytest.mark.parametrize(
    ("draw", "n", "at_least"),
    [(single_tasks, 300, 296), (lambda seed: small_job(seed, 10, 5), 40, 36)],
    ids=["six single tasks", "ten tasks, both kinds of edges"],
)
@pytest.mark.long
def test_most_schedules_are_optimal_and_none_is_shorter(draw, n, at_least):
    met = 0
    for seed in range(n):
        workload, cluster = draw(seed)
        lower, upper = optimum(workload, cluster)
        assert lower == upper  # proven
        result = build_schedule(workload, cluster)
        demand, capacity = demand_quanta(workload.columns, cluster)
        graph = Graph(one_job(workload.columns, demand, 0, workload.columns.task_duration))
        check_feasible(graph, capacity, result.begin_s, result.end_s, result.machine)
        assert result.makespan_s >= lower - NEAR
        met += result.makespan_s <= lower + NEAR
    assert met >= at_least


CLUSTER = sim.Cluster.machines(1, a=20, b=20)


def fig2(e=0.01, template="", **more):
    """Fig. 2, its tasks each twice as long in a second job of one template."""
    rows = [("t0", 1, 8, 10, None), ("t1", e, 17, 0, None), ("t2", 1 - 4 * e, 8, 10, "t1")]
    rows += [("t3", e, 4, 12, None), ("t4", 1 - 2 * e, 4, 0, "t3")]
    stages = [
        {"name": n, "durations_s": [d], "demand": {"a": a, "b": b}, "parents": [p] if p else []}
        for n, d, a, b, p in rows
    ]
    return {"submit_s": 0.0, "template": template, "stages": stages, **more}


def test_pri_score_falls_from_one_to_zero_by_begin():
    single = {"submit_s": 1.0, "stages": [{"durations_s": [5], "demand": {"a": 1}}]}
    w = sim.Workload.from_jobs([fig2(), single])
    order = offline_order(w.columns, CLUSTER)
    begin = build_schedule(w, CLUSTER, 0).begin_s
    rank = np.argsort(np.argsort(begin, kind="stable"))
    np.testing.assert_array_equal(order.pri_score, [*(1 - rank / 4), 1.0])
    np.testing.assert_array_equal(order.stage_pri, order.pri_score)
    np.testing.assert_allclose(order.makespan_s, [1.02, 5], atol=1e-9)


def test_tasks_of_a_stage_go_by_begin():
    stages = [
        {"name": "a", "durations_s": [2, 2, 2]},
        {"name": "b", "durations_s": [4, 4, 4], "parents": {"a": "one_to_one"}},
    ]
    w = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": stages}])
    cluster = sim.Cluster.machines(2, cpu=1)
    order, begin = offline_order(w.columns, cluster), build_schedule(w, cluster).begin_s
    for stage in range(2):
        rows = slice(3 * stage, 3 * stage + 3)
        assert sorted(order.task_order[rows].tolist()) == [0, 1, 2]
        assert (np.diff(begin[rows][order.task_order[rows]]) >= 0).all()
    np.testing.assert_array_equal(order.stage_pri, order.pri_score.reshape(2, 3).max(axis=1))


def test_jobs_of_one_template_share_a_schedule_and_others_only_if_they_are_the_same():
    jobs = [fig2(template="x"), fig2(e=0.02, template="x"), fig2(template="y"), fig2(), fig2()]
    order = offline_order(sim.Workload.from_jobs([*jobs, fig2(e=0.02)]).columns, CLUSTER)
    assert order.n_built == 4
    np.testing.assert_array_equal(order.pri_score[:5], order.pri_score[5:10])
    np.testing.assert_allclose(order.makespan_s[[0, 1, 2, 5]], [1.02, 1.02, 1.02, 1.04])


def test_heft_ranks_by_the_longest_path_and_fills_holes():
    """The last of the ranks is short enough for the hole before the second."""
    dag = make_dag([1, 1, 1, 1], [2, 3, 3, 1], [[4, 1], [4, 1], [1, 4], [3, 1]], [(0, 1, 0)])
    assert upward_rank(dag).tolist() == [5, 3, 3, 1]
    assert heft_schedule(dag, capacities(1)).begin.tolist() == [0, 2, 5, 5]
    dag = make_dag([1, 1, 1], [4, 3, 1], [[3, 1], [2, 1], [1, 1]], [])
    assert heft_schedule(dag, capacities(1)).begin.tolist() == [0, 4, 0]


def test_heft_ranks_tasks_and_not_stages():
    """A short task of a stage with a long one goes after the middling one of another stage."""
    dag = make_dag([2, 1], [5, 1, 3], [[4, 1], [4, 1]], [])
    assert upward_rank(dag).tolist() == [5, 1, 3]
    assert heft_schedule(dag, capacities(1)).begin.tolist() == [0, 8, 5]
    paired = make_dag([2, 2], [1, 1, 2, 9], [[1, 1], [1, 1]], [(0, 1, 1)])
    assert upward_rank(paired).tolist() == [3, 10, 2, 9]


@given(dags(equal_tasks=True), st.integers(1, 3), st.booleans())
@settings(max_examples=examples(120), deadline=None)
@pytest.mark.long
def test_a_search_that_stops_at_an_exact_bound_finds_the_same_schedule(dag, n_machines, share):
    capacity, shared = capacities(n_machines, small=n_machines > 1), np.array([False, share])
    stops = [schedule(dag, capacity, shared=shared)]
    with patch.object(build_schedule_module, "exact_bound_s", return_value=0.0):
        stops.append(schedule(dag, capacity, shared=shared))
    with patch.object(build_schedule_module, "is_uniform", return_value=False):
        stops.append(schedule(dag, capacity, shared=shared))
    for other in stops[1:]:
        for name, value in vars(stops[0]).items():
            assert np.array_equal(value, getattr(other, name)), name


def test_an_exact_unit_is_the_greatest_common_divisor_unless_sums_round():
    assert exact_unit_s(np.array([0.0, 1.5, 0.75, 3.0])) == 0.75
    assert exact_unit_s(np.array([6.0, 10.0])) == 2.0
    assert exact_unit_s(np.full(7, 0.125)) == 0.125
    assert exact_unit_s(np.array([0.1, 0.2])) == 0.0
    assert exact_unit_s(np.array([0.1, 0.25])) == 0.0
    assert exact_unit_s(np.zeros(2)) == 0.0
    assert exact_unit_s(np.array([5e-324, 1.0])) == 0.0


def test_the_disk_cache_returns_the_same_order_for_equal_inputs_only(monkeypatch, tmp_path):
    """With and without the disk cache, for several machines, candidates and durations."""
    monkeypatch.setattr(disk_cache, "cache_dir", lambda: tmp_path)
    jobs = [fig2(e) | {"template": t} for e, t in ((0.02, "a"), (0.1, "b"), (0.1, "c"))]
    stages = [{**stage, "durations_s": [9.0]} for stage in jobs[0]["stages"]]
    longer = [{**jobs[0], "stages": stages}]
    grids = [
        (jobs_of_run, sim.Cluster.machines(n, **shape), max_candidates)
        for jobs_of_run in (jobs, longer)
        for n in (1, 2)
        for shape in ({"a": 20, "b": 20}, {"a": 40, "b": 20})
        for max_candidates in (1, 128)
    ]
    for _ in range(2):
        for jobs_of_run, cluster, max_candidates in grids:
            columns = sim.Workload.from_jobs(jobs_of_run).columns
            actual = offline_order(columns, cluster, max_candidates=max_candidates)
            with disk_cache.disabled():
                expected = offline_order(columns, cluster, max_candidates=max_candidates)
            for name, value in vars(expected).items():
                assert np.array_equal(value, getattr(actual, name)), name
        assert len([*tmp_path.glob("*/*/*.kept")]) == 2 * 4 * 2 + 4 * 2  # b and c share theirs
