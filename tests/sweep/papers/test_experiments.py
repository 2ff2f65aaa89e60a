"""Findings of studies that compare groups, seeds and policies: numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from sim.evaluators.readers import METRIC_THRESHOLDS
from sim.published import numbers
from sweep.grid.options import Options
from sweep.papers import studies
from sweep.report.findings import FinishedSweep
from tests.sweep.papers.looked import findings, looked

WHAT = ("jobs_failed", "value_attained", "value_of")


def test_every_study_of_ours_is_one() -> None:
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
    found = looked("wing/fig10", rows)
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
    found = {f.quantity: f for f in findings("wing/workflows", rows)}
    assert found["wing_agg over priority"].ours == pytest.approx(-10.0)
    assert found["wing_agg over priority"].wanted == ""
    assert {f.paper for f in found.values()} == {""}


def test_what_the_profiler_s_errors_cost_is_told() -> None:
    rows = []
    for history, attained in (("logs", 0.4), ("truth", 0.5)):
        rows += [{**row, "trace.history": history} for row in cells(wing_agg=[attained, 0.6])]
    found = looked("wing/bqetl", rows)
    lost = found["capacity 0.2, points of value, logs over truth", "wing_agg"]
    assert lost.ours == pytest.approx(-5.0)
    assert found["truth, capacity 0.2, value attained %", "wing_agg"].ours == pytest.approx(55.0)


def test_noise_costs_what_the_truth_attains_more() -> None:
    rows = cells(truth=[0.6, 0.8], noisy=[0.5, 0.8])
    for row in rows:
        row["policy.noise"] = 1.0 if row["policy"] == "truth" else 10.0
        row["policy"] = "wing_oracle/agg"
    found = {f.quantity: f for f in findings("wing/sensitivity", rows)}
    assert found["lost by noise 10.0"].ours == pytest.approx(5.0)
    assert found["lost by noise 10.0"].paper == "11"


def test_what_becomes_of_kinds_of_jobs_is_in_percent() -> None:
    rows = cells(wing_agg=[0.5, 0.5])
    for row in rows:
        row |= {f"{what}_{kind}": 0.5 for what in WHAT for kind in ("recurring", "ad_hoc")}
        row["jobs_failed_ad_hoc"] = 0.4 + 0.02 * row["seed"]
    found = {f.figure: f for f in findings("wing/adhoc", rows)}
    one = found["capacity 0.2, jobs_failed_ad_hoc %"]
    assert (one.quantity, one.paper, one.ours) == ("wing_agg", "42", pytest.approx(41.0))


def test_rounds_are_of_what_most_rounds_find() -> None:
    rows = [
        {"trace.rounds": rounds, "seed": seed, "agg_value_mean": mean}
        for seed, means in enumerate(([2.0, 10.0], [5.0, 20.0]))
        for rounds, mean in zip((0, 9), means, strict=True)
    ]
    first, last = findings("wing/fig6", rows)
    assert (first.ours, first.paper) == (pytest.approx(22.5), "17")
    assert last.ours == pytest.approx(100.0)


def test_near_predictions_are_in_percent() -> None:
    found = findings("wing/fig9", [{"near_agg": 0.4, "near_own": 0.5}])
    assert [(f.ours, f.paper) for f in found] == [(40.0, "39"), (50.0, "44")]


def test_what_is_foretold_of_readers_by_threshold() -> None:
    metrics = ("precision", "recall", "rmse_h", "mae_min", "within_20", "over_2x")
    row = {f"{m}_{tr}": 0.01 * tr for m in metrics for tr in METRIC_THRESHOLDS} | {"best_tr": 45.0}
    found = {}
    for experiment in ("wing/fig2", "wing/fig3"):
        found |= looked(experiment, [row])
    assert found["precision %", "tr = 60 %"].ours == pytest.approx(60.0)
    assert found["recall %", "tr = 0 %"].paper == "95 at most"
    assert (found["best threshold", "tr %"].ours, found["best threshold", "tr %"].paper) == (
        45,
        "20",
    )
    error = found["error of time, median, min", "tr = 20 %"]
    assert (error.ours, error.paper) == (pytest.approx(0.2), "22")


def test_table4_compares_two_queues_with_one() -> None:
    fair = {"jain_10s": 0.7, "jain_60s": 0.8, "jain_240s": 0.9, "gap_lb_mean": 0.5}
    rows = [
        {"policy": "tez", "trace": "tpcds_stream", "seed": 0, "jct_p50_s": 100.0, **fair},
        {"policy": "tez", "trace": "tpcds_two_queues", "seed": 0, "jct_p50_s": 110.0, **fair},
    ]
    of = looked("dagps/table4", rows)
    assert of["tez", "two queues against one, %"].ours == pytest.approx(-10.0)
    assert of["tez", "two queues against one, %"].paper == "-13"
    assert of["tez", "Jain's index, windows of 60 s"].ours == 0.8
    assert of["tez", "mean JCT above its bound, %"].ours == 50.0


def test_drawn_errors_stand_beside_the_formulas() -> None:
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
    of = looked("slearn/analysis", rows, "evaluator.sd_tasks", "evaluator.samples")
    error = of["σ₁ 3, 3 samples", "samples, mean squared error, s²"]
    assert (error.ours, error.paper, error.is_met) == (pytest.approx(3.0), "3", True)
    assert of["σ₁ 3, 3 samples", "posterior, wrong order %"].ours == 25.0


def of_policy(policy: str, missed: list[float], impact: list[float]) -> list[dict[str, Any]]:
    return [
        {"policy": policy, "deadlines_missed": m, "allocation_above_oracle": i}
        for m, i in zip(missed, impact, strict=True)
    ]


def test_misses_and_impact_are_in_percent_and_ordered() -> None:
    found = looked(
        "jockey/fig4",
        [
            *of_policy("jockey", [0, 0, 0, 1], [0.2, 0.4, 0.3, math.nan]),
            *of_policy("jockey_static", [1, 1, 1, 0], [math.nan, math.nan, math.nan, 0.5]),
            *of_policy("jockey_amdahl", [1, 0, 0, 1], [math.nan, 0.2, 0.2, math.nan]),
            *of_policy("max_allocation", [0, 0, 0, 0], [0.9, 0.9, 0.9, 0.9]),
        ],
    )
    one = found["missed deadlines, %", "jockey"]
    assert (one.ours, one.paper) == (25.0, "1 of 94")
    assert found["allocation above the oracle's, %", "jockey"].ours == pytest.approx(30.0)
    assert found["runs", "jockey_static"].ours == 4
    orders = {what: one for (figure, what), one in found.items() if figure == "orders"}
    assert orders["misses, jockey over max_allocation"].ours == math.inf
    assert orders["misses, jockey over max_allocation"].is_met
    assert orders["misses, jockey_static over jockey"].ours == 3.0
    assert orders["misses, jockey_static over jockey"].is_met
    assert not orders["misses, jockey_amdahl over jockey"].is_met
    assert orders["impact, jockey over jockey_amdahl"].ours == pytest.approx(1.5)
    assert orders["impact, max_allocation over jockey"].is_met


def test_orders_need_both_policies_and_two_zeros_are_alike() -> None:
    found = looked(
        "jockey/faults", [*of_policy("jockey", [0], [0.1]), *of_policy("jockey_static", [0], [0.1])]
    )
    assert found["orders", "misses, jockey_static over jockey"].ours == 1.0
    assert not found["orders", "misses, jockey_static over jockey"].is_met
    assert ("orders", "misses, jockey_amdahl over jockey") not in found


def test_completion_has_percentiles_and_the_median_late_job() -> None:
    values = [0.5, 0.8, 0.9, 1.02, 1.1, 1.3]
    cells = [{"policy": "jockey_static", "relative_finish": value} for value in values]
    found = looked("jockey/fig5", cells)
    figure = "jockey_static, completion, % of the deadline"
    assert found[figure, "50th percentile"].ours == pytest.approx(96.0)
    late = found[figure, "median late job, % late"]
    assert (late.ours, late.paper) == (pytest.approx(10.0), "10")
    none = looked("jockey/fig5", [{"policy": "jockey", "relative_finish": 0.5}])
    assert math.isnan(none["jockey, completion, % of the deadline", "median late job, % late"].ours)


def test_changes_of_deadlines_go_the_right_way() -> None:
    cells = [
        {"trace.change": change, "tokens_changed": tokens, "deadlines_missed": missed}
        for change, tokens, missed in (("halve", 1.0, 0), ("halve", 2.0, 1), ("double", -0.5, 0))
    ]
    found = looked("jockey/fig7", cells)
    halved = found["change of the allocation, %", "halve"]
    assert (halved.ours, halved.paper, halved.is_met) == (150.0, "148", True)
    assert found["change of the allocation, %", "double"].is_met
    assert found["missed deadlines, %", "double"].is_met
    assert not found["missed deadlines, %", "halve"].is_met


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


def test_variants_stand_beside_the_papers() -> None:
    cells = [metrics(policy="jockey"), metrics(policy="jockey_with/cp", deadlines_missed=1.0)]
    found = looked("jockey/fig11", cells)
    assert found["deadlines met, %", "jockey"].ours == 100.0
    assert found["deadlines met, %", "jockey_with/cp"].ours == 0.0
    assert found["deadlines met, %", "jockey"].paper == "95"
    assert found["completion against the deadline, %", "jockey"].ours == pytest.approx(-14.0)
    assert found["median allocation", "jockey_with/cp"].paper == "44.9"
    assert found["largest allocation", "jockey"].paper == ""


def test_constants_are_grouped_by_value() -> None:
    cells = [
        metrics(policy="jockey", **{"policy.slack": slack, "tokens_first": 40 * slack})
        for slack in (1.0, 1.0, 1.5)
    ]
    found = looked("jockey/fig12", cells, "policy.slack")
    assert found["first allocation", "slack 1.0"].ours == 40.0
    assert found["first allocation", "slack 1.5"].ours == 60.0
    assert ("deadlines met, %", "jockey") not in found


def test_indicators_are_means_in_percent() -> None:
    rows = [
        {
            f"{metric}.{name}": value
            for metric in ("delta_t", "longest_constant")
            for name in numbers("jockey")["fig10"]["delta_t"]
        }
        | {"policy.waits": value != 0.3}
        for value in (0.02, 0.04, 0.3)
    ]
    found = looked("jockey/fig10", rows)
    assert found["ΔT, %", "cp, waits=True"].ours == pytest.approx(3.0)
    assert found["ΔT, %", "cp, waits=True"].paper == "3.0"
    assert found["ΔT, %", "cp, waits=False"].ours == pytest.approx(30.0)
    assert found["longest constant interval, %", "minstage-inf, waits=True"].paper == "26.7"
    assert len(found) == 24


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
    found = looked("jockey/spark_tasks", [cell])
    assert {(what, one.ours) for (_, what), one in found.items()} == {
        ("trained with 20, run with 50", 25.0)
    }
    assert len(found) == 4


def test_what_is_like_a_published_trace_stands_beside_its_tables() -> None:
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
    by_name = looked("slearn/table4", [row, walls])
    assert by_name["2Sigma", "over time 14d p50"].paper == "1"
    assert by_name["2Sigma", "over time 14d p90"].paper == "3.1"
    assert by_name["2Sigma", "over time 3d p50"].wanted == ""
    assert by_name["2Sigma", "thin"].ours == 0.2
    of_walls = "Google 2011, own trace, wall times of jobs over 29 days"
    assert by_name[of_walls, "over time 3d p50"].paper == "0.2"
    assert (of_walls, "over space p50") not in by_name
    assert (of_walls, "thin") not in by_name
    wanted = {name: one.wanted for name, one in by_name.items() if one.wanted}
    assert wanted == {("2Sigma", "load p90"): "≥ 2.223, ≤ 2.717"}


@pytest.mark.parametrize("study", [{"name": "wing_worth"}, {"figures": []}])
def test_a_sweep_whose_study_is_gone_has_its_experiments_of_today(study: dict[str, Any]) -> None:
    config = {"experiment": "wing/fig9", "config_dirs": []}
    finished = FinishedSweep([{"near_agg": 0.4, "near_own": 0.5}], config, None)  # type: ignore[arg-type]
    assert [f.paper for f in studies.find(study, finished)] == ["39", "44"]
