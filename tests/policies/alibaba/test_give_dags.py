"""give_dags: fitted DAGs for jobs without dependencies; work, widths and arrivals are preserved."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import policies
import sim
from policies.alibaba.synth.give_dags import assign_shapes
from policies.alibaba.synth.shipped import SHIPPED
from sim import transforms
from sim.base.errors import InputError
from sim.base.random import stream
from sim.dags import Graphs
from sim.dags.levels import longest_path_levels
from sim.synth.fitted.tables_file import read_tables
from sim.workload.columns import job_n_tasks
from sim.workload.paths import critical_path_s


def flat(n: int = 400, gang: bool = False, **stage) -> sim.Workload:
    """Jobs of one stage with 1 to 40 tasks of 1 to 9 s."""
    rng = np.random.default_rng(3)
    jobs = []
    for i in range(n):
        width = int(rng.integers(1, 41))
        durations_s = [7.0] * width if gang else rng.uniform(1, 9, width).tolist()
        jobs.append(
            {
                "submit_s": 10.0 * i,
                "user": f"u{i % 3}",
                "min_tasks": width if gang else 0,
                "stages": [{"durations_s": durations_s, "demand": {"cpu": 1 + i % 4}, **stage}],
            }
        )
    return sim.Workload.from_jobs(jobs)


def job_work(w: sim.Workload) -> np.ndarray:
    return np.bincount(w.columns.stage_job, w.columns.stage_work, w.n_jobs)


def test_every_task_is_unchanged_and_belongs_to_a_stage():
    plain = flat()
    synthesized = transforms.apply(plain, "give_dags", seed=4)
    assert synthesized.jobs.equals(plain.jobs)
    assert np.array_equal(synthesized.columns.task_duration, plain.columns.task_duration)
    assert np.array_equal(job_n_tasks(synthesized), job_n_tasks(plain))
    assert synthesized.columns.stage_n_tasks.min() >= 1
    job = synthesized.columns.stage_job
    assert np.array_equal(synthesized.columns.stage_demand, plain.columns.stage_demand[job])
    assert synthesized.digest == transforms.apply(plain, "give_dags", seed=4).digest
    assert synthesized.digest != transforms.apply(plain, "give_dags", seed=5).digest


def test_shapes_are_as_fitted_if_jobs_have_enough_tasks():
    synthesized = transforms.apply(flat(3000), "give_dags", seed=1)
    fitted = read_tables(SHIPPED).n_stages
    actual = Graphs.from_workload(synthesized).job_n_stages
    for limit in (1, 2, 3, 6):
        expected = fitted.counts[fitted.values <= limit].sum() / fitted.counts.sum()
        assert (actual <= limit).mean() == pytest.approx(expected, abs=0.03)
    linked = Graphs.from_workload(synthesized).n_edges
    assert linked >= 0.9 * (actual - 1).sum()


def test_gangs_cut_by_time_have_the_same_width_and_critical_path():
    plain = flat(gang=True)
    synthesized = transforms.apply(plain, "give_dags", seed=4)
    assert synthesized.meta["transforms"][-1]["cut by time"] == 400
    assert synthesized.n_stages > 1.5 * plain.n_stages
    assert synthesized.jobs.equals(plain.jobs)
    assert job_work(synthesized) == pytest.approx(job_work(plain), rel=1e-12)
    assert critical_path_s(synthesized.columns) == pytest.approx(critical_path_s(plain.columns))
    graphs = Graphs.from_workload(synthesized)
    level = np.stack([synthesized.columns.stage_job, longest_path_levels(graphs)])
    _, cell = np.unique(level, axis=1, return_inverse=True)
    width = np.bincount(cell, synthesized.columns.stage_n_tasks)
    first = np.unique(cell, return_index=True)[1]
    assert np.array_equal(width, plain.columns.stage_n_tasks[synthesized.columns.stage_job[first]])
    duration_s = synthesized.columns.stage_max_s
    assert np.array_equal(
        duration_s, duration_s[first][cell]
    )  # so that levels run one after the other


def test_stage_durations_and_a_table_of_equal_tasks_give_the_same():
    table = flat(60, gang=True)
    stages = table.stages.append_column("duration_s", pa.array(np.full(60, 7.0)))
    short = sim.Workload.from_tables(jobs=table.jobs, stages=stages)
    assert short.stage_duration_s is not None
    with_tasks, without_tasks = (transforms.apply(w, "give_dags", seed=3) for w in (table, short))
    assert without_tasks.stage_duration_s is not None
    assert with_tasks.stages.equals(without_tasks.stages)
    assert with_tasks.stage_edges.equals(without_tasks.stage_edges)
    assert np.array_equal(with_tasks.columns.task_duration, without_tasks.columns.task_duration)


def test_cut_can_be_chosen():
    plain = flat(50)
    synthesized = transforms.apply(plain, "give_dags", cut="time")
    assert job_work(synthesized) == pytest.approx(job_work(plain), rel=1e-12)
    assert synthesized.n_tasks > plain.n_tasks
    assert synthesized.meta["transforms"][-1]["cut by time"] == 50
    gangs = transforms.apply(flat(50, gang=True), "give_dags", cut="tasks")
    assert gangs.meta["transforms"][-1]["cut by time"] == 0


def test_stages_are_merged_only_if_their_demands_are_equal():
    pair = [{"durations_s": [1.0, 2.0], "demand": {"cpu": 1}}] * 2
    other = [pair[0], {"durations_s": [5.0], "demand": {"cpu": 2}}]
    jobs = [{"submit_s": float(i), "stages": other if i % 2 else pair} for i in range(200)]
    plain = sim.Workload.from_jobs(jobs)
    synthesized = transforms.apply(plain, "give_dags", seed=2)
    stages = Graphs.from_workload(synthesized).job_n_stages
    assert set(stages[1::2]) == {2}
    assert set(stages[::2]) >= {1, 2, 3, 4}
    assert stages.max() == 4
    assert Graphs.from_workload(synthesized).job_n_edges[1::2].sum() == 0
    assert np.array_equal(synthesized.columns.task_duration, plain.columns.task_duration)
    assert synthesized.meta["transforms"][-1]["unchanged"] == 100


def test_existing_dependencies_are_an_error():
    with pytest.raises(InputError, match="rewire"):
        transforms.apply(transforms.apply(flat(), "give_dags"), "give_dags")


def test_shapes_are_assigned_to_jobs_with_enough_tasks():
    rng = stream(1, "test")
    need, n_tasks = np.array([1, 1, 3, 9]), np.array([3, 1, 9, 1])
    assigned = assign_shapes(need, n_tasks, rng)
    assert assigned[2] == 3
    assert assigned[0] == 2
    assert sorted(assigned[[1, 3]]) == [0, 1]
    assert assign_shapes(np.array([2, 2]), np.array([1, 1]), rng).tolist() == [-1, -1]
    assert assign_shapes(np.array([9, 1]), np.array([4, 4]), rng).tolist() == [1, 1]


def recurring(n: int = 60, runs: int = 2) -> sim.Workload:
    """Runs of three programs of 12, 20 and 1 tasks with deadlines, and recorded runs of two."""
    rng = np.random.default_rng(5)
    jobs = []
    for i in range(n):
        durations_s = rng.uniform(1, 9, (12, 20, 1)[i % 3]).tolist()
        stage = {"durations_s": durations_s, "demand": {"cpu": 1, "mem": 2 + i % 3}}
        jobs.append(
            {"submit_s": 9.0 * i, "template": f"t{i % 3}", "deadline_s": 99.0, "stages": [stage]}
        )
    training = []
    for run in range(runs):
        for name, width in (("t0", 10), ("t1", 20), ("t2", 1), ("gone", 3)):
            for task in range(width):
                row = {"template": name, "run": run, "stage": 0, "task": task, "ready_s": 0.0}
                wait_s, took_s = rng.uniform(0, 2), rng.uniform(1, 9)
                row |= {"start_s": wait_s, "finish_s": wait_s + took_s, "init_s": 0.5}
                training.append(row)
    return sim.Workload.from_jobs(jobs).with_training(pa.Table.from_pylist(training))


def test_recorded_runs_are_divided_like_the_jobs_of_their_program():
    plain = recurring()
    synthesized = transforms.apply(plain, "give_dags", seed=2)
    columns, training = synthesized.columns, synthesized.columns.training
    n_stages = np.diff(columns.job_stage0)
    assert all(len(set(n_stages[k::3])) == 1 for k in range(3))  # one DAG a program
    assert n_stages[0] > 1
    before, after = (w.training.to_pandas() for w in (plain, synthesized))
    assert len(after) == len(before)
    for name, width in (("t0", 10), ("t1", 20), ("t2", 1), ("gone", 3)):
        old, new = (t[(t.template == name) & (t.run == 1)] for t in (before, after))
        assert len(new) == width
        for end, begin in ("finish_s", "start_s"), ("start_s", "ready_s"):
            old_s, new_s = (np.sort(t[end] - t[begin]) for t in (old, new))
            assert np.allclose(old_s, new_s)
    graphs = Graphs.from_workload(synthesized).take([0])
    run = after[(after.template == "t0") & (after.run == 0)]
    assert set(run.stage) == set(range(n_stages[0]))
    ended = run.groupby("stage").finish_s.max().to_numpy()
    ready = run.groupby("stage").ready_s.first().to_numpy()
    for stage in range(n_stages[0]):
        parents = graphs.edge_parent[graphs.edge_child == stage]
        assert ready[stage] == ended[parents].max(initial=0.0)
    assert len(training) == len(after)
    result = sim.simulate(
        synthesized, sim.Cluster.slots(9), policies.build("jockey", infeasible="run")
    )
    assert np.isfinite(result.metrics["utility"])


def test_demands_differ_between_the_stages_of_a_job():
    plain = recurring(n=300)
    demands = transforms.apply(plain, "give_dags", seed=2, demands=True, per="job").columns
    old, new = plain.columns.stage_demand, demands.stage_demand
    assert (new <= old.max(axis=0)).all()
    assert (new != old[demands.stage_job]).any()
    mem = plain.resources.index("mem")
    job, n = demands.stage_job, demands.stage_n_tasks
    mean = np.bincount(job, new[:, mem] * n) / np.bincount(job, n)
    small = old[:, mem] == old[:, mem].min()  # few of them reach the limit
    assert abs(np.median(mean[small] / old[small, mem]) - 1) < 1e-3
