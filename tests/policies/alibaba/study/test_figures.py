"""Schedules of real and of synthesized dependencies, computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sweep.questions.papers.study_runs import study_findings

TRACES = (
    ("alibaba_hour", 1.0, 40.0),
    ("alibaba_hour_rewired", 1.02, 50.0),
    ("alibaba_hour_printed", 1.1, 50.0),
)


def jobs(last: float) -> dict[str, Any]:
    return {"submit_s": [0.0] * 4, "finish_s": [10.0, 20.0, 30.0, last]}


def test_cells_of_the_traces_are_paired() -> None:
    rows = [
        {
            "policy": policy, "trace": trace, "capacity": 1.0, "seed": seed,
            "jct_mean_s": factor * (10.0 + i), "table": jobs(last),
        }
        for trace, factor, last in TRACES
        for i, policy in enumerate(("a", "b", "c"))
        for seed in (0, 1)
    ]  # fmt: skip
    results = {(f.figure, f.quantity): f for f in study_findings("alibaba/dynamic", rows)}
    label = "mean JCT, synthesized over real, b, capacity 1"
    for variant, ours in (("Algorithm 2 as printed", 1.1), ("improved", 1.02)):
        ratio = results[f"Fig. 13, {variant}", label]
        assert ratio.ours == pytest.approx(ours)
        assert ratio.is_met == (ours < 1.05)
    distance = results["Fig. 13, improved", "KS distance of the JCTs, a, capacity 1"]
    assert distance.ours == pytest.approx(0.25)
    tau, in_order = study_findings("alibaba/ranking", rows)
    assert (tau.quantity, tau.ours) == ("3 policies, capacity 1", 1.0)
    assert (in_order.quantity, in_order.ours) == ("3 policies, capacity 1, 3 pairs", 1.0)
    for row in rows:
        if row["policy"] == "c" and row["trace"] == "alibaba_hour_rewired":
            row["jct_mean_s"] = 10.5
    tau, in_order = study_findings("alibaba/ranking", rows)
    assert (tau.ours, in_order.ours) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
