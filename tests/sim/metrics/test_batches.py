"""Metrics and tables of a run whose records are batches have the bits of single tasks."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import policies
import sim
from sim.base import memory
from sim.engine import batches as engine_batches
from sim.engine.batches import TaskRecords, order_by_task
from sim.metrics import fairness, usage


def in_batches(result: sim.Result) -> sim.Result:
    """Return the run with a record for each batch of neighbours with the same times."""
    columns, records = result.workload.columns, result.records
    assert records is not None
    stage = columns.task_stage()
    rows: list[list[float]] = []
    for t in range(columns.n_tasks):
        row = [stage[t], records.start_s[t], records.finish_s[t], records.machine[t]]
        if np.isnan(row[1]):
            continue
        if rows and rows[-1][:4] == row and rows[-1][4] + rows[-1][5] == t:
            rows[-1][5] += 1
        else:
            rows.append([*row, t, 1])
    _, start, finish, machine, task, count = np.array(rows).T
    machines, tasks, counts = (x.astype(np.int32) for x in (machine, task, count))
    in_batches = TaskRecords(start, machines, finish, tasks, counts, columns)
    return dataclasses.replace(result, records=in_batches)


def in_tasks(result: sim.Result) -> sim.Result:
    """Return the run with a record for each task."""
    times = result.task_start, result.task_machine, result.task_finish
    return dataclasses.replace(result, records=TaskRecords(*times))  # type: ignore[arg-type]


def like_tasks(seed: int, n_jobs: int = 60) -> sim.Workload:
    """Jobs of like tasks in two queues; some fail, as their input is missing."""
    rng = np.random.default_rng(seed)
    per_job = rng.integers(1, 4, n_jobs)
    stages = int(per_job.sum())
    return sim.Workload.from_tables(
        jobs={
            "job_id": [str(j) for j in range(n_jobs)],
            "submit_s": np.sort(rng.random(n_jobs) * 100),
            "queue": rng.choice(["a", "b"], n_jobs),
            "input_mode": np.where(rng.random(n_jobs) < 0.3, "blind", "none"),
        },
        stages={
            "job": np.repeat(np.arange(n_jobs), per_job),
            "n_tasks": rng.integers(1, 30, stages),
            "duration_s": rng.exponential(5.0, stages),
        },
        job_edges={
            "upstream": np.full(n_jobs - 1, n_jobs - 1),
            "downstream": np.arange(n_jobs - 1),
        },
    )


@pytest.mark.parametrize("seed", range(3))
def test_metrics_and_tables_are_those_of_single_tasks(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = like_tasks(seed)
    cluster = sim.Cluster.slots(29).with_queues("weighted", {"a": 2.0, "b": 1.0})
    single = in_tasks(sim.simulate(workload, cluster, policies.build("fifo")))
    single.metrics  # noqa: B018  # before the pieces get smaller
    batches = in_batches(single)
    monkeypatch.setattr(usage, "CHUNK", 5)
    monkeypatch.setattr(fairness, "CHUNK", 7)
    assert single.job_failed.any()
    assert batches.batches.num_rows < workload.n_tasks * 0.8  # type: ignore[union-attr]
    assert single.batches.num_rows == workload.n_tasks  # type: ignore[union-attr]
    ours, theirs = batches.metrics, single.metrics
    assert list(ours) == list(theirs)
    assert np.array(list(ours.values())).tobytes() == np.array(list(theirs.values())).tobytes()
    assert 0 < ours["jain_10s"] < 1
    assert batches.tasks.equals(single.tasks) or _equal(batches.tasks, single.tasks)


def _equal(a, b) -> bool:  # type: ignore[no-untyped-def]
    return all(str(x) == str(y) for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True))


def test_a_record_of_more_tasks_than_memory_holds_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = 2_000_000_000
    workload = sim.Workload.from_tables(
        jobs={"job_id": ["a"], "submit_s": [0.0]},
        stages={"job": [0], "n_tasks": [n], "duration_s": [1.0]},
    )
    job_s = np.array([0.0])
    zero = np.array([0], np.int32)
    records = TaskRecords(job_s, zero, None, zero, None, workload.columns)
    result = sim.Result(
        workload, sim.Cluster.slots(10), policies.build("fifo"), 0, job_s, job_s, job_s + 1,
        np.array([False]), records=records,
    )  # fmt: skip
    assert result.batches.to_pylist() == [  # type: ignore[union-attr]
        {"stage": 0, "task": 0, "count": n, "machine": 0, "start_s": 0.0, "finish_s": 1.0}
    ]
    monkeypatch.setattr(memory, "available_bytes", lambda: 8e9)
    with pytest.raises(sim.InputError, match="2,000,000,000 tasks would take about 16"):
        result.task_start  # noqa: B018


@pytest.mark.parametrize("n_tasks", [1, 40, 5_000, 100_000])
def test_batches_come_in_the_order_of_their_tasks(
    n_tasks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = np.random.default_rng(n_tasks).permutation(n_tasks)[: max(1, n_tasks // 3)]
    task = task.astype(np.int32)
    expected = np.argsort(task).tolist()
    assert order_by_task(task, n_tasks).tolist() == expected
    monkeypatch.setattr(engine_batches, "MAX_SCATTERED", 0)
    assert order_by_task(task, n_tasks).tolist() == expected


@pytest.mark.parametrize("policy", ["fifo", "srpt", "las"])
@pytest.mark.parametrize("scattered", [0, 2**24])
def test_ends_and_counts_follow_from_starts_in_a_pool(
    policy: str, scattered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_batches, "MAX_SCATTERED", scattered)
    monkeypatch.setattr(engine_batches, "PIECE", 7)
    rng = np.random.default_rng(0)
    stages = 200
    stage = np.repeat(np.arange(stages), rng.integers(1, 40, stages))
    workload = sim.Workload.from_tables(
        jobs={"job_id": [str(j) for j in range(50)], "submit_s": np.arange(50.0)},
        stages={"job": np.repeat(np.arange(50), 4), "n_tasks": np.bincount(stage)},
        tasks={"stage": stage, "duration_s": rng.choice([0.5, 3.0, 7.1], len(stage))},
    )
    batches = sim.simulate(workload, sim.Cluster.slots(300), policies.build(policy))
    records, duration_s = batches.records, workload.columns.task_duration
    assert records is not None
    assert records.end_s is None
    assert records.size is None
    assert len(records.start_s) < 0.9 * workload.n_tasks
    np.testing.assert_array_equal(batches.task_finish, batches.task_start + duration_s)
    single = in_tasks(batches)
    assert np.array(list(batches.metrics.values())).tobytes() == (
        np.array(list(single.metrics.values())).tobytes()
    )
    monkeypatch.setattr(usage, "CHUNK", 5)
    again = in_batches(single)
    assert again.metrics["utilization"] == batches.metrics["utilization"]
    assert int(records.count.sum()) == workload.n_tasks  # type: ignore[union-attr]
