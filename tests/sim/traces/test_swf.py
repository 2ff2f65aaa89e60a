"""The Standard Workload Format."""

from __future__ import annotations

import gzip
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sim
from sim.traces.swf import FIELDS


def line(**changes):
    values = dict.fromkeys(FIELDS, -1)
    values |= {
        "job_number": 1,
        "submit_time": 10,
        "run_time": 60,
        "allocated_processors": 4,
        "requested_processors": 8,
        "requested_time": 100,
        "status": 1,
        "user_id": 3,
        "executable": 5,
        "queue": 2,
    }
    values |= changes
    return " ".join(str(values[name]) for name in FIELDS)


def write(path, *lines):
    path.write_text("; Version: 2.2\n; MaxProcs: 128\n;\n" + "\n".join(lines) + "\n")
    return path


def load(path, **options):
    return sim.read_trace("swf", path, **options)


def test_a_line_is_a_gang_of_equal_tasks(tmp_path):
    path = write(
        tmp_path / "t.swf",
        line(job_number=7, submit_time=30, queue=-1, user_id=-1, requested_time=-1),
        "; a comment between",
        "   "
        + line(job_number=9, run_time=2.5, executable=-1).replace(" ", "   ")
        + "  ; and after",
    )
    w = load(path)
    common = {"priority": 0.0, "deadline_s": None, "min_tasks": 4, "input_mode": "none"}
    unknown = {"recorded_start_s": None, "recorded_finish_s": None}
    assert w.jobs.to_pylist() == [
        {"job_id": "9", "submit_s": 0.0, "template": "", "user": "3", "queue": "2", **common,
         "requested_s": 100.0, **unknown},
        {"job_id": "7", "submit_s": 20.0, "template": "5", "user": "", "queue": "default", **common,
         "requested_s": None, **unknown},
    ]  # fmt: skip
    assert w.stages["n_tasks"].to_pylist() == [4, 4]
    np.testing.assert_array_equal(w.columns.job_requested, [100.0, np.nan])
    assert w.tasks["duration_s"].to_pylist() == [2.5] * 4 + [60.0] * 4
    assert w.resources == ("cpu",)
    assert w.meta["offset_s"] == 10.0
    assert w.meta["header"] == {"Version": "2.2", "MaxProcs": "128"}
    report = w.meta["report"]
    assert report["filled"] == {
        "user unknown: ''": 1,
        "queue unknown: 'default'": 1,
        "executable unknown: ''": 1,
    }
    assert report["noticed"] == {"submitted before the line above": 1}


def test_partitions_are_a_column_if_there_are_any(tmp_path):
    path = write(tmp_path / "t.swf", line(partition=3), line(job_number=2))
    assert load(path).jobs["partition"].to_pylist() == ["3", ""]
    assert "partition" not in load(write(path, line())).jobs.column_names


def test_options(tmp_path):
    path = write(
        tmp_path / "t.swf",
        line(job_number=1, requested_memory=2**20, used_memory=2**19),
        line(job_number=2, status=0, requested_processors=-1),
    )
    w = load(path)
    assert w.columns.job_min_tasks.tolist() == [4, 4]
    assert load(path, gang=False).columns.job_min_tasks.tolist() == [0, 0]
    requested = load(path, processors="requested")
    assert requested.stages["n_tasks"].to_pylist() == [8, 4]
    assert requested.meta["report"]["filled"] == {"requested processors unknown: allocated": 1}
    assert load(path, status="completed").jobs["job_id"].to_pylist() == ["1"]
    assert load(path, memory="requested").stages["demand_mem"].to_pylist() == [1.0, 0.0]
    used = load(path, memory="used")
    assert used.stages["demand_mem"].to_pylist() == [0.5, 0.0]
    assert used.meta["report"]["filled"] == {"used memory unknown: 0": 1}
    for option in ("on_bad_row", "status", "processors", "gang", "memory"):
        with pytest.raises(sim.InputError, match=option):
            load(path, **{option: "x"})


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"submit_time": -1}, "submission unknown"),
        ({"run_time": -1}, "run time unknown"),
        ({"allocated_processors": -1, "requested_processors": 0}, "processors unknown"),
        (
            {"job_number": 1, "status": 3},
            "partial execution of a job that has its whole line",
        ),
        ({"job_number": 1}, "repeated line"),
        ({"allocated_processors": 0, "run_time": 0, "status": 5}, "never started"),
        ({"run_time": -1, "wait_time": 5}, "run time unknown"),
        ({"run_time": -1, "status": -1}, "censored: still ran when the log ended"),
        ({"status": 2}, "censored: still ran when the log ended"),
    ],
)
def test_lines_are_dropped_by_rule(tmp_path, changes, rule):
    other = line(**({"job_number": 2} | changes))
    w = load(write(tmp_path / "t.swf", line(), other))
    assert w.jobs["job_id"].to_pylist() == ["1"]
    assert w.meta["report"]["dropped"] == {rule: 1}
    assert w.meta["report"]["rows"] == 2


