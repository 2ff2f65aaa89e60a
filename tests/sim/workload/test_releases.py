"""Begin times, dependencies and singletons as columns of a workload."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim import transforms
from sim.workload.schema import JOB_EDGE_KINDS


def job(name, submit_s=0.0, **more):
    return {"job_id": name, "submit_s": submit_s, "stages": [{"durations_s": [1.0]}], **more}


NAMED = {"user": "u", "job_name": "x"}
JOBS = [
    job("a", 1.0, **NAMED),
    job("b", 2.0, after={"afterok": ["a"], "after": {"d": 60}}, after_needs="any", inputs=["c"]),
    job("c", 3.0, begin_s=5.0),
    job("d", 4.0, singleton=True, **NAMED),
    job("e", 4.0, user="u", job_name="y"),
]


def test_from_jobs():
    w = sim.Workload.from_jobs(JOBS)
    assert w.job_edges.to_pylist() == [
        {"upstream": 0, "downstream": 1, "kind": "afterok", "delay_s": 0.0},
        {"upstream": 2, "downstream": 1, "kind": "hard", "delay_s": 0.0},
        {"upstream": 3, "downstream": 1, "kind": "after", "delay_s": 60.0},
    ]
    releases = w.columns.releases
    assert releases.exist
    assert releases.begin_s.tolist() == [0.0, 0.0, 5.0, 0.0, 0.0]
    assert releases.needs_any.tolist() == [0, 1, 0, 0, 0]
    assert [n.tolist() for n in releases.n_needed] == [[0, 1, 0, 1, 0], [0, 2, 0, 1, 0]]
    first, downstream, kind, delay_s = releases.edges
    assert first.tolist() == [0, 1, 1, 2, 3, 3]
    assert downstream.tolist() == [1, 1, 1]
    assert [JOB_EDGE_KINDS[k] for k in kind] == ["afterok", "hard", "after"]
    assert delay_s.tolist() == [0.0, 0.0, 60.0]
    group, group0, jobs = releases.namesakes
    assert group.tolist() == [0, -1, -1, 0, -1]
    assert (group0.tolist(), jobs.tolist()) == ([0, 2], [0, 3])
    assert w.columns.input_reader.tolist() == [1]  # hard edges alone


def test_a_workload_without_them_has_no_such_columns():
    w = sim.Workload.from_jobs([job("a"), job("b", inputs=["a"])])
    assert not w.columns.releases.exist
    assert "delay_s" not in w.job_edges.column_names
    assert not {"begin_s", "after_needs", "singleton"} & set(w.jobs.column_names)


def test_written_and_read_again(tmp_path):
    w = sim.Workload.from_jobs(JOBS)
    w.write(tmp_path)
    again = sim.Workload.read(tmp_path)
    assert again.digest == w.digest
    np.testing.assert_array_equal(again.columns.releases.is_singleton, [0, 0, 0, 1, 0])


def test_a_begin_time_moves_with_its_submission():
    w = sim.Workload.from_jobs(JOBS)

    def begins(other):
        return other.jobs["begin_s"].to_pylist()

    assert begins(w.counted_from(1.0)) == [None, None, 4.0, None, None]
    assert begins(w.slice_time(3.0, 9.0)) == [2.0, None, None]
    twice = w.scale_load(w.mean_load(sim.Cluster.slots(1))["slot"] / 2, sim.Cluster.slots(1))
    assert twice.jobs["submit_s"].to_pylist()[2] == 5.0
    assert begins(twice)[2] == 7.0
    assert begins(transforms.squeeze(w, span_s=1.5))[2] == 4.0


@pytest.mark.parametrize(
    ("after", "rule", "text"),
    [
        (["a"], "wrong type", "must be a dict of kind to jobs"),
        ({"afterwards": ["a"]}, "unknown kind", "after"),
        ({"after": "a"}, "wrong type", "list of names"),
        ({"after": {"a": "soon"}}, "wrong type", "must be a number"),
        ({"after": ["z"]}, "missing input", "there is no job 'z'"),
    ],
)
def test_dependencies_that_can_not_be_are_named(after, rule, text):
    with pytest.raises(sim.InputError, match=text) as caught:
        sim.Workload.from_jobs([job("a"), job("b", after=after)])
    assert caught.value.rule == rule
