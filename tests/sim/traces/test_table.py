"""A table of jobs, CSV or Parquet."""

from __future__ import annotations

import datetime as dt
import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sim
from sim.base.errors import InputError
from sim.check.account import check_account

FULL = """job_id,submit_s,start_s,end_s,cpus,limit_s,user,queue,priority,colour
b,160,170.5,180,2,60,bob,,-1,red
a,100,100,130,,1-00:00:00,,night,3,
"""


def load(path, text, name="jobs.csv", **options):
    file = path / name
    if isinstance(text, dict):
        pq.write_table(pa.table(text), file)
    else:
        file.write_text(text)
    return sim.read_trace("table", file, **options)


def test_a_row_is_a_job_with_what_its_columns_tell(tmp_path):
    w = load(tmp_path, FULL)
    common = {"template": "", "deadline_s": None, "input_mode": "none"}
    assert w.jobs.to_pylist() == [
        {"job_id": "a", "submit_s": 0.0, "user": "", "queue": "night", "priority": 3.0,
         "min_tasks": 1, "requested_s": 86400.0, "recorded_start_s": 0.0,
         "recorded_finish_s": 30.0, **common},
        {"job_id": "b", "submit_s": 60.0, "user": "bob", "queue": "default", "priority": -1.0,
         "min_tasks": 2, "requested_s": 60.0, "recorded_start_s": 70.5, "recorded_finish_s": 80.0,
         **common},
    ]  # fmt: skip
    assert w.stage_duration_s.tolist() == [30.0, 9.5]
    assert w.stages["n_tasks"].to_pylist() == [1, 2]
    assert (w.meta["offset_s"], w.meta["resolution_s"]) == (100.0, 0.1)
    report = {name: part for name, part in w.meta["report"].items() if name != "account"}
    assert report == {
        "rows": 2, "jobs": 2, "bad_rows": {}, "dropped": {}, "noticed": {},
        "filled": {"CPUs unknown: 1": 1, "user unknown: ''": 1, "queue unknown: 'default'": 1},
    }  # fmt: skip
    check_account(w, cpu_s=19.0, jobs=2)
    assert load(tmp_path, FULL, gang=False).jobs["min_tasks"].to_pylist() == [0, 0]
    single = load(tmp_path, FULL, tasks="job")
    assert single.stages["n_tasks"].to_pylist() == [1, 1]
    assert single.stages["demand_cpu"].to_pylist() == [1.0, 2.0]
    assert single.jobs["min_tasks"].to_pylist() == [0, 0]


def test_few_columns_of_other_names_suffice(tmp_path):
    text = "Submitted\tSeconds\n7\t60\n5\t0\n"
    w = load(tmp_path, text, columns={"submit_s": "Submitted", "run_s": "Seconds", "cpus": None})
    assert w.jobs["job_id"].to_pylist() == ["2", "1"]
    assert w.jobs["submit_s"].to_pylist() == [0.0, 2.0]
    assert w.stage_duration_s.tolist() == [0.5, 60.0]
    assert w.jobs["recorded_start_s"].to_pylist() == [None, None]
    assert w.meta["report"]["filled"] == {"0 s becomes 0.5 s": 1, "CPUs unknown: 1": 2}


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("submit_s,start_s,end_s", "10,15,45"),
        ("submit_s,start_s,run_s", "10,15,30"),
        ("submit_s,run_s,end_s", "10,0:00:30,45"),
        ("submit_s,start_s,end_s,run_s", "10,15,45,30"),
    ],
)
def test_the_third_of_start_end_and_run_time_follows_from_two(tmp_path, header, row):
    w = load(tmp_path, f"{header}\n{row}\n")
    assert w.jobs["recorded_start_s"].to_pylist() == [5.0]
    assert w.jobs["recorded_finish_s"].to_pylist() == [35.0]
    assert w.stage_duration_s.tolist() == [30.0]


@pytest.mark.parametrize(
    ("text", "after_s"),
    [
        ("2026-03-01 09:30:00", 0.0),
        ("2026-03-01T09:30", 0.0),
        ("2026-03-01T09:30:00.250Z", 0.25),
        ("2026-03-01 10:30:01+01:00", 1.0),
        ("2026-03-01 05:00:00 -0430", 0.0),
        ("2026-03-02", 52_200.0),
        ("2028-02-29 00:00:00 UTC", 63_037_800.0),
        ("2026-03-01 09:30:00+00", 0.0),
        ("2026/03/01 10:30:00,5 CET", 0.5),
        ("2026-03-01 01:30:00 PST", 0.0),
    ],
)
def test_dates_and_times(tmp_path, text, after_s):
    table = f'submit_s;run_s\n2026-03-01 09:30:00;60\n"{text}";60\n'
    w = load(tmp_path, table, zone="UTC")
    assert w.jobs["submit_s"].to_pylist() == [0.0, after_s]
    assert w.meta["offset_s"] == dt.datetime(2026, 3, 1, 9, 30, tzinfo=dt.UTC).timestamp()


