"""Google's trace of 2011: jobs with tasks, and the wall times of 29 days."""

from __future__ import annotations

import gzip
import json

import pytest

import sim
from sim.check.account import check_account
from tests.sim.traces.accounts import counts

JOBS = (
    {"job": "7", "user": 3, "lname": 11, "name": 21, "sched_class": 0, "priority": 2,
     "cpu": 0.0125, "mem": 0.5, "disk": 0.0001, "submit_s": 9.0, "job_end_event": 4,
     "job_end_s": 20.0, "start_s": [10.0, 12.0], "dur_s": [5.0, 8.0]},
    {"job": "6", "user": 4, "lname": 11, "name": 22, "sched_class": 0, "priority": 0,
     "cpu": 0, "mem": 0.25, "disk": 0, "submit_s": 0.0, "job_end_event": 4,
     "job_end_s": 30.0, "start_s": [1.0], "dur_s": [2.5]},
)  # fmt: skip

WALLS = """job_id,user,sched_class,job_name,logical_job_name,submit_s,schedule_s,end_s,end_event
1,0,1,10,20,0.0,0.0,700.0,4
2,0,1,10,20,0.0,605.0,700.0,4
3,1,0,11,20,620.5,621.5,900.0,4
"""


def written(path, *jobs):
    path.write_text("".join(json.dumps(job) + "\n" for job in jobs or JOBS))
    return path


def load(path, **options):
    return sim.read_trace("google2011", path, **options)


def test_a_job_has_its_tasks_and_features_and_the_earliest_comes_first(tmp_path):
    w = load(written(tmp_path / "jobs.jsonl"))
    assert w.jobs["job_id"].to_pylist() == ["6", "7"]
    assert w.jobs["submit_s"].to_pylist() == [0.0, 9.0]
    assert w.jobs["application"].to_pylist() == ["11", "11"]
    assert w.jobs["job_name"].to_pylist() == ["22", "21"]
    assert w.jobs["user"].to_pylist() == ["4", "3"]
    assert w.jobs["requested"].to_pylist() == [
        "cpu=0 mem=0.25 disk=0",
        "cpu=0.0125 mem=0.5 disk=0.0001",
    ]
    assert w.jobs["recorded_finish_s"].to_pylist() == [30.0, 20.0]
    assert w.tasks["duration_s"].to_pylist() == [2.5, 5.0, 8.0]
    assert w.stages["demand_cpu"].to_pylist() == [0.0, 0.0125]
    check_account(w)
    assert counts(w) == {
        "rows": 2,
        "jobs": 2,
        "dropped": {},
        "noticed": {"submitted before the trace began": 1, "submitted before the line above": 1},
        "bad_rows": {},
    }


def test_a_job_of_an_earlier_line_is_another_one_unless_the_lines_are_the_same(tmp_path):
    again = {**JOBS[0], "dur_s": [1.0], "start_s": [1.0]}
    w = load(written(tmp_path / "jobs.jsonl", *JOBS, again, JOBS[0]))
    assert (w.n_jobs, w.n_tasks) == (3, 4)
    assert w.jobs["job_id"].to_pylist() == ["6", "7", "7#2"]
    report = w.meta["report"]
    assert report["dropped"] == {"repeated line": 1}
    assert report["noticed"]["job of an earlier line with other content: another job"] == 1
    check_account(w, jobs=3)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"dur_s": [5.0, -1.0]}, "number out of range"),
        ({"dur_s": [5.0, "x"]}, "wrong type"),
        ({"dur_s": [5.0]}, "wrong line"),
        ({"dur_s": [], "start_s": []}, "no tasks"),
        ({"user": None}, "missing value"),
        ({"submit_s": float("inf")}, "number out of range"),
        ({"cpu": True}, "wrong type"),
    ],
    ids=["negative", "text", "lengths", "none", "missing", "infinite", "bool"],
)
def test_a_bad_line_is_an_error_or_dropped(tmp_path, change, rule):
    path = written(tmp_path / "jobs.jsonl", JOBS[1], {**JOBS[0], **change})
    with pytest.raises(sim.InputError) as caught:
        load(path)
    assert (caught.value.file, caught.value.line, caught.value.rule) == (str(path), 2, rule)
    w = load(path, on_bad_row="skip")
    assert w.n_jobs == 1
    assert w.meta["report"]["bad_rows"] == {rule: 1}
    with pytest.raises(sim.InputError, match="no job is left"):
        load(written(path, {**JOBS[0], **change}), on_bad_row="skip")


def test_invalid_json_and_a_truncated_gzip(tmp_path):
    path = tmp_path / "jobs.jsonl"
    path.write_text(json.dumps(JOBS[0]) + "\n\n{broken\n")
    with pytest.raises(sim.InputError) as caught:
        load(path)
    assert (caught.value.line, caught.value.rule) == (3, "wrong line")
    packed = gzip.compress(written(path).read_bytes())
    path.write_bytes(packed[:-9])
    with pytest.raises(sim.InputError) as caught:
        load(path)
    assert caught.value.rule == "truncated gzip"


def test_wall_times_are_of_jobs_from_first_scheduling_to_end(tmp_path):
    (tmp_path / "job_history_29d.csv.gz").write_bytes(gzip.compress(WALLS.encode()))
    w = load(tmp_path, part="walls")
    assert w.jobs["job_id"].to_pylist() == ["2", "3"]
    assert w.stage_duration_s.tolist() == [95.0, 278.5]
    assert w.stages["n_tasks"].to_pylist() == [1, 1]
    assert w.jobs["application"].to_pylist() == ["20", "20"]
    assert w.meta["durations"] == "job walls"
    assert w.meta["report"]["dropped"] == {"scheduled before the trace began": 1}
    assert w.meta["report"]["noticed"] == {"submitted before the trace began": 1}


@pytest.mark.parametrize(
    ("old", "new", "line", "rule"),
    [
        ("job_id,", "id,", 1, "wrong line"),
        ("621.5", "x", 4, "text in a number"),
        ("605.0,700.0", "605.0", 3, "wrong number of fields"),
        ("3,1,0,11,20,620.5", "3,1,0,11,20,", 4, "missing value"),
    ],
    ids=["header", "text", "fields", "missing"],
)
def test_a_bad_row_of_wall_times_is_named(tmp_path, old, new, line, rule):
    path = tmp_path / "walls.csv"
    path.write_text(WALLS.replace(old, new))
    with pytest.raises(sim.InputError) as caught:
        load(path, part="walls")
    assert (caught.value.file, caught.value.line, caught.value.rule) == (str(path), line, rule)


def test_the_file_of_the_other_part_is_an_error(tmp_path):
    path = tmp_path / "walls.csv"
    path.write_text(WALLS)
    with pytest.raises(sim.InputError, match="read it with part=walls"):
        load(path)
    with pytest.raises(sim.InputError, match="the first line must be"):
        load(written(path), part="walls")


def test_the_real_files(shared_traces):
    w = load(shared_traces / "google2011")
    assert (w.n_jobs, w.n_tasks) == (11_838, 311_896)
    report = w.meta["report"]
    assert report["noticed"] == {"submitted before the trace began": 17}
    assert report["dropped"] == report["bad_rows"] == {}
    n_tasks = w.stages["n_tasks"].to_numpy()
    assert (n_tasks < 3).mean() == pytest.approx(0.8194, abs=5e-5)
    assert w.jobs["submit_s"].to_numpy().max() < 19.7 * 3600
    walls = load(shared_traces / "google2011", part="walls")
    assert walls.n_jobs == 385_582 - 79
    assert walls.meta["report"]["dropped"] == {"scheduled before the trace began": 79}
