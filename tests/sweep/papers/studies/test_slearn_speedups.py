"""Speed-ups of pairs of schemes, computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.sweep.papers.study_runs import study_results


def cell(policy: str, seed: int, jct_s: list[float], **more: Any) -> dict[str, Any]:
    submit = np.arange(len(jct_s)) * 10.0
    return {
        "policy": policy,
        "trace": "slearn_2sigma",
        "seed": seed,
        "jct_mean_s": float(np.mean(jct_s)),
        "prediction_error_p50": 0.25 + seed,
        "table": {"submit_s": submit, "finish_s": submit + jct_s},
        **more,
    }


def test_speed_ups_are_paired_by_seed() -> None:
    rows = [
        cell("slearn", 0, [1.0, 3.0]),
        cell("slearn", 1, [4.0, 4.0]),
        cell("threesigma", 1, [4.0, 12.0]),  # twice as long, and at seed 0 four times
        cell("threesigma", 0, [8.0, 8.0]),
        cell("point", 0, [4.0, 4.0]),
        cell("point", 1, [4.0, 4.0]),
        cell("oracle", 0, [1.0, 1.0]),
    ]
    results = study_results("slearn/fig6", rows)
    history = results["2Sigma, mean JCT", "threesigma over slearn"]
    assert history.ours == pytest.approx(3.0)
    assert history.low < 0 < 6 < history.high
    assert (history.paper, history.expected, history.is_met) == ("1.28", "≥ 1", True)
    half = results["2Sigma, P50 of jobs", "threesigma over slearn"]
    assert half.ours == pytest.approx(((8.0 + 8 / 3) / 2 + (1.0 + 3.0) / 2) / 2)
    assert half.paper == "0.92"
    assert not results["2Sigma, mean JCT", "point over threesigma"].is_met
    oracle = results["2Sigma, mean JCT", "oracle over slearn"]
    assert (oracle.ours, oracle.paper, oracle.expected) == (pytest.approx(0.5), "0.79", "")
    assert ("2Sigma, mean JCT", "slearn over threesigma") not in results


def test_each_ratio_has_the_papers_number() -> None:
    rows = [cell("slearn", 0, [2.0]), cell("pilots/p10", 0, [4.0]), cell("threesigma", 0, [4.0])]
    results = study_results("slearn/table6", rows)
    assert len(results) == 2 * 2 + 3
    figure = "2Sigma, mean JCT"
    adaptive, fixed = (
        results[figure, f"threesigma over {name}"] for name in ("slearn", "pilots/p10")
    )
    assert (adaptive.ours, adaptive.paper) == (2.0, "1.28")
    assert (fixed.ours, fixed.paper) == (1.0, "1.28")
    assert results["2Sigma, P50 of jobs", "threesigma over pilots/p10"].paper == "0.91"
    error = results["2Sigma, P50 error %", "pilots/p10"]
    assert (error.ours, error.paper) == (25.0, "16.9")
    thin = study_results("slearn/table9", [cell("thin/below6", 0, [4.0]), rows[2]])
    assert thin[figure, "threesigma over thin/below6"].paper == "0.84"


def test_loads_of_one_trace_are_separate() -> None:
    key = "trace.transforms.history_and_trace.load"
    rows = [
        cell(policy, 0, jct_s, **{key: load, "trace": "slearn_google2011_real"})
        for policy, jct_s, load in (
            ("slearn", [2.0], 0.5),
            ("slearn", [8.0], 1.0),
            ("las", [2.0], 0.5),
            ("las", [4.0], 1.0),
        )
    ]
    results = study_results("slearn/real", rows, key)
    assert results["slearn_google2011_real, load 0.5, mean JCT", "las over slearn"].ours == 1.0
    assert results["slearn_google2011_real, load 1, mean JCT", "las over slearn"].ours == 0.5