def test_a_run_time_of_0_becomes_half_a_second(tmp_path):
    w = load(write(tmp_path / "t.swf", line(run_time=0)))
    assert w.tasks["duration_s"].to_pylist() == [0.5] * 4
    assert w.meta["report"]["filled"] == {"0 s becomes 0.5 s": 1}


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        ("1 2 3", "wrong number of fields"),
        (line(job_number=2, run_time="long"), "text in a number"),
        (line(job_number=2, run_time=-7), "number out of range"),
        (line(job_number=2, allocated_processors=1.5), "number out of range"),
        (line(job_number=2, run_time=1e300), "number out of range"),
        (line(job_number=2, submit_time=1e300), "number out of range"),
        (line(job_number=2, run_time="x\x1b[31m"), "text in a number"),
    ],
)
def test_a_bad_line_is_an_error_with_its_number(tmp_path, bad, rule):
    path = write(tmp_path / "t.swf", line(), "", "; more", bad)
    with pytest.raises(sim.InputError) as caught:
        load(path)
    assert (caught.value.file, caught.value.line, caught.value.rule) == (str(path), 7, rule)
    w = load(path, on_bad_row="skip")
    assert w.n_jobs == 1
    assert w.meta["report"]["bad_rows"] == {rule: 1}


def test_comments_take_no_memory_and_shift_no_line(tmp_path):
    """Read 12 MB of compressed comments; they took 7 GB as one object a line and four copies."""
    path = tmp_path / "t.swf.gz"
    comments = b"; and so on, and on, and on\n" * 1_000_000
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"; MaxProcs: 7\n" + comments + line(job_number=1).encode() + b"\n\n")
        file.write(comments + line(job_number=2).encode() + b" ; last\n")
        file.write(comments + b"1 2 3\n")
    tracemalloc.start()
    try:
        w = load(path, on_bad_row="skip")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert w.jobs["job_id"].to_pylist() == ["1", "2"]
    assert w.meta["header"] == {"MaxProcs": "7"}
    assert w.meta["report"]["bad_rows"] == {"wrong number of fields": 1}
    assert peak < 60e6 < 3 * len(comments)
    with pytest.raises(sim.InputError, match="the row has 3 fields") as caught:
        load(path)
    assert caught.value.line == 3_000_000 + 5


@pytest.mark.parametrize("content", [b"", b"; only: comments\n;\n", gzip.compress(b"\n", mtime=0)])
def test_an_empty_log_is_an_error(tmp_path, content):
    path = tmp_path / "t.swf"
    path.write_bytes(content)
    with pytest.raises(sim.InputError) as caught:
        load(path)
    assert caught.value.rule == "empty file"


@pytest.mark.parametrize("before", ["", "; Version: 2\n"])
def test_a_header_line_is_named_as_such(tmp_path, before):
    path = tmp_path / "t.swf"
    path.write_text(before + " ".join(FIELDS) + "\n" + line(job_number=1) + "\n")
    with pytest.raises(
        sim.InputError, match=r"it looks like a header.*: delete the line"
    ) as caught:
        load(path)
    assert caught.value.line == 1 + len(before.splitlines())
    path.write_text(line(job_number="x") + "\n")  # its other fields are numbers
    with pytest.raises(sim.InputError) as caught:
        load(path)
    assert "looks like a header" not in str(caught.value)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_truncated_file_of_another_codec(tmp_path, codec):
    path = tmp_path / "t.swf"
    rng = np.random.default_rng(0)
    with pa.CompressedOutputStream(path, codec) as stream:
        for i in range(2000):
            stream.write((line(job_number=i, submit_time=rng.integers(10**6)) + "\n").encode())
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(sim.InputError, match=f"the {codec} stream is truncated") as caught:
        load(path)
    assert caught.value.rule == f"truncated {codec}"


def test_a_truncated_gzip(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        line(job_number=i, submit_time=int(s)) for i, s in enumerate(rng.integers(0, 10**6, 2000))
    ]
    packed = gzip.compress(("\n".join(lines) + "\n").encode())
    path = tmp_path / "t.swf.gz"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(sim.InputError) as caught:
        load(path)
    assert caught.value.rule == "truncated gzip"
    assert 500 < caught.value.line < 1500


@pytest.mark.parametrize(
    ("file", "jobs", "procs"),
    [("KTH-SP2-1996-2.1-cln", 27_992, 100), ("NASA-iPSC-1993-3.1-cln", 18_239, 128)],
)
def test_real_logs(shared_traces, file, jobs, procs):
    path = shared_traces / "swf" / f"{file}.swf.gz"
    w = load(path)
    frame = pd.read_csv(path, sep=r"\s+", comment=";", header=None, names=FIELDS)
    assert w.n_jobs == len(frame) == jobs
    assert w.meta["header"]["MaxProcs"] == str(procs)
    assert w.meta["report"]["dropped"] == {}
    assert w.n_tasks == int(frame.allocated_processors.sum())
    assert w.columns.job_min_tasks.max() <= procs
    run = frame.run_time.replace(0, 0.5)
    work = float((run * frame.allocated_processors).sum())
    assert float(w.columns.job_work.sum()) == pytest.approx(work, rel=1e-12)
    assert w.columns.job_submit[-1] == frame.submit_time.max() - frame.submit_time.min()
    assert len(w.columns.user_names) == frame.user_id.nunique()
    from sim.cluster.fits import check_fits

    check_fits(w, sim.Cluster.slots(procs))
    with pytest.raises(sim.InputError, match="gang"):
        check_fits(w, sim.Cluster.slots(procs - 1 if file.startswith("NASA") else 99))
