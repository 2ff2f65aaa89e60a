"""Offline orders of DAGPS from learnt durations."""

from __future__ import annotations

import numpy as np
import pytest

import policies
import sim
from policies.dagps import offline_order
from policies.dagps.offline_order import OrdersAtArrival, row_priority
from policies.estimates.stage_profiles import StageProfiles
from sim.engine.plan import Plan
from tests.policies.dagps.test_online import CLUSTER, crowd

MACHINES = sim.Cluster.machines(2, cpu=1)


def job(submit_s, template, *durations_s):
    """Return a job of independent stages of one task each, which fill a machine."""
    stages = [
        {"name": f"s{i}", "durations_s": [s], "demand": {"cpu": 1.0}}
        for i, s in enumerate(durations_s)
    ]
    return {"submit_s": float(submit_s), "template": template, "stages": stages}


TWO_TEMPLATES = [
    job(0, "x", 5.0, 5.0, 10.0),
    job(50, "y", 7.0, 7.0, 14.0),
    job(100, "x", 5.0, 5.0, 10.0),
    job(150, "y", 7.0, 7.0, 14.0),
]
LONG_FIRST = {"x": [0, 5, 0], "y": [0, 7, 0]}
BY_ROW = {"x": [0, 0, 5], "y": [0, 0, 7]}


def starts(workload, **params):
    """Return the start of each job's three tasks, from its submission."""
    run = sim.simulate(workload, MACHINES, policies.build("dagps", **params))
    return (run.task_start.reshape(-1, 3) - run.job_submit[:, None]).tolist()


@pytest.mark.parametrize("candidates", ["paper", "more"])
def test_the_second_job_of_a_template_is_ordered_by_what_the_first_showed(candidates):
    """The last task is the longest: two machines end first if it goes first. Nobody knows yet."""
    workload = sim.Workload.from_jobs(TWO_TEMPLATES)
    learnt = [BY_ROW["x"], BY_ROW["y"], LONG_FIRST["x"], LONG_FIRST["y"]]
    for knowledge in ("run", "history"):
        assert starts(workload, candidates=candidates, knowledge=knowledge) == learnt
    true = [LONG_FIRST["x"], LONG_FIRST["y"]] * 2
    assert starts(workload, candidates=candidates, knowledge="true") == true
    assert starts(workload, candidates=candidates, knowledge="run", order_from="true") == true


def recorded(*runs, template="x"):
    """Return the table of recorded runs of three stages with one task each."""
    rows = [(i, stage, s) for i, run in enumerate(runs) for stage, s in enumerate(run)]
    run, stage, finish_s = (np.array(x) for x in zip(*rows, strict=True))
    zero = np.zeros(len(run))
    return {
        "template": [template] * len(run),
        "run": run.astype("i4"),
        "stage": stage.astype("i4"),
        "task": zero.astype("i4"),
        "ready_s": zero,
        "start_s": zero + 1,
        "finish_s": finish_s + 1,
    }


def test_recorded_runs_order_the_first_job_already():
    workload = sim.Workload.from_jobs(TWO_TEMPLATES).with_training(recorded([1.0, 1.0, 3.0]))
    known = [LONG_FIRST["x"], BY_ROW["y"], LONG_FIRST["x"], LONG_FIRST["y"]]
    unknown = [BY_ROW["x"], BY_ROW["y"], LONG_FIRST["x"], LONG_FIRST["y"]]
    assert starts(workload) == known
    assert starts(workload, knowledge="run") == unknown


@pytest.mark.parametrize("recorded_runs", [0, 1])
def test_a_job_that_is_alone_follows_a_list_of_equal_durations_unless_runs_are_recorded(
    recorded_runs,
):
    workload = sim.Workload.from_jobs(TWO_TEMPLATES[:1])
    if recorded_runs:
        workload = workload.with_training(recorded([1.0, 1.0, 3.0]))
    assert starts(workload) == [(LONG_FIRST if recorded_runs else BY_ROW)["x"]]
    assert starts(workload, knowledge="true") == [LONG_FIRST["x"]]


