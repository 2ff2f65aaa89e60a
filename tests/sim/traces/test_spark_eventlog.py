"""Spark's event logs, made by hand; `test_spark_real` has those that Spark wrote."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

import sim
from sim.base.errors import InputError
from sim.check.account import check_account
from tests.sim.traces.spark_events import (
    READS,
    end,
    environment,
    executor,
    job,
    job_end,
    profile,
    stage,
    start,
    started,
    task,
    text,
    two_stages,
)


def load(folder: Path, *events, name="app-1", **options):
    file = folder / name
    file.write_text(text(*events))
    return sim.read_trace("spark_eventlog", file, **options)


def durations(workload):
    return workload.tasks["duration_s"].to_pylist()


def edges(workload):
    table = workload.stage_edges
    return list(zip(table["parent"].to_pylist(), table["child"].to_pylist(), strict=True))


def test_an_application_is_a_job_of_the_stages_that_ran(tmp_path):
    w = load(tmp_path, *two_stages())
    (row,) = w.jobs.to_pylist()
    assert row == {
        "job_id": "app-1", "submit_s": 0.0, "template": "etl", "user": "ann", "queue": "default",
        "priority": 0.0, "deadline_s": None, "min_tasks": 0, "input_mode": "none",
        "application": "etl", "job_name": "etl", "recorded_start_s": 1.0,
        "recorded_finish_s": 7.0,
    }  # fmt: skip
    assert w.stages["name"].to_pylist() == ["0 map", "1 count"]
    assert durations(w) == [1.0, 2.0, 3.0]
    assert edges(w) == [(0, 1)]
    assert w.stages["demand_cpu"].to_pylist() == [1.0, 1.0]
    assert w.stages["demand_mem"].to_pylist() == [1.0, 1.0]  # a quarter of 4 GiB
    columns = ("input_bytes", "shuffle_read_bytes", "shuffle_write_bytes", "output_bytes")
    assert [w.stages[c].to_pylist() for c in columns] == [[200, 0], [0, 7], [14, 0], [0, 0]]
    report = w.meta["report"]
    assert (report["events"], report["applications"], report["jobs"]) == (12, 1, 1)
    assert report["dropped"] == report["noticed"] == report["filled"] == report["bad_rows"] == {}


def test_failed_attempts_and_losing_copies_are_not_tasks(tmp_path):
    events = [
        start(),
        job(0, stage(0, 5)),
        task(0, 0, 0, 400, "ExceptionFailure"),
        task(0, 0, 500, 1500),
        task(0, 1, 0, 9000, "TaskKilled"),  # overtaken by
        task(0, 1, 3000, 5000, speculative=True),
        task(0, 2, 0, 3000),
        task(0, 2, 1000, 3001, "TaskKilled", speculative=True),
        task(0, 3, 0, 800, "ExecutorLostFailure"),
        task(0, 3, 900, 1000, "Strange"),
        task(0, 4, 0, 4000),
        task(0, 4, 0, 4000, "Resubmitted"),
        task(0, 4, 5000, 6000, attempt=1),  # another attempt of the stage
        task(9, 0, 0, 1),
        end(),
    ]
    w = load(tmp_path, *events)
    assert durations(w) == [1.0, 2.0, 3.0, 4.0]
    assert w.meta["report"]["dropped"] == {
        "a failed attempt: ExceptionFailure": 1,
        "a failed attempt: ExecutorLostFailure": 1,
        "a failed attempt: another reason": 1,
        "an attempt that a speculative copy overtook": 1,
        "a speculative copy that lost": 1,
        "a task that ran again: its output was lost": 1,
        "a task of a stage that no event describes": 1,
    }
    assert w.meta["report"]["noticed"] == {
        "output lost with its executor": 1,
        "a speculative copy that won": 1,
        "a stage of which not every task has ended": 1,
    }


def planned():
    """Return the events of an adaptively planned join, whose Spark jobs skip written stages."""
    sql = {"spark_sql_execution_id": "7"}
    plan = {"Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
            "executionId": 7, "description": "the join"}  # fmt: skip
    return [
        start(),
        plan,
        job(0, stage(0, 1), at_ms=1000, **sql),
        job(1, stage(1, 1), at_ms=1000, **sql),
        task(0, 0, 1000, 2000),
        task(1, 0, 1000, 2500),
        job_end(0, 2000),
        job_end(1, 2500),
        job(
            2, stage(2, 1, rdds=[0]), stage(3, 1, rdds=[1]), stage(4, 1, [2, 3]), at_ms=3000, **sql
        ),
        task(4, 0, 3000, 4000),
        job_end(2, 4000),
        job(3, stage(5, 1), at_ms=5000, spark_scheduler_pool="gold"),
        task(5, 0, 5000, 5000),
        job_end(3, 6000),
        end(),
    ]


def test_edges_replace_skipped_stages_and_order_jobs(tmp_path):
    w = load(tmp_path, *planned())
    assert edges(w) == [(0, 2), (1, 2), (2, 3)]
    assert w.meta["report"]["noticed"] == {"a skipped stage: its output existed": 2}
    assert w.meta["report"]["filled"] == {"0 ms becomes 0.5 ms": 1}
    account = check_account(w, edges=2)
    assert account["edges"]["changed_by"] == {"the order of an application's Spark jobs": -1}
    assert edges(load(tmp_path, *planned(), order=False)) == [(0, 2), (1, 2)]
    shared = job(2, stage(2, 1, rdds=[0]), stage(3, 1, [2]), stage(4, 1, [2, 3]), at_ms=3000)
    tasks = [task(i, 0, 1000 * i, 1000 * i + 9) for i in (0, 3, 4)]
    w = load(tmp_path, start(), job(0, stage(0, 1)), shared, *tasks, order=False)
    assert edges(w) == [(0, 1), (0, 2), (1, 2)]
    check_account(w, edges=3)
    first = job(0, stage(0, 1), stage(1, 1, [0]))
    again = job(1, stage(2, 1, rdds=[0]), stage(3, 1, [2], rdds=[1]), stage(4, 1, [3]), at_ms=3000)
    tasks = [task(i, 0, 1000 * i, 1000 * i + 9) for i in (0, 1, 4)]
    skipped = load(tmp_path, start(), first, again, *tasks, order=False)
    assert edges(skipped) == [(0, 1), (1, 2)]
    check_account(skipped, edges=2)


def test_a_query_or_a_spark_job_can_be_a_job(tmp_path):
    w = load(tmp_path, *planned(), read_as="queries")
    assert w.jobs["job_id"].to_pylist() == ["app-1/query-7", "app-1/job-3"]
    assert w.jobs["template"].to_pylist() == ["etl: the join", "etl: count"]
    assert w.jobs["queue"].to_pylist() == ["default", "gold"]
    assert w.jobs["submit_s"].to_pylist() == [1.0, 5.0]
    assert w.jobs["recorded_finish_s"].to_pylist() == [4.0, 6.0]
    assert edges(w) == [(0, 2), (1, 2)]
    w = load(tmp_path, *planned(), read_as="jobs")
    assert w.n_jobs == 4
    assert edges(w) == []
    assert w.meta["report"]["noticed"]["a stage that reads what another job has written"] == 2


@pytest.mark.parametrize(
    ("events", "cpu", "mem"),
    [
        ([], 1.0, 1.0),
        ([environment(spark_master="local[2]", spark_driver_memory="3g"), executor(2)], 1.0, 1.5),
        ([environment(spark_executor_cores="5", spark_task_cpus="2",
                      spark_executor_memory="1024", spark_executor_memoryOverhead="512m")],
         2.0, 0.6),
        ([profile(0, 2.0, 4, memory=2048, memoryOverhead=1024, offHeap=1024)], 2.0, 2.0),
        ([profile(3, 1.0, 4, memory=2048), executor(8, 3)], 1.0, 1.0),
    ],
)  # fmt: skip
def test_a_task_holds_its_share_of_an_executor(tmp_path, events, cpu, mem):
    w = load(tmp_path, start(), *events, job(0, stage(0, 1)), task(0, 0, 0, 9), end())
    assert w.stages["demand_cpu"].to_pylist() == [cpu]
    assert w.stages["demand_mem"].to_pylist() == [pytest.approx(mem)]


def test_a_stage_may_have_its_own_profile(tmp_path):
    own = stage(0, 1, **{"Resource Profile Id": 3})
    w = load(tmp_path, start(), profile(3, 2, 4, memory=2048), job(0, own), task(0, 0, 0, 9))
    assert w.stages["demand_cpu"].to_pylist() == [2.0]


def test_an_unfinished_log_is_read_with_what_it_has(tmp_path):
    events = two_stages()[:9]  # the reduce has begun
    file = tmp_path / "app-1.inprogress"
    file.write_text(text(*events) + '{"Event": "SparkListenerTaskEnd", "Sta')
    w = sim.read_trace("spark_eventlog", file)
    assert durations(w) == [1.0, 2.0]
    assert w.jobs["recorded_finish_s"].to_pylist() == [None]
    whole = w.meta["report"]
    assert whole["dropped"] == {"a task that has not ended (censored)": 1}
    assert whole["noticed"] == {
        "a truncated last line": 1,
        "an application whose end is not in its log": 1,
        "a job that still ran where the log ends (censored)": 1,
    }
    assert whole["bad_rows"] == {}
    assert whole["warnings"] == [
        "app-1.inprogress: 1 of 3 tasks (33.3 %) still ran where the log ends (censored); only "
        "what had ended is in the workload",
        "app-1.inprogress: 1 of 1 jobs (100.0 %) still ran where the log ends (censored); only "
        "what had ended is in the workload",
    ]


PACKED = {
    "gz": gzip.compress,
    "zstd": lambda b: b"".join(pa.compress(p, "zstd", asbytes=True) for p in (b[:900], b[900:])),
    "lz4": lambda b: b"".join(block(b[i : i + 900]) for i in range(0, len(b) + 900, 900)),
    "frame": lambda b: frame(b),
}


def block(content: bytes) -> bytes:
    """Pack as lz4-java's LZ4BlockOutputStream does, of which the last block is empty."""
    packed = pa.compress(content, "lz4_raw", asbytes=True) if content else b""
    sizes = b"".join(len(part).to_bytes(4, "little") for part in (packed, content))
    return b"LZ4Block" + bytes([0x25]) + sizes + bytes(4) + packed


