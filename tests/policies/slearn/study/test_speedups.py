"""Speed-ups of pairs of schemes, computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.sweep.questions.papers.study_runs import study_results


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
        cell("slearn_code", 0, [1.0, 3.0]),
        cell("slearn_code", 1, [4.0, 4.0]),
        cell("threesigma_code", 1, [4.0, 12.0]),  # twice as long, and at seed 0 four times
        cell("threesigma_code", 0, [8.0, 8.0]),
        cell("point_code", 0, [4.0, 4.0]),
        cell("point_code", 1, [4.0, 4.0]),
        cell("oracle_code", 0, [1.0, 1.0]),
    ]
    results = study_results("slearn/fig6", rows)
    history = results["2Sigma, mean JCT", "threesigma_code over slearn_code"]
    assert history.ours == pytest.approx(3.0)
    assert history.low < 0 < 6 < history.high
    assert (history.paper, history.expected, history.is_met) == ("1.27", "≥ 1", True)
    half = results["2Sigma, P50 of jobs", "threesigma_code over slearn_code"]
    assert half.ours == pytest.approx(((8.0 + 8 / 3) / 2 + (1.0 + 3.0) / 2) / 2)
    assert half.paper == "0.93"
    assert not results["2Sigma, mean JCT", "point_code over threesigma_code"].is_met
    oracle = results["2Sigma, mean JCT", "oracle_code over slearn_code"]
    assert (oracle.ours, oracle.paper, oracle.expected) == (pytest.approx(0.5), "0.79", "")
    assert ("2Sigma, mean JCT", "slearn_code over threesigma_code") not in results


def test_the_second_reading_has_the_papers_number_and_nothing_is_wanted_of_it() -> None:
    rows = [cell("slearn", 0, [2.0]), cell("threesigma", 0, [1.0]), cell("point_code", 0, [1.0])]
    results = study_results("slearn/fig6", rows)
    second = results["2Sigma, mean JCT", "threesigma over slearn"]
    assert (second.ours, second.paper, second.expected) == (0.5, "1.28", "")
    assert len(results) == 2  # the mean and the P50: readings are not mixed


def test_each_ratio_has_the_papers_number() -> None:
    rows = [
        cell("code_variants/slearn_adaptive", 0, [2.0]),
        cell("slearn_code", 0, [1.0]),
        cell("code_pilots/p10", 0, [4.0]),
        cell("threesigma_code", 0, [4.0]),
        cell("pilots/p10", 0, [8.0]),
        cell("threesigma", 0, [4.0]),
    ]
    results = study_results("slearn/table6", rows)
    assert len(results) == 2 * 4 + 6
    figure = "2Sigma, mean JCT"
    comparisons = {
        name: results[figure, f"threesigma{end} over {name}"]
        for name, end in (
            ("code_variants/slearn_adaptive", "_code"),
            ("slearn_code", "_code"),
            ("code_pilots/p10", "_code"),
            ("pilots/p10", ""),
        )
    }
    assert [row.ours for row in comparisons.values()] == [2.0, 4.0, 1.0, 0.5]
    assert [row.paper for row in comparisons.values()] == ["1.28", "1.27", "1.28", "1.28"]
    half = results["2Sigma, P50 of jobs", "threesigma_code over code_pilots/p10"]
    assert half.paper == "0.91"
    error = results["2Sigma, P50 error %", "code_pilots/p10"]
    assert (error.ours, error.paper) == (25.0, "16.9")
    assert results["2Sigma, P50 error %", "code_variants/slearn_adaptive"].paper == "19.0"


def test_each_thin_limit_has_the_papers_number() -> None:
    rows = [
        cell("code_thin/below6", 0, [4.0]),
        cell("slearn_code", 0, [2.0]),
        cell("threesigma_code", 0, [4.0]),
    ]
    results = study_results("slearn/table9", rows)
    figure = "2Sigma, mean JCT"
    assert results[figure, "threesigma_code over code_thin/below6"].paper == "0.84"
    assert results[figure, "threesigma_code over slearn_code"].paper == "1.28"


def test_dag_schemes_of_the_code_have_the_papers_numbers() -> None:
    rows = [
        cell(policy, 0, [jct_s], trace="slearn_gtrace19_dag")
        for policy, jct_s in (("code_variants/slearn_dag", 1.0), ("las_code", 3.0))
    ]
    results = study_results("slearn/fig10", rows)
    las = results["slearn_gtrace19_dag, mean JCT", "las_code over code_variants/slearn_dag"]
    assert (las.ours, las.paper) == (3.0, "2.15")
    error = results["slearn_gtrace19_dag, P50 error %", "code_variants/slearn_dag"]
    assert error.paper == "33.90"


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
