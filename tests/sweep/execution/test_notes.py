from __future__ import annotations

from sim import Workload
from tests.sweep.small import Command


def test_a_policy_that_learns_from_what_is_not_there_is_named(fake: Command) -> None:
    message = "  threesigma on parquet: the workload has no history and no features of jobs"
    err = fake("policy=threesigma,fifo").err
    assert any(line.startswith(message) for line in err.splitlines())
    assert "fifo on" not in err
    jobs = [{"submit_s": 0.0, "user": "ann", "stages": [{"durations_s": [1.0]}]}]
    w = Workload.from_jobs(jobs)
    w.write(fake.trace)
    assert "threesigma on parquet: the workload has no history of" in fake("policy=threesigma").err
    w.with_history({"mean_task_s": [2.0], "user": ["ann"]}).write(fake.trace)
    assert "threesigma on" not in fake("policy=threesigma").err


def test_columns_that_are_of_no_use_are_said(fake: Command) -> None:
    w = Workload.from_tables(
        jobs={"job_id": ["a"], "submit_s": [0.0], "user_name": ["q"]},
        stages={"job": [0], "n_tasks": [1], "duration_s": [1.5]},
        meta={"name": "ours"},
    )
    w.write(fake.trace)
    message = "  ours: 1 jobs; columns unused: jobs.user_name: did you mean user? (1)"
    assert message in fake("policy=fifo").err.splitlines()
