"""Tables and columns of a workload, and the ways to build one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import sim
from tests.examples import examples
from tests.sim.workload.tables import build, expanded, small, table_workloads

CONTRACT = {
    "jobs": {
        "job_id": pa.string(),
        "submit_s": pa.float64(),
        "template": pa.dictionary(pa.int32(), pa.string()),
        "user": pa.dictionary(pa.int32(), pa.string()),
        "queue": pa.dictionary(pa.int32(), pa.string()),
        "priority": pa.float64(),
        "deadline_s": pa.float64(),
        "min_tasks": pa.int32(),
        "input_mode": pa.dictionary(pa.int32(), pa.string()),
    },
    "stages": {
        "job": pa.int32(),
        "name": pa.string(),
        "n_tasks": pa.int32(),
        "demand_cpu": pa.float64(),
        "demand_mem": pa.float64(),
    },
    "tasks": {"stage": pa.int32(), "duration_s": pa.float64()},
    "stage_edges": {
        "parent": pa.int32(),
        "child": pa.int32(),
        "kind": pa.dictionary(pa.int32(), pa.string()),
    },
    "job_edges": {
        "upstream": pa.int32(),
        "downstream": pa.int32(),
        "kind": pa.dictionary(pa.int32(), pa.string()),
    },
    "downloads": {"job": pa.int32(), "time_s": pa.float64(), "n": pa.int32()},
}


@pytest.mark.parametrize("table", CONTRACT)
def test_tables_have_the_columns_and_types_of_the_contract(table):
    schema = getattr(build(), table).schema
    assert dict(zip(schema.names, schema.types, strict=True)) == CONTRACT[table]


def test_the_columns_of_a_small_workload():
    c = build().columns
    assert c.job_submit.tolist() == [0, 1, 5]
    assert c.job_stage0.tolist() == [0, 2, 3, 4]
    assert c.job_deadline[0] == 60
    assert np.isnan(c.job_deadline[1:]).all()
    assert c.job_min_tasks.tolist() == [0, 2, 0]
    assert [c.queue_names[q] for q in c.job_queue] == ["q1", "q2", "q1"]
    assert c.job_input_mode.tolist() == [0, 0, 1]
    assert c.job_work.tolist() == [12, 2, 0]
    assert c.stage_job.tolist() == [0, 0, 1, 2]
    assert c.stage_task0.tolist() == [0, 2, 3, 5, 6]
    assert c.resources == ("cpu", "mem")
    assert c.stage_demand_f.tolist() == [[1, 0], [2, 4], [1.5, 1], [0, 1]]
    assert c.stage_demand.tolist() == [
        [10**6, 0],
        [2 * 10**6, 4 * 10**6],
        [1500000, 10**6],
        [0, 10**6],
    ]
    assert c.stage_work.tolist() == [7, 5, 2, 0]
    assert c.stage_max_s.tolist() == [4, 5, 1, 0]
    assert c.stage_min_s.tolist() == [3, 5, 1, 0]
    assert c.task_duration.tolist() == [3, 4, 5, 1, 1, 0]
    assert c.edge0.tolist() == [0, 1, 1, 1, 1]
    assert c.edge_child.tolist() == [1]
    assert c.edge_kind.tolist() == [1]
    assert c.stage_n_o2o.tolist() == [0, 1, 0, 0]
    assert c.stage_n_barrier.tolist() == [0, 0, 0, 0]


def test_a_positive_demand_is_at_least_one_quantum():
    tables = small()
    tables["stages"]["demand_cpu"] = [0.001, 0.26, 0.24, 0.0]
    w = sim.Workload.from_tables(**tables, meta={"quantum": {"cpu": 0.5}})
    assert w.columns.stage_demand[:, 0].tolist() == [1, 1, 1, 0]
    assert dict(w.quantum) == {"cpu": 0.5, "mem": 1e-6}


@given(table_workloads())
@settings(max_examples=examples(120), deadline=None)
def test_columns_are_read_only_contiguous_and_agree_with_the_tables(w):
    c = w.columns
    for field in dataclasses.fields(c):
        array = getattr(c, field.name)
        if isinstance(array, np.ndarray):
            assert array.flags.c_contiguous, field.name
            assert not array.flags.writeable, field.name
    tasks, stages = w.tasks.to_pandas(), w.stages.to_pandas()
    grouped = tasks.groupby("stage").duration_s
    np.testing.assert_allclose(c.stage_work, grouped.sum())
    np.testing.assert_array_equal(c.stage_max_s, grouped.max())
    np.testing.assert_array_equal(c.stage_min_s, grouped.min())
    np.testing.assert_array_equal(np.diff(c.stage_task0), stages.n_tasks)
    np.testing.assert_array_equal(np.diff(c.job_stage0), stages.groupby("job").size())
    edges = w.stage_edges.to_pandas()
    for parent in range(w.n_stages):
        mine = c.edge_child[c.edge0[parent] : c.edge0[parent + 1]].tolist()
        assert mine == sorted(edges.child[edges.parent == parent])
    kinds = edges.groupby(["child", "kind"], observed=True).size()
    for child in range(w.n_stages):
        assert c.stage_n_barrier[child] == kinds.get((child, "barrier"), 0)
        assert c.stage_n_o2o[child] == kinds.get((child, "one_to_one"), 0)


@given(table_workloads())
@settings(max_examples=examples(120), deadline=None)
def test_one_duration_a_stage_is_the_same_as_a_table_of_tasks(w):
    twin = expanded(w)
    assert twin.stage_duration_s is None
    assert twin.digest == w.digest
    for field in dataclasses.fields(w.columns):
        a, b = getattr(w.columns, field.name), getattr(twin.columns, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes(), field.name
        else:
            assert a == b
    assert w.tasks.equals(twin.tasks)


def test_slices_of_expanded_tasks_equal_slices_of_the_table():
    w = sim.Workload.from_tables(
        jobs={"job_id": ["a"], "submit_s": [0.0]},
        stages={"job": [0, 0, 0], "n_tasks": [3, 1, 4], "duration_s": [1.0, 2.0, 3.0]},
    )
    whole = [(0, 1.0)] * 3 + [(1, 2.0)] + [(2, 3.0)] * 4
    for begin in range(9):
        for end in range(begin, 9):
            piece = w.task_rows(begin, end).to_pydict()
            assert list(zip(piece["stage"], piece["duration_s"], strict=True)) == whole[begin:end]
    assert "tasks" not in w.__dict__


def test_columns_with_a_default_may_be_left_out():
    w = sim.Workload.from_tables(
        jobs={"job_id": ["a"], "submit_s": [2]},
        stages={"job": [0], "n_tasks": [3], "duration_s": [1]},
    )
    job = w.jobs.to_pylist()[0]
    assert job == {
        "job_id": "a",
        "submit_s": 2.0,
        "template": "",
        "user": "",
        "queue": "default",
        "priority": 0.0,
        "deadline_s": None,
        "min_tasks": 0,
        "input_mode": "none",
    }
    assert w.resources == ("cpu",)
    assert w.columns.stage_demand_f.tolist() == [[1.0]]


def test_extra_columns_are_carried_along():
    w = build(jobs={"note": ["x", None, "z"]}, tasks={"shuffle_mib": [1, 2, 3, 4, 5, 6]})
    assert w.jobs["note"].to_pylist() == ["x", None, "z"]
    assert w.take([1, 2]).jobs["note"].to_pylist() == [None, "z"]
    assert w.take([2]).tasks["shuffle_mib"].to_pylist() == [6]
    assert w.digest != build().digest


def test_a_workload_can_not_be_changed():
    w = build()
    with pytest.raises(AttributeError, match="immutable"):
        w.jobs = w.stages
    with pytest.raises(TypeError):
        w.meta["name"] = "other"
    with pytest.raises(ValueError, match="read-only"):
        w.columns.task_duration[0] = 1.0


def test_the_digest_is_of_the_content_alone():
    base = build().digest
    assert len(base) == 64
    tables = {name: pa.table(columns) for name, columns in small().items()}
    slices = {n: pa.concat_tables([t.slice(0, 1), t.slice(1)]) for n, t in tables.items()}
    assert sim.Workload.from_tables(**tables, meta={"name": "other"}).digest == base
    assert sim.Workload.from_tables(**slices).digest == base
    pandas = {n: pa.Table.from_pandas(t.to_pandas()) for n, t in tables.items()}
    assert sim.Workload.from_tables(**pandas).digest == base
    coded = tables["jobs"].set_column(
        2, "queue", pa.DictionaryArray.from_arrays([2, 0, 2], ["q2", "unused", "q1"])
    )
    assert sim.Workload.from_tables(**(tables | {"jobs": coded})).digest == base


def test_the_digest_is_stable():
    # results are cached under it: change the version in sim.workload.folder when this has to change
    assert build().digest == "6f8d5c440765226883b59c70ed1996d193a2292119b64a9703605aead4515085"


def test_expanded_tasks_share_the_numbers_of_the_columns():
    w = sim.Workload.from_tables(
        jobs={"job_id": ["a"], "submit_s": [0.0]},
        stages={"job": [0], "n_tasks": [3], "duration_s": [1.0]},
    )
    duration = w.columns.task_duration
    assert np.shares_memory(duration, w.tasks["duration_s"].chunk(0).to_numpy())


@pytest.mark.parametrize(
    ("table", "column", "values"),
    [
        ("jobs", "job_id", ["a", "b", "d"]),
        ("jobs", "submit_s", [0.0, 1.0, 5.5]),
        ("jobs", "queue", ["q1", "q2", "q2"]),
        ("jobs", "deadline_s", [60.0, 0.0, None]),
        ("stages", "name", ["map", "reduc", "ework", "read"]),
        ("tasks", "duration_s", [3.0, 4.0, 5.0, 1.0, 1.5, 0.0]),
        ("tasks", "duration_s", [4.0, 3.0, 5.0, 1.0, 1.0, 0.0]),
        ("stage_edges", "kind", ["barrier"]),
        ("downloads", "n", [1, 4]),
    ],
)
def test_the_digest_tells_any_change(table, column, values):
    assert build(**{table: {column: values}}).digest != build().digest


def test_the_digest_tells_a_change_of_quantum():
    coarse = sim.Workload.from_tables(**small(), meta={"quantum": {"cpu": 0.5}})
    assert coarse.digest != build().digest


@pytest.mark.parametrize(
    ("change", "rule", "text"),
    [
        ({"jobs": {"submit_s": ["x", "y", "z"]}}, "wrong type", "submit_s"),
        ({"jobs": {"submit_s": [0.0, None, 1.0]}}, "missing value", "jobs row 1: submit_s"),
        ({"stages": {"n_tasks": [2.5, 1, 2, 1]}}, "wrong type", "n_tasks"),
        ({"stages": {"duration_s": [1, 2, 3, 4]}}, "duration given twice", "duration_s"),
        ({"stages": {"demand_": [1, 2, 3, 4]}}, "wrong column", "demand_"),
    ],
)
def test_a_column_of_the_wrong_form_is_named(change, rule, text):
    with pytest.raises(sim.InputError, match=text) as caught:
        build(**change)
    assert caught.value.rule == rule


def test_a_missing_column_and_a_missing_table_are_named():
    tables = small()
    del tables["jobs"]["submit_s"]
    with pytest.raises(sim.InputError, match="jobs has no column 'submit_s'"):
        sim.Workload.from_tables(**tables)
    tables = small()
    del tables["tasks"]
    with pytest.raises(sim.InputError, match="no table of tasks") as caught:
        sim.Workload.from_tables(**tables)
    assert caught.value.rule == "missing table"