FOUR_RESOURCES = sim.Cluster.machines(10, cpu=1, mem=1, disk=1, net=1, fungible=("disk", "net"))


def orders_at_arrival(workload, monkeypatch, **params):
    """Return task orders and priorities by first task, in the order in which jobs arrived."""
    seen = {}

    def set_tasks(self, rows, /, **columns):
        seen[rows.start] = {name: value.tolist() for name, value in columns.items()}
        set_before(self, rows, **columns)

    set_before = Plan.set_tasks
    with monkeypatch.context() as patch:
        patch.setattr(Plan, "set_tasks", set_tasks)
        run = sim.simulate(workload, FOUR_RESOURCES, policies.build("dagps", **params))
    return seen, run


@pytest.mark.parametrize("knowledge", ["run", "history"])
def test_the_order_of_a_job_does_not_depend_on_durations_of_tasks_that_have_not_started(
    knowledge, monkeypatch
):
    workload = sim.synthesize(
        "production_dags", jobs=20, seed=4901, median_tasks=50, recurring=0.8, interval_s=400.0
    )
    columns = workload.columns
    before, run = orders_at_arrival(workload, monkeypatch, knowledge=knowledge)
    assert len(before) == len(columns.job_submit)
    rng = np.random.default_rng(5)
    changed = 0
    for j in (0, 5, 10, 15):
        unstarted = ~(run.task_start < columns.job_submit[j])
        duration_s = columns.task_duration.copy()
        duration_s[unstarted] *= rng.lognormal(0, 1.5, unstarted.sum())
        tasks = workload.tasks.set_column(1, "duration_s", [duration_s])
        other = sim.Workload.from_tables(
            jobs=workload.jobs,
            stages=workload.stages,
            tasks=tasks,
            stage_edges=workload.stage_edges,
            meta=workload.meta,
        )
        after, _ = orders_at_arrival(other, monkeypatch, knowledge=knowledge)
        arrived = columns.stage_task0[columns.job_stage0[: j + 1]].tolist()
        assert [after[t] for t in arrived] == [before[t] for t in arrived]
        changed += after != before
    assert changed  # the durations matter later


def test_an_order_is_built_anew_when_twice_as_many_runs_are_known(monkeypatch):
    workload = sim.Workload.from_jobs([job(t, "x", 1.0, 2.0, 3.0) for t in range(9)])
    orders = OrdersAtArrival(workload.columns, MACHINES, candidates="paper")
    built = []
    for n_runs in range(9):
        expected_s = np.array([1.0, 2.0 + n_runs, 3.0])
        order = orders.order(n_runs, expected_s, n_runs)
        assert order.pri_score.max() == 1
        built.append(orders.n_built)
    assert built == [1, 2, 3, 3, 4, 4, 4, 4, 5]
    same = orders.order(0, expected_s * (1 + 1e-15) / 3.0, 16)
    assert orders.n_built == 5  # the same but for the last bits
    assert same.pri_score.tolist() == order.pri_score.tolist()


def test_other_shapes_of_a_template_have_their_own_order():
    jobs = [job(0, "x", 1.0, 2.0, 3.0), job(1, "x", 3.0, 1.0)]
    orders = OrdersAtArrival(sim.Workload.from_jobs(jobs).columns, MACHINES)
    sizes = [len(orders.order(j, np.ones(n), 0).pri_score) for j, n in enumerate((3, 2))]
    assert (sizes, orders.n_built) == ([3, 2], 2)


def test_an_order_from_the_true_durations_is_that_of_all_jobs_together():
    workload = crowd(n_jobs=4)
    whole = offline_order.offline_order(workload.columns, CLUSTER)
    orders = OrdersAtArrival(workload.columns, CLUSTER)
    columns = workload.columns
    for j in range(4):
        stages, tasks = orders.rows(j)
        mean_s = columns.stage_work[stages] / np.diff(columns.stage_task0)[stages]
        order = orders.order(j, mean_s, 1)
        assert order.pri_score.tolist() == whole.pri_score[tasks].tolist()
        assert order.task_order.tolist() == whole.task_order[tasks].tolist()
        assert order.stage_pri.tolist() == whole.stage_pri[stages].tolist()


