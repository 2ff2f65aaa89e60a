"""Small event logs made after public reports, in tests/cases, each with what is right of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import sim
from sim.base.errors import InputError
from sim.check.account import check_account

CASES = Path(__file__).resolve().parents[2] / "cases" / "logs"


def load(name: str, **options):
    return sim.read_trace("spark_eventlog", CASES / name, **options)


def durations(workload):
    return workload.tasks["duration_s"].to_pylist()


@pytest.mark.parametrize(
    "name", ["K01_spark_retry_no_partition_id", "K01b_spark_retry_partition_id"]
)
def test_a_retried_stage_has_each_partition_once(name):
    w = load(f"{name}/app-1")
    assert durations(w) == [10.0, 10.0, 30.0, 30.0]
    assert w.meta["report"]["dropped"] == {"a failed attempt: FetchFailed": 2}
    assert w.meta["report"]["noticed"] == {}
    account = check_account(w, cpu_s=88.0, tasks=4, jobs=1)
    assert account["cpu_s"]["left_out_by"] == {"a failed attempt: FetchFailed": 8.0}


@pytest.mark.parametrize("folder", ["K02_databricks_rolled/logs", "K02_databricks_rolled"])
def test_files_that_databricks_rolled_are_an_application(folder):
    w = load(folder)
    assert w.meta["report"]["applications"] == 1
    assert durations(w) == [10.0] * 4 + [20.0] * 4
    assert w.stage_edges.to_pylist() == [{"parent": 0, "child": 1, "kind": "barrier"}]
    assert w.jobs["job_id"].to_pylist() == ["app-1"]
    assert w.meta["report"]["dropped"] == {}
    assert "warnings" not in w.meta["report"]
    check_account(w, cpu_s=120.0, tasks=8, jobs=1)


def test_a_part_of_a_rolled_log_says_that_it_is_one():
    w = load("K02_databricks_rolled/logs/eventlog-2023-11-14--22-00.gz")
    assert durations(w) == [10.0] * 4
    message = "4 × a task of a stage that no event describes.* Read the folder with all its files"
    with pytest.raises(InputError, match=message):
        load("K02_databricks_rolled/logs/eventlog")


def test_tasks_whose_ends_were_dropped_are_told():
    w = load("K03_dropped_events/app-1")
    assert durations(w) == [10.0] * 6
    report = w.meta["report"]
    missing = "a task whose end is not in the log, though its stage completed"
    assert report["noticed"][missing] == 4
    assert report["dropped"] == {}
    assert report["warnings"] == [
        "app-1: 4 of 10 tasks of stages that completed have no end in the log (events that Spark "
        "dropped?), 40.0 % of these stages' tasks: their work is unknown and left out "
        "(trace.missing_tasks=median fills it in)"
    ]
    account = check_account(w, cpu_s=60.0, tasks=10)
    assert account["tasks"]["left_out_by"] == {missing: 4}
    assert account["cpu_s"]["unknown"] == 4


def test_tasks_whose_ends_were_dropped_last_as_long_as_the_median():
    w = load("K03_dropped_events/app-1", missing_tasks="median")
    assert durations(w) == [10.0] * 10
    assert w.tasks["recorded_finish_s"].null_count == 4
    filled = "a task whose end is not in the log: the median of its stage"
    assert w.meta["report"]["filled"] == {filled: 4}
    assert "last as long as the median" in w.meta["report"]["warnings"][0]
    account = check_account(w, cpu_s=60.0, tasks=10)
    assert account["cpu_s"]["changed_by"] == {filled: -40.0}


def test_an_application_without_an_end():
    w = load("K04_no_end/app-1.inprogress")
    assert durations(w) == [10.0] * 4
    assert w.jobs["recorded_finish_s"].to_pylist() == [None]
    assert w.meta["report"]["noticed"] == {"an application whose end is not in its log": 1}
    check_account(w, cpu_s=40.0, tasks=4)


@pytest.mark.parametrize("name", ["frames.zstd", "frames.lz4", "members.gz"])
def test_compressed_files_of_several_frames(name):
    w = load(f"K05_zstd_frames/{name}")
    assert durations(w) == [10.0] * 40
    check_account(w, cpu_s=400.0, tasks=40)


def test_a_truncated_file_is_read_up_to_its_end():
    with pytest.raises(InputError, match=r"cut\.zstd:81: the zstd stream is truncated"):
        load("K05_zstd_frames/cut.zstd")
    w = load("K05_zstd_frames/cut.zstd", on_bad_row="skip")
    assert durations(w) == [10.0] * 38  # of four whole frames
    assert w.meta["report"]["warnings"][0] == (
        "cut.zstd is truncated after line 80: later events are missing"
    )
    check_account(w, cpu_s=380.0)


def test_a_clock_that_was_set_back():
    with pytest.raises(InputError, match=r"app-1:8: a task ends at 1700000002000 ms, before"):
        load("K06_spark_negative/app-1")
    w = load("K06_spark_negative/app-1", on_bad_row="skip")
    assert durations(w) == [10.0]
    report = w.meta["report"]
    assert report["bad_rows"] == {"ends before it starts": 1}
    assert report["dropped"] == {"a killed attempt": 1}  # its Finish Time is 0
    account = check_account(w, cpu_s=10.0, tasks=3)
    assert account["cpu_s"]["unknown"] == 3