def test_rows_that_are_no_jobs_are_counted(tmp_path):
    rows = [
        "a,,10,20,1", "b,5,,,1", "c,5,10,,1", "d,5,20,10,1", "e,5,10,20,0", "f,5,10,20,1",
        "f,6,10,30,1", "f,5,10,20,1", "g,7,3,20,1",
    ]  # fmt: skip
    w = load(tmp_path, "\n".join(["job_id,submit_s,start_s,end_s,cpus", *rows]) + "\n")
    assert w.jobs["job_id"].to_pylist() == ["f", "f#2", "g"]
    assert w.meta["report"]["dropped"] == {
        "repeated row": 1,
        "never started": 1,
        "still ran when the log ended (censored)": 1,
        "submission unknown": 1,
        "ends before it starts": 1,
        "0 CPUs": 1,
    }
    assert w.meta["report"]["noticed"] == {
        "started before its submission": 1,
        "job_id of an earlier row with other values: a job of its own": 1,
    }
    account = check_account(w, cpu_s=67.0, jobs=9)
    assert account["cpu_s"]["left_out_by"]["repeated row"] == 10.0
    assert account["cpu_s"]["unknown"] == 3
    idle = load(tmp_path, "job_id,submit_s,start_s,run_s\n,1,2,3\n,2,,0\nrow 1,4,5,6\n")
    assert idle.jobs["job_id"].to_pylist() == ["row 1", "row 1#2"]
    assert idle.meta["report"]["dropped"] == {"never started": 1}
    with pytest.raises(InputError, match="1 × never started") as caught:
        load(tmp_path, "submit_s,start_s,end_s\n5,,\n")
    assert caught.value.rule == "no job left"


@pytest.mark.parametrize(
    ("rows", "line", "words"),
    [
        (["1,60,1", "soon,60,1"], 3, "submit_s is 'soon'; it must be like 86400 or 2026-03-01"),
        (["1,60,1", "2026-03-01,60,1"], 3, "submit_s is '2026-03-01'; it must be like 86400"),
        (["2026-03-01,60,1", "", "7,60,1"], 4, "submit_s is '7'; it must be like 2026-03-01 09:30"),
        (["2026-13-01,60,1"], 2, "submit_s is '2026-13-01'"),
        (["1,an hour,1"], 2, "run_s is 'an hour'; it must be like 86400, 1-00:00:00 or 1h 2m"),
        (["1,60,-1"], 2, "cpus is '-1'; it must be like 4 or 1.5; trace.columns.cpus=null leaves"),
        (["1,60"], 2, "the row has 2 fields; it needs 3"),
    ],
)
def test_errors_name_line_value_and_the_way_out(tmp_path, rows, line, words):
    text = "\n".join(["submit_s,run_s,cpus", *rows]) + "\n"
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    assert caught.value.line == line
    assert words in str(caught.value)
    assert "on_bad_row=skip" in str(caught.value)
    if line > 2:
        w = load(tmp_path, text, on_bad_row="skip")
        assert w.n_jobs == 1
        assert sum(w.meta["report"]["bad_rows"].values()) == 1


@pytest.mark.parametrize(
    ("header", "options", "words"),
    [
        ("Submit Time,elapsed", {}, "'trace.columns.submit_s=Submit Time' trace.columns.run_s="),
        (
            "run_id,start_date,end_date,queued_dttm",
            {},
            "start_s=start_date trace.columns.end_s=end",
        ),
        ("submit_s,Begin,End", {}, "give trace.columns.start_s=Begin trace.columns.end_s=End"),
        ("submit_s,start_s,x", {}, "give trace.columns.end_s=NAME"),
        ("submit_s,x", {}, "no column run_s; the file has submit_s, x: give trace.columns.run_s="),
        ("submit_s,run_s,run_s", {}, "two columns are called 'run_s'"),
        ("submit_s,run_s", {"columns": {"cpus": "n"}}, "no column 'n' (trace.columns.cpus)"),
        ("submit_s,run_s", {"columns": {"cores": "n"}}, "unknown column 'cores'"),
    ],
)
def test_missing_columns_are_named_with_those_to_give(tmp_path, header, options, words):
    with pytest.raises(InputError) as caught:
        load(tmp_path, header + "\n", **options)
    assert words in str(caught.value)
    assert caught.value.file is not None


