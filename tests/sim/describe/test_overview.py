"""Counts of Table 1, shares of jobs with dependencies, and what was read."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim.describe import Dataset, overview
from tests.sim.describe.workloads import CHAIN, by_key, dataset, job


@pytest.fixture
def data():
    single = {"durations_s": [5.0, 5.0], "demand": {"cpu": 2.0, "mem": 4.0}}
    return dataset(
        job(0.0, {"a": ""}, a=single),  # 10 task-s, 20 cpu-s, 40 mem-s
        job(1800.0, {"a": "", "b": "a"}),  # 20 task-s, 20 cpu-s
        job(3600.0, CHAIN, a={"durations_s": [30.0]}),  # 50 task-s, 50 cpu-s
        job(7200.0, {"a": "", "b": "", "c": ""}),  # 30 task-s, 30 cpu-s; no edge
    )


def test_the_rows_of_table_1(data):
    assert by_key(overview.overview(data)) == {
        "jobs": 4,
        "jobs_without": 2,
        "jobs_dag": 2,
        "jobs_whole": 2,
        "jobs_stages_2": 3,
        "stages": 9,
        "stages_dag": 5,
        "tasks": 10,
        "tasks_dag": 5,
        "edges": 3,
        "hours": 2.0,
    }


def test_shares_are_of_both_populations(data):
    shares = by_key(overview.shares(data))
    assert shares == pytest.approx(
        {
            "dag_jobs": 2 / 4,
            "dag_stages": 5 / 9,
            "dag_tasks": 5 / 10,
            "dag_task": 70 / 110,
            "dag_cpu": 70 / 120,
            "dag_mem": 0.0,
            "stages_2_jobs": 3 / 4,
            "stages_2_stages": 8 / 9,
            "stages_2_tasks": 8 / 10,
            "stages_2_task": 100 / 110,
            "stages_2_cpu": 100 / 120,
            "stages_2_mem": 0.0,
            "stages_2_of_dag": 1.0,
            "stages_of_dag": 5 / 2,
            "tasks_of_dag": 5 / 2,
            "dependencies_of_dag": 3 / 2,
        }
    )


def read_rows(folder, rows, **options):
    header = "task_name,instance_num,job_name,status,start_time,end_time,plan_cpu,plan_mem"
    path = folder / "t.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return Dataset.from_workload("t", sim.read_trace("alibaba2018", path, **options))


def test_jobs_that_the_trace_describes_as_dags_count_though_they_have_one_stage(tmp_path):
    text_lines = [
        "M1,3,single,Terminated,10,20,100,0.5",
        "M1,1,pair,Terminated,10,20,100,0.5",
        "R2_1,1,pair,Terminated,20,30,100,0.5",
        "task_x,5,plain,Terminated,10,20,100,0.5",
        "task_y,5,plain,Terminated,10,20,100,0.5",
    ]
    data = read_rows(tmp_path, text_lines)
    assert {name: mask.tolist() for name, mask in overview.populations(data).items()} == {
        "all": [True] * 3,
        "dag": [True, True, False],
        "stages_2": [False, True, True],
    }
    counted = by_key(overview.overview(data))
    assert (counted["jobs_dag"], counted["stages_dag"], counted["tasks_dag"]) == (2, 3, 5)
    shares = by_key(overview.shares(data))
    assert (shares["stages_2_of_dag"], shares["tasks_of_dag"]) == (1 / 2, 5 / 2)


def test_what_was_read_is_counted_by_rule(tmp_path):
    text_lines = [
        "M1,1,one,Terminated,10,20,100,0.5",
        "M1,1,lost,Terminated,10,20,100,0.5",
        "R2_1_7,1,lost,Terminated,20,30,100,0.5",
        "task_x,1,odd,Terminated,10,20,,0.5",
        "MergeTask,1,odd,Terminated,10,20,100,0.5",
        "M1_2,1,loop,Terminated,10,20,100,0.5",
        "R2_1,1,loop,Terminated,10,20,100,0.5",
        "M1,x,bad,Terminated,10,20,100,0.5",
    ]
    data = read_rows(tmp_path, text_lines, on_bad_row="skip")
    assert by_key(overview.reading(data)) == {
        "one_stage": 1,
        "no_edge": 1,
        "not_whole": 1,
        "loading: rows": 8,
        "filled: plan_cpu missing: 100": 1,
        "edges dropped: parent is not in the job": 1,
        "noticed: name not of the DAG form": 2,
        "noticed: job naming a parent it does not have": 1,
        "bad rows: cycle (whole job)": 2,
        "bad rows: text in a number": 1,
    }
    assert data.whole.tolist() == [True, False, True]
    assert data.dags.n_jobs == 2


def test_dags_alone_have_neither_tasks_nor_times(data):
    bare = Dataset("bare", data.every)
    assert set(by_key(overview.shares(bare))) == {
        *("dag_jobs", "dag_stages", "stages_2_jobs", "stages_2_stages"),
        *("stages_2_of_dag", "stages_of_dag", "dependencies_of_dag"),
    }
    assert "tasks" not in by_key(overview.overview(bare))
    assert bare.stage_metrics == {}


def test_shares_of_nothing_are_nan():
    free = dataset(job(0.0, {"a": ""}, a={"demand": {"cpu": 0.0}}))
    assert np.isnan(by_key(overview.shares(free))["dag_cpu"])
