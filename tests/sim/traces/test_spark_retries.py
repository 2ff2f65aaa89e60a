"""Attempts of stages and of tasks: which are tasks, and what the others are called."""

from __future__ import annotations

import pytest

from sim.check.account import check_account
from tests.sim.traces.spark_events import (
    completed,
    end,
    job,
    job_end,
    removed,
    stage,
    start,
    started,
    submitted,
    task,
)
from tests.sim.traces.test_spark_eventlog import durations, load

RAN_AGAIN = "a task that ran again: its output was lost"
GUESSED = "a task whose partition is a guess: no Partition ID, and outputs were lost unseen"


def indexed(index, begin, finish, attempt=0, **more):
    """Return a task's end of stage 0 as Spark before 3.3 writes it."""
    return task(0, index, begin, finish, attempt=attempt, partition=False, **more)


def unfetched(executor_id):
    address = {"Executor ID": executor_id, "Host": "h", "Port": 1}
    return {"Reason": "FetchFailed", "Block Manager Address": address, "Map Index": 0}


def counts(workload):
    report = workload.meta["report"]
    return report["dropped"], report["noticed"]


def test_an_index_counts_the_partitions_without_an_output(tmp_path):
    events = [
        start(),
        job(0, stage(0, 5)),
        indexed(0, 0, 1000),
        indexed(2, 0, 3000),
        indexed(1, 0, 500, reason="ExceptionFailure"),
        indexed(0, 4000, 6000, attempt=1),  # of 1, 3 and 4
        indexed(2, 4000, 9000, attempt=1),
        indexed(0, 10_000, 14_000, attempt=2),  # of 3
        job_end(0, 14_000),
        end(),
    ]
    w = load(tmp_path, *events)
    assert durations(w) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert counts(w) == ({"a failed attempt: ExceptionFailure": 1}, {})
    check_account(w, cpu_s=15.5, tasks=5)


def test_a_lost_output_is_computed_by_the_next_attempt(tmp_path):
    lost = indexed(0, 0, 1000, reason="Resubmitted")
    events = [start(), job(0, stage(0, 3)), indexed(0, 0, 1000), indexed(1, 0, 2000), lost]
    retried = [indexed(0, 5000, 8000, attempt=1), indexed(1, 5000, 9000, attempt=1)]
    w = load(tmp_path, *events, *retried, end())
    assert durations(w) == [1.0, 2.0, 4.0]
    assert counts(w) == ({RAN_AGAIN: 1}, {"output lost with its executor": 1})
    assert check_account(w)["cpu_s"]["left_out_by"] == {RAN_AGAIN: 3.0}


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("states", [True, False])
@pytest.mark.parametrize("sign", ["removed", "unfetched"])
def test_an_executor_that_leaves_may_lose_its_outputs(tmp_path, keeps, states, sign):
    """An external shuffle service keeps them: the next attempt has one task less."""
    leaves = [removed("2", 3000)]
    if sign == "unfetched":
        leaves = [task(1, 0, 2000, 2500, reason=unfetched("2"), executor_id="3")]
    n = 1 if keeps else 2
    events = [
        start(),
        job(0, stage(0, 3), stage(1, 1, [0])),
        indexed(0, 0, 1000, executor_id="1"),
        indexed(1, 0, 2000, executor_id="2"),
        *leaves,
        *([submitted({**stage(0, n), "Stage Attempt ID": 1}, 3000)] if states else []),
        *(indexed(index, 4000, 7000 + index, attempt=1) for index in range(n)),
        end(),
    ]
    w = load(tmp_path, *events)
    assert durations(w) == [1.0, 2.0, 3.0 if keeps else 3.001]
    assert counts(w)[0].get(RAN_AGAIN, 0) == (0 if keeps else 1)
    assert GUESSED not in counts(w)[1]
    check_account(w, tasks=3)