def test_columns_that_resemble_a_missing_one_are_told(tmp_path):
    text = "id,submit_s,start_s,end_s,Elapsed,nCPUs,Partition,cost\nx,1,2,3,1,4,night,9\n"
    report = load(tmp_path, text).meta["report"]
    assert report["columns_unused"] == {
        "nCPUs: did you mean trace.columns.cpus=nCPUs?": 1,
        "Partition: did you mean trace.columns.partition=Partition?": 1,
    }


def test_parquet_has_numbers_timestamps_or_texts(tmp_path):
    begin = dt.datetime(2026, 3, 1, 9, 30)
    times = [begin, begin + dt.timedelta(seconds=60)]
    w = load(
        tmp_path,
        {
            "job_id": [17, 18],
            "submit_s": pa.array(times, pa.timestamp("ns")),
            "start_s": pa.array([times[1], None], pa.timestamp("ms")),
            "run_s": pa.array([dt.timedelta(seconds=30)] * 2, pa.duration("us")),
            "cpus": pa.array([4, 2], pa.uint8()),
            "limit_s": ["0:10:00", None],
            "user": pa.array(["ann", None]).dictionary_encode(),
            "queue": pa.nulls(2),
        },
        "jobs.parquet",
    )
    assert w.jobs["job_id"].to_pylist() == ["17", "18"]
    assert w.jobs["submit_s"].to_pylist() == [0.0, 60.0]
    assert w.jobs["recorded_start_s"].to_pylist() == [60.0, None]
    assert w.jobs["recorded_finish_s"].to_pylist() == [90.0, None]
    assert w.jobs["requested_s"].to_pylist() == [600.0, None]
    assert w.stages["n_tasks"].to_pylist() == [4, 2]
    assert w.jobs["user"].to_pylist() == ["ann", ""]
    plain = load(tmp_path, {"submit_s": [5.5, 5.0], "run_s": [1, 2]}, "jobs")
    assert plain.jobs["submit_s"].to_pylist() == [0.0, 0.5]
    texts = load(tmp_path, {"submit_s": ["2026-03-01", "2026-03-02"], "run_s": [1, 2]}, "jobs")
    assert texts.jobs["submit_s"].to_pylist() == [0.0, 86400.0]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"submit_s": [1, 2], "run_s": [1.0, np.inf]}, "row 2: run_s is 'inf'"),
        ({"submit_s": [1, 2], "run_s": [1, 2], "cpus": [-1, 1]}, "row 1: cpus is '-1.0'; it must"),
        (
            {"submit_s": [1, 2], "run_s": [1, 2], "nodes": [1, 1.5]},
            "row 2: nodes is '1.5'; it must",
        ),
        ({"submit_s": ["2026-03-01", "7"], "run_s": [1, 2]}, "row 2: submit_s is '7'"),
        ({"submit_s": [True, False], "run_s": [1, 2]}, "submit_s is of type bool"),
        ({"submit_s": [[1], [2]], "run_s": [1, 2]}, "submit_s is of type list"),
        ({"submit_s": [1, 2], "run_s": [1, 2], "cpus": ["1", "x"]}, "row 2: cpus is 'x'; it must"),
        ({"submit_s": [1, 2], "run_s": [1, 2], "nodes": [["n1"], []]}, "trace.columns.nodes=null"),
        ({"submit_s": ["2026-03-01"] * 2, "start_s": [1, 2], "run_s": [1, 2]}, "has dates and"),
    ],
)
def test_parquet_errors_name_row_and_value(tmp_path, columns, words):
    with pytest.raises(InputError) as caught:
        load(tmp_path, columns, "jobs.parquet")
    assert words in str(caught.value)
    assert caught.value.file is not None
    if words.startswith("row"):
        w = load(tmp_path, columns, "jobs.parquet", on_bad_row="skip")
        assert w.n_jobs == 1
        assert w.meta["report"]["bad_rows"] == {"wrong value": 1}
        assert w.meta["report"]["rows"] == 2


def test_a_compressed_table_and_a_log_of_another_kind(tmp_path):
    file = tmp_path / "jobs.csv.gz"
    file.write_bytes(gzip.compress(FULL.encode()))
    assert sim.read_trace("table", file).digest == load(tmp_path, FULL).digest
    with pytest.raises(InputError, match="is a folder"):
        sim.read_trace("table", tmp_path)
    (tmp_path / "broken").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="not a readable Parquet file"):
        sim.read_trace("table", tmp_path / "broken")
