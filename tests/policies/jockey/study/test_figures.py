"""The arbiter against its bound, runs over time, and predictions against runs."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from sweep.report import findings as report_findings
from sweep.report import plots as report_plots
from tests.sweep.questions.papers.study_runs import study_findings, study_results


def jobs(finish: list[float], deadline: float = 600.0) -> pa.Table:
    n = len(finish)
    return pa.table(
        {
            "submit_s": [0.0] * n,
            "finish_s": finish,
            "deadline_s": [deadline] * n,
            "work_s": [94_500.0] * n,
            "shortest_s": [60.0] * n,
            "tokens": [315] * n,
        }
    )


def test_utility_is_that_of_the_paper_and_the_gain_is_relative_to_the_bound() -> None:
    # 315 tokens do a job of 94,500 token seconds in 300 s, so that both can meet 600 s
    tables = {
        "drf": jobs([900.0, 900.0]),  # five minutes late: worth 0
        "jockey": jobs([600.0, 900.0]),
        "jockey_arbiter": jobs([500.0, 600.0]),
        "jockey_with/ready_first": jobs([600.0, 750.0]),
    }
    rows = [{"policy": p, "seed": 0, "table": table.to_pydict()} for p, table in tables.items()]
    results = study_results("jockey/arbiter", rows)
    assert results["total utility", "drf, 200 %"].ours == pytest.approx(0.0)
    assert results["total utility", "jockey, 200 %"].ours == pytest.approx(1.0)
    assert results["total utility", "bound, 200 %"].ours == pytest.approx(2.0)
    assert results["total utility", "bound, 200 %"].curve == "bound"
    assert results["total utility", "bound of whole jobs, 200 %"].ours == pytest.approx(2.0)
    assert results["deadlines met", "jockey_arbiter, 200 %"].ours == 2.0
    gain = results["arbiter's gain on the better alternative", "200 %"]
    assert (gain.ours, gain.is_met) == (pytest.approx(1.0), True)
    ready = results["arbiter's gain on turns by ready stage", "160 % and more, summed"]
    assert ready.ours == pytest.approx(0.5)
    way = results["way from the better alternative to the bound, %", "200 %"]
    assert (way.ours, way.is_met) == (pytest.approx(100.0), True)
    rows[2]["table"] = jobs([500.0, 960.0]).to_pydict()
    results = study_results("jockey/arbiter", rows)
    assert not results["arbiter's gain on the better alternative", "200 %"].is_met
    assert not results["way from the better alternative to the bound, %", "200 %"].is_met
    never = [{"policy": "drf", "seed": 0, "table": jobs([math.nan]).to_pydict()}]
    results = study_results("jockey/arbiter", never)
    assert results["total utility", "drf, 200 %"].ours == pytest.approx(-1000.0)


def test_deadlines_of_accepted_jobs_are_separate() -> None:
    cell = {"policy": "jockey", "policy.admission": "fitting", "trace.every_s": 240}
    table = {**jobs([500.0, 700.0, 900.0]).to_pydict(), "guaranteed": [True, True, False]}
    results = study_results("jockey/online", [{**cell, "seed": 0, "table": table}])
    ours = {figure: finding.ours for (figure, _), finding in results.items()}
    assert ours["accepted, %"] == pytest.approx(200 / 3)
    assert ours["deadlines met, % of those accepted"] == pytest.approx(50.0)
    assert ours["deadlines met, % of all"] == pytest.approx(100 / 3)
    assert ours["utility of a job"] == pytest.approx((1.0 + 2 / 3 + 0.0) / 3)


def test_curves_are_tabulated_every_five_minutes_and_plotted_whole() -> None:
    curve = {"elapsed_s": [0.0, 60.0, 300.0, 600.0], "raw": [math.nan, 1.0, 2.0, 3.0]}
    table = {**curve, "tokens": [4.0] * 4, "running": [5.0] * 4, "oracle": [6.0] * 4}
    rows = [{"trace": "jockey_fig6a", "relative_finish": 1.02, "table": table}]
    results = study_findings("jockey/fig6", rows)
    raw = [(f.quantity, f.ours) for f in results if f.figure.endswith(", raw")]
    assert raw == [("after 5 min", 2.0), ("after 10 min", 3.0)]
    _, texts = report_findings.to_text(report_findings.to_table(results))
    assert all(row[1] for row in texts)
    plots = report_plots.curves(report_findings.to_table(results), 1)
    assert list(plots) == ["F, 45 min, 1.85 times the work"]
    data = plots["F, 45 min, 1.85 times the work"]["data"]
    assert [trace["name"] for trace in data] == ["raw", "tokens", "running", "oracle"]
    assert [trace["meta"] for trace in data] == [1, 2, 3, 4]
    assert (data[0]["x"], data[0]["y"]) == ([1, 5, 10], [1.0, 2.0, 3.0])
    assert len(data[1]["x"]) == 4


def test_two_indicators_are_followed_through_a_run() -> None:
    table = {
        "indicator": ["totalworkWithQ", "totalworkWithQ", "cp", "minstage"],
        "elapsed_s": [0.0, 60.0, 300.0, 0.0],
        "progress": [0.0, 0.1, 0.25, 0.0],
        "predicted_s": [1800.0, 1860.0, 1920.0, 60.0],
    }
    results = study_findings("jockey/fig9", [{"trace.job": "G", "table": table}])
    values = {(f.figure, f.quantity): f.ours for f in results if f.quantity}
    assert values == {
        ("job G, totalworkWithQ, progress, %", "after 0 min"): 0.0,
        ("job G, totalworkWithQ, predicted end, min", "after 0 min"): 30.0,
        ("job G, cp, progress, %", "after 5 min"): 25.0,
        ("job G, cp, predicted end, min", "after 5 min"): 32.0,
    }
    points = [(f.curve, f.x) for f in results if not f.quantity]
    assert points.count(("totalworkWithQ, progress, %", 1)) == 1
    assert len(points) == 6


def test_the_largest_prediction_is_compared_with_the_slowest_run() -> None:
    """Three runs at each allocation: seeds 0 to 2 at 10 tokens, and 3 to 5 at 20."""

    def cell(seed: int, job: str, measured: list[float], predicted: list[float]) -> dict[str, Any]:
        columns = {"job": [0, 0], "tokens": [10, 20], "took_s": measured, "predicted_s": predicted}
        return {"policy": "jockey", "seed": seed, "trace.job": job, "table": columns}

    results = study_results(
        "jockey/fig8",
        [
            cell(0, "A", [80.0, 50.0], [110.0, 40.0]),
            cell(1, "A", [100.0, 40.0], [110.0, 40.0]),
            cell(2, "B", [200.0, 100.0], [260.0, 90.0]),
            cell(3, "A", [999.0, 32.0], [110.0, 40.0]),
            cell(5, "B", [999.0, 75.0], [260.0, 90.0]),
        ],
    )
    title = "prediction error, simulator, %"
    assert results[title, "10 tokens"].ours == pytest.approx((10 + 30) / 2)
    assert results[title, "20 tokens"].ours == pytest.approx((25 + 20) / 2)
    all_ours = results[title, "all jobs and allocations"]
    assert (all_ours.ours, all_ours.paper) == (pytest.approx((10 + 30 + 25 + 20) / 4), "9.8")
    assert results[title, "largest"].ours == pytest.approx(30)
    same = "prediction error, same runs at all allocations, simulator, %"
    assert results[same, "20 tokens"].ours == pytest.approx((20 + 10) / 2)
    assert results[same, "all jobs and allocations"].ours == pytest.approx((10 + 20 + 30 + 10) / 4)
    assert not any("Amdahl" in figure for figure, _ in results)


def test_a_profile_of_some_executors_is_compared_with_runs_on_others() -> None:
    def cell(policy: str, measured: list[float], predicted: list[float]) -> dict[str, Any]:
        table = {"took_s": measured, "predicted_s": predicted}
        trace = {"trace.trained_at": 20, "trace.executors": 50}
        return {"policy": policy, **trace, "table": table}

    executors = "trained with 20, run with 50"
    results = study_results(
        "jockey/spark",
        [
            cell("jockey", [10.0, 10.0, 20.0], [9.0, 12.0, 26.0]),
            cell("jockey_amdahl", [10.0], [5.0]),
        ],
    )
    assert results["prediction error, simulator, %", executors].ours == pytest.approx(
        (10 + 20 + 30) / 3
    )
    assert results["prediction error, Amdahl's law, %", executors].ours == pytest.approx(50)
    middle = "predicted over measured, simulator, median over queries"
    assert results[middle, executors].ours == pytest.approx(1.2)


def test_variation_is_over_runs_of_a_job_and_percentiles_are_of_jobs() -> None:
    """Job A varies by half with spare tokens, by a tenth without, and the others not at all."""
    rows = []
    for job in "ABCDEFG":
        for spare, like, spread in ((True, True, 0.5), (True, False, 1.0), (False, True, 0.1)):
            wide = spread if job == "A" else 0.01
            rows += [
                {
                    "policy": "max_allocation", "seed": seed, "trace.job": job,
                    "policy.spare": spare, "trace.like_inputs": like, "spare_share": 0.1 * seed,
                    "relative_finish": 0.8 + wide * (seed - 1) * 0.8,
                }
                for seed in range(3)
            ]  # fmt: skip
    results = study_results("jockey/variance", rows)
    assert results["variation over runs, like inputs", "P99 of jobs"].ours == pytest.approx(
        0.01 + 0.94 * 0.49
    )
    assert results["variation over runs, all", "P50 of jobs"].ours == pytest.approx(0.01)
    ratio = results["variation with spare tokens over that without", "largest of seven jobs"]
    assert (ratio.ours, ratio.paper) == (pytest.approx(5.0), "up to 5")
    share = results["vertices of a job on spare tokens, %", "P95 of runs"]
    assert (share.ours, share.paper) == (pytest.approx(20.0), "80")