def frame(content: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("codec", PACKED)
def test_compressed_logs(tmp_path, codec):
    plain = text(*two_stages()).encode()
    (tmp_path / "app-1").write_bytes(PACKED[codec](plain))
    w = sim.read_trace("spark_eventlog", tmp_path / "app-1")
    assert durations(w) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("codec", ["gz", "zstd", "lz4"])
def test_a_truncated_compressed_log(tmp_path, codec):
    plain = text(*two_stages(), *[executor(cores) for cores in range(3000)]).encode()
    packed = PACKED[codec](plain)[: -5 if codec == "gz" else -40]
    for name in ("app-1", "app-1.inprogress"):
        (tmp_path / name).write_bytes(packed)
    with pytest.raises(InputError, match=r"truncated|read on"):
        sim.read_trace("spark_eventlog", tmp_path / "app-1")
    for name, on_bad_row in (("app-1.inprogress", "error"), ("app-1", "skip")):
        w = sim.read_trace("spark_eventlog", tmp_path / name, on_bad_row=on_bad_row)
        assert w.meta["report"]["noticed"]["a truncated compressed file"] == 1


@pytest.mark.parametrize("head", [b"\x82SNAPPY\0\0\0\0\1", b"ZV\x01\0\1"])
def test_unsupported_codecs_are_errors(tmp_path, head):
    (tmp_path / "app-1").write_bytes(head)
    with pytest.raises(InputError, match="codec=zstd"):
        sim.read_trace("spark_eventlog", tmp_path / "app-1")


def test_a_rolled_log_and_a_folder_of_many(tmp_path):
    rolled = tmp_path / "eventlog_v2_app-1"
    rolled.mkdir()
    events = two_stages()
    (rolled / "appstatus_app-1").touch()
    (rolled / ".events_1_app-1.crc").write_bytes(b"crc")
    (rolled / "events_1_app-1.zstd").write_bytes(PACKED["zstd"](text(*events[:5]).encode()))
    (rolled / "events_2_app-1").write_text(text(*events[5:9]))
    (rolled / "events_10_app-1").write_text(text(*events[9:]))
    alone = sim.read_trace("spark_eventlog", rolled)
    assert durations(alone) == [1.0, 2.0, 3.0]
    assert alone.meta["report"]["noticed"] == {"a file of a rolled log is missing": 7}
    (rolled / "events_2_app-1.compact").write_text(text(*events[:8]))
    fewer = sim.read_trace("spark_eventlog", rolled)
    assert durations(fewer) == [1.0, 3.0]
    (tmp_path / "app-2").write_text(text(*two_stages("app-2", at_ms=-4000, name="report")))
    (tmp_path / "app-3").write_text(text(start(app="app-3"), end()))
    (tmp_path / "app-4").write_text(text(*two_stages("app-2")))
    (tmp_path / "app-5").touch()
    (tmp_path / "other").mkdir()
    w = sim.read_trace("spark_eventlog", tmp_path)
    jobs = w.jobs.to_pandas().set_index("job_id")
    assert jobs["submit_s"].to_dict() == {
        "app-2": 0.0,
        "app-2@2026-02-25T06:13:20": 4.0,
        "app-1": 4.0,
    }
    report = w.meta["report"]
    assert report["dropped"] == {"an application without a successful task": 1}
    assert report["noticed"] == {
        "an empty file": 1,
        "a folder without event logs": 1,
        "a file of a rolled log is missing": 7,
        "a task whose end is not in the log, though its stage completed": 1,  # it was compacted
        "a stage of which not every task has ended": 1,
        "an application whose id another one has too: told apart by its start": 1,
    }
    assert report["warnings"] == [
        "eventlog_v2_app-1: 7 of 9 files of a rolled log are missing, by their numbers",
        f"{tmp_path.name}: 1 of 9 tasks of stages that completed have no end in the log (events "
        "that Spark dropped?), 11.1 % of these stages' tasks: their work is unknown and left out "
        "(trace.missing_tasks=median fills it in)",
    ]
    account = check_account(w, cpu_s=16.0, jobs=4)
    assert account["jobs"]["left_out_by"] == {"an application without a successful task": 1}


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        ("no json", "wrong line"),
        ("[]", "wrong line"),
        ({"event": 1}, "wrong line"),
        (task(0, 0, 9, 3), "ends before it starts"),
        ({**task(0, 0, 0, 3), "Task Info": None}, "missing value"),
        ({**task(0, 0, 0, 3), "Stage ID": "0"}, "wrong type"),
        ({**task(0, 0, 0, 3), "Stage ID": -1}, "number out of range"),
        (job(1, stage(3, 1, [4])), "wrong parent"),
        (job(0), "job that has started"),
        (start(name="\ud800"), "not UTF-8"),
    ],
)
def test_errors_name_line_and_rule(tmp_path, event, rule):
    events = [start(), job(0, stage(0, 1)), task(0, 0, 0, 2000, **READS), event, end()]
    with pytest.raises(InputError) as caught:
        load(tmp_path, *events)
    assert (caught.value.rule, caught.value.line) == (rule, 4)
    assert caught.value.file == str(tmp_path / "app-1")
    w = load(tmp_path, *events, on_bad_row="skip")
    assert w.meta["report"]["bad_rows"] == {rule: 1}
    assert durations(w) == [2.0]


def test_an_empty_result_names_the_rules(tmp_path):
    with pytest.raises(InputError, match="1 × an application without a successful task") as caught:
        load(tmp_path, start(), started(), end())
    assert caught.value.rule == "no job left"
    (tmp_path / "app-1").unlink()
    with pytest.raises(InputError, match="contains no event logs"):
        sim.read_trace("spark_eventlog", tmp_path)
