"""Load: a sample of the jobs, or copies of them with new dependencies."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim.base.errors import InputError
from sim.dags import Graphs
from sim.transforms.load import change_load

SAMPLE = "alibaba2018/batch_task_6600_jobs.csv.gz"


@pytest.fixture(scope="module")
def plain() -> sim.Workload:
    return sim.synthesize("alibaba2018", jobs=400, seed=6)


def test_a_lower_load_samples_the_jobs(plain):
    synthesized = change_load(plain, 0.25, seed=1)
    assert synthesized.n_jobs == 100
    ids = plain.jobs["job_id"].to_pylist()
    selected = [ids.index(name) for name in synthesized.jobs["job_id"].to_pylist()]
    assert selected == sorted(selected)
    assert synthesized.digest == plain.take(selected).digest
    assert synthesized.meta["transforms"] == [{"load": 0.25}]
    other = change_load(plain, 0.25, seed=2).jobs["job_id"].to_pylist()
    assert other != synthesized.jobs["job_id"].to_pylist()


def test_a_higher_load_keeps_every_job_and_adds_copies_of_each(plain):
    synthesized = change_load(plain, 2.5, seed=1)
    assert synthesized.n_jobs == 1_000
    ids = np.array(synthesized.jobs["job_id"].to_pylist())
    origin = np.array([name.split("+")[0] for name in ids])
    assert len(set(ids)) == 1_000
    _, times = np.unique(origin, return_counts=True)
    assert set(times.tolist()) == {2, 3}
    selected = np.flatnonzero(ids == origin)
    assert synthesized.take(selected).digest == plain.digest


def test_copies_keep_their_stages_and_get_other_dependencies(plain):
    synthesized = change_load(plain, 2.0, seed=1)
    ids = synthesized.jobs["job_id"].to_pylist()
    rows = {name: row for row, name in enumerate(ids)}
    graphs = Graphs.from_workload(synthesized)
    first = graphs.job_stage0
    columns = synthesized.stages.select(["name", "n_tasks", "demand_cpu", "demand_mem"])
    changed = 0
    for name, row in rows.items():
        if not name.endswith("+1"):
            continue
        original_row = rows[name.removesuffix("+1")]
        n = graphs.job_n_stages[row]
        assert columns.slice(first[row], n).equals(columns.slice(first[original_row], n))
        durations = synthesized.stage_duration_s
        assert (
            durations[first[row] : first[row + 1]] == durations[first[original_row] :][:n]
        ).all()
        copied, second = graphs.take([row]), graphs.take([original_row])
        changed += copied.edge_child.tolist() != second.edge_child.tolist()
    assert changed > 50


def test_copies_are_submitted_between_their_job_and_the_next(plain):
    synthesized = change_load(plain, 3.0, seed=4)
    submit = synthesized.jobs["submit_s"].to_numpy()
    submit_by_id = dict(zip(synthesized.jobs["job_id"].to_pylist(), submit.tolist(), strict=True))
    before = plain.jobs["submit_s"].to_pylist()
    after = [*before[1:], before[-1]]
    ids = plain.jobs["job_id"].to_pylist()
    for name, low, high in zip(ids, before, after, strict=True):
        assert low <= submit_by_id[f"{name}+1"] <= high
        assert low <= submit_by_id[f"{name}+2"] <= high


def test_edges_of_every_job_stay_within_it_and_run(plain):
    from policies import build

    synthesized = change_load(plain.take(np.arange(60)), 1.5)
    result = sim.simulate(synthesized, sim.Cluster.slots(4_000), build("fifo"))
    assert set(result.jobs["outcome"].to_pylist()) == {"done"}


def test_copies_have_tasks_edge_kinds_and_downloads():
    stages = [
        {"name": "a", "durations_s": [1.0, 2.0]},
        {"name": "b", "durations_s": [3.0, 4.0], "parents": ["a"]},
    ]
    plain = sim.Workload.from_jobs(
        [{"job_id": name, "submit_s": t, "stages": stages} for name, t in (("x", 0.0), ("y", 5.0))]
    )
    plain = sim.Workload.from_tables(
        jobs=plain.jobs,
        stages=plain.stages,
        tasks=plain.tasks,
        stage_edges={"parent": [0, 2], "child": [1, 3], "kind": ["one_to_one", "barrier"]},
        job_edges={"upstream": [0], "downstream": [1], "kind": ["hard"]},
        downloads={"job": [1], "time_s": [9.0], "n": [2]},
    )
    synthesized = change_load(plain, 2.0, seed=3)
    ids = synthesized.jobs["job_id"].to_pylist()
    assert sorted(ids) == ["x", "x+1", "y", "y+1"]
    assert synthesized.job_edges["upstream"].to_pylist() == [ids.index("x")]
    assert synthesized.job_edges["downstream"].to_pylist() == [ids.index("y")]
    assert synthesized.downloads["job"].to_pylist() == [ids.index("y")]
    assert synthesized.n_tasks == 16
    assert synthesized.take([ids.index("x"), ids.index("y")]).digest == plain.digest


def test_it_works_on_the_real_sample(shared_traces):
    real = sim.read_trace("alibaba2018", shared_traces / SAMPLE, on_bad_row="skip")
    synthesized = change_load(real.take(np.arange(500)), 1.4)
    assert synthesized.n_jobs == 700
    assert synthesized.n_tasks > real.take(np.arange(500)).n_tasks


def test_synthesized_jobs_arrive_at_the_given_load():
    rate = []
    for load in (0.5, 1.0, 2.0):
        synthesized = sim.synthesize("alibaba2018", jobs=2_000, seed=3, load=load)
        assert synthesized.n_jobs == 2_000
        rate.append(synthesized.n_jobs / synthesized.jobs["submit_s"].to_numpy()[-1])
    assert rate[0] == pytest.approx(rate[1] / 2, rel=0.15)
    assert rate[2] == pytest.approx(rate[1] * 2, rel=0.15)


@pytest.mark.parametrize("load", [0, -1, float("nan"), float("inf"), "much", True])
def test_wrong_loads_are_errors(plain, load):
    with pytest.raises(InputError, match="load must be a number above 0"):
        change_load(plain, load)
    with pytest.raises(InputError, match="load must be a number above 0"):
        sim.synthesize("alibaba2018", jobs=5, load=load)


def groups(n=12):
    return sim.Workload.from_jobs(
        [
            {
                "job_id": f"j{i}", "submit_s": 10.0 * i, "user": f"u{i % 3}", "queue": "batch",
                "account": "ml" if i % 2 else "bio", "partition": "batch|long",
                "array": "t" if i in (3, 4) else "", "throttle": 1 if i in (3, 4) else 0,
                "stages": [{"durations_s": [1.0]}],
            }
            for i in range(n)
        ]
    )  # fmt: skip


def test_the_load_of_a_group_alone():
    w = groups()
    more = change_load(w, 2.0, seed=3, rewire=False, where={"account": "ml"})
    accounts = more.jobs["account"].to_pylist()
    assert (accounts.count("ml"), accounts.count("bio")) == (12, 6)
    assert more.meta["transforms"] == [{"load": 2.0, "where": {"account": "ml"}, "seed": 3}]
    fewer = change_load(w, 0.5, where={"account": ["ml"], "user": ["u0", "u1"]})
    assert fewer.n_jobs == 10
    dropped = {*w.jobs["job_id"].to_pylist()} - {*fewer.jobs["job_id"].to_pylist()}
    assert all(int(name[1:]) % 2 and int(name[1:]) % 3 < 2 for name in dropped)
    everybody = change_load(w, 2.0, seed=3, rewire=False, where={"partition": "batch"})
    assert everybody.n_jobs == 24
    with pytest.raises(InputError, match="unknown account 'mi'; did you mean 'ml'"):
        change_load(w, 2.0, where={"account": "mi"})
    with pytest.raises(InputError, match="unknown column of jobs 'colour'"):
        change_load(w, 2.0, where={"colour": "red"})
    with pytest.raises(InputError, match="no job has all of"):
        change_load(groups(3), 2.0, where={"account": "ml", "user": "u0"})


def test_copies_of_an_array_are_an_array_of_their_own():
    more = change_load(groups(), 3.0, seed=0, rewire=False)
    arrays = dict(zip(more.jobs["job_id"].to_pylist(), more.jobs["array"].to_pylist(), strict=True))
    assert {name: array for name, array in arrays.items() if array} == {
        "j3": "t", "j4": "t", "j3+1": "t+1", "j4+1": "t+1", "j3+2": "t+2", "j4+2": "t+2",
    }  # fmt: skip


def test_copies_depend_on_copies():
    waits = {
        3: {"after": {"afterok": ["j0"]}}, 5: {"after": {"afterany": {"j1": 4.0}}},
        6: {"inputs": {"j1": "hard"}},
    }  # fmt: skip
    w = sim.Workload.from_jobs(
        [
            {"job_id": f"j{i}", "submit_s": 10.0 * i, "user": f"u{i % 2}",
             "stages": [{"durations_s": [1.0]}], **waits.get(i, {})}
            for i in range(12)
        ]
    )  # fmt: skip
    ids = (more := change_load(w, 3.0, seed=1, rewire=False)).jobs["job_id"].to_pylist()
    edges = [
        (ids[e["upstream"]], ids[e["downstream"]], e["kind"]) for e in more.job_edges.to_pylist()
    ]
    assert sorted(edges) == [
        ("j0", "j3", "afterok"), ("j0+1", "j3+1", "afterok"), ("j0+2", "j3+2", "afterok"),
        ("j1", "j5", "afterany"), ("j1", "j6", "hard"),
        ("j1+1", "j5+1", "afterany"), ("j1+2", "j5+2", "afterany"),
    ]  # fmt: skip
    only = change_load(w, 2.0, seed=1, rewire=False, where={"user": "u1"})  # not j0
    ids = only.jobs["job_id"].to_pylist()
    edges = [(ids[e["upstream"]], ids[e["downstream"]]) for e in only.job_edges.to_pylist()]
    assert ("j0", "j3+1") in edges
