"""From a command line to a table of expected starts, with a stand-in evaluator."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sim
from sim.base.errors import InputError
from sim.evaluators import starts as evaluator
from sweep.questions.starts.moments import moments_of
from sweep.questions.starts.section import span
from tests.sweep.grid.test_request import read
from tests.sweep.small import Command

NAN = float("nan")


def queue(folder: Path) -> Path:
    """Write a queue: 60 jobs that ended after waits of an hour, one that runs, three that wait."""
    jobs = [
        {"job_id": f"{i}", "submit_s": 600.0 * i, "recorded_start_s": 600.0 * i + 3600,
         "recorded_finish_s": 600.0 * i + 4000}
        for i in range(60)
    ]  # fmt: skip
    jobs += [
        {"job_id": "r", "submit_s": 36_000.0, "recorded_start_s": 38_000.0},
        {"job_id": "w", "submit_s": 37_000.0, "reason": "Priority"},
        {"job_id": "held", "submit_s": 37_100.0, "reason": "JobHeldAdmin"},
        {"job_id": "soon", "submit_s": 37_200.0, "reason": "Resources"},
    ]
    full = [
        {"recorded_start_s": NAN, "recorded_finish_s": NAN, "reason": "", "user": "ann",
         "queue": "batch", "stages": [{"durations_s": [400.0]}]} | job
        for job in jobs
    ]  # fmt: skip
    workload = sim.Workload.from_jobs(full)
    offset = 1_772_000_000.0
    workload.with_meta({"now_s": 40_000.0, "offset_s": offset}).write(folder)
    return folder


def stand_in(run: Any, workload: Any, cluster: Any, policy: Any, seed: int, at_s: float = -1.0,
             arrivals: bool = True, draws: int = 20) -> Any:  # fmt: skip
    """Expect each job half of the time too late; without arrivals at once."""
    time_s = 40_000.0 if at_s < 0 else at_s
    recorded = workload.jobs["recorded_start_s"].to_numpy()
    submit = workload.columns.job_submit
    reason = np.array(workload.jobs["reason"].to_pylist())
    waits = np.flatnonzero((submit <= time_s) & ~(recorded <= time_s) & (reason != "JobHeldAdmin"))
    left = np.where(np.isnan(recorded[waits]), 1000.0 + waits, 1.5 * (recorded[waits] - time_s))
    left = left if arrivals else np.full(len(waits), 1.0)
    table = {"job": waits, "low_s": time_s + 0.9 * left, "median_s": time_s + left,
             "high_s": time_s + 1.1 * left, "recorded_start_s": recorded[waits]}  # fmt: skip
    return {"jobs_waiting": float(len(waits))}, pa.table(table)


@pytest.fixture
def sweep_starts(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setattr(evaluator, "evaluate", stand_in)
    path = queue(tmp_path / "queue")

    def ask(*words: str) -> Any:
        return command(
            "policy=fifo", "trace=parquet", f"trace.path={path}", "cluster.count=9", *words
        )

    return ask


def test_a_table_of_those_that_wait_with_the_cover_of_the_past(sweep_starts: Any) -> None:
    ran = sweep_starts("starts.draws=50", "starts.moments=10")
    assert ran.code == 0, ran.err
    rows = pq.read_table(ran.folder / "starts.parquet").to_pylist()
    assert [(row["job"], row["partition"]) for row in rows] == [
        ("w", "batch"), ("soon", "batch"), ("held", "batch"),
    ]  # fmt: skip
    # past starts came after two thirds of the expected time
    assert rows[0]["expected_s"] == pytest.approx(1061 * 2 / 3, rel=0.02)
    offset_s = 1_772_000_000 + 40_000 + rows[0]["expected_s"]
    expected = datetime.fromtimestamp(offset_s, UTC).isoformat(timespec="seconds")[:19]
    assert rows[0]["expected_start"] == expected
    assert rows[0]["low_s"] <= rows[0]["expected_s"] <= rows[0]["high_s"] < 1061
    assert rows[2]["expected_start"] is rows[2]["low"] is None
    record = json.loads((ran.folder / "starts.json").read_text())
    assert record["arrivals"] is True
    assert record["covered_drawn"] == 0
    assert record["covered"] > 0.8
    text = " ".join(ran.out.split())
    assert "2 jobs wait at" in text or "3 jobs wait at" in text
    assert f"{100 * record['covered']:.0f} % of the" in text
    assert "held" in text


def test_a_queue_alone_is_enough(sweep_starts: Any) -> None:
    """A single instant, now: nothing of the past is judged."""
    ran = sweep_starts("starts.draws=50", "starts.moments=0")
    assert ran.code == 0, ran.err
    rows = pq.read_table(ran.folder / "starts.parquet").to_pylist()
    assert [row["job"] for row in rows] == ["w", "soon", "held"]
    assert json.loads((ran.folder / "starts.json").read_text())["moments"] == 0


def test_without_a_queue_the_past_alone_is_judged(sweep_starts: Any, tmp_path: Path) -> None:
    workload = sim.Workload.read(tmp_path / "queue")
    meta = {k: v for k, v in workload.meta.items() if k != "now_s"}
    sim.Workload.from_tables(
        jobs=workload.jobs, stages=workload.stages, tasks=workload.tasks, meta=meta
    ).write(tmp_path / "queue")
    ran = sweep_starts("starts.draws=50", "starts.moments=10")
    assert ran.code == 0, ran.err
    assert pq.read_table(ran.folder / "starts.parquet").num_rows == 0
    assert "past moments of the log" in ran.out


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("starts.draws=2", "must be a whole number of at least 10"),
        ("starts.moments=-1", "of at least 0"),
        ("policy=fifo,sjf", "give policy one value"),
        ("evaluator=stream", "leave evaluator= out"),
    ],
)
def test_wrong_requests_say_what_is_right(word: str, message: str) -> None:
    words = [w for w in ("policy=fifo", "starts.draws=50") if w.split("=")[0] != word.split("=")[0]]
    with pytest.raises(InputError, match=message):
        read(*words, word)


def test_moments_are_those_at_which_somebody_waited(tmp_path: Path) -> None:
    moments = moments_of(sim.Workload.read(queue(tmp_path / "q")), 10)
    assert len(moments) == 10
    assert (np.diff(moments) > 0).all()
    idle = [
        {"submit_s": 100.0 * i, "recorded_start_s": 100.0 * i, "stages": [{"durations_s": [1.0]}]}
        for i in range(20)
    ]
    assert len(moments_of(sim.Workload.from_jobs(idle), 10)) == 0


def test_spans_in_words() -> None:
    assert [span(x) for x in (40, 720, 12_000, 187_200, None)] == [
        "40 s", "12 min", "3 h 20 min", "2 d 4 h", "",
    ]  # fmt: skip