def test_a_partition_that_no_event_explains_is_a_guess(tmp_path):
    first = [indexed(0, 0, 1000), indexed(1, 0, 2000)]
    again = [indexed(0, 5000, 8000, attempt=1), indexed(1, 5000, 9000, attempt=1)]
    w = load(tmp_path, start(), job(0, stage(0, 3)), *first, *again, end())
    assert counts(w) == ({RAN_AGAIN: 1}, {GUESSED: 2})
    assert durations(w)[:2] == [1.0, 2.0]
    check_account(w, cpu_s=10.0, tasks=3)
    again.append(indexed(2, 5000, 9500, attempt=1))  # all of the stage: no guess
    w = load(tmp_path, start(), job(0, stage(0, 3)), *first, *again, end())
    assert counts(w) == ({RAN_AGAIN: 2}, {})
    assert durations(w) == [1.0, 2.0, 4.5]


@pytest.mark.parametrize("has_starts", [True, False])
def test_a_retry_computes_tasks_that_still_run(tmp_path, has_starts):
    """A task of the first attempt ends after the second one, which computes it too, began."""
    events = [
        start(),
        job(0, stage(0, 2)),
        indexed(0, 0, 1000, task_id=0),
        *([started(0, 2, 1500, attempt=1)] if has_starts else []),
        indexed(1, 0, 2000, task_id=1),
        indexed(0, 1500, 4500, attempt=1, task_id=2),
        end(),
    ]
    w = load(tmp_path, *events)
    assert durations(w) == [1.0, 2.0]
    assert counts(w) == ({RAN_AGAIN: 1}, {})


def test_a_task_that_ends_after_its_stage_was_retried_has_an_output(tmp_path):
    events = [
        start(),
        job(0, stage(0, 3)),
        indexed(0, 0, 1000),
        indexed(1, 0, 2000),  # the second attempt began at 1500, without it
        indexed(0, 1500, 2500, attempt=1, reason="FetchFailed"),
        indexed(1, 1500, 2500, attempt=1, reason="FetchFailed"),
        indexed(0, 3000, 7000, attempt=2),
        end(),
    ]
    w = load(tmp_path, *events)
    assert durations(w) == [1.0, 2.0, 4.0]
    assert counts(w) == ({"a failed attempt: FetchFailed": 2}, {})


def test_an_output_that_was_computed_again_is_not_in_doubt(tmp_path):
    events = [
        start(),
        job(0, stage(0, 4)),
        indexed(0, 0, 1000, executor_id="2"),
        removed("2", 1500),
        indexed(0, 0, 1000, executor_id="2", reason="Resubmitted"),
        indexed(0, 2000, 3000, executor_id="1"),
        indexed(0, 4000, 6000, attempt=1),  # of 1, 2 and 3; the last one has not ended
        indexed(1, 4000, 7000, attempt=1),
    ]
    w = load(tmp_path, *events)
    assert durations(w) == [1.0, 2.0, 3.0]
    assert GUESSED not in counts(w)[1]


def test_a_second_success_is_named_by_its_evidence(tmp_path):
    events = [
        start(),
        job(0, stage(0, 5)),
        task(0, 0, 0, 1000),
        task(0, 0, 500, 2000, speculative=True),
        task(0, 1, 500, 1000, speculative=True),
        task(0, 1, 0, 2000),
        task(0, 2, 500, 1000, attempt=1),
        task(0, 2, 0, 2000),
        task(0, 3, 0, 1000),
        task(0, 3, 2000, 3000),
        task(0, 4, 0, 1000, task_id=7),
        task(0, 4, 0, 1000, task_id=7),
        end(),
    ]
    w = load(tmp_path, *events)
    assert counts(w)[0] == {
        "a speculative copy that lost": 1,
        "an attempt that a speculative copy overtook": 1,
        "an earlier attempt of the stage that ended later": 1,
        "a second success of a task, for no reason that the log shows": 1,
        "a repeated event: another line has the same attempt": 1,
    }
    assert durations(w) == [1.0, 0.5, 0.5, 1.0, 1.0]
    account = check_account(w, cpu_s=11.5, tasks=5)
    assert account["cpu_s"]["by_option"] == 1.0  # a repeated line is no loss


def test_an_attempt_whose_end_is_unknown_is_counted(tmp_path):
    events = [
        start(),
        job(0, stage(0, 1)),
        task(0, 0, 0, None, reason="TaskKilled"),
        task(0, 0, 0, None, reason="ExecutorLostFailure"),
        task(0, 0, 0, 1000),
        end(),
    ]
    w = load(tmp_path, *events)
    dropped = {"a killed attempt": 1, "a failed attempt: ExecutorLostFailure": 1}
    assert counts(w) == (dropped, {})
    assert check_account(w, cpu_s=1.0)["cpu_s"]["unknown"] == 2


