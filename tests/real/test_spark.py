"""The simulator against kept event logs of a real Spark, and the harness that made them."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import policies
import sim
from benchmarks.real.spark import accuracy, run
from benchmarks.real.spark.__main__ import main
from benchmarks.real.spark.event_log import reduce_log
from benchmarks.real.spark.workload import N_JOBS, synthesize, to_lines

FOLDER = Path(__file__).parent / "spark"
LOGS = sorted(FOLDER.glob("*.gz"))
KEPT = json.loads((FOLDER / "accuracy.json").read_text())


@pytest.fixture(scope="module")
def table():
    return accuracy.rows(LOGS)


def test_the_kept_table_is_what_the_logs_give(table):
    assert table == KEPT


def right_policy(row):
    return row["mode"].lower()


def test_spark_is_simulated_within_2_percent_and_5_percent_a_job(table):
    right = [row for row in table if row["policy"] == right_policy(row)]
    assert len(right) == len(LOGS)
    assert max(abs(row["error"]) for row in right) < 0.02
    assert max(row["job_error"] for row in right) < 0.05


def test_the_wrong_policy_is_far_off(table):
    wrong = {row["run"]: row for row in table if row["policy"] != right_policy(row)}
    for row in table:
        if row["policy"] == right_policy(row):
            assert wrong[row["run"]]["job_error"] > 5 * row["job_error"]


def test_stages_that_open_at_once_or_ties_by_submission_are_further_off(table):
    def job_error(log, policy, stage_lag_s):
        w = sim.read_trace("spark_eventlog", FOLDER / log, read_as="jobs")
        cluster = sim.Cluster.slots(w.meta["cores"]).with_stage_lag(stage_lag_s)
        simulated = sim.simulate(w, cluster, policy).job_finish
        recorded = w.jobs["recorded_finish_s"].to_numpy()
        return np.abs(simulated - recorded).sum() / (recorded - w.columns.job_submit).sum()

    fifo, fair = policies.build("fifo"), policies.build("fair", ties="name")
    by_submission = policies.build("fair")
    lag_s = 0.006
    assert job_error("spark-fifo-2-1.gz", fifo, 0.0) > 2 * job_error(
        "spark-fifo-2-1.gz", fifo, lag_s
    )
    name = "spark-fairback-2-1.gz"
    assert job_error(name, by_submission, lag_s) > 2 * job_error(name, fair, lag_s)


def test_the_workloads_are_those_of_the_rule():
    jobs = synthesize(2, 16)
    assert jobs == synthesize(2, 16)
    assert jobs != synthesize(3, 16)
    work_s = sum(sum(map(sum, job.stages_ms)) for job in jobs) / 1000
    assert work_s / 16 / jobs[-1].submit_ms * 1000 == pytest.approx(1.1, rel=1e-3)
    tasks_ms = [ms for job in jobs for stage in job.stages_ms for ms in stage]
    assert len(jobs) == N_JOBS
    assert {len(job.stages_ms) for job in jobs} == {1, 2, 3}
    assert min(tasks_ms) >= 200
    assert max(tasks_ms) <= 5000
    back = synthesize(2, 16, names_reversed=True)
    assert [job.stages_ms for job in back] == [job.stages_ms for job in jobs]
    assert [job.name for job in back] == [job.name for job in jobs][::-1]
    first = to_lines(jobs).splitlines()[0].split(" ")
    assert first[:2] == ["job-00", "0"]
    assert [len(words.split(",")) for words in first[2:]] == [len(s) for s in jobs[0].stages_ms]


def test_the_kept_runs_slept_as_the_rule_says():
    w = sim.read_trace("spark_eventlog", FOLDER / "spark-fair-2-1.gz", read_as="jobs")
    slept_s = [ms / 1000 for job in synthesize(2, 16) for stage in job.stages_ms for ms in stage]
    over_s = w.tasks["duration_s"].to_numpy() - slept_s
    assert over_s.min() >= 0
    assert np.median(over_s) < 0.05


def test_a_reduced_log_has_the_jobs_of_the_prefix_alone(tmp_path):
    whole = gzip.decompress((FOLDER / "spark-fifo-1-1.gz").read_bytes())
    assert reduce_log(whole) == whole  # nothing to leave out any more
    some = reduce_log(whole, prefix="job-0")
    path = tmp_path / "log"
    path.write_bytes(some)
    w = sim.read_trace("spark_eventlog", path, read_as="jobs")
    assert w.n_jobs == 10
    assert w.meta["cores"] == 16


def test_without_spark_a_sentence_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setattr(run.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(run.shutil, "which", lambda name: "/usr/bin/java")
    assert run.missing().startswith("Spark is skipped: SPARK_HOME names no folder")
    monkeypatch.setattr(run.shutil, "which", lambda name: None)
    assert run.missing() == "Spark is skipped: there is no java on the path."
    monkeypatch.setattr(sys, "argv", ["spark", "--out", str(tmp_path / "runs")])
    assert main() == 0
    assert capsys.readouterr().out.startswith("Spark is skipped")
    assert not (tmp_path / "runs").exists()
