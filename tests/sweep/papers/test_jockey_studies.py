"""Jockey's studies: means by policy, orders, late jobs, and the paper's figures beside."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from sweep.papers.studies import (
    jockey,
    jockey_arbiter,
    jockey_fig5,
    jockey_fig6,
    jockey_fig7,
    jockey_sensitivity,
)
from sweep.report import findings
from sweep.report import plots as report_plots
from sweep.report.findings import Finding, Finished

Row = dict[str, Any]


def looked(
    study: Any, rows: list[Row], swept: list[str] | None = None
) -> dict[tuple[str, str], Finding]:
    finished = Finished(rows, {"swept": swept or []}, cache=cast(Any, SimpleNamespace()))
    return {(one.figure, one.what): one for one in study.find(finished)}


def rows(policy: str, missed: list[float], impact: list[float]) -> list[Row]:
    return [
        {"policy": policy, "deadlines_missed": m, "allocation_above_oracle": i}
        for m, i in zip(missed, impact, strict=True)
    ]


def test_misses_and_impact_are_in_percent_and_ordered() -> None:
    found = looked(
        jockey,
        [
            *rows("jockey", [0, 0, 0, 1], [0.2, 0.4, 0.3, math.nan]),
            *rows("jockey_static", [1, 1, 1, 0], [math.nan, math.nan, math.nan, 0.5]),
            *rows("jockey_amdahl", [1, 0, 0, 1], [math.nan, 0.2, 0.2, math.nan]),
            *rows("max_allocation", [0, 0, 0, 0], [0.9, 0.9, 0.9, 0.9]),
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
    found = looked(jockey, [*rows("jockey", [0], [0.1]), *rows("jockey_static", [0], [0.1])])
    assert found["orders", "misses, jockey_static over jockey"].ours == 1.0
    assert not found["orders", "misses, jockey_static over jockey"].is_met
    assert ("orders", "misses, jockey_amdahl over jockey") not in found


def test_completion_has_percentiles_and_the_median_late_job() -> None:
    values = [0.5, 0.8, 0.9, 1.02, 1.1, 1.3]
    cells = [{"policy": "jockey_static", "relative_finish": value} for value in values]
    found = looked(jockey_fig5, cells)
    figure = "jockey_static, completion, % of the deadline"
    assert found[figure, "50th percentile"].ours == pytest.approx(96.0)
    late = found[figure, "median late job, % late"]
    assert (late.ours, late.paper) == (pytest.approx(10.0), "10")
    none = looked(jockey_fig5, [{"policy": "jockey", "relative_finish": 0.5}])
    assert math.isnan(none["jockey, completion, % of the deadline", "median late job, % late"].ours)


def test_changes_of_deadlines_go_the_right_way() -> None:
    cells = [
        {"trace.change": change, "tokens_changed": tokens, "deadlines_missed": missed}
        for change, tokens, missed in (("halve", 1.0, 0), ("halve", 2.0, 1), ("double", -0.5, 0))
    ]
    found = looked(jockey_fig7, cells)
    halved = found["change of the allocation, %", "halve"]
    assert (halved.ours, halved.paper, halved.is_met) == (150.0, "148", True)
    assert found["change of the allocation, %", "double"].is_met
    assert found["missed deadlines, %", "double"].is_met
    assert not found["missed deadlines, %", "halve"].is_met


def metrics(**columns: Any) -> Row:
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
    found = looked(jockey_sensitivity, cells)
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
    found = looked(jockey_sensitivity, cells, swept=["policy.slack", "trace.job"])
    assert found["first allocation", "slack 1.0"].ours == 40.0
    assert found["first allocation", "slack 1.5"].ours == 60.0
    assert ("deadlines met, %", "jockey") not in found


def jobs(finish: list[float], deadline: float = 600.0) -> pa.Table:
    n = len(finish)
    return pa.table(
        {
            "submit_s": [0.0] * n,
            "finish_s": finish,
            "deadline_s": [deadline] * n,
            "work_s": [3000.0] * n,
            "shortest_s": [60.0] * n,
            "tokens": [10] * n,
        }
    )


def test_utility_is_that_of_the_paper_and_the_way_is_towards_the_bound() -> None:
    # ten tokens do one job of 3000 s in 300 s: both of two can meet 600 s, and the bound is 2
    tables = {
        "drf": jobs([900.0, 900.0]),  # five minutes late: worth 0
        "jockey": jobs([600.0, 900.0]),
        "jockey_arbiter": jobs([500.0, 600.0]),
    }
    rows = [{"policy": policy, "seed": 0} for policy in tables]
    finished = Finished(rows, {"swept": []}, cache=cast(Any, SimpleNamespace()))
    object.__setattr__(finished, "table", lambda row: tables[row["policy"]])
    found = {(one.figure, one.what): one for one in jockey_arbiter.find(finished)}
    assert found["total utility", "drf"].ours == pytest.approx(0.0)
    assert found["total utility", "jockey"].ours == pytest.approx(1.0)
    assert found["total utility", "bound"].ours == pytest.approx(2.0)
    assert found["way from fair to the bound, %", "jockey"].ours == pytest.approx(50.0)
    assert found["way from fair to the bound, %", "jockey_arbiter"].is_met
    assert found["deadlines met", "jockey_arbiter"].ours == 2.0
    more = found["deadlines met", "jockey_arbiter more than jockey"]
    assert (more.ours, more.is_met) == (1.0, True)
    assert jockey_arbiter.total_utility(jobs([math.nan])) == pytest.approx(-1000.0)


def test_curves_are_tabulated_every_five_minutes_and_plotted_whole() -> None:
    curve = {"elapsed_s": [0.0, 60.0, 300.0, 600.0], "raw": [math.nan, 1.0, 2.0, 3.0]}
    table = pa.table({**curve, "tokens": [4.0] * 4, "running": [5.0] * 4, "oracle": [6.0] * 4})
    rows = [{"trace": "jockey_fig6a", "relative_finish": 1.02}]
    finished = Finished(rows, {}, cache=cast(Any, SimpleNamespace()))
    object.__setattr__(finished, "table", lambda row: table)
    found = jockey_fig6.find(finished)
    raw = [(one.what, one.ours) for one in found if one.figure.endswith(", raw")]
    assert raw == [("after 5 min", 2.0), ("after 10 min", 3.0)]
    _, texts = findings.to_text(findings.to_table(found))
    assert all(row[1] for row in texts)
    plots = report_plots.curves(findings.to_table(found), 1)
    assert list(plots) == ["F, 45 min, 1.85 times the work"]
    data = plots["F, 45 min, 1.85 times the work"]["data"]
    assert [trace["name"] for trace in data] == ["raw", "tokens", "running", "oracle"]
    assert [trace["meta"] for trace in data] == [1, 2, 3, 4]
    assert (data[0]["x"], data[0]["y"]) == ([1, 5, 10], [1.0, 2.0, 3.0])
    assert len(data[1]["x"]) == 4
