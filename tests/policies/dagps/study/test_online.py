"""Choice and evaluation of DAGPS's defaults, computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from policies.dagps.study.online import TOO_SLOW, WORSE, rule
from tests.sweep.questions.papers.study_runs import study_results


def cell(policy: str, seed: int, jct: list[float], **more: Any) -> dict[str, Any]:
    mean = sum(jct) / len(jct)
    defaults = {"trace": "tpch_stream", "capacity": 1.0, "makespan_s": 100.0, **more}
    table = {"submit_s": [0.0] * len(jct), "finish_s": jct}
    return {"policy": policy, "seed": seed, "table": table, "jct_mean_s": mean, **defaults}


def setting(priority: str, srpt: str, m: float, seed: int, jct: list[float]) -> dict[str, Any]:
    swept = {"policy.priority": priority, "policy.srpt": srpt, "policy.m": m}
    return cell("dagps", seed, jct, **swept)


def test_the_choice_depends_on_medians_means_and_much_slower_jobs() -> None:
    rows = [cell("tez", seed, [10.0, 10.0, 10.0, 10.0]) for seed in (0, 1)]
    for seed in (0, 1):
        rows.append(setting("remaining", "pending", 0.3, seed, [8.0, 9.0, 9.0, 12.0]))
        rows.append(setting("printed", "pending", 0.2, seed, [5.0, 5.0, 5.0, 29.0]))
    results = study_results("dagps/choice", rows)
    good, bad = "priority=remaining, srpt=pending, m=0.3", "priority=printed, srpt=pending, m=0.2"
    assert results[good, WORSE].ours == 0
    assert results[good, "lowest JCT, p50, %"].ours == pytest.approx(10.0)
    assert results[good, "lowest mean JCT, %"].ours == pytest.approx(5.0)
    assert results[good, TOO_SLOW].ours == pytest.approx(25.0)
    assert results[bad, WORSE].ours == 1  # the median gains, the mean does not
    assert ("chosen by the rule", good) in results


CRITERIA = {
    ("remaining", "pending", 0.3): (0, 6.0),
    ("remaining", "unfinished", 0.2): (0, 5.5),
    ("remaining", "pending", 0.1): (0, 9.0),
    ("remaining", "pending", 1.0): (0, 1.0),
    ("printed", "pending", 0.2): (7, 0.0),
}


@pytest.mark.parametrize(
    ("dropped", "expected"),
    [
        ([], ("remaining", "pending", 0.3)),  # within a point of the least, and srpt as printed
        ([("remaining", "pending", 0.3)], ("remaining", "unfinished", 0.2)),
        ([key for key in CRITERIA if key[2] < 1], ("remaining", "pending", 1.0)),
        ([key for key in CRITERIA if key[0] == "remaining"], ("printed", "pending", 0.2)),
    ],
)
def test_the_rule(dropped: list[Any], expected: tuple[str, str, float]) -> None:
    criteria = {key: {WORSE: float(n), TOO_SLOW: slow} for key, (n, slow) in CRITERIA.items()}
    assert rule({key: values for key, values in criteria.items() if key not in dropped}) == expected


def test_expectations_hold_for_the_default_alone() -> None:
    bound = {"jct_mean_lb_s": 5.0}
    rows = [cell("tez", seed, [10.0] * 4, gap_lb_mean=1.0, **bound) for seed in (0, 1)]
    for policy, factor in (("dagps", 0.7), ("dagps/printed", 1.5)):
        for seed in (0, 1):
            gap = 2 * factor - 1
            rows.append(cell(policy, seed, [10.0 * factor] * 4, gap_lb_mean=gap, **bound))
    results = study_results("dagps/judged", rows)
    figure = "tpch_stream, load 1 times, improvement over tez %"
    assert results[figure, "limit for any schedule, mean JCT"].ours == pytest.approx(50.0)
    median = results[figure, "dagps, JCT, p50"]
    assert (median.ours, median.paper) == (pytest.approx(30.0), "30.5")
    assert (median.at_least, median.at_most) == pytest.approx((0.75 * 30.5, 1.25 * 30.5))
    assert results[figure, f"dagps, {TOO_SLOW}"].at_most == 5.0
    assert results[figure, "dagps, mean JCT above its bound"].ours == pytest.approx(40.0)
    worse = results[figure, "dagps/printed, mean JCT"]
    assert (worse.ours, worse.paper, worse.expected) == (pytest.approx(-50.0), "", "")


def test_readings_of_arrivals_have_their_distance_to_the_figure() -> None:
    rows = []
    for trace, factor in (
        ("tpcds_stream", 0.7),
        ("tpcds_stream_25s", 0.8),
        ("tpch_stream", 0.7),
        ("tpch_stream_25s", 1.3),
    ):
        for seed in (0, 1):
            rows.append(cell("tez", seed, [10.0] * 4, trace=trace))
            rows.append(cell("dagps", seed, [10.0 * factor] * 4, trace=trace))
    results = study_results("dagps/arrivals", rows)
    median = results["tpcds_stream_25s, improvement over tez %", "dagps, JCT, p50"]
    assert (median.ours, median.paper) == (pytest.approx(20.0), "27.8")
    slower = f"{TOO_SLOW}, 25 s less 15 s, points"
    assert results[slower, "tpcds, dagps"].ours == 0.0
    assert results[slower, "tpch, dagps"].ours == 100.0
    distance = results["mean distance to Fig. 10 (b), points", "15s"].ours
    assert distance == pytest.approx((2.2 + 15.7 + 0.5 + 18.3) / 4)  # of 27.8, 45.7, 30.5, 48.3
