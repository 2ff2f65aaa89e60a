"""Retries of a table, and jobs that others release."""

from __future__ import annotations

import pytest

import policies
import sim
from tests.sim.traces.tables import read_both

HEAD = "job_id,submit_s,start_s,end_s,state,depends_on\n"
LOG = (
    HEAD + "a,0,0,100,COMPLETED,\nlong,0,0,1000,COMPLETED,\nb,100,1000,1100,FAILED,a\n"
    "b,1160,1160,1360,COMPLETED,a\nc,1360,1360,1400,COMPLETED,b\n"
)
"""On one slot beside `long`, b fails late; its retry comes 60 s later, and c waits for that."""


def times(workload, slots, column="start_s"):
    run = sim.simulate(workload, sim.Cluster.slots(slots), policies.build("fifo"), seed=0)
    jobs = run.jobs.to_pylist()
    return {job["job_id"]: job[column] for job in jobs}


def test_a_retry_comes_when_its_earlier_attempt_has_ended(tmp_path):
    w = read_both(tmp_path, LOG)
    assert times(w, 2)["b#2"] == times(w, 2, "submit_s")["b#2"] == 260.0
    assert times(w, 1)["b#2"] == 1260.0  # later than in the log
    assert times(read_both(tmp_path, LOG, retries="none"), 2)["b#2"] == 1160.0
    assert w.jobs["recorded_submit_s"].to_pylist() == [None, None, None, 1160.0, None]
    assert any(text.startswith("released when an earlier") for text in w.meta["report"]["noticed"])
    entry = w.meta["report"]["account"]["edges"]
    assert (entry["log"], entry["changed"], entry["workload"]) == (3.0, -1.0, 4.0)


@pytest.mark.parametrize("waits_from", ["inputs", "submit"])
def test_jobs_that_came_with_the_end_of_their_inputs_follow_these(tmp_path, waits_from):
    assert times(read_both(tmp_path, LOG, waits_from=waits_from), 2)["c"] == 1360.0
    w = read_both(tmp_path, LOG, release="inputs", waits_from=waits_from)
    assert times(w, 2) == {"a": 0.0, "long": 0.0, "b": 100.0, "b#2": 260.0, "c": 460.0}
    assert times(w, 2, "submit_s") == times(w, 2)


def test_what_came_with_its_inputs_is_noticed(tmp_path):
    (text,) = [x for x in read_both(tmp_path, LOG).meta["report"]["noticed"] if "60 s" in x]
    assert "trace.release=inputs" in text
    later = LOG.replace("b,100,", "b,300,").replace("c,1360,1360,1400", "c,1460,1460,1500")
    assert not [x for x in read_both(tmp_path, later).meta["report"]["noticed"] if "60 s" in x]


def edges(workload):
    ids = workload.jobs["job_id"].to_pylist()
    return {(ids[e["upstream"]], ids[e["downstream"]]) for e in workload.job_edges.to_pylist()}


def test_dependents_wait_for_the_attempt_that_had_ended_when_they_started(tmp_path):
    """All rows of a run may have its submission; c started after the second attempt."""
    text = HEAD + "b,0,0,10,FAILED,\nc,0,40,50,done,b\nb,0,15,40,done,\nd,0,12,50,done,b\n"
    w = read_both(tmp_path, text)
    assert edges(w) == {("b", "b#2"), ("b#2", "c"), ("b", "d")}
    assert edges(read_both(tmp_path, text, retries="none")) == {("b", "c"), ("b#2", "d")}


@pytest.mark.parametrize(
    ("state", "submit_s", "options", "is_retry"),
    [
        ("TIMEOUT", 20, {}, True),
        ("COMPLETED", 20, {}, False),
        ("", 20, {}, False),  # nothing tells
        ("COMPLETED", 20, {"retries": "same_id"}, True),
        ("FAILED", 5, {}, False),  # beside it
        ("FAILED", 20, {"retries": "none"}, False),
    ],
)
def test_what_is_a_retry(tmp_path, state, submit_s, options, is_retry):
    rows = f"job_id,submit_s,run_s,state\na,0,10,{state}\na,{submit_s},10,COMPLETED\n"
    w = read_both(tmp_path, rows, **options)
    assert edges(w) == ({("a", "a#2")} if is_retry else set())
    may_be = [text for text in w.meta["report"]["noticed"] if "may be a retry" in text]
    assert bool(may_be) == (not is_retry and submit_s == 20 and not options)


def test_a_column_names_the_earlier_attempt(tmp_path):
    rows = "job_id,submit_s,run_s,retry_of\na_1,0,10,\na_2,15,10,a_1\na_3,40,10,a_2\nb,0,100,zz\n"
    w = read_both(tmp_path, rows)
    assert edges(w) == {("a_1", "a_2"), ("a_2", "a_3")}
    assert times(w, 1) == {"a_1": 0.0, "b": 10.0, "a_2": 110.0, "a_3": 135.0}  # pauses of 5, 15 s


