"""Every reader keeps when jobs really ran, on the workload's clock, and the log's resolution."""

from __future__ import annotations

import copy
import json

import pytest

import policies
import sim
from tests.policies.alibaba import test_trace as alibaba
from tests.policies.slearn import test_google2011 as google
from tests.policies.wing import test_wfcommons as wfcommons
from tests.sim.traces import test_k8s_gpu2023 as k8s
from tests.sim.traces import test_sacct as sacct
from tests.sim.traces import test_spark_eventlog as spark
from tests.sim.traces import test_swf as swf
from tests.sim.traces.spark_events import two_stages


def recorded(workload, table="jobs"):
    """Return start and finish of every row."""
    rows = getattr(workload, table).to_pylist()
    return [(row["recorded_start_s"], row["recorded_finish_s"]) for row in rows]


def test_swf_waits_from_the_submission_on(tmp_path):
    lines = [
        swf.line(job_number=1, submit_time=10, wait_time=5),
        swf.line(job_number=2, submit_time=30, wait_time=0, run_time=0),
        swf.line(job_number=3, submit_time=40),
    ]
    w = swf.load(swf.write(tmp_path / "t.swf", *lines))
    assert recorded(w) == [(5.0, 65.0), (20.0, 20.0), (None, None)]
    assert w.meta["resolution_s"] == 1.0
    minutes = [
        swf.line(job_number=i, submit_time=60 * i, wait_time=60, run_time=120) for i in range(20)
    ]
    assert swf.load(swf.write(tmp_path / "t.swf", *minutes)).meta["resolution_s"] == 60.0


def test_an_array_of_slurm_runs_from_its_first_element_to_its_last(tmp_path):
    day = sacct.DAY
    rows = [
        sacct.record("18_1", Start=day + "09:31:00", End=day + "09:35:00"),
        sacct.record("18_2", Start=day + "09:30:05", End=day + "09:32:00"),
        sacct.record("19", Submit=day + "09:31:00", Start=day + "09:32:00", End=day + "09:32:07"),
    ]
    w = sacct.load(tmp_path, *rows)
    assert recorded(w) == [(5.0, 300.0), (120.0, 127.0)]
    assert recorded(w, "stages") == [(60.0, 300.0), (5.0, 120.0), (120.0, 127.0)]
    assert w.meta["resolution_s"] == 1.0
    apart = sacct.load(tmp_path, *rows, arrays="jobs")
    assert recorded(apart) == recorded(w, "stages")
    short = sacct.load(tmp_path, "1|100|130|00:00:20", head="JobID|Submit|Start|Elapsed")
    assert recorded(short) == [(30.0, 50.0)]


def test_pods_run_from_their_scheduling_to_their_deletion(tmp_path):
    w = k8s.load(tmp_path, k8s.pod("a"), k8s.pod("b", creation_time=160, scheduled_time=160.5))
    assert recorded(w) == [(10.0, 70.0), (60.5, 70.0)]
    assert w.meta["resolution_s"] == 0.1


def test_google_has_jobs_and_tasks(tmp_path):
    early = {**google.JOBS[1], "job": "8", "start_s": [0.0, 3.0], "dur_s": [2.0, 2.0]}
    w = google.load(google.written(tmp_path / "jobs.jsonl", *google.JOBS, early))
    assert w.jobs["job_id"].to_pylist() == ["6", "8", "7"]
    assert recorded(w) == [(1.0, 30.0), (None, 30.0), (10.0, 20.0)]
    assert recorded(w, "tasks") == [
        (1.0, 3.5), (None, None), (3.0, 5.0), (10.0, 15.0), (12.0, 20.0),
    ]  # fmt: skip
    assert w.meta["resolution_s"] == 0.1
    (tmp_path / "walls.csv").write_text(google.WALLS)
    walls = google.load(tmp_path / "walls.csv", part="walls")
    assert recorded(walls) == [(605.0, 700.0), (621.5, 900.0)]


def test_spark_has_jobs_and_tasks_in_milliseconds(tmp_path):
    w = spark.load(tmp_path, *two_stages())
    tasks = recorded(w, "tasks")
    assert recorded(w) == [(min(start for start, _ in tasks), 7.0)]
    assert [end - start for start, end in tasks] == spark.durations(w)
    assert w.meta["resolution_s"] == 1e-3


def test_alibaba_has_no_submissions_of_its_own(tmp_path):
    lines = [
        alibaba.row("M1", job="a", start=100, end=110),
        alibaba.row("R2_1", job="a", start=120, end=150),
        alibaba.row("M1", job="b", start=130, end=140),
        alibaba.row("M2", job="b", start=130, end=0),
    ]
    w = alibaba.load(alibaba.write(tmp_path / "t.csv", lines))
    assert recorded(w) == [(0.0, 50.0), (30.0, None)]
    assert w.meta["submit_is_start"]
    assert w.meta["resolution_s"] == 1.0


def test_a_workflow_ends_after_its_makespan(tmp_path):
    content = copy.deepcopy(wfcommons.SMALL)
    content["workflow"]["execution"]["makespanInSeconds"] = 31.5
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    w = wfcommons.load(tmp_path, every_s=100.0)
    assert w.jobs["recorded_finish_s"].to_pylist() == [31.5, 131.5]
    content["workflow"]["execution"]["makespanInSeconds"] = "long"
    (tmp_path / "a.json").write_text(json.dumps(content))
    with pytest.raises(sim.InputError, match=r"makespanInSeconds of workflow.execution must be"):
        wfcommons.load(tmp_path)


@pytest.mark.parametrize("policy", ["fifo", "easy"])
def test_no_simulation_reads_them(tmp_path, policy):
    lines = [
        swf.line(job_number=i, submit_time=7 * i, wait_time=90 - i, run_time=10 + i * 13 % 40)
        for i in range(30)
    ]
    w = swf.load(swf.write(tmp_path / "t.swf", *lines))
    names = ["recorded_start_s", "recorded_finish_s"]
    jobs = w.jobs.drop_columns(names)
    without = sim.Workload.from_tables(jobs=jobs, stages=w.stages, tasks=w.tasks)
    runs = [
        sim.simulate(workload, sim.Cluster.slots(9), policies.build(policy)).jobs
        for workload in (w, without)
    ]
    assert runs[0].equals(runs[1])


def test_they_are_written_and_read_again(tmp_path):
    w = google.load(google.written(tmp_path / "jobs.jsonl"))
    w.write(tmp_path / "w")
    again = sim.Workload.read(tmp_path / "w")
    assert (recorded(again), recorded(again, "tasks")) == (recorded(w), recorded(w, "tasks"))
    assert again.meta["resolution_s"] == w.meta["resolution_s"]
    assert again.digest == w.digest
