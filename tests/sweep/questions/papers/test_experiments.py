"""Findings of studies that compare groups, seeds and policies, computed by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from policies.wing.evaluators.readers import METRIC_THRESHOLDS
from sweep.grid.options import Options
from sweep.questions.papers import printed, studies
from sweep.report.findings import FinishedSweep
from tests.sweep.questions.papers.study_runs import study_findings, study_results

KIND_METRICS = ("jobs_failed", "value_attained", "value_of")


def test_every_built_in_study_is_valid_and_used() -> None:
    options = Options.from_folders([])
    used = set()
    for name in options.names("experiment"):
        study = options.plain("experiment", name).get("study")
        if study is not None:
            assert studies.check(study, options.files["experiment"][name]) == study
            used.add(study["name"])
    assert used == set(studies.names())


def cells(**value: list[float]) -> list[dict[str, Any]]:
    return [
        {"policy": policy, "capacity": 0.2, "seed": seed, "value_attained": v, "jobs_failed": 0.1}
        for policy, values in value.items()
        for seed, v in enumerate(values)
    ]


def test_policies_are_compared_seed_by_seed() -> None:
    rows = cells(priority=[0.3, 0.5], wing_agg=[0.4, 0.5], wing_mil=[0.5, 0.5])
    results = study_results("wing/fig10", rows)
    attained = results["capacity 0.2, value attained %", "wing_agg"]
    assert (attained.ours, attained.paper) == (pytest.approx(45.0), "55")
    gain = results["capacity 0.2, points of value gained", "wing_agg over priority"]
    assert gain.ours == pytest.approx(5.0)
    assert gain.high - gain.ours == pytest.approx(12.706205 * 5.0, rel=1e-6)
    assert gain.is_met
    assert not results["capacity 0.2, points of value gained", "wing_agg over wing_mil"].is_met
    ratio = results["capacity 0.2, value attained, ratio", "wing_agg over priority"]
    assert (ratio.ours, ratio.paper) == (pytest.approx(1.125), "1.57")
    assert ratio.low < 1.0 < ratio.high
    assert ("capacity 0.2, points of value gained", "wing_dep over wing_agg") not in results


def test_nothing_is_expected_of_a_workload_outside_the_paper() -> None:
    rows = cells(priority=[0.5], wing_agg=[0.4])
    results = {f.quantity: f for f in study_findings("wing/workflows", rows)}
    assert results["wing_agg over priority"].ours == pytest.approx(-10.0)
    assert results["wing_agg over priority"].expected == ""
    assert {f.paper for f in results.values()} == {""}


def test_the_cost_of_the_profilers_errors() -> None:
    rows = []
    for history, attained in (("logs", 0.4), ("truth", 0.5)):
        rows += [{**row, "trace.history": history} for row in cells(wing_agg=[attained, 0.6])]
    results = study_results("wing/bqetl", rows)
    cost = results["capacity 0.2, points of value, logs over truth", "wing_agg"]
    assert cost.ours == pytest.approx(-5.0)
    assert results["truth, capacity 0.2, value attained %", "wing_agg"].ours == pytest.approx(55.0)


def test_the_cost_of_noise_is_relative_to_the_truth() -> None:
    rows = cells(truth=[0.6, 0.8], noisy=[0.5, 0.8])
    for row in rows:
        row["policy.noise"] = 1.0 if row["policy"] == "truth" else 10.0
        row["policy"] = "wing_oracle/agg"
    results = {f.quantity: f for f in study_findings("wing/sensitivity", rows)}
    assert results["lost by noise 10.0"].ours == pytest.approx(5.0)
    assert results["lost by noise 10.0"].paper == "11"


def test_outcomes_by_kind_of_job_are_in_percent() -> None:
    rows = cells(wing_agg=[0.5, 0.5])
    for row in rows:
        row |= {
            f"{metric}_{kind}": 0.5 for metric in KIND_METRICS for kind in ("recurring", "ad_hoc")
        }
        row["jobs_failed_ad_hoc"] = 0.4 + 0.02 * row["seed"]
    results = {f.figure: f for f in study_findings("wing/adhoc", rows)}
    finding = results["capacity 0.2, jobs_failed_ad_hoc %"]
    assert (finding.quantity, finding.paper, finding.ours) == (
        "wing_agg",
        "42",
        pytest.approx(41.0),
    )


def test_rounds_are_relative_to_the_most_rounds() -> None:
    rows = [
        {
            "trace.rounds": rounds,
            "seed": seed,
            "agg_value_mean": sum(values) / 3,
            "table": {"agg_value": values},
        }
        for seed, by_rounds in enumerate(
            ([[6.0, 0.0, 0.0], [12.0, 18.0, 0.0]], [[9.0, 6.0, 0.0], [36.0, 24.0, 0.0]])
        )
        for rounds, values in zip((0, 9), by_rounds, strict=True)
    ]
    first, last, share, whole = study_findings("wing/fig6", rows)
    assert (first.ours, first.paper) == (pytest.approx((20.0 + 25.0) / 2), "17")
    assert last.ours == whole.ours == pytest.approx(100.0)
    # a job's own share, of the jobs with a value: (50 + 0) / 2 and (25 + 25) / 2
    assert (share.ours, share.paper) == (pytest.approx(25.0), "17")


def test_near_predictions_are_in_percent() -> None:
    results = study_findings("wing/fig9", [{"near_agg": 0.4, "near_own": 0.5}])
    assert [(f.ours, f.paper) for f in results] == [(40.0, "39"), (50.0, "44")]


def test_predictions_of_readers_by_threshold() -> None:
    metrics = ("precision", "recall", "rmse_h", "mae_min", "within_20", "over_2x")
    row = {f"{m}_{tr}": 0.01 * tr for m in metrics for tr in METRIC_THRESHOLDS} | {"best_tr": 45.0}
    results = {}
    for experiment in ("wing/fig2", "wing/fig3"):
        results |= study_results(experiment, [row])
    assert results["precision %", "tr = 60 %"].ours == pytest.approx(60.0)
    assert results["recall %", "tr = 0 %"].paper == "95 at most"
    assert (results["best threshold", "tr %"].ours, results["best threshold", "tr %"].paper) == (
        45,
        "20",
    )
    error = results["error of time, median, min", "tr = 20 %"]
    assert (error.ours, error.paper) == (pytest.approx(0.2), "22")


def test_table4_compares_two_queues_with_one() -> None:
    fair = {"jain_10s": 0.7, "jain_60s": 0.8, "jain_240s": 0.9, "gap_lb_mean": 0.5}
    rows = [
        {"policy": "tez", "trace": "tpcds_stream", "seed": 0, "jct_p50_s": 100.0, **fair},
        {"policy": "tez", "trace": "tpcds_two_queues", "seed": 0, "jct_p50_s": 110.0, **fair},
        {"policy": "dagps", "trace": "tpcds_two_queues", "seed": 0, "jct_p50_s": 55.0, **fair},
    ]
    results = study_results("dagps/table4", rows)
    assert results["tez", "two queues against one, %"].ours == pytest.approx(-10.0)
    assert results["tez", "two queues against one, %"].paper == "-13"
    assert results["tez", "Jain's index, windows of 60 s"].ours == 0.8
    gain = results["two queues, improvement over tez %", "dagps"]
    assert (gain.ours, gain.paper) == (pytest.approx(50.0), "40")
    assert results["tez", "mean JCT above its bound, %"].ours == 50.0


def test_drawn_errors_are_compared_with_the_formulas() -> None:
    rows = [
        {
            "evaluator.sd_tasks": 3.0,
            "evaluator.samples": 3,
            "seed": seed,
            **{f"mse_{name}": mse for name in ("history", "samples", "posterior")},
            **{f"variance_{name}": 3.0 for name in ("history", "samples", "posterior")},
            **{f"wrong_{name}": 0.25 for name in ("history", "samples", "posterior")},
        }
        for seed, mse in enumerate((2.9, 3.1))
    ]
    results = study_results("slearn/analysis", rows, "evaluator.sd_tasks", "evaluator.samples")
    error = results["σ₁ 3, 3 samples", "samples, mean squared error, s²"]
    assert (error.ours, error.paper, error.is_met) == (pytest.approx(3.0), "3", True)
    assert results["σ₁ 3, 3 samples", "posterior, wrong order %"].ours == 25.0


def policy_cells(policy: str, missed: list[float], impact: list[float]) -> list[dict[str, Any]]:
    return [
        {"policy": policy, "deadlines_missed": m, "allocation_above_oracle": i}
        for m, i in zip(missed, impact, strict=True)
    ]


def test_misses_and_impact_are_in_percent_and_ordered() -> None:
    results = study_results(
        "jockey/fig4",
        [
            *policy_cells("jockey", [0, 0, 0, 1], [0.2, 0.4, 0.3, math.nan]),
            *policy_cells("jockey_static", [1, 1, 1, 0], [math.nan, math.nan, math.nan, 0.5]),
            *policy_cells("jockey_amdahl", [1, 0, 0, 1], [math.nan, 0.2, 0.2, math.nan]),
            *policy_cells("max_allocation", [0, 0, 0, 0], [0.9, 0.9, 0.9, 0.9]),
        ],
    )
    finding = results["missed deadlines, %", "jockey"]
    assert (finding.ours, finding.paper) == (25.0, "1 of 94")
    assert results["allocation above the oracle's, %", "jockey"].ours == pytest.approx(30.0)
    assert results["runs", "jockey_static"].ours == 4
    orders = {quantity: f for (figure, quantity), f in results.items() if figure == "orders"}
    assert orders["misses, jockey over max_allocation"].ours == math.inf
    assert orders["misses, jockey over max_allocation"].is_met
    assert orders["misses, jockey_static over jockey"].ours == 3.0
    assert orders["misses, jockey_static over jockey"].is_met
    assert not orders["misses, jockey_amdahl over jockey"].is_met
    assert orders["impact, jockey over jockey_amdahl"].ours == pytest.approx(1.5)
    assert orders["impact, max_allocation over jockey"].is_met


def test_orders_need_both_policies_and_two_zeros_are_equal() -> None:
    results = study_results(
        "jockey/faults",
        [*policy_cells("jockey", [0], [0.1]), *policy_cells("jockey_static", [0], [0.1])],
    )
    assert results["orders", "misses, jockey_static over jockey"].ours == 1.0
    assert not results["orders", "misses, jockey_static over jockey"].is_met
    assert ("orders", "misses, jockey_amdahl over jockey") not in results


def test_completion_has_percentiles_and_the_median_late_job() -> None:
    values = [0.5, 0.8, 0.9, 1.02, 1.1, 1.3]
    cells = [{"policy": "jockey_static", "relative_finish": value} for value in values]
    results = study_results("jockey/fig5", cells)
    figure = "jockey_static, completion, % of the deadline"
    assert results[figure, "50th percentile"].ours == pytest.approx(96.0)
    late = results[figure, "median late job, % late"]
    assert (late.ours, late.paper) == (pytest.approx(10.0), "10")
    none = study_results("jockey/fig5", [{"policy": "jockey", "relative_finish": 0.5}])
    assert math.isnan(none["jockey, completion, % of the deadline", "median late job, % late"].ours)


def test_changes_of_deadlines_go_the_right_way() -> None:
    cells = [
        {"trace.change": change, "tokens_changed": tokens, "deadlines_missed": missed}
        for change, tokens, missed in (("halve", 1.0, 0), ("halve", 2.0, 1), ("double", -0.5, 0))
    ]
    results = study_results("jockey/fig7", cells)
    halved = results["change of the allocation, %", "halve"]
    assert (halved.ours, halved.paper, halved.is_met) == (150.0, "148", True)
    assert results["change of the allocation, %", "double"].is_met
    assert results["missed deadlines, %", "double"].is_met
    assert not results["missed deadlines, %", "halve"].is_met


def metrics(**columns: Any) -> dict[str, Any]:
    names = ("p50", "first", "max", "last")
    return {
        "deadlines_missed": 0.0,
        "relative_finish": 0.86,
        "allocation_above_oracle": 0.35,
        "token_hours": 9.0,
        **{f"tokens_{name}": 50.0 for name in names},
        **columns,
    }


def test_variants_have_the_papers_numbers() -> None:
    cells = [metrics(policy="jockey"), metrics(policy="jockey_with/cp", deadlines_missed=1.0)]
    results = study_results("jockey/fig11", cells)
    assert results["deadlines met, %", "jockey"].ours == 100.0
    assert results["deadlines met, %", "jockey_with/cp"].ours == 0.0
    assert results["deadlines met, %", "jockey"].paper == "95"
    assert results["completion against the deadline, %", "jockey"].ours == pytest.approx(-14.0)
    assert results["median allocation", "jockey_with/cp"].paper == "44.9"
    assert results["largest allocation", "jockey"].paper == ""


def test_a_part_is_compared_run_by_run() -> None:
    def run(policy: str, job: str, seed: int, missed: float, above: float) -> dict[str, Any]:
        return {
            "policy": policy, "trace.job": job, "seed": seed, "deadlines_missed": missed,
            "tokens_above_oracle": above, "relative_finish": 0.5,
        }  # fmt: skip

    cells = [
        *(
            run("jockey", "A", 0, 0, 0.3),
            run("jockey", "B", 0, 1, 0.5),
            run("jockey", "A", 1, 0, 0),
        ),
        # not in the same order, and one run less
        *(run("jockey_with/no_slack", "B", 0, 1, 0.4), run("jockey_with/no_slack", "A", 0, 1, 0.1)),
    ]
    results = study_results("jockey/parts", cells)
    missed = results["missed deadlines without the part, less with it, points", "slack"]
    assert (missed.ours, missed.low < 0 < missed.high) == (50.0, True)
    tokens = results["tokens above the oracle's without the part, less with it, points", "slack"]
    assert tokens.ours == pytest.approx(-15.0)
    assert results["missed deadlines, %", "jockey"].ours == pytest.approx(100 / 3)
    assert not [quantity for _, quantity in results if quantity.startswith("simulator")]


def test_constants_are_grouped_by_value() -> None:
    cells = [
        metrics(policy="jockey", **{"policy.slack": slack, "tokens_first": 40 * slack})
        for slack in (1.0, 1.0, 1.5)
    ]
    results = study_results("jockey/fig12", cells, "policy.slack")
    assert results["first allocation", "slack 1.0"].ours == 40.0
    assert results["first allocation", "slack 1.5"].ours == 60.0
    assert ("deadlines met, %", "jockey") not in results


def test_indicators_are_means_in_percent() -> None:
    rows = [
        {
            f"{metric}.{name}": value
            for metric in ("delta_t", "longest_constant")
            for name in printed.read("jockey")["fig10"]["delta_t"]
        }
        | {"policy.waits": value != 0.3}
        for value in (0.02, 0.04, 0.3)
    ]
    results = study_results("jockey/fig10", rows)
    assert results["ΔT, %", "cp, waits=True"].ours == pytest.approx(3.0)
    assert results["ΔT, %", "cp, waits=True"].paper == "3.0"
    assert results["ΔT, %", "cp, waits=False"].ours == pytest.approx(30.0)
    assert results["longest constant interval, %", "minstage-inf, waits=True"].paper == "26.7"
    assert len(results) == 24


def test_errors_of_recorded_tasks_are_in_percent() -> None:
    metrics = (
        "prediction_error_p50",
        "prediction_error_p90",
        "task_error_p50",
        "task_distance_p50",
    )
    cell = {
        "trace.trained_at": 20,
        "trace.executors": 50,
        **dict.fromkeys(metrics, 0.25),
    }
    results = study_results("jockey/spark_tasks", [cell])
    assert {(quantity, f.ours) for (_, quantity), f in results.items()} == {
        ("trained with 20, run with 50", 25.0)
    }
    assert len(results) == 4


def test_a_stand_in_has_the_numbers_of_its_published_trace() -> None:
    row = {
        "trace": "slearn_2sigma",
        "over_time_14d_p50": 1.05,
        "over_time_14d_p90": 2.0,
        "over_time_3d_p50": 0.5,
        "over_space_p50": 0.18,
        "load_p90": 2.47,
        "thin": 0.2,
    }
    walls = {**row, "trace": "slearn_google2011_walls", "over_space_p50": math.nan}
    by_name = study_results("slearn/table4", [row, walls])
    assert by_name["2Sigma", "over time 14d p50"].paper == "1.00"
    assert by_name["2Sigma", "over time 14d p90"].paper == "3.10"
    assert by_name["2Sigma", "over time 3d p50"].expected == ""
    assert by_name["2Sigma", "thin"].ours == 0.2
    title = "Google 2011, own trace, wall times of jobs over 29 days"
    assert by_name[title, "over time 3d p50"].paper == "0.20"
    assert (title, "over space p50") not in by_name
    assert (title, "thin") not in by_name
    expected = {name: f.expected for name, f in by_name.items() if f.expected}
    assert expected == {("2Sigma", "load p90"): "≥ 2.223, ≤ 2.717"}


@pytest.mark.parametrize("study", [{"name": "wing_worth"}, {"figures": []}])
def test_a_sweep_with_a_removed_study_gets_its_experiments_current_one(
    study: dict[str, Any],
) -> None:
    config = {"experiment": "wing/fig9", "config_dirs": []}
    finished = FinishedSweep([{"near_agg": 0.4, "near_own": 0.5}], config, None)  # type: ignore[arg-type]
    assert [f.paper for f in studies.find(study, finished)] == ["39", "44"]
