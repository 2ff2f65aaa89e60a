from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import policies
import sim
from sim.cluster.faults import Outages
from sim.metrics import usage
from sim.metrics.usage import tasks_over_time, utilization_over_time

JOBS: list[dict[str, Any]] = [
    {"submit_s": 0.0, "stages": [{"durations_s": [4.0, 2.0]}]},
    {"submit_s": 5.0, "stages": [{"durations_s": [3.0]}]},
]


def run(jobs: list[dict[str, Any]], slots: int = 2, **options: Any) -> sim.Result:
    workload = sim.Workload.from_jobs(jobs)
    return sim.simulate(workload, sim.Cluster.slots(slots), policies.build("fifo"), **options)


def test_utilization_by_hand() -> None:
    # both slots for 2 s, one for 2 s, none for 1 s, one for 3 s
    actual = utilization_over_time(run(JOBS, record="tasks"), n_bins=8)
    assert actual == {
        "resource": "slot",
        "begin_s": 0.0,
        "end_s": 8.0,
        "used": [1.0, 1.0, 0.5, 0.5, 0.0, 0.5, 0.5, 0.5],
    }


@pytest.mark.parametrize("n_bins", [1, 7, 120])
def test_utilization_against_a_naive_sum(n_bins: int) -> None:
    draws = np.random.default_rng(n_bins)
    jobs = [
        {"submit_s": float(second), "stages": [{"durations_s": draws.exponential(5.0, 4).tolist()}]}
        for second in range(30)
    ]
    ran = run(jobs, slots=7, record="tasks")
    actual = utilization_over_time(ran, n_bins)
    assert actual is not None
    assert ran.task_start is not None
    assert ran.task_finish is not None
    edges = np.linspace(actual["begin_s"], actual["end_s"], n_bins + 1)
    for low, high, used in zip(edges[:-1], edges[1:], actual["used"], strict=True):
        within = np.minimum(ran.task_finish, high) - np.maximum(ran.task_start, low)
        assert used == pytest.approx(np.clip(within, 0, None).sum() / 7 / (high - low), abs=1e-3)


@pytest.mark.parametrize("policy", ["fifo", "srpt", "tetris"])
@pytest.mark.parametrize("seed", range(3))
def test_utilization_while_jobs_arrive_equals_a_naive_sum(
    seed: int, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "CHUNK", 5)
    draws = np.random.default_rng(seed)
    jobs = [
        {
            "submit_s": float(second),
            "stages": [
                {"durations_s": draws.exponential(9.0, 4).tolist(), "demand": {"cpu": 2, "mem": 3}},
                {"durations_s": [7.0], "demand": {"cpu": 1, "mem": 9}},
            ],
        }
        for second in range(10, 40)
    ]
    workload = sim.Workload.from_jobs(jobs)
    cluster = sim.Cluster.machines(9, cpu=8, mem=24)
    ran = sim.simulate(workload, cluster, policies.build(policy), record="tasks")
    assert ran.task_start is not None
    assert ran.task_finish is not None
    work = {"cpu": 0.0, "mem": 0.0}
    for task in ran.tasks.to_pylist():  # type: ignore[union-attr]
        seconds = min(task["finish_s"], 39.0) - max(task["start_s"], 10.0)
        demand = jobs[0]["stages"][task["stage"] % 2]["demand"]
        for name in work:
            work[name] += max(0.0, seconds) * demand[name]
    for name, capacity in (("cpu", 8), ("mem", 24)):
        share = work[name] / (9 * capacity * 29.0)
        assert ran.metrics[f"utilization_{name}"] == pytest.approx(share, rel=1e-9)
    assert ran.metrics["utilization"] == max(ran.metrics[f"utilization_{n}"] for n in work)


@pytest.mark.parametrize("min_tasks", [0, 2])
@pytest.mark.parametrize("kind", ["slots", "machines", "outages"])
def test_room_that_launches_hold_is_in_use(kind: str, min_tasks: int) -> None:
    jobs: list[dict[str, Any]] = [
        {
            "submit_s": 10.0 * i,
            "min_tasks": 0 if kind == "outages" else min_tasks,
            "stages": [{"durations_s": [1.0, 1.0], "demand": {"cpu": 1}}],
            "queue": f"q{i % 2}",
        }
        for i in range(4)
    ]
    cluster = sim.Cluster.slots(2) if kind == "slots" else sim.Cluster.machines(2, cpu=1)
    if kind == "outages":  # far away: each task has a record of its own
        cluster = cluster.with_outages(Outages.from_columns([0], [1e6], [2e6]))
    ran = sim.simulate(
        sim.Workload.from_jobs(jobs), cluster.with_launch(9.0), policies.build("fifo")
    )
    assert ran.jobs["start_s"].to_pylist() == [9.0, 19.0, 29.0, 39.0]
    assert ran.task_placed is not None
    assert ran.task_placed.tolist() == [0.0, 0.0, 10.0, 10.0, 20.0, 20.0, 30.0, 30.0]
    assert ran.metrics["utilization"] == 1.0  # held by launches nine tenths of the time
    over_time = utilization_over_time(ran, n_bins=4)
    assert over_time is not None
    assert (over_time["begin_s"], over_time["used"]) == (0.0, [1.0] * 4)
    assert ran.metrics["utilization_makespan"] == 8.0 / 80.0  # work alone


def test_small_runs_are_kept_task_by_task() -> None:
    ran = run(JOBS[:1], record="tasks")
    assert tasks_over_time(ran) == {
        "job": [0, 0],
        "stage": [0, 0],
        "machine": [0, 0],
        "start_s": [0.0, 0.0],
        "finish_s": [4.0, 2.0],
    }
    assert tasks_over_time(ran, max_tasks=1) is None


def test_without_records_there_is_nothing() -> None:
    ran = run(JOBS[:1], record="jobs")
    assert utilization_over_time(ran) is None
    assert tasks_over_time(ran) is None


def test_jobs_have_the_values_of_the_percentiles() -> None:
    draws = np.random.default_rng(3)
    jobs = [
        {"submit_s": float(second), "stages": [{"durations_s": draws.exponential(5.0, 3).tolist()}]}
        for second in range(20)
    ]
    workload = sim.Workload.from_jobs(jobs)
    cluster = sim.Cluster.slots(4)
    ran = sim.simulate(workload, cluster, policies.build("slearn"))
    bound = sim.lower_bound(workload, cluster)["new_lb"].to_numpy()
    gaps = (ran.job_finish - ran.job_submit) / bound - 1
    np.testing.assert_array_equal(ran.gap_lb, gaps)
    assert ran.metrics["gap_lb_p90"] == np.percentile(gaps, 90)
    size = np.array([sum(job["stages"][0]["durations_s"]) for job in jobs])
    errors = np.abs(ran.estimate_s - size) / size
    known = ~np.isnan(errors)
    assert known.any()
    np.testing.assert_allclose(ran.prediction_error[known], errors[known])
    assert ran.metrics["prediction_error_p50"] == pytest.approx(np.percentile(errors[known], 50))
