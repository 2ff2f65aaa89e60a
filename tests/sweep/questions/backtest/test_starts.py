"""Starts of a log's jobs: those before the release, and the waits that count from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import sim
from sim.base.errors import InputError
from sim.workload.delays import delayed
from sim.workload.schema import NOW
from sweep.questions.backtest.audit import audit
from sweep.questions.backtest.logged_jobs import logged_jobs
from sweep.questions.backtest.recorded_use import places_in_line, places_of_release
from sweep.questions.backtest.starts import find_starts
from tests.sweep.questions.backtest.test_audit import log
from tests.sweep.small import Command

EARLY = [(0, 0, 100, 1), (100, 110, 200, 1), (600, 10, 310, 2), (700, 700, 900, 1)]
"""Submission, start, end and CPUs; the third job starts 590 s before it is submitted."""
TWO = sim.Cluster.slots(2)


def sentences(workload: sim.Workload) -> str:
    return " ".join(audit(workload, TWO).sentences)


def test_a_start_before_the_submission_is_a_fault_of_the_clock() -> None:
    w = log(EARLY)
    starts = find_starts(w)
    assert np.isnan(starts.start_s).tolist() == [False, False, True, False]
    assert (starts.n_early, starts.n_unrecorded, starts.early_s.max()) == (1, 0, 590.0)
    checked = audit(w, TWO)
    assert (checked.n_jobs, checked.n_early, checked.early_s) == (3, 1, 590.0)
    jobs = logged_jobs(w, checked)
    assert jobs.job.tolist() == [0, 1, 3]
    assert jobs.wait_s.tolist() == [0.0, 10.0, 0.0]
    assert "1 of 4 jobs has a start before the submission, by up to 9.83 min" in sentences(w)


def test_it_holds_its_slots_all_the_same() -> None:
    # beside the early job the first one, of two slots, can't start before 310 s
    rows = [(20, 310, 400, 2), (600, 10, 310, 1)]
    assert audit(log(rows), TWO, grace_s=0.0).head_could_start == 0.0


def test_a_start_within_the_resolution_is_no_fault() -> None:
    # submitted at whole seconds, started a second before: rounded
    w = log([(1, 0, 10, 1), (5, 7, 20, 1)])
    assert find_starts(w).n_early == 0
    assert logged_jobs(w, audit(w, TWO)).wait_s.tolist() == [0.0, 2.0]
    assert "before the submission" not in sentences(w)


def test_jobs_without_a_recorded_start_are_counted() -> None:
    w = log([*EARLY, (800, np.nan, np.nan, 1)])
    assert (find_starts(w).n_unrecorded, find_starts(w).n_early) == (1, 1)
    assert "1 of 5 jobs has no recorded start" in sentences(w)
    assert "no recorded start" not in sentences(log(EARLY))


def test_waits_count_up_to_when_a_log_with_waiting_jobs_was_written() -> None:
    """At 1,000 s the fifth job has waited for 200 s; the sixth ran from 1,100 s, unknown then."""
    rows = [*EARLY, (800, np.nan, np.nan, 1), (900, 1100, 1200, 1)]
    w = log(rows).with_meta({NOW: 1000.0})
    jobs = logged_jobs(w, audit(w, TWO))
    assert jobs.job.tolist() == [0, 1, 3, 4, 5]  # the third started before its submission
    assert jobs.wait_s.tolist() == [0.0, 10.0, 0.0, 200.0, 100.0]
    assert "1 of 6 jobs still waited when the log was written: waits count up to" in sentences(w)


def test_a_log_of_early_starts_alone_is_refused() -> None:
    with pytest.raises(InputError, match="each of the log's 2 recorded starts is before"):
        audit(log([(100, 0, 10, 1), (200, 100, 150, 1)]), TWO)


@pytest.mark.parametrize(
    ("columns", "wait_s", "text"),
    [
        # the reader released the second job when it was eligible
        (
            {"submit_s": [0.0, 100.0], "recorded_submit_s": [0.0, 1.0],
             "recorded_eligible_s": [0.0, 100.0]},
            1.0,
            "1 of the jobs was free to start only later than submitted: 1 for a reason that the "
            "log does not name: audit, waits and simulations count from then.",
        ),
        # it left it at its submission
        (
            {"submit_s": [0.0, 1.0], "recorded_eligible_s": [0.0, 100.0]},
            100.0,
            "the audit counts from then, waits and simulations from submission.",
        ),
        # it does not know
        (
            {"submit_s": [0.0, 1.0]},
            100.0,
            "The log does not tell when jobs were free to start, so their waits count from "
            "submission",
        ),
    ],
)  # fmt: skip
def test_waits_count_from_the_release(columns: dict[str, Any], wait_s: float, text: str) -> None:
    rows = [(submit_s, *rest) for submit_s, rest in zip(
        columns["submit_s"], [(0.0, 100.0, 2), (101.0, 200.0, 2)], strict=True
    )]  # fmt: skip
    w = log(rows, **{name: column for name, column in columns.items() if name != "submit_s"})
    checked = audit(w, TWO)
    assert logged_jobs(w, checked).wait_s.tolist() == [0.0, wait_s]
    assert text in sentences(w)
    assert checked.lags_s.tolist() == [0.0, 1.0]


def test_order_of_release() -> None:
    rows = [(0, 0, 100, 2), (10, 200, 300, 1)]
    assert "in the order of submission" in audit(log(rows), TWO).sentences[0]
    released = log(rows, recorded_submit_s=[-5.0, 10.0])
    assert "in the order of release" in audit(released, TWO).sentences[0]


def test_a_retry_is_in_line_from_the_logs_release_on() -> None:
    """A retry is submitted with its first attempt, and was released by the log at 120 s.

    The job that came at 10 s is before it in line.
    """
    rows = [(0, 0, 100, 1), (0, 200, 250, 1), (10, 200, 300, 1)]
    retry = log(rows, recorded_submit_s=[np.nan, 120.0, np.nan])
    assert logged_jobs(retry, audit(retry, TWO)).wait_s.tolist() == [0.0, 80.0, 190.0]
    assert places_in_line(retry).tolist() == places_of_release(retry).tolist() == [0, 2, 1]


def test_a_late_eligibility_is_that_of_the_dependency_that_ended_then(tmp_path: Path) -> None:
    """The end of a frees b 5 s later, and c long after: of c the log names no reason."""
    rows = (
        "job_id,submit_s,eligible_s,start_s,end_s,cpus,depends_on\na,0,0,0,1000,1,\n"
        "b,10,1005,1010,1500,1,a\nc,20,4000,4010,4700,1,a\n"
    )
    (tmp_path / "log.csv").write_text(rows)
    w = sim.read_trace("table", tmp_path / "log.csv", release="submit")
    assert delayed(w).simulated == {"dependency": 1, "other": 1}
    assert "1 job that depends on others, which is simulated" in sentences(w)
    assert "1 for a reason that the log does not name" in sentences(w)
    (tmp_path / "log.csv").write_text(rows.replace("c,20,4000,4010", "c,20,1000,4010"))
    w = sim.read_trace("table", tmp_path / "log.csv")
    assert delayed(w).simulated == {"dependency": 2}
    assert "does not name" not in sentences(w)


def test_nobody_waits_in_a_log_that_does_not_tell_when_jobs_were_free() -> None:
    assert "free to start" not in sentences(log([(0, 0, 10, 1), (20, 20, 30, 1)]))


def test_a_backtest_of_a_log_with_early_starts(command: Command, tmp_path: Path) -> None:
    lines = [f"{submit},{start},{end},{cpus}" for submit, start, end, cpus in EARLY]
    (tmp_path / "log.csv").write_text("\n".join(["submit_s,start_s,end_s,cpus", *lines]) + "\n")
    ran = command("backtest", "trace=table", f"trace.path={tmp_path / 'log.csv'}", "runs=2",
                  "policy=fifo")  # fmt: skip
    assert ran.code == 0, ran.err
    policy = pq.read_table(ran.folder / "backtest.parquet").to_pylist()[0]
    assert (policy["jobs"], policy["wait_mean_recorded_s"]) == (3, pytest.approx(10 / 3))
    record = json.loads((ran.folder / "backtest.json").read_text())
    assert record["audit"]["n_early"] == 1
    assert "as the log's clock was wrong" in " ".join(ran.out.split())


def test_a_backtest_of_early_starts_alone_is_refused(command: Command, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("submit_s,start_s,end_s,cpus\n100,0,10,1\n200,100,150,1\n")
    ran = command("backtest", "trace=table", f"trace.path={tmp_path / 'log.csv'}", "policy=fifo")
    assert ran.code == 2
    assert "its clock, or the time zone of a column, is wrong" in ran.err
