"""Wing's study: pairs of cells of one seed, and the paper's figures beside."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sweep.findings import Finding, Finished
from sweep.studies import wing


def cells(**value: list[float]) -> list[dict[str, Any]]:
    return [
        {"policy": policy, "capacity": 0.2, "seed": seed, "value_attained": v, "jobs_failed": 0.1}
        for policy, values in value.items()
        for seed, v in enumerate(values)
    ]


def looked(rows: list[dict[str, Any]], experiment: str, swept: list[str]) -> list[Finding]:
    config = {"experiment": experiment, "swept": swept}
    finished = Finished(rows, config, cache=cast(Any, SimpleNamespace()))
    return wing.find(finished)


def test_policies_are_compared_seed_by_seed() -> None:
    rows = cells(priority=[0.3, 0.5], wing_agg=[0.4, 0.5], wing_mil=[0.5, 0.5])
    found = {(f.figure, f.what): f for f in looked(rows, "wing/fig10", [])}
    attained = found["capacity 0.2, value attained %", "wing_agg"]
    assert (attained.ours, attained.paper) == (pytest.approx(45.0), "55")
    gain = found["capacity 0.2, points of value gained", "wing_agg over priority"]
    assert gain.ours == pytest.approx(5.0)
    assert gain.high - gain.ours == pytest.approx(12.706205 * 5.0, rel=1e-6)
    assert gain.is_met
    assert not found["capacity 0.2, points of value gained", "wing_agg over wing_mil"].is_met
    assert ("capacity 0.2, points of value gained", "wing_dep over wing_agg") not in found


def test_noise_costs_what_the_truth_attains_more() -> None:
    rows = cells(truth=[0.6, 0.8], noisy=[0.5, 0.8])
    for row in rows:
        row["policy.noise"] = 1.0 if row["policy"] == "truth" else 10.0
        row["policy"] = "wing_oracle/agg"
    found = {f.what: f for f in looked(rows, "wing/sensitivity", ["policy.noise"])}
    assert found["lost by noise 10.0"].ours == pytest.approx(5.0)
    assert found["lost by noise 10.0"].paper == "11"
