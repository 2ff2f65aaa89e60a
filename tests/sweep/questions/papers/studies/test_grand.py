"""The study of all policies on all workloads."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sweep.report.findings import Finding
from tests.sweep.questions.papers.study_runs import study_results

CELLS = [
    ("a", "fifo", 0, 10.0, None),
    ("a", "fifo", 1, 30.0, None),
    ("a", "sjf", 0, 4.0, None),
    ("a", "sjf", 1, 6.0, None),
    ("b", "fifo", 0, 8.0, 0.5),
    ("b", "sjf", 0, 8.0, 0.75),
    ("b", "las", 0, 2.0, 0.75),
]


def grand_results() -> dict[tuple[str, str], Finding]:
    rows: list[dict[str, Any]] = [
        {"trace": trace, "policy": policy, "capacity": 1.0, "seed": seed, "jct_mean_s": mean,
         "value_attained": value}
        for trace, policy, seed, mean, value in CELLS
    ]  # fmt: skip
    return study_results("alike/grand", rows, baseline="fifo")


def test_speed_ups_are_averaged_geometrically_over_workloads() -> None:
    results = grand_results()
    title = "capacity 1, speed-up of mean JCT over fifo"
    assert results[title, "sjf"].ours == pytest.approx(math.sqrt(20 / 5 * 1))
    assert results[title, "sjf"].low < 1 < results[title, "sjf"].high
    assert results[title, "las"].ours == pytest.approx(4.0)  # on b alone: no interval
    assert math.isnan(results[title, "las"].low)
    assert results[title, "fifo"].ours == pytest.approx(1.0)


def test_the_best_of_each_workload_is_named_with_its_equals() -> None:
    results = grand_results()
    assert results["best mean JCT, s", "a, 1: sjf"].ours == pytest.approx(5.0)
    assert results["best mean JCT, s", "b, 1: las"].ours == pytest.approx(2.0)
    assert results["best value attained, %", "b, 1: sjf, las"].ours == pytest.approx(75.0)
    # a has no value, and nothing has a bound or deadlines
    assert sum(figure.startswith("best") for figure, _ in results) == 3
