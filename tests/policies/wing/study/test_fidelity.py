"""Ranks and gains on the held-out half and on synthesized jobs, computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sweep.questions.papers.study_runs import study_results

HELD_OUT = {"fifo": 100.0, "a": 50.0, "b": 40.0, "c": 20.0}


def rows(**jct_s: dict[str, float]) -> list[dict[str, Any]]:
    return [
        {
            "policy": policy, "trace": "t", "capacity": 1.0, "seed": seed,
            "trace.transforms.half.part": half,
            "jct_mean_s": jct + (0.1 * seed if half == "second" else 0.0),
        }
        for half, policies in jct_s.items()
        for policy, jct in policies.items()
        for seed in (0, 1)
    ]  # fmt: skip


def test_ranks_and_gains() -> None:
    synthetic = {"fifo": 200.0, "a": 100.0, "b": 40.0, "c": 60.0}
    results = study_results(
        "alike/alibaba", rows(second=HELD_OUT, first=HELD_OUT, made=synthetic), baseline="fifo"
    )
    group = "4 policies, capacity 1"
    tau = "Kendall's tau of mean JCT"
    assert results[tau, f"synthesized against held-out half, {group}"].ours == pytest.approx(2 / 3)
    assert results[tau, f"two real halves, {group}"].ours == 1.0
    loss = results[tau, f"loss by synthesis, {group}"]
    assert loss.ours == pytest.approx(1 / 3)
    assert not loss.is_met
    in_order = results["clearly different pairs in order", f"{group}, 6 pairs"]
    assert in_order.ours == pytest.approx(5 / 6)
    gain = "gain on synthesized over gain on held-out jobs, capacity 1"
    assert results[gain, "a"].ours == pytest.approx(1.0, rel=2e-3)
    assert results[gain, "b"].ours == pytest.approx(2.0, rel=2e-3)
    assert results[gain, "c"].ours == pytest.approx(2 / 3, rel=4e-3)
    error = results[
        "error factor of gains over the baseline", f"synthesized against held-out half, {group}"
    ]
    assert error.ours == pytest.approx(3 ** (1 / 3), rel=4e-3)
    assert not error.is_met


def test_another_real_half_meets_all_expectations() -> None:
    results = study_results(
        "alike/kth", rows(second=HELD_OUT, first=HELD_OUT, made=HELD_OUT), baseline="fifo"
    )
    assert all(finding.is_met for finding in results.values())
