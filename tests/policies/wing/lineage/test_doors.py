"""Forms in which events and the two logs are exported, and what is said of what is none of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from policies.wing.lineage import Store, read_logs
from policies.wing.lineage.openlineage import read_events
from policies.wing.lineage.openlineage.values import Malformed, json_values
from policies.wing.lineage.times import seconds
from sim.base.errors import InputError
from sim.check.account import check_account
from sim.cli.main import main
from tests.policies.wing.lineage.events import (
    BEGIN,
    DAYS,
    END,
    clock,
    counts,
    daily,
    event,
    profiled,
    scheduled,
    write,
)

FORMS = (
    "lines", "gzip", "byte order mark", "utf-16", "list", "pretty list", "pretty", "glued",
    "events", "folder",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_events_are_read_as_they_come(tmp_path, capsys, form):
    path = write(tmp_path / "e", daily(), form)
    store, printed = profiled(path, capsys)
    assert counts(store) == (56, 28, 2, 1400.0)
    assert printed.startswith("Overview")
    assert scheduled(path, capsys)[0].n_jobs == 14


def test_a_folder_has_folders_and_other_files(tmp_path, capsys):
    events = daily()
    (tmp_path / "e" / "2025" / "03").mkdir(parents=True)
    for number in range(4):
        write(tmp_path / "e" / "2025" / "03" / f"{number}.jsonl", events[number::4])
    (tmp_path / "e" / "README.md").write_text("events of March")
    (tmp_path / "e" / ".part.crc").write_bytes(b"\0\1")
    (tmp_path / "e" / "empty.jsonl").write_text("")
    store, _ = profiled(tmp_path / "e", capsys)
    assert counts(store) == (56, 28, 2, 1400.0)


def test_a_malformed_event_is_named_with_its_file(tmp_path, capsys):
    events = daily()
    (tmp_path / "e").mkdir()
    write(tmp_path / "e" / "a.jsonl", events[:50])
    write(tmp_path / "e" / "b.jsonl", [events[50], "{broken", *events[51:]])
    _, printed = profiled(tmp_path / "e", capsys)
    assert printed.startswith("1 of 113 (0.9 %) events are malformed: line b.jsonl:2: no JSON")
    assert main(["lineage", str(tmp_path / "e"), "--out", str(tmp_path / "p"), "--strict"]) == 2
    assert "b.jsonl:2: no JSON" in capsys.readouterr().err


def deep(events, *keys, text=False):
    """Return records that hold each event under keys, perhaps as text."""
    records = []
    for entry in events:
        record = json.dumps(entry) if text else entry
        for key in reversed(keys):
            record = {key: record, "offset": 1}
        records.append(record)
    return records


@pytest.mark.parametrize("form", ["lines", "list"])
@pytest.mark.parametrize(
    ("keys", "text"),
    [(("payload",), False), (("request_body",), False), (("value",), True),
     (("detail", "event"), False)],
)  # fmt: skip
def test_a_wrapper_is_named(tmp_path, capsys, keys, text, form):
    path = write(tmp_path / "e", deep(daily()[:12], *keys, text=text), form)
    assert main(["lineage", str(path), "--out", str(tmp_path / "p")]) == 2
    expected = f"each of 12 records has its OpenLineage event under '{'.'.join(keys)}'"
    assert expected in capsys.readouterr().err
    mixed = write(tmp_path / "m", [*daily(), *deep(daily()[:2], *keys, text=text)], form)
    _, printed = profiled(mixed, capsys)
    line = 1 if form == "list" else 113
    expected = f"malformed: line {line}: the event is under '{'.'.join(keys)}'"
    assert printed.startswith(f"2 of 114 (1.8 %) events are {expected}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}',
         "its keys: apiVersion, kind; it looks like Argo's workflows: trace=argo"),
        ('{"kind": "List", "items": []}', "looks like objects of Kubernetes: trace=kubernetes"),
        ('[{"task_id": "a", "state": "FINISHED"}]', "looks like Ray's tasks: trace=ray"),
        ('[{"dag_id": "a", "start_date": null}]', "looks like runs of Airflow: docs/from_your"),
        ('{"metadata": {"dbt_schema_version": "v6"}, "results": []}', "like results of dbt: docs"),
        ('{"runs": [{"id": "1", "startedAt": null}]}', "looks like runs or jobs of Marquez: docs"),
        ('{"Event": "SparkListenerLogStart"}', "looks like Spark's event log: trace=spark_event"),
        ('{"a": 1}', "its keys: a [no event]"),
        ("[1, 2]", "none of 2 records is an OpenLineage event of a run: 2 malformed, the first in "
         "line 1: no JSON object"),
        ('{"eventTime": "2025-03-03T01:00:00Z", "job": {"name": "a"}}',
         "none of 1 records is an OpenLineage event of a run: 1 of a job, not of a run"),
        ("", "is empty"),
        ("a,b\n1,2\n", "begins with 'a,b', and is no JSON as OpenLineage events"),
    ],
)  # fmt: skip
def test_a_file_of_another_kind_is_told_as_such(tmp_path, capsys, content, message):
    (tmp_path / "e").write_text(content)
    assert main(["lineage", str(tmp_path / "e"), "--out", str(tmp_path / "p")]) == 2
    assert message in capsys.readouterr().err


def values(tmp_path: Path, content: bytes) -> list[tuple[int, object]]:
    (tmp_path / "v").write_bytes(content)
    return [
        (line, "bad" if isinstance(value, Malformed) else value)
        for line, value in json_values(tmp_path / "v")
    ]


def test_values_of_a_text(tmp_path):
    assert values(tmp_path, b'{"a": 1}\n\n[{"b": 2},\n 3]\n"x" 12 true') == [
        (1, {"a": 1}), (3, {"b": 2}), (4, 3), (5, "x"), (5, 12), (5, True),
    ]  # fmt: skip
    assert values(tmp_path, b'{"a": \n{"b": 2}\n') == [(1, "bad"), (2, {"b": 2})]
    assert values(tmp_path, b'xyz\n{"b": 2}{"c"\n') == [(1, "bad"), (2, {"b": 2}), (2, "bad")]
    assert values(tmp_path, b'\x1e{"a": 1}\n\x1e{"a": 2}\n')[1] == (2, {"a": 2})
    assert values(tmp_path, '{"a": "\\ud83d\\ude00ä"}'.encode()) == [(1, {"a": "😀ä"})]
    assert values(tmp_path, b'{"a": "\\ud83d"}\n{"a": "\xff"}\n{"a": 1}') == [
        (1, "bad"), (2, "bad"), (3, {"a": 1}),
    ]  # fmt: skip
    assert values(tmp_path, b"[" * 100_000 + b"\n1") == [(1, "bad"), (2, 1)]


@pytest.mark.parametrize("n_bytes", [1, 2, 3, 7])
def test_values_do_not_depend_on_the_pieces_of_the_text(tmp_path, monkeypatch, n_bytes):
    content = (
        '\ufeff{"a": "xäy", "n": -12.5e3}\n{broken\n{"b": [1, null, true]}\n[12, 345]'.encode()
    )
    expected = values(tmp_path, content)
    monkeypatch.setattr("policies.wing.lineage.openlineage.values._PIECE_BYTES", n_bytes)
    assert values(tmp_path, content) == expected
    assert len(expected) == 5


def test_a_truncated_file_is_an_error_at_its_line(tmp_path):
    content = gzip.compress("\n".join(json.dumps(e) for e in daily()).encode())
    (tmp_path / "e.gz").write_bytes(content[:-200])
    with pytest.raises(InputError, match="truncated"):
        read_events(tmp_path / "e.gz")


JOBS = ["job_id,template_name,submit_s,finish_s"]
OPERATIONS = ["time_s,job,operation,file"]
for _day in range(DAYS):
    for _name, _begin, _end, _verb in (
        ("load", "01:00", "01:20", "WRITE"), ("sum", "01:25", "01:55", " Read"),
    ):  # fmt: skip
        _row = [clock(_day, _begin), clock(_day, _end)]
        JOBS.append(f"{_name}-{_day},{_name},{_row[0]},{_row[1]}")
        OPERATIONS.append(f"{_row[_verb == 'WRITE']},{_name}-{_day},{_verb},stg")


def tables(tmp_path, operations=OPERATIONS, jobs=JOBS):
    (tmp_path / "o.csv").write_text("\n".join(operations) + "\n")
    (tmp_path / "j.csv").write_text("\n".join(jobs) + "\n")
    return tmp_path / "o.csv", tmp_path / "j.csv"


FORM_OF_TIME = {
    "with T and Z": str,
    "with a space": lambda text: text.replace("T", " ").replace("Z", ""),
    "UTC by name": lambda text: text.replace("T", " ").replace("Z", " UTC"),
    "ten hours east": lambda text: text.replace("T0", "T1").replace("Z", "+10:00"),
    "milliseconds": lambda text: text.replace("Z", ".000+00"),
}


def formatted(lines, columns, form):
    """Return a table with its times in a form; seconds since 1970 for None."""
    rows = [line.split(",") for line in lines[1:]]
    for row in rows:
        for column in columns:
            time = row[column]
            row[column] = FORM_OF_TIME[form](time) if form else str(seconds(time)[0])
    return [lines[0], *(",".join(row) for row in rows)]


@pytest.mark.parametrize("form", FORM_OF_TIME)
@pytest.mark.parametrize("dated", ["both", "operations", "jobs"])
def test_tables_with_dates(tmp_path, capsys, form, dated):
    """In one log alone, with seconds since 1970 in the other; `READ` is `read`."""
    operations = formatted(OPERATIONS, [0], form if dated != "jobs" else None)
    jobs = formatted(JOBS, [2, 3], form if dated != "operations" else None)
    o, j = tables(tmp_path, operations, jobs)
    store, printed = profiled(o, capsys, "--jobs", str(j))
    assert counts(store) == (56, 28, 2, 1400.0)
    assert printed.startswith("Overview")
    assert store.tables["jobs"]["submit_s"][0].as_py() == 1740963600.0
    assert scheduled(o, capsys, "--jobs", str(j))[0].n_jobs == 14


def test_logs_that_count_from_different_zeros_are_told(tmp_path, capsys):
    names = [line.split(",")[0] for line in JOBS[1:]]
    jobs = [JOBS[0], *(f"{name},x,{k * 600},{k * 600 + 500}" for k, name in enumerate(names))]
    o, j = tables(tmp_path, OPERATIONS, jobs)
    _, printed = profiled(o, capsys, "--jobs", str(j))
    assert printed.startswith("56 of 56 operations lie before or after their job's run: do the two")


def test_an_impossible_date_is_counted_with_its_line(tmp_path, capsys):
    rows = [*JOBS, "x,t,2025-13-01T00:00:00Z,2025-03-01T00:00:00Z", "y,t,,2025-03-03T00:00:00Z"]
    o, j = tables(tmp_path, jobs=rows)
    _, printed = profiled(o, capsys, "--jobs", str(j))
    assert printed.startswith(
        "2 rows of j.csv are left out: missing value (1; line 59: submit_s is missing; it must be "
        "like 2025-03-03 01:20:00), text of another form (1; line 58: submit_s is '2025-13-01T"
    )
    week, _ = scheduled(o, capsys, "--jobs", str(j))
    account = check_account(week, jobs=16)
    assert account["jobs"]["left_out_by"] == {"text of another form": 1, "missing value": 1}
    assert account["tokens_s"]["unknown"] == 2
    out = ["--out", str(tmp_path / "p"), "--strict"]
    assert main(["lineage", str(o), "--jobs", str(j), *out]) == 2
    assert "j.csv:58: submit_s is '2025-13-01T00:00:00Z'" in capsys.readouterr().err
    o, j = tables(tmp_path, jobs=[*JOBS, "x,t,2025-02-30,2025-03-01"])
    with pytest.raises(InputError, match="submit_s is '2025-02-30'; it must be a time like"):
        read_logs(o, j)


@pytest.mark.parametrize(
    ("row", "message", "rule"),
    [
        ("2025-03-03T09:00:00Z,load-0,chew,f", "operation is 'chew'; valid: read, write, download",
         "unknown operation"),
        ("2025-03-03T09:00:00Z,who,read,f", "the job 'who' is not in the log of jobs",
         "unknown job"),
    ],
)  # fmt: skip
def test_strict_stops_at_unknown_operations_and_jobs(tmp_path, capsys, row, message, rule):
    o, j = tables(tmp_path, [*OPERATIONS[:9], row, *OPERATIONS[9:]])
    words = ["lineage", str(o), "--jobs", str(j), "--out", str(tmp_path / "p")]
    assert main(words) == 0
    rules = {
        "unknown operation": "operations: unknown operation",
        "unknown job": "operations: job not in the job log",
    }
    assert Store.read(tmp_path / "p").report[rules[rule]] == 1
    printed = capsys.readouterr().out
    assert printed.startswith(
        f"1 of 57 operations are left out, the first in line 10: {message.partition(';')[0]}"
    )
    assert main([*words, "--strict"]) == 2
    printed = capsys.readouterr().err
    assert f"o.csv:10: {message}" in printed
    assert f"[{rule}]" in printed


@pytest.mark.parametrize("log", ["operations", "jobs"])
def test_times_in_milliseconds_are_refused(tmp_path, log):
    o, j = tables(tmp_path, formatted(OPERATIONS, [0], None), formatted(JOBS, [2, 3], None))
    file = o if log == "operations" else j
    file.write_text(file.read_text().replace(".0", "000"))
    with pytest.raises(
        InputError, match=r"times like 17409\d{8}: give seconds, or dates"
    ) as caught:
        read_logs(o, j)
    assert caught.value.rule == "implausible unit"


def test_a_download_needs_no_job(tmp_path):
    o, j = tables(tmp_path, [*OPERATIONS, "2025-03-31T00:00:00Z,,Download,stg"])
    logs = read_logs(o, j, on_bad_row="error")
    assert logs.job.tolist()[-1] == -1


def test_operations_have_other_names(tmp_path):
    names = ("Create", "OVERWRITE", "append", "drop", "TRUNCATE", "failed_write", "chew")
    rows = [f"2025-03-03T01:0{k}:00Z,load-0,{name},f" for k, name in enumerate(names)]
    logs = read_logs(*tables(tmp_path, [OPERATIONS[0], *rows]))
    assert logs.operation.tolist() == [4, 4, 3, 5, 5, 6]
    assert logs.report["operations: unknown operation"] == 1


def test_a_job_given_twice_is_told_from_a_repeated_row(tmp_path, capsys):
    other = JOBS[-1].replace("01:55", "03:55")
    o, j = tables(tmp_path, jobs=[*JOBS, *JOBS[-3:], other])
    store, _ = profiled(o, capsys, "--jobs", str(j))
    assert counts(store)[0] == 56
    assert store.report["jobs: row given twice"] == 3
    assert store.report["jobs: job_id given twice"] == 1


def test_a_log_without_a_valid_job_says_why(tmp_path, capsys):
    o, j = tables(tmp_path, jobs=[JOBS[0], "a,t,never,2025-03-03", "b,t,,"])
    words = ["lineage", str(o), "--jobs", str(j)]
    window = ["--workload", str(tmp_path / "w"), "--begin", BEGIN, "--end", END]
    for more in (["--out", str(tmp_path / "p")], window):
        assert main([*words, *more]) == 2
        printed = capsys.readouterr().err
        assert "no job is left of the log of jobs: 2 rows of j.csv are left out" in printed
        assert "line 2: submit_s is 'never'" in printed


def test_events_name_no_run_twice(tmp_path):
    doubled = [event("START", clock(0, "01:00"), "a", "a")] * 2
    path = write(tmp_path / "e", [*doubled, event("COMPLETE", clock(0, "01:10"), "a", "a")])
    assert read_events(path).notes == ()
