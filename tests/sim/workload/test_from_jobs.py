"""Workloads written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from tests.examples import examples

EXAMPLE = {
    "job_id": "a",
    "submit_s": 0.0,
    "template": "t",
    "user": "u",
    "queue": "q",
    "priority": 1,
    "deadline_s": 60.0,
    "stages": [
        {"name": "map", "durations_s": [3.0, 4.0], "demand": {"cpu": 1, "mem": 2}},
        {"name": "reduce", "durations_s": [5.0], "parents": ["map"]},
    ],
}


def test_a_time_limit_of_zero_is_none():
    stages = [{"durations_s": [1.0]}]
    limits = [0, None, 0.0, 5, float("nan")]
    w = sim.Workload.from_jobs({"submit_s": 0, "requested_s": x, "stages": stages} for x in limits)
    assert w.jobs["requested_s"].to_pylist() == [None, None, None, 5, None]
    again = sim.Workload.from_tables(
        {"job_id": ["a", "b"], "submit_s": [0.0, 0.0], "requested_s": [0, 7]},
        {"job": [0, 1], "n_tasks": [1, 1], "duration_s": [0.0, 1.0]},
    )
    assert again.jobs["requested_s"].to_pylist() == [None, 7]
    assert again.tasks["duration_s"].to_pylist() == [0, 1]


def test_the_example_of_the_contract():
    w = sim.Workload.from_jobs([EXAMPLE])
    assert w.jobs.to_pylist() == [
        {
            "job_id": "a",
            "submit_s": 0.0,
            "template": "t",
            "user": "u",
            "queue": "q",
            "priority": 1.0,
            "deadline_s": 60.0,
            "min_tasks": 0,
            "input_mode": "none",
        }
    ]
    assert w.stages.to_pylist() == [
        {"job": 0, "name": "map", "n_tasks": 2, "demand_cpu": 1.0, "demand_mem": 2.0},
        {"job": 0, "name": "reduce", "n_tasks": 1, "demand_cpu": 1.0, "demand_mem": 0.0},
    ]
    assert w.tasks.to_pydict() == {"stage": [0, 0, 1], "duration_s": [3.0, 4.0, 5.0]}
    assert w.stage_edges.to_pylist() == [{"parent": 0, "child": 1, "kind": "barrier"}]


def test_only_submission_and_stages_are_required():
    w = sim.Workload.from_jobs(
        [
            {"submit_s": 5, "stages": [{"durations_s": [1]}]},
            {"submit_s": 0, "stages": [{"durations_s": (2,)}, {"durations_s": [3]}]},
            {"submit_s": 5, "stages": [{"durations_s": [4]}]},
        ]
    )
    assert w.jobs["job_id"].to_pylist() == ["job-1", "job-0", "job-2"]
    assert w.jobs["submit_s"].to_pylist() == [0, 5, 5]
    assert w.stages["name"].to_pylist() == ["stage-0", "stage-1", "stage-0", "stage-0"]
    assert w.tasks["duration_s"].to_pylist() == [2, 3, 1, 4]
    assert w.resources == ("cpu",)


def test_a_demand_of_nothing_is_nothing():
    w = sim.Workload.from_jobs([{"submit_s": 0, "stages": [{"durations_s": [1], "demand": {}}]}])
    assert w.columns.stage_demand_f.tolist() == [[0.0]]


def test_parents_may_state_the_kind_of_edge():
    stages = [
        {"name": "a", "durations_s": [1, 2]},
        {"name": "b", "durations_s": [1, 2], "parents": {"a": "one_to_one"}},
        {"name": "c", "durations_s": [1], "parents": {"a": "barrier", "b": "one_to_one"}},
    ]
    w = sim.Workload.from_jobs([{"submit_s": 0, "stages": stages}])
    assert w.columns.edge_kind.tolist() == [1, 0, 1]
    assert w.columns.edge_child.tolist() == [1, 2, 2]


def test_a_parent_may_be_written_below_its_child():
    stages = [
        {"name": "late", "durations_s": [1], "parents": ["early"]},
        {"name": "early", "durations_s": [1]},
    ]
    w = sim.Workload.from_jobs([{"submit_s": 0, "stages": stages}])
    assert w.stage_edges.to_pylist() == [{"parent": 1, "child": 0, "kind": "barrier"}]


def _job(**changes):
    return {"submit_s": 0.0, "stages": [{"name": "s", "durations_s": [1.0]}], **changes}


def _stage(**changes):
    return _job(stages=[{"name": "s", "durations_s": [1.0], **changes}])


@pytest.mark.parametrize(
    ("job", "rule", "text"),
    [
        (_job(submit=1), "unknown key", "did you mean 'submit_s'"),
        (_stage(duration_s=[1]), "unknown key", "did you mean 'durations_s'"),
        ({"stages": [{"durations_s": [1]}]}, "missing key", "no 'submit_s'"),
        ({"submit_s": 0}, "missing key", "no 'stages'"),
        (_job(stages=[{"name": "s"}]), "missing key", "no 'durations_s'"),
        (_job(stages=[]), "job without stages", "no stages"),
        (_stage(durations_s=[]), "no tasks", "no tasks"),
        (_stage(durations_s="12"), "wrong type", "list of numbers"),
        (_stage(durations_s=3.0), "wrong type", "list of numbers"),
        (_stage(durations_s=["x"]), "wrong type", "'x'"),
        (_stage(durations_s=[None]), "wrong type", "None"),
        (_stage(durations_s=[float("nan")]), "non-finite number", "nan"),
        (_stage(durations_s=[-1]), "negative number", "-1"),
        (_stage(demand={"cpu": -1}), "negative number", "demand_cpu is -1"),
        (_stage(demand={"cpu": "2"}), "wrong type", "demand for cpu"),
        (_stage(demand=2), "wrong type", "demand must be a dict"),
        (_stage(parents=["t"]), "missing parent", "the job has no stage 't'"),
        (_stage(parents="s"), "wrong type", "list of names"),
        (_stage(parents=["s"]), "self edge", "both 0"),
        (_stage(parents={"s": "one_to_on"}), "unknown kind", "did you mean 'one_to_one'"),
        (_job(submit_s=None), "wrong type", "submit_s"),
        (_job(submit_s="0"), "wrong type", "submit_s"),
        (_job(submit_s=float("inf")), "non-finite number", "submit_s is inf"),
        (_job(submit_s=-1), "negative number", "submit_s is -1"),
        (_job(priority=float("nan")), "non-finite number", "priority"),
        (_job(deadline_s=-2.0), "negative number", "deadline_s"),
        (_job(min_tasks=2), "gang larger than job", "1 tasks in all"),
        (_job(input_mode="pol"), "unknown kind", "input_mode is 'pol'"),
        ("job", "wrong type", "must be a dict"),
    ],
)
def test_a_mistake_is_named(job, rule, text):
    with pytest.raises(sim.InputError, match=text) as caught:
        sim.Workload.from_jobs([job])
    assert caught.value.rule == rule


def test_names_within_a_job_are_unique():
    stages = [{"name": "s", "durations_s": [1]}, {"name": "s", "durations_s": [1]}]
    with pytest.raises(sim.InputError, match="taken by stage 0"):
        sim.Workload.from_jobs([{"submit_s": 0, "stages": stages}])


def test_no_jobs_are_no_workload():
    with pytest.raises(sim.InputError, match="at least one job"):
        sim.Workload.from_jobs([])


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.lists(st.lists(st.floats(0, 1e6), min_size=1, max_size=4), min_size=1, max_size=4),
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=examples(120), deadline=None)
def test_tables_hold_the_dicts_values(jobs):
    w = sim.Workload.from_jobs(
        {"submit_s": t, "stages": [{"durations_s": d} for d in stages]} for t, stages in jobs
    )
    in_order = sorted(range(len(jobs)), key=lambda i: jobs[i][0])
    assert w.jobs["job_id"].to_pylist() == [f"job-{i}" for i in in_order]
    flat = [d for i in in_order for stage in jobs[i][1] for d in stage]
    assert w.columns.task_duration.tolist() == flat
    assert w.stages["n_tasks"].to_pylist() == [len(s) for i in in_order for s in jobs[i][1]]
    assert w.stages["job"].to_pylist() == [k for k, i in enumerate(in_order) for _ in jobs[i][1]]
