from __future__ import annotations

import pytest

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


def test_a_load_of_one_or_more_is_said_before_the_run(fake: Command) -> None:
    jobs = [{"submit_s": 10.0 * k, "stages": [{"durations_s": [9.0] * 2}]} for k in range(100)]
    Workload.from_jobs(jobs).write(fake.trace)
    words = ("policy=fifo", "capacity=0.5,1,2", "cluster.shape=slots", "cluster.count=2")
    ran = fake(*words)
    (line,) = (line for line in ran.err.splitlines() if "offered load" in line)
    assert line.startswith("  parquet: offered load 1.8 at capacity 0.5: work comes faster")
    loads = {row["capacity"]: row["offered_load"] for row in ran.rows}
    assert loads[0.5] == pytest.approx(1.8, rel=0.02)
    assert loads[1.0] < 1.0
    assert "offered load" not in fake("policy=las", "capacity=1,2", *words[2:]).err
    sized = fake("policy=fifo", "capacity=0.4,1")  # by its load: no note, but the report says it
    assert "offered load" not in sized.err
    report = (sized.folder / "report.html").read_text()
    assert "at 1 or more waits grow as long as jobs come" in report
    loaded = fake("policy=fifo", "cluster.load=1.2", "capacity=1,2")
    assert "  parquet: offered load 1.2 at capacity 1: work comes faster" in loaded.err


def test_limits_that_no_job_has_are_said(fake: Command) -> None:
    jobs = [
        {"submit_s": k, "user": user, "account": "optics", "stages": [{"durations_s": [9.0]}]}
        for k, user in enumerate(("ann", "bob"))
    ]
    Workload.from_jobs(jobs).write(fake.trace)
    used = (
        "{of: running_jobs, by: [user], at_most: {ann: 1}}",
        "{of: running_jobs, by: [account], at_most: {physics: 2}}",  # above optics
        "{of: running_jobs, by: [user], at_most: 2}",
        "{of: running_jobs, by: [account, user], at_most: {optics: {*: 2, eve: 1}}}",
    )
    unused = (
        "{of: running_jobs, by: [user], at_most: {eve: 1}}",
        "{of: running_jobs, by: [user], at_most: 1, where: {account: maths}}",
        "{of: running_jobs, by: [account, user], at_most: {optics: {eve: 1}}}",
    )
    accounts = "cluster.accounts={optics: physics}"
    err = fake("policy=fifo", f"cluster.limits=[{', '.join((*used, *unused))}]", accounts).err
    lines = [line for line in err.splitlines() if "no job is under" in line]
    start = "  parquet: no job is under cluster.limits"
    assert lines == [
        f"{start}[4]; they have user ann, bob",
        f"{start}[5]; they have user ann, bob; account optics, physics",
        f"{start}[6]; they have account optics, physics; user ann, bob",
    ]


def test_groups_levels_and_limits_that_can_not_be_meant(fake: Command) -> None:
    jobs = [
        {"submit_s": k, "queue": queue, "requested_s": limit_s, "stages": [{"durations_s": [9.0]}]}
        for k, (queue, limit_s) in enumerate((("a", 5.0), ("b", 20.0), ("a", 9.0)))
    ]
    Workload.from_jobs(jobs).write(fake.trace)
    err = fake("policy=drf").err
    line = "  drf on parquet: all jobs are of one user, so there is nobody to share with; "
    assert f"{line}policy.by=queue shares between 2" in err.splitlines()
    assert "nobody to share" not in fake("policy=drf", "policy.by=queue").err
    levels = "policy.preemption={by: queue, levels: {a: 2, aa: 1}}"
    err = fake("policy=fifo", levels).err
    start = "  parquet: no job is of queue aa (policy.preemption.levels); they have a, b"
    assert start in err.splitlines()
    assert "no job is of queue a " not in err
    long = "33% of the jobs run longer than their limits"
    assert long in fake("policy=fifo", "cluster.enforce_limits=true").err
    assert long not in fake("policy=fifo").err
