"""Comparisons beyond the paper, computed by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.sweep.questions.papers.study_runs import study_results

BAYES, TRUTH = "code_variants/bayes", "code_variants/slearn_truth"


def cell(policy: str, seed: int, jct_s: float, **more: Any) -> dict[str, Any]:
    row = {"policy": policy, "trace": "slearn_2sigma", "seed": seed, "jct_mean_s": jct_s}
    return {**row, **more}


def test_the_better_scheme_has_the_lower_mean_over_seeds() -> None:
    rows = [
        cell(BAYES, 0, 2.0), cell(BAYES, 1, 2.0),
        cell("slearn_code", 0, 1.0), cell("slearn_code", 1, 3.0),  # 2 on average
        cell("threesigma_code", 0, 9.0), cell("threesigma_code", 1, 1.0),
        cell(TRUTH, 0, 1.0), cell(TRUTH, 1, 2.0),
    ]  # fmt: skip
    results = study_results("slearn/beyond", rows)
    figure = "2Sigma, mean JCT"
    better = results[figure, f"slearn_code, the better of both, over {BAYES}"]
    assert better.ours == pytest.approx(1.0)
    assert (better.expected, better.is_met) == ("≥ 0.98", True)
    assert results[figure, f"threesigma_code over {BAYES}"].ours == pytest.approx(2.5)
    assert results[figure, f"slearn_code over {TRUTH}"].ours == pytest.approx((1.0 + 1.5) / 2)
    assert (figure, "slearn_code over oracle_code") not in results
    assert (figure, f"{BAYES} over {BAYES}") not in results


def test_nothing_is_wanted_of_the_second_reading() -> None:
    rows = [cell("bayes", 0, 2.0), cell("slearn", 0, 1.0), cell("threesigma", 0, 3.0)]
    results = study_results("slearn/beyond", rows)
    assert len(results) == 3
    better = results["2Sigma, mean JCT", "slearn, the better of both, over bayes"]
    assert (better.ours, better.expected) == (0.5, "")


def test_shares_of_recurring_programs_are_separate() -> None:
    rows = [
        cell(policy, 0, jct_s, **{"trace.recurring": share})
        for share, ours in ((0.25, 2.0), (0.5, 1.0))
        for policy, jct_s in ((BAYES, ours), ("slearn_code", 3.0), ("threesigma_code", 1.5))
    ]
    results = study_results("slearn/mixed", rows, "trace.recurring")
    quantity = f"threesigma_code, the better of both, over {BAYES}"
    few = results["2Sigma, recurring 0.25, mean JCT", quantity]
    half = results["2Sigma, recurring 0.5, mean JCT", quantity]
    assert (few.ours, few.expected, few.is_met) == (0.75, "≥ 1", False)
    assert (half.ours, half.is_met) == (1.5, True)


def test_both_readings_are_compared_pair_by_pair() -> None:
    schemes = {
        "slearn_code": 1.0,
        "code_variants/slearn_second_queue": 2.0,
        "threesigma_code": 1.28,
        "code_variants/threesigma_totals": 2.56,
    }
    rows = [cell(policy, seed, jct_s) for policy, jct_s in schemes.items() for seed in (0, 1)]
    results = study_results("slearn/readings", rows)
    figure, counted = (
        "2Sigma, 3Sigma over SLearn, mean JCT",
        "distributions by task, queue of pilots: own",
    )
    assert (results[figure, counted].ours, results[figure, counted].paper) == (1.28, "1.28")
    assert results[figure, "distributions by total, queue of pilots: second"].ours == 1.28
    assert results["2Sigma, mean JCT", "total over task"].ours == 2.0
    assert results["2Sigma, mean JCT", "second over own"].ours == 2.0
    assert results["mean |ln(ours / paper)|", counted].ours == 0.0
    off = results["mean |ln(ours / paper)|", "distributions by task, queue of pilots: second"]
    assert off.ours == pytest.approx(math.log(2.0))
