"""Wing's study: pairs of cells of one seed, and the paper's figures beside."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from sweep.papers.studies import wing, wing_readers, wing_worth
from sweep.report.findings import Finding, Finished


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


def test_nothing_is_wanted_of_a_workload_that_the_paper_has_not() -> None:
    rows = cells(priority=[0.5], wing_agg=[0.4])
    found = {f.what: f for f in looked(rows, "wing/bqetl", [])}
    assert found["wing_agg over priority"].ours == pytest.approx(-10.0)
    assert found["wing_agg over priority"].wanted == ""
    assert {f.paper for f in found.values()} == {""}


def test_noise_costs_what_the_truth_attains_more() -> None:
    rows = cells(truth=[0.6, 0.8], noisy=[0.5, 0.8])
    for row in rows:
        row["policy.noise"] = 1.0 if row["policy"] == "truth" else 10.0
        row["policy"] = "wing_oracle/agg"
    found = {f.what: f for f in looked(rows, "wing/sensitivity", ["policy.noise"])}
    assert found["lost by noise 10.0"].ours == pytest.approx(5.0)
    assert found["lost by noise 10.0"].paper == "11"


def test_what_becomes_of_kinds_of_jobs_is_in_percent() -> None:
    rows = cells(wing_agg=[0.5, 0.5])
    for row in rows:
        row["jobs_failed_ad_hoc"] = 0.4 + 0.02 * row["seed"]
    found = {f.figure: f for f in looked(rows, "wing/adhoc", [])}
    one = found["capacity 0.2, jobs_failed_ad_hoc %"]
    assert (one.what, one.paper, one.ours) == ("wing_agg", "42", pytest.approx(41.0))


def test_rounds_are_of_what_most_rounds_find() -> None:
    rows = [
        {"trace.rounds": rounds, "seed": seed, "agg_value_mean": mean}
        for seed, means in enumerate(([2.0, 10.0], [5.0, 20.0]))
        for rounds, mean in zip((0, 9), means, strict=True)
    ]
    finished = Finished(rows, {"experiment": "wing/fig6"}, cache=cast(Any, SimpleNamespace()))
    first, last = wing_worth.find(finished)
    assert (first.ours, first.paper) == (pytest.approx(22.5), "17")
    assert last.ours == pytest.approx(100.0)


def test_near_predictions_are_in_percent_and_exponents_are_not() -> None:
    numbers = {"zipf_value": 1.0, "zipf_agg_value": 0.9, "near_agg": 0.4, "near_own": 0.5}
    rows = [{"key": "a", **numbers}]
    jobs = pa.table({"value": [2.0, 1.0], "agg_value": [2.0, 1.0]})
    kept = SimpleNamespace(get=lambda key: SimpleNamespace(jobs=jobs))
    for experiment, expected in (("fig8", [1.0, 0.9]), ("fig9", [40.0, 50.0])):
        config = {"experiment": f"wing/{experiment}"}
        finished = Finished(rows, config, cache=cast(Any, kept))
        assert [f.ours for f in wing_worth.find(finished)][:2] == pytest.approx(expected)


def test_value_by_rank_is_shown_beside_zipfs() -> None:
    jobs = pa.table({"value": [1.0, 8.0, 3.0, 1.0], "agg_value": [2.0, 20.0, 5.0, 1.0]})
    kept = SimpleNamespace(get=lambda key: SimpleNamespace(jobs=jobs))
    row = {"key": "a", "zipf_value": 1.0, "zipf_agg_value": 1.0}
    finished = Finished([row], {"experiment": "wing/fig8"}, cache=cast(Any, kept))
    found = {(f.figure, f.what): f.ours for f in wing_worth.find(finished)}
    assert found["local value over Zipf's", "rank 1"] == 1.0
    assert found["local value over Zipf's", "rank 4"] == pytest.approx(4 / 8)
    assert found["aggregate value over Zipf's", "rank 4"] == pytest.approx(4 / 20)


def test_what_is_foretold_of_readers_by_threshold() -> None:
    metrics = ("precision", "recall", "rmse_h", "mae_min", "within_20", "over_2x")
    row = {f"{m}_{tr}": 0.01 * tr for m in metrics for tr in wing_readers.SHOWN} | {"best_tr": 45.0}
    found = {}
    for experiment in ("wing/fig2", "wing/fig3"):
        finished = Finished([row], {"experiment": experiment}, cache=cast(Any, SimpleNamespace()))
        found |= {(f.figure, f.what): f for f in wing_readers.find(finished)}
    assert found["precision %", "tr = 60 %"].ours == pytest.approx(60.0)
    assert found["recall %", "tr = 0 %"].paper == "95 at most"
    assert (found["best threshold", "tr %"].ours, found["best threshold", "tr %"].paper) == (
        45,
        "20",
    )
    error = found["error of time, median, min", "tr = 20 %"]
    assert (error.ours, error.paper) == (pytest.approx(0.2), "22")
