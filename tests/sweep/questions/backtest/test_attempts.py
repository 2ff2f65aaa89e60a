"""Runs of requeued jobs, each a job in the states of a log."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import sim
from sim.state import recorded_state
from sim.transforms.parts import rebuild
from sim.workload.workload import Workload
from sweep.questions.backtest.attempts import with_attempts

HEAD = (
    "JobID|JobName|User|Partition|Submit|Eligible|Start|End|Timelimit|State|AllocCPUS|NNodes|"
    "NodeList|SubmitLine"
)
DAY = "2026-03-01T09:"


def row(job: str, times: tuple[str, ...], state: str, nodes: str, line: str = "sbatch") -> str:
    submit, eligible, start, end = (DAY + time for time in times)
    values = (
        job, "x", "ann", "batch", submit, eligible, start, end, "01:00:00", state, "1", "1", nodes,
        line,
    )  # fmt: skip
    return "|".join(values)


@pytest.fixture
def log(tmp_path: Path) -> Workload:
    """Return a log: job 17 is preempted at 9:10, waits until 9:20 and goes on at 9:25."""
    rows = [
        row("17", ("00:00", "00:00", "01:00", "10:00"), "PREEMPTED", "a"),
        row("17", ("10:02", "20:02", "25:00", "40:00"), "COMPLETED", "b"),
        row("18", ("09:00", "40:00", "41:00", "45:00"), "COMPLETED", "a", "sbatch -d afterok:17"),
    ]
    path = tmp_path / "log.txt"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return sim.read_trace("sacct", path, tasks="nodes")


def test_each_run_is_a_job_of_its_own(log: Workload) -> None:
    assert log.jobs["job_id"].to_pylist() == ["17", "18"]
    assert log.jobs["recorded_runs"].to_pylist() == ["-60 0 540 a;1142 1440 2340 b", ""]
    runs = with_attempts(log)
    columns = ("job_id", "submit_s", "recorded_start_s", "recorded_finish_s")
    assert [tuple(job[c] for c in columns) for job in runs.jobs.to_pylist()] == [
        ("17, run 1", 0.0, 60.0, 600.0),
        ("18", 540.0, 2460.0, 2700.0),
        ("17", 1202.0, 1500.0, 2400.0),
    ]
    assert runs.stages["node_list"].to_pylist() == ["a", "a", "b"]
    assert runs.stage_duration_s.tolist() == [540.0, 240.0, 900.0]
    (edge,) = runs.job_edges.to_pylist()
    assert (edge["upstream"], edge["downstream"]) == (2, 1)  # it waits for the last run


def test_runs_have_their_own_tasks_on_nodes(log: Workload) -> None:
    texts = log.jobs["recorded_runs"].to_pylist()
    marked = ["-60 0 540 a a=2;1142 1440 2340 b", texts[1]]
    jobs = log.jobs.set_column(
        log.jobs.column_names.index("recorded_runs"), "recorded_runs", pa.array(marked)
    )
    stages = log.stages.append_column("node_tasks", pa.array(["b=9", "a=1"]))
    runs = with_attempts(rebuild(log, None, jobs=jobs, stages=stages))
    assert runs.stages["node_tasks"].to_pylist() == ["a=2", "a=1", ""]


def test_a_state_has_each_run_where_it_was(log: Workload) -> None:
    cluster = sim.Cluster.mixed([{"cpu": 1, "nodes": name} for name in "ab"])
    state = recorded_state(with_attempts(log), cluster)
    assert state.placed_s.tolist() == [60.0, 2460.0, 1500.0]
    assert state.machine.tolist() == [0, 0, 1]


def test_a_log_without_requeued_jobs_stays_as_it_is(log: Workload) -> None:
    alone = log.take([1])
    assert with_attempts(alone) is alone
