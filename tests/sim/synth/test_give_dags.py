"""Jobs without dependencies get DAGs of a fitted shape, and keep work, widths and arrivals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sim
from sim import transforms
from sim.base.errors import InputError
from sim.base.random import stream
from sim.dags import Graphs
from sim.dags.levels import longest_path_levels
from sim.synth.alibaba2018.give_dags import deal
from sim.synth.alibaba2018.shipped import SHIPPED
from sim.synth.fitted.tables_file import read_tables
from sim.workload.columns import job_n_tasks
from sim.workload.paths import critical_path_s


def flat(n: int = 400, gang: bool = False, **stage) -> sim.Workload:
    """Jobs of one stage, of 1 to 40 tasks that last 1 to 9 s."""
    rng = np.random.default_rng(3)
    jobs = []
    for at in range(n):
        width = int(rng.integers(1, 41))
        lasts = [7.0] * width if gang else rng.uniform(1, 9, width).tolist()
        jobs.append(
            {
                "submit_s": 10.0 * at,
                "user": f"u{at % 3}",
                "min_tasks": width if gang else 0,
                "stages": [{"durations_s": lasts, "demand": {"cpu": 1 + at % 4}, **stage}],
            }
        )
    return sim.Workload.from_jobs(jobs)


def work_of(w: sim.Workload) -> np.ndarray:
    return np.bincount(w.columns.stage_job, w.columns.stage_work, w.n_jobs)


def test_every_task_stays_as_it_is_and_belongs_to_a_stage():
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


def test_shapes_are_as_fitted_where_jobs_have_tasks_enough():
    synthesized = transforms.apply(flat(3000), "give_dags", seed=1)
    fitted = read_tables(SHIPPED).n_stages
    actual = Graphs.from_workload(synthesized).job_n_stages
    for most in (1, 2, 3, 6):
        expected = fitted.counts[fitted.values <= most].sum() / fitted.counts.sum()
        assert (actual <= most).mean() == pytest.approx(expected, abs=0.03)
    linked = Graphs.from_workload(synthesized).n_edges
    assert linked >= 0.9 * (actual - 1).sum()


def test_gangs_are_cut_by_time_and_are_as_wide_and_take_as_long_as_before():
    plain = flat(gang=True)
    synthesized = transforms.apply(plain, "give_dags", seed=4)
    assert synthesized.meta["transforms"][-1]["cut by time"] == 400
    assert synthesized.n_stages > 1.5 * plain.n_stages
    assert synthesized.jobs.equals(plain.jobs)
    assert work_of(synthesized) == pytest.approx(work_of(plain), rel=1e-12)
    assert critical_path_s(synthesized.columns) == pytest.approx(critical_path_s(plain.columns))
    graphs = Graphs.from_workload(synthesized)
    level = np.stack([synthesized.columns.stage_job, longest_path_levels(graphs)])
    _, at = np.unique(level, axis=1, return_inverse=True)
    wide = np.bincount(at, synthesized.columns.stage_n_tasks)
    first = np.unique(at, return_index=True)[1]
    assert np.array_equal(wide, plain.columns.stage_n_tasks[synthesized.columns.stage_job[first]])
    lasts = synthesized.columns.stage_max_s
    assert np.array_equal(lasts, lasts[first][at])  # so that levels run one after the other


def test_a_duration_for_each_stage_is_as_good_as_a_table_of_tasks():
    table = flat(60, gang=True)
    stages = table.stages.append_column("duration_s", pa.array(np.full(60, 7.0)))
    short = sim.Workload.from_tables(jobs=table.jobs, stages=stages)
    assert short.stage_duration_s is not None
    one, other = (transforms.apply(w, "give_dags", seed=3) for w in (table, short))
    assert other.stage_duration_s is not None
    assert one.stages.equals(other.stages)
    assert one.stage_edges.equals(other.stage_edges)
    assert np.array_equal(one.columns.task_duration, other.columns.task_duration)


def test_cut_may_be_said():
    plain = flat(50)
    synthesized = transforms.apply(plain, "give_dags", cut="time")
    assert work_of(synthesized) == pytest.approx(work_of(plain), rel=1e-12)
    assert synthesized.n_tasks > plain.n_tasks
    assert synthesized.meta["transforms"][-1]["cut by time"] == 50
    gangs = transforms.apply(flat(50, gang=True), "give_dags", cut="tasks")
    assert gangs.meta["transforms"][-1]["cut by time"] == 0


def test_stages_of_one_job_become_one_only_if_they_demand_the_same():
    pair = [{"durations_s": [1.0, 2.0], "demand": {"cpu": 1}}] * 2
    other = [pair[0], {"durations_s": [5.0], "demand": {"cpu": 2}}]
    jobs = [{"submit_s": float(at), "stages": other if at % 2 else pair} for at in range(200)]
    plain = sim.Workload.from_jobs(jobs)
    synthesized = transforms.apply(plain, "give_dags", seed=2)
    stages = Graphs.from_workload(synthesized).job_n_stages
    assert set(stages[1::2]) == {2}
    assert set(stages[::2]) >= {1, 2, 3, 4}
    assert stages.max() == 4
    assert Graphs.from_workload(synthesized).job_n_edges[1::2].sum() == 0
    assert np.array_equal(synthesized.columns.task_duration, plain.columns.task_duration)
    assert synthesized.meta["transforms"][-1]["as they were"] == 100


def test_dependencies_are_not_given_twice():
    with pytest.raises(InputError, match="rewire"):
        transforms.apply(transforms.apply(flat(), "give_dags"), "give_dags")


def test_what_needs_most_is_dealt_to_those_that_have_it():
    rng = stream(1, "test")
    need, room = np.array([1, 1, 3, 9]), np.array([3, 1, 9, 1])
    dealt = deal(need, room, rng)
    assert dealt[2] == 3
    assert dealt[0] == 2
    assert sorted(dealt[[1, 3]]) == [0, 1]
    assert deal(np.array([2, 2]), np.array([1, 1]), rng).tolist() == [-1, -1]
    assert deal(np.array([9, 1]), np.array([4, 4]), rng).tolist() == [1, 1]
