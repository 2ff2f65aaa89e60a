"""Statistics of single jobs, computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.sweep.questions.papers.study_runs import study_results


def sized(policy: str, seed: int = 0, **more: Any) -> dict[str, Any]:
    """Make a cell: a thin small job, a wide small, a thin large and two wide large ones."""
    table = {
        "submit_s": [0.0, 100.0, 200.0, 300.0, 400.0],
        "finish_s": [10.0, 120.0, 230.0, 340.0, 450.0],
        "size_s": [10.0, 100.0, 2000.0, 4000.0, 200_000.0],
        "n_tasks": [1, 4, 2, 10, 100],
        "estimate_s": [np.nan, 150.0, 1.0, 1000.0, 200_000.0],
        "queue": [-1, 0, 0, 1, 3],
        "right_queue": [0, 0, 1, 1, 3],
        "waits": [0.0, 0.02, 9.0, 1.0, 2.0],
        "resistance_s": [0.0, 1.0, 2.0, 3.0, 4.0],
        **more,
    }
    columns = {name: np.array(values) for name, values in table.items()}
    return {"policy": policy, "trace": "slearn_2sigma", "seed": seed, "table": columns}


def test_errors_and_queues_are_of_wide_jobs() -> None:
    results = study_results("slearn/fig3", [sized("slearn")])
    assert results["2Sigma, slearn", "error %, P50"].ours == pytest.approx(50.0)  # of 50, 75 and 0
    assert results["2Sigma, slearn", "error %, P50"].paper == "18.30"
    results = study_results("slearn/table7", [sized("threesigma", queue=[3, 1, 3, 0, 3])])
    assert results["2Sigma, threesigma", "right queue %"].ours == pytest.approx(100 / 3)
    assert results["2Sigma, threesigma", "right queue %"].paper == "73.84"
    name = "overestimated into a lower queue %"
    assert results["2Sigma, threesigma", name].ours == pytest.approx(100 / 3)


def test_errors_by_work_are_signed_and_count_jobs_with_an_estimate() -> None:
    results = study_results("slearn/table7", [sized("threesigma", queue=[-1, 1, 0, 1, 3])])
    figure = "2Sigma, threesigma"
    assert results[figure, "signed error by work %"].ours == pytest.approx(
        100 * (201_151 / 206_100 - 1)
    )
    assert results[figure, "work in too low a queue %"].ours == pytest.approx(100 * 100 / 206_100)
    assert results[figure, "work in too high a queue %"].ours == pytest.approx(100 * 2000 / 206_100)


def test_bins_are_those_of_table_8() -> None:
    other = sized("threesigma", finish_s=[20.0, 120.0, 215.0, 380.0, 550.0])
    results = study_results("slearn/fig9", [sized("slearn"), other])
    figure = "2Sigma, slearn against threesigma"
    assert results[figure, "bin-1, thin and small, speed-up"].ours == 2.0
    assert results[figure, "bin-1, thin and small, speed-up"].paper == "10.54"
    assert results[figure, "bin-2, wide and small, jobs sooner %"].ours == 0.0
    assert results[figure, "bin-3, thin and large, speed-up"].ours == 0.5
    assert results[figure, "bin-4, wide and large, speed-up"].ours == pytest.approx(230 / 90)
    assert results[figure, "bin-4, wide and large, jobs %"].ours == pytest.approx(40.0)


def test_pairs_are_of_one_reading() -> None:
    policies = ("slearn_code", "threesigma_code", "slearn", "threesigma")
    results = study_results("slearn/fig9", [sized(policy) for policy in policies])
    figures = {figure for figure, _ in results}
    assert figures == {
        "2Sigma, slearn_code against threesigma_code",
        "2Sigma, slearn against threesigma",
    }
    both = [results[figure, "bin-2, wide and small, speed-up"].paper for figure in figures]
    assert both == ["1.86", "1.86"]


def test_waits_have_the_papers_bins() -> None:
    other = sized("threesigma", waits=[0.0, 0.01, 9.0, 0.5, 5.0])
    results = study_results("slearn/fig7", [sized("slearn"), other])
    figure = "2Sigma, slearn against threesigma"
    third = pytest.approx(100 / 3)
    assert results[figure, "below 0.04, wide jobs % under both"].ours == third
    assert results[figure, "0.04 to 1.90, of these sooner under slearn %"].ours == 0.0
    assert results[figure, "above 1.90, of these sooner under slearn %"].ours == 100.0


def test_load_has_signed_errors_and_queued_work() -> None:
    other = sized("threesigma", resistance_s=[0.0, 2.0, 4.0, 6.0, 28.0])
    results = study_results("slearn/load", [sized("slearn"), other])
    assert results["2Sigma, slearn", "overestimated %"].ours == pytest.approx(100 / 3)
    assert results["2Sigma, slearn", "negative error %, P50"].ours == pytest.approx(-75.0)
    assert results["2Sigma, threesigma", "positive error %, mean"].paper == "898.5"
    figure = "2Sigma, slearn against threesigma"
    assert results[figure, "resistance over that under slearn"].ours == pytest.approx(4.0)
    assert results[figure, "speed-up, load of 1 and more"].ours == 1.0
    assert results[figure, "rank correlation of load and resistance"].ours == pytest.approx(1.0)
