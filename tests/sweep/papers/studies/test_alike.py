"""Ranks and gains on the held half and on what is synthesized, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sweep.papers.looked import looked

HELD = {"fifo": 100.0, "a": 50.0, "b": 40.0, "c": 20.0}


def rows(**of: dict[str, float]) -> list[dict[str, Any]]:
    return [
        {
            "policy": policy, "trace": "t", "capacity": 1.0, "seed": seed,
            "trace.transforms.half.part": which,
            "jct_mean_s": jct + (0.1 * seed if which == "second" else 0.0),
        }
        for which, policies in of.items()
        for policy, jct in policies.items()
        for seed in (0, 1)
    ]  # fmt: skip


def test_ranks_and_gains() -> None:
    made = {"fifo": 200.0, "a": 100.0, "b": 40.0, "c": 60.0}
    found = looked("alike/alibaba", rows(second=HELD, first=HELD, made=made), baseline="fifo")
    where = "4 policies, capacity 1"
    tau = "Kendall's tau of mean JCT"
    assert found[tau, f"synthesized and held, {where}"].ours == pytest.approx(2 / 3)
    assert found[tau, f"the two real halves, {where}"].ours == 1.0
    lost = found[tau, f"lost by synthesizing, {where}"]
    assert lost.ours == pytest.approx(1 / 3)
    assert not lost.is_met
    kept = found["clearly different pairs in order", f"{where}, 6 pairs"]
    assert kept.ours == pytest.approx(5 / 6)
    gain = "gain on the synthesized over gain on the held, capacity 1"
    assert found[gain, "a"].ours == pytest.approx(1.0, rel=2e-3)
    assert found[gain, "b"].ours == pytest.approx(2.0, rel=2e-3)
    assert found[gain, "c"].ours == pytest.approx(2 / 3, rel=4e-3)
    off = found["gains over the baseline are off by a factor of", f"synthesized and held, {where}"]
    assert off.ours == pytest.approx(3 ** (1 / 3), rel=4e-3)
    assert not off.is_met


def test_another_real_half_is_alike() -> None:
    found = looked("alike/kth", rows(second=HELD, first=HELD, made=HELD), baseline="fifo")
    assert all(one.is_met for one in found.values())
