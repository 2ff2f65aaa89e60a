"""Runs of like tasks: found in a table, given with a count, changed, stored, never expanded."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from sim.transforms.tasks import lengthen
from sim.workload import columns, folder
from sim.workload.runs import find_runs, one_a_stage
from tests.examples import examples
from tests.sim.workload.tables import expanded, small, table_workloads


def two_runs(duration_s=(2.0, 3.0, 2.0), count=(4, 1, 3), n_tasks=(5, 3)) -> sim.Workload:
    return sim.Workload.from_tables(
        jobs={"job_id": ["a"], "submit_s": [0.0]},
        stages={"job": [0, 0], "n_tasks": list(n_tasks)},
        tasks={"stage": [0, 0, 1], "duration_s": list(duration_s), "count": list(count)},
    )


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=1, max_size=6), min_size=1))
@settings(max_examples=examples(120), deadline=None)
def test_runs_against_a_loop(stages):
    duration_s = np.array([d for tasks in stages for d in tasks])
    task0 = np.cumsum([0, *(len(tasks) for tasks in stages)])
    runs = find_runs(duration_s, task0)
    expected = []
    for g, tasks in enumerate(stages):
        for i, d in enumerate(tasks):
            if i and tasks[i - 1] == d:
                expected[-1][2] += 1
            else:
                expected.append([g, d, 1])
    rows = zip(runs.stage.tolist(), runs.duration_s.tolist(), runs.count.tolist(), strict=True)
    assert [list(row) for row in rows] == expected
    assert runs.expand(slice(None)).tolist() == duration_s.tolist()
    assert runs.table(1, 3).num_rows == min(2, max(len(expected) - 1, 0))
    assert runs.run_rows(np.arange(len(duration_s))).tolist() == [
        n for n, (_, _, count) in enumerate(expected) for _ in range(count)
    ]
    some = np.flatnonzero(np.arange(len(stages)) % 2 == 0)
    assert runs.take(some).expand(slice(None)).tolist() == [d for g in some for d in stages[g]]


def test_runs_of_tasks_that_all_differ_share_the_arrays():
    duration_s, task0 = np.array([1.0, 2.0, 3.0]), np.array([0, 2, 3])
    runs = find_runs(duration_s, task0)
    assert runs.duration_s is duration_s
    assert runs.stage0 is task0  # so that they cost 8 bytes a task
    assert one_a_stage(duration_s, np.array([0, 5, 6, 9])).one_a_stage


@given(table_workloads())
@settings(max_examples=examples(120), deadline=None)
def test_a_workload_in_runs_is_the_same_as_one_of_tasks(w):
    twin = expanded(w)
    assert not twin.in_runs
    half = np.arange(w.n_jobs)[::2]
    assert w.take(half).digest == twin.take(half).digest
    assert w.inflow.work.tobytes() == twin.inflow.work.tobytes()
    assert pickle.loads(pickle.dumps(w)).digest == twin.digest
    ours, theirs = w.runs, twin.runs
    assert ours.table().equals(theirs.table())


def test_like_tasks_are_not_expanded():
    n = 2_000_000_000  # 16 GB, if they were
    w = two_runs(count=(999, 1, n), n_tasks=(1000, n))
    assert w.n_tasks == n + 1000
    assert w.take([0]).columns.run_duration.tolist() == [2.0, 3.0, 2.0]
    assert w.with_meta({"name": "x"}).runs.count.tolist() == [999, 1, n]
    assert pickle.loads(pickle.dumps(w)).runs.table().equals(w.runs.table())
    assert w.columns.stage_work.tolist() == [2001.0, 2.0 * n]
    assert w.task_rows(998, 1002).to_pydict() == {
        "stage": [0, 0, 1, 1],
        "duration_s": [2.0, 3.0, 2.0, 2.0],
    }


def test_rows_with_a_count_are_written_and_read_from_some_number_of_tasks_on(tmp_path, monkeypatch):
    w = two_runs()
    w.write(tmp_path / "tasks")
    assert pq.read_table(tmp_path / "tasks" / "tasks.parquet").num_rows == w.n_tasks
    monkeypatch.setattr(folder, "MAX_TASK_ROWS", 7)
    monkeypatch.setattr(folder, "_ROWS", 2)
    for workload in (w, expanded(w)):
        workload.write(tmp_path / "runs")
        rows = pq.read_table(tmp_path / "runs" / "tasks.parquet").to_pydict()
        assert rows == {"stage": [0, 0, 1], "duration_s": [2.0, 3.0, 2.0], "count": [4, 1, 3]}
        back = sim.Workload.read(tmp_path / "runs")
        assert back.in_runs
        assert back.digest == w.digest == sim.Workload.read(tmp_path / "tasks").digest
    recorded = expanded(w).tasks.append_column("recorded_start_s", [np.arange(8.0)])
    sim.Workload.from_tables(w.jobs, w.stages, recorded).write(tmp_path / "recorded")
    assert pq.read_table(tmp_path / "recorded" / "tasks.parquet").num_rows == 8


def test_long_files_of_like_tasks_are_read_as_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "_ROWS", 3)
    w = two_runs(count=(40, 1, 30), n_tasks=(41, 30))
    expanded(w).write(tmp_path)
    back = sim.Workload.read(tmp_path)
    assert back.in_runs
    assert back.runs.table().equals(w.runs.table())
    assert back.digest == w.digest


def test_sums_have_the_same_bits_in_pieces(monkeypatch):
    rng = np.random.default_rng(0)
    n_tasks = rng.integers(1, 400, 30)
    stage = np.repeat(np.arange(30), n_tasks)
    task_s = rng.choice([0.1, 0.3, 0.7, 1e5], len(stage))
    tables = {
        "jobs": {"job_id": ["a"], "submit_s": [0.0]},
        "stages": {"job": np.zeros(30, np.int32), "n_tasks": n_tasks},
    }
    w = sim.Workload.from_tables(**tables, tasks={"stage": stage, "duration_s": task_s})
    whole = w.columns.stage_work
    assert whole.tolist() == np.add.reduceat(task_s, w.stage_task0[:-1]).tolist()
    monkeypatch.setattr(columns, "CHUNK", 50)
    in_runs = sim.Workload.from_tables(**tables, tasks=w.runs.table())
    assert in_runs.columns.stage_work.tobytes() == whole.tobytes()
    assert in_runs.digest == w.digest
    longer = lengthen(in_runs, seconds=1e6)
    assert longer.in_runs
    assert longer.digest == lengthen(w, seconds=1e6).digest


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"count": [2, 0, 1]}, "number too small"),
        ({"count": [2, 1, 2]}, "n_tasks mismatch"),
        ({"stage": [0, 1, 0]}, "rows out of order"),
        ({"stage": [0, 0, 9]}, "row out of range"),
        ({"stage": [-1, 0, 1]}, "negative number"),
        ({"duration_s": [1.0, -2.0, 1.0]}, "negative number"),
        ({"duration_s": [1.0, np.nan, 1.0]}, "non-finite number"),
        ({"recorded_start_s": [1.0, 2.0, 3.0]}, "column of single tasks"),
    ],
)
def test_a_wrong_table_of_runs_is_refused(change, rule):
    tasks = {"stage": [0, 0, 1], "duration_s": [1.0, 2.0, 1.0], "count": [2, 1, 1]}
    with pytest.raises(sim.InputError) as caught:
        sim.Workload.from_tables(
            jobs={"job_id": ["a"], "submit_s": [0.0]},
            stages={"job": [0, 0], "n_tasks": [3, 1]},
            tasks=tasks | change,
        )
    assert caught.value.rule == rule


def test_more_tasks_than_rows_can_number_are_refused():
    n = 2**31 - 1
    with pytest.raises(sim.InputError, match="at most") as caught:
        two_runs(count=(n - 1, 1, 1), n_tasks=(n, 1))
    assert caught.value.rule == "too many rows"


def test_a_table_with_a_count_equals_one_with_a_row_a_task():
    tables = small()
    tables["tasks"] = {
        "stage": [0, 0, 1, 2, 3],
        "duration_s": [3.0, 4, 5, 1, 0],
        "count": [1, 1, 1, 2, 1],
    }
    assert sim.Workload.from_tables(**tables).digest == sim.Workload.from_tables(**small()).digest
