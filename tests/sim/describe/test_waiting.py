"""Capacities at which tasks wait, against numbers by hand and a naive count."""

import numpy as np
import pytest

import sim
from sim.describe import Dataset
from sim.describe.waiting import waiting
from sim.workload.peaks import in_use_at_starts, peak_demands

WORKLOAD = sim.Workload.from_jobs(
    [
        {"submit_s": 0, "stages": [{"durations_s": [10, 10], "demand": {"cpu": 2}}]},
        {
            "submit_s": 5,
            "stages": [
                {"name": "a", "durations_s": [5], "demand": {"cpu": 1}},
                {"name": "b", "durations_s": [5] * 4, "demand": {"cpu": 3}, "parents": ["a"]},
            ],
        },
        {"submit_s": 20, "stages": [{"durations_s": [5], "demand": {"cpu": 1}}]},
    ]
)


def test_peaks_by_hand():
    # 4 cpu at 0, 5 at 5; at 10 both end and 12 start; 1 at 20
    assert peak_demands(WORKLOAD) == {"cpu": 12, "slot": 4}


def test_shares_of_tasks_that_wait_by_capacity():
    rows = waiting(Dataset.from_workload("w", WORKLOAD)).to_pylist()
    cpu = {row["share"]: row["capacity"] for row in rows if row["resource"] == "cpu"}
    assert cpu[0.0] == 12
    assert cpu[0.5] == 5  # 4 of the 8 tasks find 12 in use, the others 5 at most
    assert cpu[1.0] == 1
    assert rows[0]["mean"] == pytest.approx((2 * 10 * 2 + 5 + 4 * 5 * 3 + 5) / 20)


def test_use_at_starts_equals_a_naive_count():
    rng = np.random.default_rng(0)
    start = rng.integers(0, 50, 80).astype(float)
    finish = start + rng.integers(1, 20, 80)
    amount = rng.integers(1, 5, 80).astype(float)
    order = np.argsort(start, kind="stable")
    naive = [
        sum(amount[k] for k in order[: i + 1] if finish[k] > start[row])
        for i, row in enumerate(order)
    ]
    assert in_use_at_starts(start, finish, amount).tolist() == naive