def test_attempts_of_a_part_run_one_after_the_other(tmp_path):
    rows = "job_id,part_of,submit_s,start_s,end_s,state\nx,run,0,0,10,FAILED\nx,run,0,10,20,done\n"
    w = read_both(tmp_path, rows)
    assert (w.n_jobs, w.stage_edges.num_rows) == (1, 1)
    assert times(w, 2, "finish_s") == {"run": 20.0}


@pytest.mark.parametrize("waits_from", ["inputs", "submit"])
def test_a_retry_comes_whatever_becomes_of_its_earlier_attempt(tmp_path, waits_from):
    """Its limit ends the first attempt in the simulation; in the log it failed later than that."""
    rows = (
        "job_id,submit_s,run_s,limit_s,state,depends_on\na,0,100,30,FAILED,\n"
        "a,160,50,100,COMPLETED,\nb,210,10,100,COMPLETED,a\n"
    )
    w = read_both(tmp_path, rows, waits_from=waits_from, release="inputs")
    assert w.job_edges["kind"].to_pylist() == ["afterany", "hard"]
    cluster = sim.Cluster.slots(2).with_enforced_limits(True)
    run = sim.simulate(w, cluster, policies.build("fifo"), seed=0)
    jobs = {job["job_id"]: job for job in run.jobs.to_pylist()}
    assert [(job["start_s"], job["outcome"]) for job in jobs.values()] == [
        (0.0, "timeout"),
        (90.0, "done"),  # 60 s after that end
        (140.0, "done"),
    ]
    assert jobs["a#2"]["submit_s"] == 90.0  # it waits from then on
    assert run.metrics["wait_mean_s"] == 0.0


def test_a_retry_whose_inputs_fail_fails_with_them(tmp_path):
    rows = (
        "job_id,submit_s,run_s,limit_s,state,depends_on\nx,0,100,30,done,\n"
        "a,100,10,90,FAILED,x\na,115,10,90,done,x\n"
    )
    w = read_both(tmp_path, rows)
    cluster = sim.Cluster.slots(2).with_enforced_limits(True)
    run = sim.simulate(w, cluster, policies.build("fifo"), seed=0)
    assert [job["outcome"] for job in run.jobs.to_pylist()] == ["timeout", "failed", "failed"]


def test_the_pause_before_a_retry_is_there_between_rows_of_a_job(tmp_path):
    rows = (
        "job_id,part_of,submit_s,start_s,end_s,state,depends_on\n"
        "x,run,0,0,10,FAILED,\nx,run,25,30,50,done,\ny,run,50,50,60,done,x\n"
    )
    w = read_both(tmp_path, rows)
    assert sorted(w.stages["lag_s"].to_pylist()) == [0.0, 0.0, 15.0]
    result = sim.simulate(w, sim.Cluster.slots(2), policies.build("fifo"), seed=0, record="tasks")
    starts = sorted(result.tasks["start_s"].to_pylist())
    assert starts == [0.0, 25.0, 45.0]  # 15 s after the first attempt; y needs the second
    without = read_both(tmp_path, rows, retries="none")
    assert "lag_s" not in without.stages.column_names


def test_a_retry_of_a_row_of_another_job_waits_for_its_end(tmp_path):
    rows = "job_id,part_of,retry_of,submit_s,run_s,limit_s\na1,a,,0,50,20\nb1,b,a1,70,10,90\n"
    w = read_both(tmp_path, rows)
    assert w.job_edges["kind"].to_pylist() == ["afterany"]
    cluster = sim.Cluster.slots(2).with_enforced_limits(True)
    run = sim.simulate(w, cluster, policies.build("fifo"), seed=0)
    assert [job["start_s"] for job in run.jobs.to_pylist()] == [0.0, 40.0]  # 20 s after 20 s


def test_a_deadline_is_a_time_from_the_logs_submission(tmp_path):
    """A retry keeps the log's due time: 1,060 s after its first attempt, and 60 more."""
    lines = LOG.replace("depends_on", "depends_on,deadline_s").splitlines()
    text = "\n".join([lines[0], *(f"{line},60" for line in lines[1:])])
    w = read_both(
        tmp_path, text.replace("long,0,0,1000,COMPLETED,,60", "long,0,0,1000,COMPLETED,,-")
    )
    assert w.jobs["deadline_s"].to_pylist() == [60.0, None, 60.0, 1060.0 + 60.0, 60.0]
    run = sim.simulate(w, sim.Cluster.slots(3), policies.build("fifo"), seed=0)
    assert run.metrics["deadlines_missed"] == 0.5  # a and b take 100 s