@pytest.mark.parametrize("sign", ["completed", "child", "job"])
def test_a_stage_that_completed_has_run_all_its_tasks(tmp_path, sign):
    signs = {
        "completed": [completed(stage(0, 3), 2000)],
        "child": [task(1, 0, 2000, 3000)],
        "job": [submitted(stage(0, 3)), job_end(0, 3000)],
    }
    events = [start(), job(0, stage(0, 3), stage(1, 1, [0])), task(0, 1, 0, 1000), *signs[sign]]
    w = load(tmp_path, *events)
    assert counts(w)[1]["a task whose end is not in the log, though its stage completed"] == 2
    assert "2 of" in w.meta["report"]["warnings"][0]
    w = load(tmp_path, *events, missing_tasks="median")
    assert durations(w)[:3] == [1.0, 1.0, 1.0]
    failed = [completed(stage(0, 3), 2000, failure="cancelled"), job_end(0, 3000, "JobFailed")]
    w = load(tmp_path, *events[:3], *failed)
    assert "warnings" not in w.meta["report"]


def test_a_stage_of_which_no_end_was_written_has_run(tmp_path):
    stages = [stage(0, 2), stage(1, 1, [0])]
    events = [start(), job(0, *stages), submitted(stages[0]), completed(stages[0], 1000)]
    for missing_tasks in ("leave_out", "median"):  # there is no median
        w = load(tmp_path, *events, task(1, 0, 1000, 2000), end(), missing_tasks=missing_tasks)
        missing = {"a task whose end is not in the log, though its stage completed": 2}
        assert counts(w) == ({}, missing)
        account = check_account(w, cpu_s=1.0, tasks=3, edges=1)
        replaced = "a parent without tasks: the stage that wrote its output, if any"
        assert account["edges"]["changed_by"] == {replaced: 1}


def test_attempts_that_have_not_ended(tmp_path):
    events = [
        start(),
        job(0, stage(0, 3)),
        *(started(0, task_id) for task_id in range(4)),
        task(0, 0, 0, 1000, task_id=0),
        task(0, 1, 0, 1000, task_id=1),
    ]
    w = load(tmp_path, *events)
    censored = "a task that has not ended (censored)"
    assert counts(w)[0] == {censored: 2}
    account = check_account(w, tasks=3)  # one of the two is a copy
    assert account["tasks"]["left_out_by"] == {censored: 1}
    assert account["cpu_s"]["unknown"] == 2
    w = load(tmp_path, *events, end())
    unended = "an attempt whose end is not in the log"
    assert counts(w)[1] == {unended: 2, "a stage of which not every task has ended": 1}


def test_work_of_bad_lines_is_in_the_account(tmp_path):
    wrong = [
        {**task(0, 1, 0, 2000), "Stage ID": "0"},
        {**task(0, 1, 0, 3000, reason="ExceptionFailure"), "Stage ID": -1},
        {**task(0, 1, 0, 4000, reason="Resubmitted"), "Stage ID": -1},
        {**job(7), "Job ID": None},
        '{"Event": "SparkListenerTaskEnd", "Sta',
        "no json",
    ]
    events = [start(), job(0, stage(0, 1)), task(0, 0, 0, 1000), *wrong, end()]
    w = load(tmp_path, *events, on_bad_row="skip")
    assert sum(w.meta["report"]["bad_rows"].values()) == 6
    account = check_account(w, cpu_s=6.0, tasks=2)
    assert account["cpu_s"]["left_out_by"] == {"wrong type": 2.0, "number out of range": 3.0}
    assert account["cpu_s"]["unknown"] == 2


def test_tasks_of_no_time_are_a_change(tmp_path):
    w = load(tmp_path, start(), job(0, stage(0, 2)), task(0, 0, 5, 5), task(0, 1, 5, 9), end())
    account = check_account(w, cpu_s=0.004)
    assert account["cpu_s"]["changed_by"] == {"0 ms becomes 0.5 ms": -0.0005}
