"""Selection of jobs, a time window, another load."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sim
from tests.examples import examples
from tests.sim.workload.tables import build, expanded, table_workloads


def readable(w: sim.Workload) -> list[dict]:
    """Return every job with its stages, edges and downloads, in plain values."""
    stages, tasks = w.stages.to_pylist(), w.tasks.to_pandas()
    edges, ids = w.stage_edges.to_pylist(), w.jobs["job_id"].to_pylist()
    first = w.columns.job_stage0.tolist()
    out = []
    for j, job in enumerate(w.jobs.to_pylist()):
        mine = range(first[j], first[j + 1])
        job["stages"] = [
            {k: v for k, v in stages[g].items() if k != "job"}
            | {"durations_s": tasks.duration_s[tasks.stage == g].tolist()}
            for g in mine
        ]
        job["edges"] = sorted(
            (e["parent"] - first[j], e["child"] - first[j], e["kind"])
            for e in edges
            if e["parent"] in mine
        )
        job["inputs"] = sorted(
            (ids[e["upstream"]], e["kind"]) for e in w.job_edges.to_pylist() if e["downstream"] == j
        )
        job["downloads"] = sorted(
            (d["time_s"], d["n"]) for d in w.downloads.to_pylist() if d["job"] == j
        )
        out.append(job)
    return out


@given(table_workloads(), st.data())
@settings(max_examples=examples(120), deadline=None)
def test_taking_jobs_keeps_them_as_they_are(w, data):
    rows = data.draw(st.lists(st.integers(0, w.n_jobs - 1), min_size=1, unique=True))
    taken = w.take(rows)
    result = set(w.jobs["job_id"].take(sorted(rows)).to_pylist())
    expected = [job for job in readable(w) if job["job_id"] in result]
    for job in expected:
        job["inputs"] = [(i, kind) for i, kind in job["inputs"] if i in result]
    assert readable(taken) == expected
    mask = np.zeros(w.n_jobs, dtype=bool)
    mask[rows] = True
    assert w.take(mask).digest == taken.digest == expanded(w).take(rows).digest
    assert dict(taken.meta) == dict(w.meta)
    # what comes out holds every rule, and is what a fresh build of the same tables gives
    assert expanded(taken).digest == taken.digest


@given(table_workloads(), st.floats(0, 900), st.floats(1, 900))
@settings(max_examples=examples(120), deadline=None)
def test_a_slice_of_time_is_its_jobs_moved_to_the_front(w, begin, length):
    submit = w.columns.job_submit
    inside = (submit >= begin) & (submit < begin + length)
    if not inside.any():
        with pytest.raises(sim.InputError, match="no job is submitted"):
            w.slice_time(begin, begin + length)
        return
    part = w.slice_time(begin, begin + length)
    taken = w.take(inside)
    np.testing.assert_array_equal(part.columns.job_submit, taken.columns.job_submit - begin)
    for mine, whole in zip(readable(part), readable(taken), strict=True):
        times = sorted(max(t - begin, 0.0) for t, _ in whole.pop("downloads"))
        assert [t for t, _ in mine.pop("downloads")] == times
        assert mine.pop("submit_s") == whole.pop("submit_s") - begin
        assert mine == whole
    assert expanded(part).digest == part.digest


def test_a_window_takes_its_begin_and_leaves_its_end():
    assert build().slice_time(1.0, 5.0).jobs["job_id"].to_pylist() == ["b"]
    assert build().slice_time(0.0, float("inf")).digest == build().digest


@pytest.mark.parametrize(
    ("begin", "end"), [(3.0, 3.0), (4.0, 2.0), (float("nan"), 2.0), (0.0, float("nan"))]
)
def test_an_empty_window_is_an_error(begin, end):
    with pytest.raises(sim.InputError, match="slice") as caught:
        build().slice_time(begin, end)
    assert caught.value.rule == "empty slice"


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        ([], "empty workload"),
        ([False] * 3, "empty workload"),
        ([True] * 2, "row out of range"),
        ([3], "row out of range"),
        ([-1], "row out of range"),
        ([1, 1], "duplicate id"),
        ([0.5], "wrong type"),
        ([[0, 1]], "wrong type"),
    ],
)
def test_rows_that_are_none(rows, rule):
    with pytest.raises(sim.InputError) as caught:
        build().take(rows)
    assert caught.value.rule == rule


def test_the_mean_load_by_hand():
    # small(): 7 s of cpu 1, 5 s of cpu 2, 2 s of cpu 1.5 = 20 cpu s; mem 5×4 + 2×1 = 22; in 5 s
    w = build()
    assert w.mean_load(sim.Cluster.machines(2, cpu=4, mem=11)) == {
        "cpu": pytest.approx(20 / (5 * 8)),
        "mem": pytest.approx(22 / (5 * 22)),
    }
    assert w.mean_load(sim.Cluster.slots(7)) == {"slot": pytest.approx(14 / (5 * 7))}
    assert w.mean_load(sim.Cluster.machines(1, cpu=1, disk=1, mem=1))["disk"] == 0
    with pytest.raises(sim.InputError, match="mem"):
        w.mean_load(sim.Cluster.machines(1, cpu=4))


def test_jobs_of_one_instant_are_offered_over_their_longest_path():
    stages = [{"name": "a", "durations_s": [2, 3]}, {"durations_s": [5], "parents": ["a"]}]
    w = sim.Workload.from_jobs([{"submit_s": 4, "stages": stages}] * 2)
    assert w.mean_load(sim.Cluster.slots(5)) == {"slot": pytest.approx(20 / (8 * 5))}
    with pytest.raises(sim.InputError, match="one instant"):
        w.scale_load(0.5, sim.Cluster.slots(5))


@given(table_workloads(), st.floats(0.01, 20), st.booleans())
@settings(max_examples=examples(120), deadline=None)
def test_scaled_arrivals_offer_the_target_load(w, load, slots):
    cluster = sim.Cluster.slots(3) if slots else sim.Cluster.machines(2, cpu=4, gpu=2)
    submit = w.columns.job_submit
    if submit[0] == submit[-1] or max(w.mean_load(cluster).values()) == 0:
        with pytest.raises(sim.InputError):
            w.scale_load(load, cluster)
        return
    scaled = w.scale_load(load, cluster)
    assert max(scaled.mean_load(cluster).values()) == pytest.approx(load, rel=1e-9)
    new = scaled.columns.job_submit
    assert new[0] == submit[0]
    share = (submit - submit[0]) / (submit[-1] - submit[0])
    np.testing.assert_allclose((new - new[0]) / (new[-1] - new[0]), share, atol=1e-9)
    assert scaled.tasks.equals(w.tasks)
    assert scaled.stages.equals(w.stages)
    factor = (new[-1] - new[0]) / (submit[-1] - submit[0])
    before = w.downloads["time_s"].to_numpy()
    moved = np.maximum(submit[0] + factor * (before - submit[0]), 0)
    np.testing.assert_allclose(scaled.downloads["time_s"].to_numpy(), moved, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("load", [0.0, -1.0, float("nan"), float("inf"), True, "0.8"])
def test_a_load_that_is_none(load):
    with pytest.raises(sim.InputError, match="load must be positive"):
        build().scale_load(load, sim.Cluster.slots(3))


def test_a_cluster_of_the_right_size_offers_its_load():
    from tests.sim.cluster.test_sizing import size_cluster

    w = build(stages={"demand_mem": [0.0] * 4})
    big = sim.Workload.from_jobs(
        {"submit_s": i, "stages": [{"durations_s": [10.0] * 20}]} for i in range(500)
    )
    cluster = size_cluster(big, "slots", load=0.8, tails=True)
    assert big.mean_load(cluster)["slot"] == pytest.approx(0.8, rel=0.01)
    assert max(w.mean_load(size_cluster(w, "slots", load=0.8)).values()) > 0
