"""Studies of DAGPS's parts, region and losses, on cells computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sweep.questions.papers.study_runs import study_results


def cells(jct_by_policy: dict[str, list[float]], **more: Any) -> list[dict[str, Any]]:
    return [
        {"policy": policy, "trace": "t", "seed": seed, "jct_mean_s": jct, **more}
        for policy, by_seed in jct_by_policy.items()
        for seed, jct in enumerate(by_seed)
    ]


def test_a_part_pays_if_jobs_take_longer_without_it_on_every_seed() -> None:
    rows = cells(
        {
            "dagps": [10.0, 20.0, 40.0],
            "dagps_without/order": [11.0, 22.2, 43.6],
            "dagps_without/bundles": [11.0, 18.0, 40.0],
            "dagps_without/overbooking": [9.0, 18.0, 36.4],
            "tez": [20.0, 40.0, 80.0],
        }
    )
    results = study_results("dagps/parts", rows)
    figure = "t, mean JCT above that of dagps, %"
    assert results[figure, "dagps_without/order: pays"].ours == pytest.approx(10.0)
    assert results[figure, "dagps_without/bundles: shows nothing"].ours == pytest.approx(0.0)
    assert results[figure, "dagps_without/overbooking: costs"].ours == pytest.approx(-29 / 3)
    assert results[figure, "tez"].ours == pytest.approx(100.0)
    assert results["t, mean JCT below tez's, %", "dagps"].ours == pytest.approx(50.0)


def test_the_region_holds_settings_of_more_than_five_percent_for_sure() -> None:
    rows = []
    for load, without in ((0.3, [10.1, 10.2]), (0.6, [20.0, 20.2]), (0.9, [12.0, 30.0])):
        more = {"trace.load": load, "trace.depth": 6}
        rows += cells({"dagps": [10.0, 10.0], "tez_cp": [10.0, 10.0]}, **more)
        rows += cells({"dagps_without/order": without}, **more)
    results = study_results("dagps/region", rows)
    assert results["all settings", "settings"].ours == 3
    assert results["all settings", "settings in the region"].ours == 1  # 0.9 is not sure
    assert results["load 0.6", "settings in the region, %"].ours == 100
    assert results["load 0.9", "settings in the region, %"].ours == 0
    assert results["load 0.9", "average gain, %"].ours == pytest.approx(100 * (1 / 6 + 2 / 3) / 2)
    inside = "in the region: gain of the order, %"
    expected = 100 * (1 - (10 / 20 + 10 / 20.2) / 2)
    assert results[inside, "load 0.6, tez_cp"].ours == pytest.approx(expected)
    assert results[inside, "load 0.6, dagps"].ours == pytest.approx(expected)
    assert (inside, "load 0.3, dagps") not in results
    assert not any("levels" in figure for figure, _ in results)  # one depth is no factor


def test_losses_of_tez_alone_and_of_all() -> None:
    rows = []
    for seconds, tez, dagps in ((0.0, 100.0, 80.0), (3.0, 160.0, 128.0)):
        for policy, makespan in (("tez", tez), ("tez_cp", 0.9 * tez), ("dagps", dagps)):
            row = {"policy": policy, "trace": "tpcds_burst", "seed": 0, "makespan_s": makespan}
            row["trace.transforms.lengthen.seconds"] = seconds
            rows.append(row | {"trace.transforms.lengthen.factor": 1.0})
    results = study_results("dagps/losses", rows)
    figure = "tpcds_burst, losses of 3 s and factor 1, shorter makespan than tez %"
    longer = results[figure, "tez itself, longer than without losses"]
    assert longer.ours == pytest.approx(60.0)
    assert results[figure, "dagps, all alike"].ours == pytest.approx(20.0)
    assert results[figure, "dagps, tez alone"].ours == pytest.approx(50.0)
    assert results[figure, "tez_cp, all alike"].ours == pytest.approx(10.0)
    assert (figure, "tez_cp, tez alone") not in results
