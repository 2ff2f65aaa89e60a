"""Applications in several files, and several applications in a file or a folder."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import pytest

import sim
from sim.base.errors import InputError
from sim.check.account import check_account
from tests.sim.traces.spark_events import (
    T0,
    completed,
    end,
    environment,
    executor,
    job,
    job_end,
    stage,
    start,
    submitted,
    task,
    text,
    two_stages,
)
from tests.sim.traces.test_spark_eventlog import durations, edges, load

REPEATED = "a repeated event: another line has the same attempt"
LOG_START = {"Event": "SparkListenerLogStart", "Spark Version": "3.5.1"}


def metadata(context, number):
    return {"Event": "DBCEventLoggingListenerMetadata", "Spark Version": "3.3.0",
            "Rollover Number": number, "SparkContext Id": context}  # fmt: skip


def write(file: Path, *events) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    content = text(*events).encode()
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)


def read(path: Path, **options):
    return sim.read_trace("spark_eventlog", path, **options)


def job_ids(workload):
    return workload.jobs["job_id"].to_pylist()


def cut(events, *positions):
    bounds = [0, *positions, len(events)]
    return [events[a:b] for a, b in itertools.pairwise(bounds)]


def test_a_folder_of_clusters_as_databricks_delivers_them(tmp_path):
    for number, cluster in enumerate(("0101-a", "0102-b")):
        folder = tmp_path / cluster / "eventlog" / f"{cluster}_10_0_0_1" / "7"
        events = two_stages(f"app-{cluster}", at_ms=10_000 * number)
        first, second, third = cut(events, 7, 9)
        # all contexts have the same id here: the folder decides
        write(folder / "eventlog-2026-02-25--06-00.gz", metadata(7, 0), *first)
        write(folder / "eventlog-2026-02-25--07-00.gz", metadata(7, 1), *second)
        write(folder / "eventlog", metadata(7, 2), *third)
        write(tmp_path / cluster / "driver" / "stdout", "hello")
        write(tmp_path / cluster / "driver" / "log4j-active.log", "26/02/25 06:00:00 INFO a: b")
    w = read(tmp_path)
    assert job_ids(w) == ["app-0101-a", "app-0102-b"]
    assert durations(w) == [1.0, 2.0, 3.0] * 2
    report = w.meta["report"]
    assert report["dropped"] == {}
    assert report["noticed"] == {
        "a file that is not an event log": 4,
        "a folder without event logs": 2,
    }
    assert "warnings" not in report
    check_account(w, cpu_s=12.0, tasks=6, jobs=2)
    (folder / "eventlog-2026-02-25--07-00.gz").unlink()
    report = read(tmp_path).meta["report"]
    assert report["noticed"]["a file of a rolled log is missing"] == 1
    assert report["warnings"][0].endswith(
        "1 of 3 files of a rolled log are missing, by their numbers"
    )


@pytest.mark.parametrize("names", [("a", "b", "c"), ("c", "b", "a"), ("log.2", "log.1", "log")])
def test_parts_are_joined_in_the_order_of_their_events(tmp_path, names):
    for name, events in zip(names, cut(two_stages(), 2, 8), strict=True):
        write(tmp_path / name, *events)
    w = read(tmp_path)
    assert job_ids(w) == ["app-1"]
    assert durations(w) == [1.0, 2.0, 3.0]
    assert edges(w) == [(0, 1)]
    assert w.meta["report"]["noticed"] == {}


def test_each_part_may_repeat_the_start_of_its_application(tmp_path):
    first, second = cut(two_stages(), 8)
    head = [LOG_START, first[0], environment(spark_executor_memory="4g"), executor(4)]
    write(tmp_path / "part-1", *first)
    write(tmp_path / "part-2", *head, *second)
    w = read(tmp_path)
    assert job_ids(w) == ["app-1"]
    assert durations(w) == [1.0, 2.0, 3.0]
    check_account(w, cpu_s=6.0, jobs=1)


def test_copies_are_repeated_files(tmp_path):
    events = two_stages()
    write(tmp_path / "app-1", *events)
    write(tmp_path / "app-1.inprogress", *events[:9])  # an early copy
    write(tmp_path / "backup" / "app-1.gz", *events)
    w = read(tmp_path)
    assert durations(w) == [1.0, 2.0, 3.0]
    report = w.meta["report"]
    assert report["dropped"] == {REPEATED: 5}
    assert report["noticed"] == {
        "a repeated file: other files have all its attempts": 1,  # and a part of another
        "a job's start that another line has too": 2,
    }
    account = check_account(w, cpu_s=6.0 + 3.0 + 6.0, jobs=1, tasks=3)
    assert account["cpu_s"]["by_option"] == account["cpu_s"]["left_out"] == 9.0


@pytest.mark.parametrize("differs", ["start", "job"])
def test_an_id_of_two_applications(tmp_path, differs):
    write(tmp_path / "a", *two_stages("local-1"))
    if differs == "start":
        write(tmp_path / "b", *two_stages("local-1", at_ms=60_000))
        second = "local-1@2026-02-25T06:14:20"
    else:
        other = [job(0, stage(0, 1), at_ms=700), task(0, 0, 1000, 9000), end(9000)]
        write(tmp_path / "b", start(app="local-1"), *other)
        second = "local-1@2026-02-25T06:13:20"
    w = read(tmp_path)
    assert sorted(job_ids(w)) == ["local-1", second]
    assert w.meta["report"]["dropped"] == {}
    check_account(w, cpu_s=12.0 if differs == "start" else 14.0, jobs=2)


def test_applications_put_together_in_a_file(tmp_path):
    later = two_stages("app-2", at_ms=60_000)
    later.insert(0, executor(8))
    w = load(tmp_path, LOG_START, *two_stages(), LOG_START, *later)
    assert job_ids(w) == ["app-1", "app-2"]
    assert durations(w) == [1.0, 2.0, 3.0] * 2
    assert w.stages["demand_mem"].to_pylist() == [1.0, 1.0, 0.5, 0.5]
    again = load(tmp_path, LOG_START, *two_stages(), LOG_START, *two_stages())
    assert job_ids(again) == ["app-1"]
    assert again.meta["report"]["dropped"] == {REPEATED: 3}
    assert load(tmp_path, *two_stages(), *later[1:]).n_jobs == 2


def test_a_file_without_a_start_is_not_given_to_an_application_that_it_contradicts(tmp_path):
    write(tmp_path / "app-1", *two_stages())
    other = two_stages(at_ms=3000)
    write(tmp_path / "lost", *other[1:])  # has another job 0
    write(tmp_path / "old", task(0, 0, -9000, -8000))
    write(tmp_path / "late", task(0, 0, 90_000, 91_000))
    w = read(tmp_path)
    assert job_ids(w) == ["app-1", "lost"]
    assert durations(w) == [1.0, 2.0, 3.0] * 2
    report = w.meta["report"]
    assert report["dropped"] == {
        "a task of a stage that no event describes": 2,
        "an application without a successful task": 2,
    }
    assert report["noticed"]["an application whose start is not in its log"] == 3
    hints = [warning for warning in report["warnings"] if "part of a rolled log" in warning]
    assert [hint.split()[0] for hint in hints] == ["late", "old"]
    check_account(w, cpu_s=14.0, jobs=4)


def test_a_part_goes_to_the_application_that_it_is_named_after(tmp_path):
    for app in ("app-1", "app-2"):
        first, second = cut(two_stages(app), 8)
        write(tmp_path / app, *first)
        write(tmp_path / f"{app}.1", *second)
    w = read(tmp_path)
    assert job_ids(w) == ["app-1", "app-2"]
    assert durations(w) == [1.0, 2.0, 3.0] * 2
    write(tmp_path / "x", task(0, 0, 1500, 2500, task_id=8), end())
    assert read(tmp_path).meta["report"]["dropped"] == {
        "a task of a stage that no event describes": 1,
        "an application without a successful task": 1,
    }


def test_a_link_to_a_folder_above_is_read_once(tmp_path):
    write(tmp_path / "logs" / "app-1", *two_stages())
    (tmp_path / "logs" / "again").symlink_to(tmp_path, target_is_directory=True)
    assert durations(read(tmp_path)) == [1.0, 2.0, 3.0]


def test_a_damaged_file_of_a_folder_is_told(tmp_path):
    write(tmp_path / "app-1", *two_stages())
    (tmp_path / "app-2.gz").write_bytes(gzip.compress(text(*two_stages("app-2")).encode())[:200])
    (tmp_path / "empty.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(InputError, match=r"app-2\.gz"):
        read(tmp_path)
    w = read(tmp_path, on_bad_row="skip")
    assert durations(w) == [1.0, 2.0, 3.0]
    assert w.meta["report"]["noticed"]["an empty file"] == 1
    assert "app-2.gz is truncated" in w.meta["report"]["warnings"][0]


def without_start(**properties):
    """Return the events of a job of two stages whose start Spark dropped, and of another."""
    first, second = stage(0, 2, name="map"), stage(1, 1, [0], name="reduce")
    return [
        start(),
        submitted(first, 1000, **properties),
        task(0, 0, 1000, 2000),
        task(0, 1, 1000, 3000),
        completed(first, 3000),
        submitted(second, 3000, **properties),
        task(1, 0, 3000, 6000),
        completed(second, 6000),
        job_end(0, 6000),
        job(1, stage(2, 1), at_ms=7000),
        task(2, 0, 7000, 8000),
        job_end(1, 8000),
        end(),
    ]


def test_stages_of_a_job_without_a_start(tmp_path):
    w = load(tmp_path, *without_start())
    assert w.stages["name"].to_pylist() == ["0 map", "1 reduce", "2 count"]
    assert durations(w) == [1.0, 2.0, 3.0, 1.0]
    assert edges(w) == [(0, 1), (1, 2)]
    report = w.meta["report"]
    assert report["dropped"] == {}
    assert report["noticed"] == {
        "a job's end without its start": 1,
        "a stage of a job whose start is not in the log": 2,
    }
    check_account(w, cpu_s=7.0, tasks=4, edges=1)


@pytest.mark.parametrize("read_as", ["jobs", "queries"])
def test_a_job_without_a_start_is_a_job(tmp_path, read_as):
    sql = {"spark_sql_execution_id": "4", "spark_scheduler_pool": "gold"}
    w = load(tmp_path, *without_start(**sql), read_as=read_as)
    first = "query-4" if read_as == "queries" else "stages-0"
    assert job_ids(w) == [f"app-1/{first}", "app-1/job-1"]
    assert w.jobs["queue"].to_pylist() == ["gold", "default"]
    assert w.jobs["submit_s"].to_pylist() == [1.0, 7.0]
    assert w.jobs["recorded_finish_s"].to_pylist() == [6.0, 8.0]
    assert edges(w) == [(0, 1)]


def test_stages_without_a_start_or_times(tmp_path):
    """Two stages that a third one reads are of one job; a query's stages are, too."""
    bare = [{"Event": "SparkListenerStageSubmitted", "Stage Info": info}
            for info in (stage(0, 1), stage(1, 1), stage(2, 1, [0, 1]))]  # fmt: skip
    alone = submitted(stage(3, 1), 9000, spark_sql_execution_id="1")
    related = submitted(stage(4, 1), 9000, spark_sql_execution_id="1")
    tasks = [task(i, 0, 1000 + i, 2000 + i) for i in range(5)]
    w = load(tmp_path, *bare, alone, related, *tasks, read_as="jobs")
    assert job_ids(w) == ["app-1/stages-0", "app-1/stages-3"]
    assert w.meta["offset_s"] == (T0 + 1000) / 1000
    assert w.stages["job"].to_pylist() == [0, 0, 0, 1, 1]
    assert load(tmp_path, *bare, alone, related, *tasks).n_jobs == 1