@pytest.mark.parametrize("seed", range(12))
def test_a_chain_of_stages_begins_in_the_order_of_its_rows(seed):
    """So it needs no schedule: the one that is built has this order whatever is expected."""
    rng = np.random.default_rng(seed)
    jobs = []
    for _ in range(4):
        stages = []
        for s in range(int(rng.integers(1, 4))):
            demand = {"cpu": rng.integers(0, 5) / 4, "mem": rng.integers(0, 5) / 4}
            demand |= {"disk": 0.5 * (rng.random() < 0.1)}
            n = 1 if demand["disk"] else int(rng.integers(1, 30))
            parents = {f"s{s - 1}": "barrier"} if s else {}
            stages.append(
                {"name": f"s{s}", "durations_s": [1.0] * n, "demand": demand, "parents": parents}
            )
        jobs.append({"submit_s": 0.0, "template": "x", "stages": stages})
    columns = sim.Workload.from_jobs(jobs).columns
    machines = int(rng.integers(1, 4))
    cluster = sim.Cluster.machines(machines, cpu=1, mem=1, disk=1, fungible=("disk",))
    orders = OrdersAtArrival(columns, cluster)
    assert orders.in_order.all()
    pri_score = row_priority(columns)
    for j in range(4):
        stages, tasks = orders.rows(j)
        lengths = (np.ones(len(stages)), rng.lognormal(0, 2, len(stages)), np.zeros(len(stages)))
        for n_runs, expected_s in enumerate(lengths):
            order = orders.order(j, expected_s, 2**n_runs)
            assert order.pri_score.tolist() == pri_score[tasks].tolist()
            assert (np.diff(order.task_order) > 0).sum() == len(order.task_order) - len(stages)


def test_rows_are_not_in_order_beside_a_fork_a_pairwise_edge_or_shared_tasks():
    def stages(**last):
        first = {"name": "s0", "durations_s": [1.0, 1.0], "demand": {"cpu": 1.0}}
        return [first, {**first, "name": "s1", **last}]

    jobs = [
        stages(parents={"s0": "barrier"}),
        stages(),
        stages(parents={"s0": "one_to_one"}),
        stages(parents={"s0": "barrier"}, demand={"disk": 0.6}),
        stages()[:1],
    ]
    columns = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": s} for s in jobs]).columns
    in_order = OrdersAtArrival(columns, FOUR_RESOURCES).in_order
    assert in_order.tolist() == [True, False, False, False, True]


def test_runs_are_known_once_all_stages_of_a_job_are():
    workload = sim.Workload.from_jobs(TWO_TEMPLATES).with_training(
        recorded([2.0, 4.0, 6.0], [4.0, 4.0, 8.0])
    )
    profiles = StageProfiles(workload.columns, 30.0, recorded=True)
    x, y = np.arange(3), np.arange(3, 6)
    assert (profiles.n_runs(x), profiles.n_runs(y)) == (2, 0)
    profiles.learn(y[:2], np.array([7.0, 7.0]))
    assert (profiles.n_runs(x), profiles.n_runs(y)) == (2, 0)
    profiles.learn(np.array([0, 1, 2, 5]), np.array([5.0, 5.0, 10.0, 14.0]))
    assert (profiles.n_runs(x), profiles.n_runs(y)) == (3, 1)
    assert StageProfiles(workload.columns, 30.0).n_runs(x) == 0


@pytest.mark.parametrize(
    ("params", "durations"),
    [
        ({}, "learnt"),
        ({"knowledge": "run"}, "learnt"),
        ({"knowledge": "true"}, "true"),
        ({"order_from": "true"}, "true"),
        ({"order_from": "true", "order_weight": 0.0}, "learnt"),
    ],
)
def test_a_true_order_is_an_oracle(params, durations):
    assert policies.build("dagps", **params).knows.durations == durations
