"""Expected starts, with a stand-in engine of one node that serves jobs one after the other."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import sim
from sim.base.errors import InputError
from sim.base.random import stream
from sim.evaluators import starts
from sim.evaluators._draws import RunTimes, drawn_workload, instant_of
from sim.transforms.parts import rebuild

CLUSTER = sim.Cluster.mixed([{"count": 1, "cpu": 4, "nodes": "n1"}])


def job(name, submit_s, start_s, end_s, limit_s=100.0, user="u", run_s=None):
    known = end_s - start_s if end_s == end_s and start_s == start_s else limit_s
    return {
        "job_id": name, "submit_s": submit_s, "user": user, "requested_s": limit_s,
        "recorded_start_s": start_s, "recorded_finish_s": end_s,
        "stages": [{"durations_s": [known if run_s is None else run_s]}],
    }  # fmt: skip


def on_node(jobs):
    """Return the workload of jobs that all run on node n1."""
    w = sim.Workload.from_jobs(jobs)
    nodes = pa.array(["n1"] * w.n_stages).dictionary_encode()
    return rebuild(w, None, stages=w.stages.append_column("node_list", nodes))


NAN = float("nan")
PAST = [
    job(f"p{i}", 10.0 * i, 10.0 * i, 10.0 * i + 10 + i) for i in range(10)
]  # shares 0.1 to 0.19
QUEUE = [
    *PAST,
    job("r", 150.0, 150.0, 260.0, limit_s=1000.0),
    job("w1", 160.0, 300.0, 400.0, limit_s=200.0),
    job("w2", 170.0, 500.0, 600.0),
    job("later", 220.0, 700.0, 800.0),
]


def one_after_another(workload, cluster, policy, *, seed, record, state):
    """Simulate one node that runs one job at a time, those that run first."""
    columns = workload.columns
    order = np.lexsort((columns.job_submit, np.isnan(state.placed_s)))
    start, free = np.zeros(workload.n_jobs), 0.0
    for row in order.tolist():
        placed = state.placed_s[row]
        start[row] = placed if placed == placed else max(free, columns.job_submit[row])
        start[row] = start[row] if placed == placed else max(start[row], state.begins_s)
        free = max(free, start[row] + columns.job_work[row])
    return SimpleNamespace(job_start=start)


def expected(at_s, draws=40, jobs=QUEUE, **options):
    workload = on_node(jobs)
    metrics, table = starts.evaluate(
        one_after_another, workload, CLUSTER, None, 0, at_s=at_s, draws=draws, **options
    )
    ids = workload.jobs["job_id"].to_pylist()
    return metrics, {ids[row["job"]]: row for row in table.to_pylist()}


def test_those_that_wait_start_when_what_runs_has_ended():
    metrics, rows = expected(200.0, arrivals=False)
    assert (metrics["jobs_waiting"], metrics["jobs_running"]) == (2, 1)
    assert [*rows] == ["w1", "w2"]
    # r has run for 50 of 1000 s, and past jobs took 10 to 19 % of their limits
    assert 250 <= rows["w1"]["low_s"] < rows["w1"]["median_s"] < rows["w1"]["high_s"] <= 340
    assert rows["w2"]["low_s"] >= rows["w1"]["low_s"] + 20  # w1 runs for 20 to 38 s
    assert rows["w1"]["recorded_start_s"] == 300
    assert metrics["starts_covered"] == 0.5  # w2 was later


def test_jobs_come_as_in_the_past():
    _, alone = expected(200.0, arrivals=False)
    _, rows = expected(200.0)
    assert rows == alone, "they come behind those that wait"
    instant = instant_of(on_node(QUEUE), 200.0)
    assert instant.workload.n_jobs == 13
    more = drawn_workload(instant, np.full(13, NAN), stream(3, "x"))
    assert more.n_jobs == 26
    submit_s = more.columns.job_submit
    assert (submit_s[13:] >= 200).all()
    gaps = np.diff(instant.workload.columns.job_submit)
    assert np.isin(np.round(np.diff(submit_s[13:]), 6), [*gaps, 0.0, 30.0]).all()
    assert sorted(more.columns.job_work[13:]) == sorted(more.columns.job_work[:13])


def test_run_times_are_those_of_the_user_s_past_longer_than_now():
    past = [
        *(job(f"a{i}", i, i, i + 10.0 + i, user="a") for i in range(12)),
        *(job(f"b{i}", i, i, i + 80.0 + i, user="b") for i in range(12)),
    ]  # fmt: skip
    now = [
        job("wa", 130.0, NAN, NAN, limit_s=200.0, user="a"),
        job("wb", 130.0, NAN, NAN, user="b"), job("wc", 130.0, NAN, NAN, user="c"),
        job("ra", 118.0, 118.0, NAN, user="a"), job("rx", 40.0, 40.0, NAN, limit_s=95.0, user="a"),
    ]  # fmt: skip
    instant = instant_of(on_node([*past, *now]), 135.0)
    times = RunTimes(instant)
    ids = instant.workload.jobs["job_id"].to_pylist()
    drawn = np.stack([times.draw(stream(seed, "t")) for seed in range(400)])
    columns = {ids[row]: np.round(drawn[:, k], 6) for k, row in enumerate(times.open_rows.tolist())}
    assert {*columns["wa"].tolist()} == {20.0 + 2 * i for i in range(12)}
    assert {*columns["wb"].tolist()} == {80.0 + i for i in range(12)}
    assert len({*columns["wc"].tolist()}) > 12, "everybody's"
    # ra has run for 17 s: of a's own only four are longer, so everybody's longer ones count
    assert columns["ra"].min() > 17
    assert columns["rx"].tolist() == [96.0] * 400, "no past job took its whole limit"


def test_held_jobs_are_left_out_of_a_queue():
    jobs = [
        j | {"reason": "JobHeldUser" if j["job_id"] == "w2" else "Priority"} for j in QUEUE[:-1]
    ]
    jobs[-2] |= {"recorded_start_s": NAN, "recorded_finish_s": NAN}
    jobs[-1] |= {"recorded_start_s": NAN, "recorded_finish_s": NAN}
    workload = on_node(jobs).with_meta({starts.NOW: 200.0})
    metrics, table = starts.evaluate(one_after_another, workload, CLUSTER, None, 0, draws=10)
    assert table["job"].to_pylist() == [11]
    assert np.isnan(metrics["starts_covered"])


def test_what_it_refuses():
    workload = on_node(QUEUE)
    with pytest.raises(InputError, match="no queue of now"):
        starts.evaluate(one_after_another, workload, CLUSTER, None, 0)
    nameless = sim.Cluster.mixed([{"count": 1, "cpu": 4}])
    with pytest.raises(InputError, match="machines have no names"):
        starts.evaluate(one_after_another, workload, nameless, None, 0, at_s=200.0)
