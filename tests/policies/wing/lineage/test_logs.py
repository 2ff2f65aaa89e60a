"""Reading the two logs: every format gives the same columns, every bad row is counted."""

from __future__ import annotations

import datetime as dt
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from policies.wing.lineage import make_logs, read_logs
from sim.base.errors import InputError

OPERATIONS = """time_s,job,operation,file,n
1,a,write,f,1
2.5,b,read,f,
3,,download,f,7
"""
JOBS = """job_id,template_name,queue,submit_s,finish_s
b,tb,org/x,1.5,3
a,ta,lone,0,1.25
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "o.csv").write_text(OPERATIONS)
    (tmp_path / "j.csv").write_text(JOBS)
    return tmp_path / "o.csv", tmp_path / "j.csv"


def test_jobs_are_in_order_of_submission_and_operations_name_their_rows(files):
    logs = read_logs(*files)
    assert logs.jobs["job_id"].to_pylist() == ["a", "b"]
    assert logs.job.tolist() == [0, 1, -1]
    assert logs.operation.tolist() == [1, 0, 2]
    assert logs.n.tolist() == [1, 1, 7]
    assert logs.time_s.tolist() == [1, 2.5, 3]
    assert logs.files.to_pylist() == ["f"]
    assert logs.report == {}


def test_defaults(files):
    jobs = read_logs(*files).jobs.to_pylist()
    assert [j["start_s"] for j in jobs] == [0, 1.5]
    assert [j["compute_s"] for j in jobs] == [1.25, 1.5]
    assert [j["organisation"] for j in jobs] == ["lone", "org"]
    assert [j["outcome"] for j in jobs] == ["done", "done"]


@pytest.mark.parametrize("form", ["gzip", "parquet", "timestamps", "whole numbers"])
def test_formats_give_the_same_columns(files, tmp_path, form):
    want = read_logs(*files)
    o, j = tmp_path / "o", tmp_path / "j"
    if form == "gzip":
        o.write_bytes(gzip.compress(OPERATIONS.encode()))
        j.write_bytes(gzip.compress(JOBS.encode()))
    else:
        operations = {
            "time_s": [1.0, 2.5, 3.0],
            "job": ["a", "b", None],
            "operation": ["write", "read", "download"],
            "file": ["f", "f", "f"],
            "n": pa.array([1, None, 7], pa.int64()),
        }
        jobs = {
            "job_id": ["b", "a"],
            "template_name": ["tb", "ta"],
            "queue": ["org/x", "lone"],
            "submit_s": [1.5, 0.0],
            "finish_s": [3.0, 1.25],
        }
        if form == "timestamps":
            zero = dt.datetime(1970, 1, 1)
            operations["time_s"] = [zero + dt.timedelta(seconds=t) for t in operations["time_s"]]
        if form == "whole numbers":
            operations["job"], jobs["job_id"] = [10, 11, None], [11, 10]
        pq.write_table(pa.table(operations), o)
        pq.write_table(pa.table(jobs), j)
    got = read_logs(o, j)
    for name in ("time_s", "job", "operation", "file", "n"):
        assert np.array_equal(getattr(got, name), getattr(want, name)), name
    assert got.jobs.drop_columns("job_id").equals(want.jobs.drop_columns("job_id"))


def test_bad_rows_are_counted_by_rule(tmp_path):
    (tmp_path / "o.csv").write_text(
        OPERATIONS + "x,a,read,f,1\n4,zz,read,f,1\n5,a,chew,f,1\n4.5,a,read,,1\n"
    )
    (tmp_path / "j.csv").write_text(
        "job_id,template_name,submit_s,start_s,finish_s,outcome\n"
        "b,tb,1.5,1,3,done\na,ta,0,,-1,odd\na,ta,0,,1,done\nc,tc,0,,1,done\n"
    )
    logs = read_logs(tmp_path / "o.csv", tmp_path / "j.csv")
    assert logs.report == {
        "jobs: job_id given twice": 1,
        "jobs: started before submission": 1,
        "jobs: ended before the start": 1,
        "jobs: unknown outcome, taken as failed": 1,
        "jobs: in no operation": 1,
        "operations: unknown operation": 1,
        "operations: job not in the job log": 1,
        "operations: text in a number": 1,
        "operations: missing value": 1,
    }
    assert (logs.column("finish_s") >= logs.column("start_s")).all()
    assert (logs.column("start_s") >= logs.column("submit_s")).all()


def test_a_log_whose_clock_runs_backward_is_counted(files):
    logs = make_logs(
        {"time_s": [2.0, 1.0], "job": ["a", "a"], "operation": ["write"] * 2, "file": ["f"] * 2},
        {"job_id": ["a"], "template_name": ["t"], "submit_s": [0.0], "finish_s": [3.0]},
    )
    assert logs.report == {"operations: earlier than the row before": 1}


def test_errors_name_file_and_line(files, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text(OPERATIONS + "x,a,read,f,1\n")
    with pytest.raises(InputError) as caught:
        read_logs(bad, files[1], on_bad_row="error")
    assert (caught.value.file, caught.value.line) == (str(bad), 5)
    bad.write_text("time,job,operation,file\n1,a,read,f\n")
    with pytest.raises(InputError, match=r"no column 'time_s'.*did you mean 'time'"):
        read_logs(bad, files[1])
    pq.write_table(
        pa.table({"time_s": [1.0, None], "operation": ["read"] * 2, "file": ["f"] * 2}), bad
    )
    with pytest.raises(InputError) as caught:
        read_logs(bad, files[1], on_bad_row="error")
    assert caught.value.line == 2
