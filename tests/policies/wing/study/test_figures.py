"""Distribution of value over jobs, compared with Zipf's law."""

from __future__ import annotations

import pytest

from sweep.questions.papers import printed
from tests.sweep.questions.papers.study_runs import study_results


def test_value_by_rank_is_compared_with_zipfs() -> None:
    jobs = {"value": [1.0, 8.0, 3.0, 1.0], "agg_value": [2.0, 20.0, 5.0, 1.0]}
    row = {"zipf_value": 1.5, "zipf_agg_value": 0.9, "table": jobs}
    results = study_results("wing/fig8", [row])
    local = results["all jobs of the week", "exponent of local value"]
    assert (local.ours, local.paper) == (1.5, "1")
    assert results["all jobs of the week", "exponent of aggregate value"].ours == 0.9
    assert results["local value over Zipf's", "rank 1"].ours == 1.0
    assert results["local value over Zipf's", "rank 4"].ours == pytest.approx(4 / 8)
    assert results["aggregate value over Zipf's", "rank 4"].ours == pytest.approx(4 / 20)


def test_failures_of_predicted_wing_agg_are_those_of_both_kinds_of_jobs():
    paper = printed.read("wing")
    failed = paper["fig10"]["jobs_failed"][0.2]
    kinds, recurring = paper["kinds"], paper["recurring"]["jobs"]
    mean = recurring * kinds["jobs_failed_recurring"]["wing_agg"]
    mean += (1 - recurring) * kinds["jobs_failed_ad_hoc"]["wing_agg"]
    assert failed["wing_agg"] == f"about {mean:.0f}"
    assert failed["wing_oracle/agg"] == 26  # §7.3, for the oracle


def test_readings_of_who_waits_stand_apart_with_their_distances() -> None:
    def cell(fit: str, policy: str, seed: int, value: float) -> dict[str, object]:
        keys = {"policy.fit": fit, "cluster.queues.mode": "hard", "capacity": 0.2}
        return {**keys, "policy": policy, "seed": seed, "value_attained": value, "jobs_failed": 0.3}

    rows = [
        cell(fit, policy, seed, value + 0.02 * seed)
        for fit, agg in (("strict", 0.6), ("skip", 0.5))
        for policy, value in (("priority", 0.3), ("wing_direct", 0.4), ("wing_agg", agg))
        for seed in (0, 1)
    ]
    results = study_results("wing/passing", rows, "policy.fit", "cluster.queues.mode")
    value = results["skip, queues, capacity 0.2, value attained %", "wing_agg"]
    assert (value.ours, value.paper) == (pytest.approx(51.0), "55")
    failed = results["strict, queues, capacity 0.2, jobs failed %", "wing_agg"]
    assert (failed.ours, failed.paper) == (pytest.approx(30.0), "about 30")
    gained = results[
        "strict, queues, capacity 0.2, points of value gained", "wing_agg over priority"
    ]
    assert gained.ours == pytest.approx(30.0)
    distances = (
        "mean distance to the paper, 3 numbers, points"  # not PRIO's, which set the workload
    )
    assert results[distances, "strict"].ours == pytest.approx((6.0 + 1.0 + 0.0) / 3)
    assert results[distances, "skip"].ours == pytest.approx((4.0 + 1.0 + 0.0) / 3)


def test_readings_of_priorities_count_those_of_prio_too() -> None:
    def cell(reading: str, policy: str, value: float) -> dict[str, object]:
        keys = {"trace.priorities": reading, "cluster.queues.mode": "hard", "capacity": 0.2}
        return {**keys, "policy": policy, "seed": 0, "value_attained": value, "jobs_failed": 0.3}

    rows = [
        cell(reading, policy, value)
        for reading, prio in (("drawn", 0.3), ("by_value", 0.35))
        for policy, value in (("priority", prio), ("wing_agg", 0.6))
    ]
    results = study_results("wing/important", rows, "trace.priorities", "cluster.queues.mode")
    distances = "mean distance to the paper, 3 numbers, points"  # failed: of Wing-Agg alone
    assert results[distances, "drawn"].ours == pytest.approx((5.0 + 5.0 + 0.0) / 3)
    assert results[distances, "by_value"].ours == pytest.approx((0.0 + 5.0 + 0.0) / 3)
