"""Failures, lost inputs and stragglers are drawn at the requested rates."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim.transforms import apply, faults


def workload(n: int = 20_000, deadline_s: float | None = 60.0) -> sim.Workload:
    return sim.Workload.from_jobs(
        [
            {
                "submit_s": 0.0,
                "deadline_s": deadline_s,
                "stages": [
                    {"name": "read", "durations_s": [10.0] * n},
                    {"name": "map", "durations_s": [4.0] * n, "parents": {"read": "one_to_one"}},
                    {"name": "sum", "durations_s": [6.0] * n, "parents": ["read", "map"]},
                ],
            },
            {"submit_s": 1.0, "stages": [{"durations_s": [5.0] * n}]},
        ]
    )


def within(n: int, p: float, k: int) -> bool:
    """Return whether k of n agrees with probability p, within four standard deviations."""
    return bool(abs(k - n * p) <= 4 * np.sqrt(n * p * (1 - p)))


def test_failures_are_drawn_at_the_requested_rates():
    n = 20_000
    w = faults.fail_tasks(workload(n), single=0.02, multiple=0.3, lost=0.0)
    attempts = np.diff(w.columns.attempt0)
    assert within(4 * n, 0.02, int((attempts >= 1).sum()))
    for k in (2, 3):
        earlier = int((attempts >= k - 1).sum())
        assert within(earlier, 0.3, int((attempts >= k).sum()))
    assert attempts.max() <= faults.MAX_FAILURES
    part = w.columns.attempt_s / np.repeat(w.columns.task_duration, attempts)
    assert abs(part.mean() - 0.5) < 4 * np.sqrt(1 / 12 / len(part))
    assert part.min() >= 0
    assert part.max() <= 1


def test_lost_inputs_are_drawn_at_the_requested_rate_from_parents():
    n = 20_000
    w = faults.fail_tasks(workload(n), single=0.05, lost=0.03)  # valid: from_tables checks each
    columns = w.columns
    lost = columns.attempt_lost
    task = np.repeat(np.arange(w.n_tasks), np.diff(columns.attempt0))
    stage = np.searchsorted(columns.stage_task0, task, side="right") - 1
    assert within(2 * n, 0.03, int((lost >= 0).sum()))  # two of the four stages have parents
    assert (lost[(stage == 0) | (stage == 3)] == -1).all()
    mapped = (stage == 1) & (lost >= 0)
    assert (lost[mapped] == task[mapped] - n).all()  # one to one
    read = (lost[(stage == 2) & (lost >= 0)] < n).sum()
    assert within(int(((stage == 2) & (lost >= 0)).sum()), 0.5, int(read))  # either edge
    first = np.concatenate([[True], task[1:] != task[:-1]])
    assert first[lost >= 0].all()  # before the other failures of the task


def test_failures_do_not_depend_on_jobs_out_of_scope():
    both = faults.fail_tasks(workload(500), scope="deadline", seed=7)
    alone = faults.fail_tasks(workload(500).take([0]), scope="deadline", seed=7)
    assert both.failures.equals(alone.failures)
    assert both.failures.num_rows > 0
    assert faults.fail_tasks(workload(500), scope="deadline", seed=8).digest != both.digest
    none = faults.fail_tasks(workload(5, None), single=1.0, scope="deadline")
    assert none.failures.num_rows == 0


def test_certain_failures_and_none():
    w = faults.fail_tasks(workload(10), single=1.0, multiple=0.0, lost=1.0)
    assert np.diff(w.columns.attempt0).tolist() == [1] * 10 + [2] * 20 + [1] * 10
    assert faults.fail_tasks(workload(10), single=0.0, lost=0.0).failures.num_rows == 0


def test_stragglers_are_drawn_at_the_requested_rate_and_range():
    w = workload()
    slow = apply(w, "straggle", rate=0.05, slower=(2.0, 4.0), seed=3)
    factor = slow.columns.task_duration / w.columns.task_duration
    straggling = factor > 1
    assert within(w.n_tasks, 0.05, int(straggling.sum()))
    assert factor[straggling].min() >= 2.0
    assert factor[straggling].max() <= 4.0
    # even in the logarithm: half lie below the geometric mean
    assert within(int(straggling.sum()), 0.5, int((factor[straggling] < np.sqrt(8.0)).sum()))
    assert slow.meta["transforms"] == [{"straggle": int(straggling.sum()), "seed": 3}]
    assert slow.columns.job_deadline[0] == 60.0


def test_faults_work_with_uniform_stages_and_preserve_training():
    runs = {"template": ["t"], "run": [0], "stage": [0], "task": [0]}
    times = {"ready_s": [0.0], "start_s": [0.0], "finish_s": [1.0]}
    uniform = sim.Workload.from_tables(
        jobs={"job_id": ["a"], "submit_s": [0.0]},
        stages={"job": [0], "n_tasks": [100], "duration_s": [2.0]},
        training=runs | times,
    )
    assert uniform.stage_duration_s is not None
    failing = apply(uniform, "fail_tasks", single=0.5)
    assert failing.stage_duration_s is not None
    assert failing.training.num_rows == 1
    slow = apply(uniform, "straggle", rate=0.5)
    assert slow.stage_duration_s is None
    assert slow.training.num_rows == 1


@pytest.mark.parametrize(
    ("transform", "options", "text"),
    [
        ("fail_tasks", {"single": 1.5}, "single must be a number from 0 to 1"),
        ("fail_tasks", {"multiple": 1.0}, "multiple must be a number from 0 to 1"),
        ("fail_tasks", {"lost": -0.1}, "lost must be a number from 0 to 1"),
        ("fail_tasks", {"scope": "some"}, "'all' or 'deadline'"),
        ("straggle", {"rate": 2}, "rate must be a number from 0 to 1"),
        ("straggle", {"slower": (0.5, 2.0)}, "slower must be a list"),
        ("straggle", {"slower": (3.0, 2.0)}, "slower must be two numbers of at least 1"),
    ],
)
def test_invalid_options_are_named_in_the_error(transform, options, text):
    with pytest.raises(sim.InputError, match=text):
        apply(workload(2), transform, **options)


def test_failures_are_drawn_once_and_last():
    failing = faults.fail_tasks(workload(100), single=0.5)
    with pytest.raises(sim.InputError, match="failures already"):
        faults.fail_tasks(failing)
    with pytest.raises(sim.InputError, match="fail_tasks after all others"):
        faults.straggle(failing)
