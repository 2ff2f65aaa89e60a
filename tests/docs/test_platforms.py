"""Queries and scripts of the page on data platforms give the right jobs of made-up exports."""

from __future__ import annotations

import csv
import json
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import sim
from sim.traces import read_trace
from tests.docs import pages

PAGE = "from_your_data_platform.md"
FINISH = {"end_s": "finish_s"}
DAY = "2026-03-03 0"


def block(language: str, text: str) -> str:
    """Return the block of the page in a language that has this text."""
    (part,) = [b.text for b in pages.blocks(PAGE) if b.language == language and text in b.text]
    return part


def export(path: Path, table: str, rows: list[dict[str, Any]], query: str) -> Path:
    """Run a query on a table of these rows, and write the answer as CSV."""
    with sqlite3.connect(":memory:") as database:
        database.create_function("timestamp_diff", 2, milliseconds)
        database.create_function("greatest", -1, max)
        database.create_function("concat_ws", -1, lambda sign, *parts: sign.join(map(str, parts)))
        database.execute(f"CREATE TABLE {table} ({', '.join(rows[0])})")
        marks = ", ".join("?" * len(rows[0]))
        values = [tuple(row[name] for name in rows[0]) for row in rows]
        database.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
        answer = database.execute(query)
        names = [column[0] for column in answer.description]
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([names, *answer])
    database.close()
    return path


def milliseconds(end: str, start: str) -> float:
    return 1000 * (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def test_tasks_of_airflow_that_ran_are_jobs(tmp_path: Path) -> None:
    def task(name: str, state: str, start: str, end: str, slots: int = 1, **more: Any) -> Any:
        times = {"start_date": start and DAY + start, "end_date": end and DAY + end}
        queued = {"queued_dttm": start and DAY + start} | more
        key = {"dag_id": "grove", "run_id": "r1", "task_id": name, "map_index": -1} | more
        return {**key, **times, **queued, "state": state, "pool": "p", "pool_slots": slots}

    rows = [
        task("begin", "success", "1:00:00", "1:00:00", queued_dttm=None),
        task("load", "success", "1:00:10", "1:10:10", 2),
        *(task("fan", "success", "1:10:30", "1:15:30", map_index=i) for i in range(3)),
        task("branch", "skipped", "1:16:00", "1:16:00", queued_dttm=None),
        task("sum", "failed", "1:16:10", "1:20:10"),
        task("after", "upstream_failed", "", "", queued_dttm=None),
    ]
    table = export(tmp_path / "t.csv", "task_instance", rows, block("sql", "FROM task_instance"))
    w = read_trace("table", table, columns=FINISH)
    assert w.n_jobs == 5
    assert "grove/r1/fan/2" in w.jobs["job_id"].to_pylist()
    assert w.meta["report"]["account"]["cpu_s"]["workload"] == 1200 + 900 + 240


def test_statements_of_bigquery_are_jobs_and_their_script_is_none(tmp_path: Path) -> None:
    def job(name: str, kind: str, start: str, end: str, slot_ms: int, **more: Any) -> Any:
        times = {"creation_time": DAY + start, "start_time": DAY + start, "end_time": DAY + end}
        return {
            "job_id": name, "query_hash": name, "user_email": "ann", "reservation_id": "std",
            **times, "total_slot_ms": slot_ms, "state": "DONE", "statement_type": kind,
            "cache_hit": None, **more,
        }  # fmt: skip

    rows = [
        job("s", "SCRIPT", "1:00:00", "1:10:00", 6_000_000),
        job("s_0", "CREATE_TABLE_AS_SELECT", "1:00:00", "1:08:00", 4_800_000),
        job("s_1", "INSERT", "1:08:00", "1:10:00", 1_200_000),
        job("q", "SELECT", "2:00:00", "2:00:30", 45_000, cache_hit=0),
        job("again", "SELECT", "2:01:00", "2:01:00", 0, cache_hit=1),
    ]
    query = block("sql", "total_slot_ms").partition(";")[0]
    for theirs, ours in {
        "query_info.query_hashes.normalized_literals": "query_hash",
        ", MILLISECOND)": ")",
        "`region-us`.INFORMATION_SCHEMA.JOBS": "jobs",
        "FALSE": "0",
    }.items():
        assert theirs in query
        query = query.replace(theirs, ours)
    w = read_trace("table", export(tmp_path / "j.csv", "jobs", rows, query), columns=FINISH)
    assert w.jobs["job_id"].to_pylist() == ["s_0", "s_1", "q"]
    assert w.meta["report"]["account"]["cpu_s"]["workload"] == 6045


@pytest.mark.long
def test_a_run_of_dbt_is_a_dag(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    run_s = {"apple": 30.0, "pear": 50.0, "fruit": 60.0, "report": 0.0, "test": 2.0}
    parents = {"apple": [], "pear": [], "fruit": ["apple", "pear"], "report": ["fruit"],
               "test": ["fruit"]}  # fmt: skip
    results = [
        {"unique_id": name, "execution_time": s, "timing": [{}] if s else []}
        for name, s in run_s.items()
    ]
    (tmp_path / "run_results.json").write_text(json.dumps({"results": results}))
    (tmp_path / "manifest.json").write_text(json.dumps({"parent_map": parents}))
    monkeypatch.chdir(tmp_path)
    exec(block("python", "run_results.json"), {})
    assert capsys.readouterr().out.endswith("[112.0]\n")
    w = sim.Workload.read(tmp_path / "dbt")
    assert (w.n_stages, sum(w.tasks["duration_s"].to_pylist())) == (4, 142.0)
