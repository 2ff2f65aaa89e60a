"""Studies of DAGPS, on cells computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from policies.dagps.study import figures
from tests.sweep.questions.papers.study_runs import study_results


def alone(policy: str, seed: int, makespan: list[float], **more: Any) -> dict[str, Any]:
    nan = [float("nan")] * len(makespan)
    factor = [0.7, 1.5, 3.0, 1.2]
    bound = [value / 2 for value in makespan]
    table = {"makespan_s": makespan, "built_s": nan, "factor": factor, "tight_lb": bound, **more}
    return {"policy": policy, "trace": "production_dags", "seed": seed, "table": table}


def test_table5_improves_over_breadth_first_dag_by_dag() -> None:
    rows = [
        alone("list_scheduling/bfs_cpu_mem", 0, [10.0, 20.0, 30.0, 40.0]),
        alone("tetris", 0, [10.0, 10.0, 24.0, 44.0]),
        alone("dagps", 0, [10.0, 10.0, 15.0, 20.0], built_s=[10.0, 5.0, 15.0, 10.0]),
        alone("list_scheduling/heft", 0, [1.0] * 4, built_s=[10.0, 20.0, 24.0, 20.0]),
    ]
    results = study_results("dagps/table5", rows)
    figure = "production_dags, improvement %"
    assert results[figure, "tetris, p50"].ours == pytest.approx(10.0)
    assert results[figure, "tetris, p50"].paper == "7"
    assert results[figure, "dagps, as built, p75"].ours == pytest.approx(75.0)
    assert results[figure, "dagps, as built, p90"].paper == "74"
    assert results[figure, "dagps, p50"].paper == ""
    assert results[figure, "limit for any schedule, p50"].ours == pytest.approx(50.0)
    assert results[figure, "list_scheduling/heft, as built, p50"].ours == pytest.approx(10.0)
    assert (figure, "list_scheduling/heft, p50") not in results  # its run is not HEFT's schedule
    few = "production_dags, machines 1 to 2 × work / path, median improvement %"
    assert results[few, "tetris"].ours == pytest.approx((50.0 - 10.0) / 2)


def test_a_random_order_is_compared_with_breadth_first_of_the_same_resources() -> None:
    rows = [
        alone("list_scheduling/bfs_cpu_mem", 0, [10.0, 20.0, 30.0, 40.0]),
        alone("list_scheduling/bfs", 0, [20.0, 20.0, 20.0, 20.0]),
        alone("list_scheduling/random", 0, [18.0] * 4),
        alone("list_scheduling/random_cpu_mem", 0, [9.0, 18.0, 27.0, 36.0]),
    ]
    results = study_results("dagps/table5", rows)
    two, every = (
        results["production_dags, improvement %", "list_scheduling/random_cpu_mem, p50"],
        results[
            "production_dags, improvement over list_scheduling/bfs, %",
            "list_scheduling/random, p50",
        ],
    )
    assert (two.ours, every.ours) == (pytest.approx(10.0), pytest.approx(10.0))
    assert two.paper == every.paper == "0"
    mixed = results["production_dags, improvement %", "list_scheduling/random, p50"]
    assert mixed.paper == ""


def test_readings_of_table5_have_the_order_and_the_distance() -> None:
    rows = []
    for seed, tetris in ((0, 9.0), (1, 8.0)):
        own = {"trace": "production_dags_bounds"}
        rows += [
            alone("list_scheduling/bfs_cpu_mem", seed, [10.0] * 4) | own,
            alone("tetris", seed, [tetris] * 4) | own,
            alone("list_scheduling/critical_path", seed, [9.0] * 4) | own,
            alone("strip", seed, [10.0] * 4) | own,
            alone("dagps", seed, [8.0] * 4, built_s=[6.0] * 4) | own,
        ]
    results = study_results("dagps/table5_bounds", rows)
    order = "production_dags_bounds, dagps, as built, less another scheme, points, p50"
    assert results[order, "tetris"].ours == pytest.approx(25.0)  # 30 and 20 by seed
    assert results[order, "list_scheduling/critical_path"].ours == pytest.approx(30.0)
    table = "production_dags_bounds, improvement %"
    assert results[table, "dagps, as built, p50"].paper == "25"
    ours = [40.0] * 4 + [15.0] * 4 + [0.0] * 4
    paper = [7, 25, 57, 74, 0, 7, 29, 42, 0, 1, 12, 27]
    mean = sum(abs(a - b) for a, b in zip(ours, paper, strict=True)) / 12
    distance = "production_dags_bounds, mean distance to the paper's numbers, points"
    assert results[distance, "dagps, as built, tetris, strip"].ours == pytest.approx(mean)


def test_a_bin_without_a_dag_has_no_row() -> None:
    rows = [
        alone("list_scheduling/bfs_cpu_mem", 0, [10.0] * 4, factor=[1.0, 1.1, 1.2, 1.3]),
        alone("tetris", 0, [9.0] * 4, factor=[1.0, 1.1, 1.2, 1.3]),
    ]
    figures_of = {figure for figure, _ in study_results("dagps/table5", rows)}
    few, more = (f"production_dags, machines {r} × work / path" for r in ("0 to 1", "1 to 2"))
    assert any(figure.startswith(more) for figure in figures_of)
    assert not any(figure.startswith(few) for figure in figures_of)


def test_fig15_is_the_rise_of_the_gain_with_the_load() -> None:
    gains = {1.0: 30.0, 0.5: 45.0, 0.1667: 28.0}
    by_name = {("tpcds_stream", "dagps", "JCT, p50"): gains, ("tpcds_stream", "tez_cp", "x"): gains}
    rises = {f.quantity: (f.ours, f.paper) for f in figures._rises(by_name)}
    assert rises == {
        "dagps, JCT, p50, 2 times": (15.0, "10"),
        "dagps, JCT, p50, 6 times": (-2.0, "15"),
    }


def test_fig13_counts_optimal_schedules() -> None:
    bounds = {
        "cp_len": [5.0, 4.0, 10.0, 5.0],
        "twork": [8.0, 4.0, 8.0, 8.0],
        "new_lb": [10.0, 5.0, 10.0, 10.0],
    }
    built = [10.0, 5.0, 11.0, 15.0]
    row = alone("dagps", 0, built, built_s=built, tight_lb=[10.0, 5.0, 11.0, 10.0], **bounds)
    results = study_results("dagps/fig13", [row])
    assert results["production_dags, DAGPS above new_lb, %", "optimal"].ours == 50.0
    assert results["production_dags, DAGPS above tight_lb, %", "optimal"].ours == 75.0
    assert results["production_dags, DAGPS above new_lb, %", "worst"].ours == pytest.approx(50.0)
    assert results["production_dags, DAGPS above new_lb, %", "worst"].paper == "75"
    figure = "production_dags, new_lb above best of cp_len and twork, %"  # 25, 25, 0 and 25
    assert (results[figure, "p50"].ours, results[figure, "p50"].paper) == (25.0, "almost 30")


def test_durations_groups_by_spread() -> None:
    rows = []
    for sigma, built in ((0.0, [8.0, 20.0, 30.0, 40.0]), (0.5, [5.0, 10.0, 15.0, 20.0])):
        for policy in ("list_scheduling/bfs_cpu_mem", "dagps"):
            row = alone(
                policy, 0, [10.0, 20.0, 30.0, 40.0], built_s=built, new_lb=[5.0, 10.0, 15.0, 20.0]
            )
            rows.append({**row, "trace.task_sigma": sigma})
    results = study_results("dagps/durations", rows, "trace.task_sigma")
    assert results["trace.task_sigma=0.5, improvement %", "dagps, as built, p50"].ours == 50.0
    assert results["trace.task_sigma=0, improvement %", "dagps, as built, p50"].ours == 0.0
    assert results["trace.task_sigma=0.5, DAGPS above new_lb, %", "optimal"].ours == 100.0
    assert results["trace.task_sigma=0, DAGPS above new_lb, %", "p50"].ours == pytest.approx(100.0)


def shared(policy: str, seed: int, jct: list[float], makespan: float) -> dict[str, Any]:
    table = {"submit_s": [0.0] * len(jct), "finish_s": jct}
    mean = sum(jct) / len(jct)
    return {
        "policy": policy, "trace": "tpch_stream", "capacity": 1.0, "seed": seed, "table": table,
        "jct_mean_s": mean, "makespan_s": makespan, "utilization_makespan": 0.6 + 0.1 * seed,
    }  # fmt: skip


def test_cluster_takes_the_median_of_the_runs() -> None:
    rows = [shared("tez", seed, [10.0, 20.0, 40.0], 50.0) for seed in range(3)]
    for seed, factor in enumerate((0.5, 0.8, 0.9)):
        rows.append(shared("dagps", seed, [10 * factor, 20 * factor, 44.0], 50 * factor))
    results = study_results("dagps/fig10", rows)
    figure = "tpch_stream, capacity 1, improvement over tez %"
    assert results[figure, "dagps, JCT, p50"].ours == pytest.approx(20.0)
    assert results[figure, "dagps, JCT, p50"].paper == "30.5"
    assert results[figure, "dagps, share of jobs slower"].ours == pytest.approx(100 / 3)
    assert results[figure, "dagps, JCT, worst job"].ours == pytest.approx(-10.0)
    assert results[figure, "dagps, makespan"].ours == pytest.approx(20.0)
    assert results[figure, "limit for any schedule, makespan"].ours == pytest.approx(30.0)


def test_domains_compare_with_the_schedule_of_heft() -> None:
    rows = [
        alone("list_scheduling/heft", 0, [1.0] * 4, built_s=[10.0, 20.0, 30.0, 40.0]),
        alone("dagps", 0, [9.0, 16.0, 24.0, 20.0], built_s=[5.0, 10.0, 15.0, 20.0]),
    ]
    for row in rows:
        row["trace"] = "build_dags"
    results = study_results("dagps/other_domains", rows)
    figure = "build_dags, improvement over list_scheduling/heft, %"
    assert results[figure, "dagps, as built, p50"].ours == pytest.approx(50.0)


def test_domains_compare_with_every_other_policy() -> None:
    rows = [
        alone("tetris", 0, [10.0, 20.0, 30.0, 40.0]),
        alone("dagps", 0, [9.0, 16.0, 24.0, 20.0], built_s=[5.0, 10.0, 15.0, 20.0]),
    ]
    for row in rows:
        row["trace"] = "build_dags"
    results = study_results("dagps/other_domains", rows)
    figure = "build_dags, improvement over tetris, %"
    assert results[figure, "dagps, as built, p50"].ours == pytest.approx(50.0)
    assert results[figure, "dagps, p50"].ours == pytest.approx(20.0)
    assert results[figure, "dagps, as built, p50"].paper == "20"
    assert results[figure, "dagps, p50"].paper == ""
