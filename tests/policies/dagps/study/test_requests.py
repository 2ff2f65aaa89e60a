"""The study of requests above needs, on cells computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from policies.dagps.study.requests import MEMORY
from tests.sweep.questions.papers.study_runs import study_results

JCT = {
    ("tez", "declared"): 100.0, ("tez", "true"): 80.0,
    ("tez_cp", "declared"): 98.0, ("tez_cp", "true"): 80.0,
    ("tez_tetris", "declared"): 90.0, ("tez_tetris", "true"): 60.0,
    ("tez_drf", "declared"): 99.0, ("tez_drf", "true"): 70.0,
    ("dagps", "declared"): 75.0, ("dagps", "true"): 70.0,
}  # fmt: skip
"""Completion time of each job of a run; its makespan is ten times that."""


def cell(policy: str, demands: str, trace: str, memory: float, seed: int) -> dict[str, Any]:
    slower = (1.1 if trace == "tpcds_two_queues" else 1.0) * (1.0 + 0.5 * seed)
    jct_s = JCT[policy, demands] * slower
    return {
        "policy": policy, "policy.demands": demands, "trace": f"{trace}_requested",
        MEMORY: memory, "seed": seed, "jct_p50_s": jct_s, "jct_mean_s": jct_s,
        "makespan_s": 10 * jct_s, "jain_10s": 0.8, "jain_60s": 0.9, "jain_240s": 0.95,
        "table": {"submit_s": [0.0, 1.0], "finish_s": [jct_s, 1.0 + jct_s]},
    }  # fmt: skip


def test_tez_holds_requests_and_dagps_what_tasks_need() -> None:
    traces = ("tpcds_burst", "tpch_burst", "tpcds_stream", "tpch_stream", "tpcds_two_queues")
    rows = [
        cell(policy, demands, trace, memory, seed)
        for memory in (1.25, 2.29)
        for trace in traces
        for policy, demands in JCT
        for seed in (0, 1)
    ]
    results = study_results("dagps/requests", rows, "policy.demands", MEMORY)
    reading = "configured: cores × 1.25, memory × 1.25"
    table3 = f"Table 3, tpcds_burst, {reading}, {{}}: shorter makespan than tez's, %"
    requested, blind, known = (
        table3.format(view)
        for view in ("requests", "requests, dagps does not refine them", "all know")
    )
    assert results[requested, "dagps"].ours == pytest.approx(30.0)  # 70 of 100
    assert results[requested, "dagps"].paper == "30.9"
    assert results[requested, "tez_tetris"].ours == pytest.approx(10.0)
    assert results[requested, "dagps less tez_tetris, points"].ours == pytest.approx(20.0)
    assert results[requested, "tez_tetris less tez_cp, points"].ours == pytest.approx(8.0)
    assert results[blind, "dagps"].ours == pytest.approx(25.0)  # 75 of 100
    assert results[blind, "dagps"].paper == ""
    assert results[known, "dagps"].ours == pytest.approx(12.5)  # 70 of 80
    assert results[known, "dagps less tez_tetris, points"].ours == pytest.approx(-12.5)
    fig10 = f"Fig. 10, tpch_stream, {reading}, all know: improvement over tez, %"
    assert results[fig10, "tez_tetris, JCT, p50"].ours == pytest.approx(25.0)
    assert results[fig10, "tez_tetris, JCT, p50"].paper == "8.9"
    distance = results["mean distance to Fig. 10 (b), points", f"{reading}, all know"].ours
    printed = (27.8, 45.7, 4.1, 8.9, 6.5, 16.6, 30.5, 48.3, 3.8, 7.7, 8.9, 15.0)
    ours = (12.5, 12.5, 0, 0, 25, 25) * 2
    assert distance == pytest.approx(
        sum(abs(a - b) for a, b in zip(printed, ours, strict=True)) / 12
    )
    table4 = f"Table 4, {reading}, requests"
    assert results[table4, "dagps, two queues against one, %"].ours == pytest.approx(-10.0)
    assert results[table4, "dagps, two queues, improvement over tez, %"].ours == pytest.approx(30)
    assert results[table4, "tez_drf, Jain's index, windows of 60 s"].ours == pytest.approx(0.9)
