"""Every rule of a workload: the error names table, row and rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from sim.workload.validate import validate
from tests.sim.workload.tables import build, small

INF, NAN = float("inf"), float("nan")

BROKEN = [
    # table, column, values, rule, what the message says
    ("jobs", "submit_s", [0.0, 5.0, 1.0], "non-monotonic submit", r"jobs row 2 \(job 'c'\)"),
    ("jobs", "submit_s", [-1.0, 1.0, 5.0], "negative number", r"jobs row 0 \(job 'a'\): submit_s"),
    ("jobs", "submit_s", [0.0, NAN, 5.0], "non-finite number", "jobs row 1"),
    ("jobs", "submit_s", [0.0, 1.0, INF], "non-finite number", "jobs row 2"),
    ("jobs", "submit_s", [0.0, 1.0, 1e13], "number too large", "jobs row 2 .*at most 1e"),
    ("tasks", "duration_s", [1e300, 4.0, 5.0, 1.0, 1.0, 0.0], "number too large", "tasks row 0"),
    ("jobs", "job_id", ["a", "b", "a"], "duplicate id", "jobs row 2 .*row 0"),
    ("jobs", "priority", [0.0, -3.0, -INF], "non-finite number", "jobs row 2"),
    ("jobs", "deadline_s", [-1.0, None, None], "negative number", "jobs row 0"),
    ("jobs", "deadline_s", [1.0, INF, None], "non-finite number", "jobs row 1"),
    ("jobs", "min_tasks", [0, -1, 0], "negative number", "jobs row 1"),
    ("jobs", "min_tasks", [0, 2, 2], "gang larger than job", "jobs row 2 .*1 tasks"),
    ("jobs", "input_mode", ["none", "wait", "none"], "unknown kind", "jobs row 1 .*'wait'"),
    ("stages", "job", [0, 1, 0, 2], "rows out of order", r"stages row 2 \(job 'a'\)"),
    ("stages", "job", [0, 0, 2, 2], "job without stages", r"jobs row 1 \(job 'b'\)"),
    ("stages", "job", [0, 0, 1, 3], "row out of range", "stages row 3: job is 3"),
    ("stages", "job", [-1, 0, 1, 2], "negative number", "stages row 0: job is -1"),
    (
        "stages",
        "n_tasks",
        [2, 1, 3, 1],
        "n_tasks mismatch",
        r"stages row 2 \(job 'b'\): n_tasks is 3",
    ),
    ("stages", "n_tasks", [2, 0, 3, 1], "number too small", "stages row 1 .*1 or more"),
    ("stages", "n_tasks", [2, -2, 3, 1], "negative number", "stages row 1"),
    ("stages", "demand_cpu", [1.0, -0.5, 1.0, 1.0], "negative number", "stages row 1 .*-0.5"),
    ("stages", "demand_mem", [1.0, 0.5, 1.0, NAN], "non-finite number", "stages row 3"),
    ("stages", "demand_mem", [1.0, 0.5, 1e12, 1.0], "demand out of range", "stages row 2"),
    ("tasks", "stage", [0, 0, 2, 1, 2, 3], "rows out of order", "tasks row 3"),
    ("tasks", "stage", [0, 0, 1, 2, 2, 4], "row out of range", "tasks row 5: stage is 4"),
    ("tasks", "stage", [0, 0, 1, 2, 3, 3], "n_tasks mismatch", "stages row 2"),
    (
        "tasks",
        "duration_s",
        [1, 2, 3, -4, 5, 6],
        "negative number",
        "tasks row 3: duration_s is -4",
    ),
    ("tasks", "duration_s", [1, 2, 3, 4, INF, 6], "non-finite number", "tasks row 4"),
    ("stage_edges", "parent", [9], "row out of range", "stage_edges row 0: parent is 9"),
    ("stage_edges", "child", [-1], "negative number", "stage_edges row 0: child is -1"),
    ("stage_edges", "child", [0], "self edge", "stage_edges row 0: parent and child are both 0"),
    ("stage_edges", "child", [2], "edge between jobs", "stage_edges row 0: .*job 0 to stage 2 of"),
    ("stage_edges", "kind", ["soft"], "unknown kind", "stage_edges row 0: kind is 'soft'"),
    ("job_edges", "upstream", [3], "row out of range", "job_edges row 0: upstream is 3"),
    ("job_edges", "upstream", [2], "self edge", "job_edges row 0"),
    ("job_edges", "kind", ["barrier"], "unknown kind", "valid: hard, soft"),
    ("downloads", "job", [0, 3], "row out of range", "downloads row 1"),
    ("downloads", "time_s", [1.0, -1.0], "negative number", "downloads row 0"),
    ("downloads", "n", [1, -1], "negative number", "downloads"),
]


@pytest.mark.parametrize(("table", "column", "values", "rule", "text"), BROKEN)
def test_a_broken_rule_is_named_with_its_row(table, column, values, rule, text):
    with pytest.raises(sim.InputError, match=text) as caught:
        build(**{table: {column: values}})
    assert caught.value.rule == rule


def test_the_small_workload_breaks_no_rule():
    assert build().n_tasks == 6


def test_durations_of_stages_are_held_to_the_same_rules():
    for value, rule in ((-1.0, "negative number"), (NAN, "non-finite number")):
        with pytest.raises(sim.InputError, match=f"stages row 1: duration_s is {value}") as caught:
            sim.Workload.from_tables(
                jobs={"job_id": ["a"], "submit_s": [0.0]},
                stages={"job": [0, 0], "n_tasks": [1, 1], "duration_s": [1.0, value]},
            )
        assert caught.value.rule == rule


def test_no_jobs_are_an_empty_workload():
    tables = {name: {k: v[:0] for k, v in columns.items()} for name, columns in small().items()}
    with pytest.raises(sim.InputError) as caught:
        sim.Workload.from_tables(**tables)
    assert caught.value.rule == "empty workload"


def test_an_edge_twice():
    edges = {"parent": [0, 0], "child": [1, 1], "kind": ["barrier", "one_to_one"]}
    with pytest.raises(sim.InputError, match="stage_edges row 1: the edge 0 to 1") as caught:
        build(stage_edges=edges)
    assert caught.value.rule == "duplicate edge"


@pytest.mark.parametrize("quantum", [0.0, -1.0, NAN, INF])
def test_a_wrong_quantum(quantum):
    with pytest.raises(sim.InputError, match="quantum of cpu") as caught:
        sim.Workload.from_tables(**small(), meta={"quantum": {"cpu": quantum}})
    assert caught.value.rule == "wrong quantum"


def test_a_cycle_names_its_stages():
    jobs = [
        {"submit_s": 0, "stages": [{"durations_s": [1]}]},
        {
            "submit_s": 1,
            "stages": [
                {"name": "a", "durations_s": [1], "parents": ["c"]},
                {"name": "b", "durations_s": [1], "parents": ["a"]},
                {"name": "c", "durations_s": [1], "parents": ["b"]},
                {"name": "d", "durations_s": [1], "parents": ["c"]},
            ],
        },
    ]
    with pytest.raises(sim.InputError, match=r"stage_edges row .*cycle 1 -> 2 -> 3 -> 1") as caught:
        sim.Workload.from_jobs(jobs)
    assert caught.value.rule == "cycle"


def test_jobs_may_wait_for_each_other_only_softly():
    both = {"upstream": [0, 2], "downstream": [2, 0]}
    with pytest.raises(sim.InputError, match=r"job_edges row .*cycle 0 -> 2 -> 0"):
        build(job_edges=both | {"kind": ["hard", "hard"]})
    w = build(job_edges=both | {"kind": ["hard", "soft"]})
    assert w.job_edges.num_rows == 2


def test_rules_can_be_left_unchecked():
    w = sim.Workload.from_tables(
        jobs={"job_id": ["a", "a"], "submit_s": [1.0, 0.0]},
        stages={"job": [0, 1], "n_tasks": [1, 1], "duration_s": [1.0, 1.0]},
        validate=False,
    )
    with pytest.raises(sim.InputError, match="duplicate id"):
        validate(w)


@given(st.integers(0, len(BROKEN) - 1), st.integers(0, 10))
@settings(max_examples=20, deadline=None)
def test_a_broken_row_is_found_among_good_ones(index, n_good):
    table, column, values, rule, _ = BROKEN[index]
    tables = small()
    tables[table][column] = values
    shift = {"jobs": 3, "stages": 4}
    good = small()
    for _ in range(n_good):
        good = _joined(good, small(), shift)
    with pytest.raises(sim.InputError) as caught:
        sim.Workload.from_tables(**_joined(good, tables, shift))
    expected = {"row out of range", "negative number"} if rule in ("row out of range",) else {rule}
    assert caught.value.rule in expected


def _joined(good, bad, shift):
    """Put the tables of `bad` after those of `good`, submitted later, under other names."""
    n_jobs, n_stages = len(good["jobs"]["job_id"]), len(good["stages"]["job"])
    later = 10.0 * (n_jobs // shift["jobs"])
    move = {
        ("jobs", "submit_s"): lambda v: v + later,
        ("jobs", "job_id"): lambda v: f"{v}{n_jobs}",
        ("stages", "job"): lambda v: v + n_jobs if v >= 0 else v,
        ("tasks", "stage"): lambda v: v + n_stages,
        ("stage_edges", "parent"): lambda v: v + n_stages,
        ("stage_edges", "child"): lambda v: v + n_stages if v >= 0 else v,
        ("job_edges", "upstream"): lambda v: v + n_jobs,
        ("job_edges", "downstream"): lambda v: v + n_jobs,
        ("downloads", "job"): lambda v: v + n_jobs,
    }
    out = {}
    for table, columns in good.items():
        out[table] = {}
        for column, values in columns.items():
            change = move.get((table, column), lambda v: v)
            if (table, column) == ("jobs", "submit_s"):
                added = [v if v < 0 else change(v) for v in bad[table][column]]
            else:
                added = [change(v) for v in bad[table][column]]
            out[table][column] = [*values, *added]
        for column in set(bad[table]) - set(columns):
            filler = {"priority": 0.0}[column]
            out[table][column] = [filler] * len(next(iter(columns.values()))) + bad[table][column]
    return out


def test_large_numbers_of_rows_are_checked_fast():
    n = 300_000
    parent = np.arange(n - 1)
    w = sim.Workload.from_tables(
        jobs={"job_id": ["a"], "submit_s": [0.0]},
        stages={"job": np.zeros(n, int), "n_tasks": np.ones(n, int), "duration_s": np.ones(n)},
        stage_edges={"parent": parent[::-1] + 1, "child": parent[::-1]},
    )
    assert w.stage_edges.num_rows == n - 1


RELEASES = [
    ("jobs", {"begin_s": [0.0, -1.0, None]}, "negative number", "jobs row 1 .*begin_s is -1"),
    ("jobs", {"after_needs": ["all", "any", "some"]}, "unknown kind", "valid: all, any"),
    ("jobs", {"singleton": [False, True, False]}, "singleton without a name", "row 1 .*job_name"),
    ("jobs", {"singleton": ["x", "y", "z"]}, "wrong type", "singleton"),
    ("job_edges", {"delay_s": [-1.0], "kind": ["after"]}, "negative number", "delay_s is -1"),
    ("job_edges", {"delay_s": [1.0], "kind": ["hard"]}, "delay of an input", "poll_lag_s"),
    ("job_edges", {"kind": ["afterwards"]}, "unknown kind", "valid: .*afterok, afternotok"),
]


@pytest.mark.parametrize(("table", "columns", "rule", "text"), RELEASES)
def test_a_broken_rule_of_releases_is_named(table, columns, rule, text):
    with pytest.raises(sim.InputError, match=text) as caught:
        build(**{table: columns})
    assert caught.value.rule == rule


def test_dependencies_in_a_circle_are_refused():
    circle = {"upstream": [0, 2], "downstream": [2, 0], "kind": ["after", "afterany"]}
    with pytest.raises(sim.InputError, match="cycle 0 -> 2 -> 0"):
        build(job_edges=circle)
