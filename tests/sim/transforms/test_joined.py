"""Transform named_dags: DAGs of jobs with the same name and user."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import sim
from sim.transforms import named_dags


def named(n: int = 200) -> sim.Workload:
    return sim.Workload.from_jobs(
        [
            {
                "job_id": f"j{i}",
                "submit_s": 1.0 * i,
                "user": f"u{i % 2}",
                "job_name": f"n{i % 7}",
                "application": f"a{i}",
                "stages": [{"durations_s": [1.0 * i] * (1 + i % 3)}],
            }
            for i in range(n)
        ]
    )


def test_stages_are_jobs_of_one_name_and_user_in_order():
    w = named_dags(named(), jobs=30, seed=4)
    assert w.n_jobs == 30
    sizes = np.diff(w.columns.job_stage0)
    assert set(sizes) == {2, 3, 4, 5}
    origin = [int(name[1:]) for name in w.stages["application"].to_pylist()]
    assert w.columns.stage_max_s.tolist() == origin
    assert w.stages["n_tasks"].to_pylist() == [1 + i % 3 for i in origin]
    for job, (first, end) in enumerate(pairwise(w.columns.job_stage0)):
        rows = origin[first:end]
        assert rows == sorted(rows)
        assert len({(i % 2, i % 7) for i in rows}) == 1
        assert w.jobs["submit_s"][job].as_py() == rows[0]
        assert w.jobs["job_name"][job].as_py() == f"n{rows[0] % 7}"
    assert len(set(origin)) == len(origin)


def test_every_stage_but_the_first_has_one_parent_before_it():
    w = named_dags(named(), jobs=30)
    edges = w.stage_edges
    parent, child = edges["parent"].to_numpy(), edges["child"].to_numpy()
    assert (parent < child).all()
    job = w.stages["job"].to_numpy()
    assert (job[parent] == job[child]).all()
    roots = np.setdiff1d(np.arange(w.n_stages), child)
    assert roots.tolist() == w.columns.job_stage0[:-1].tolist()
    assert len(np.unique(child)) == len(child)
    assert len(np.unique(parent)) < len(parent)  # some have two children


@pytest.mark.parametrize(
    ("jobs", "words"), [(0, "whole number"), (200, "or a larger workload")], ids=["none", "many"]
)
def test_an_impossible_number_of_dags_is_an_error(jobs, words):
    with pytest.raises(sim.InputError, match=words):
        named_dags(named(), jobs=jobs)


def test_jobs_of_several_stages_or_without_names_are_errors():
    with pytest.raises(sim.InputError, match="jobs of one stage"):
        named_dags(named_dags(named(), jobs=30), jobs=2)
    plain = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": [{"durations_s": [1.0]}]}])
    with pytest.raises(sim.InputError, match="no column job_name"):
        named_dags(plain, jobs=1)
