"""The studies of Jockey's predictions and of its progress indicators."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from sweep.papers.studies import jockey_fig8, jockey_fig10, jockey_spark
from sweep.report.findings import Finding, Finished


class Tables(Finished):
    """A sweep whose cells hold their own tables."""

    def table(self, row: Any) -> pa.Table:
        """Return the cell's."""
        return row["table"]


def looked(study: Any, rows: list[dict[str, Any]]) -> dict[tuple[str, str], Finding]:
    finished = Tables(rows, {"swept": []}, cache=cast(Any, SimpleNamespace()))
    return {(one.figure, one.what): one for one in study.find(finished)}


def test_the_largest_prediction_is_held_against_the_slowest_run() -> None:
    def cell(job: str, took: list[float], predicted: list[float]) -> dict[str, Any]:
        columns = {"job": [0, 0], "tokens": [10, 20], "took_s": took, "predicted_s": predicted}
        return {"policy": "jockey", "trace.job": job, "table": pa.table(columns)}

    found = looked(
        jockey_fig8,
        [
            cell("A", [80.0, 50.0], [110.0, 40.0]),
            cell("A", [100.0, 40.0], [110.0, 40.0]),
            cell("B", [200.0, 100.0], [260.0, 90.0]),
        ],
    )
    title = "prediction error, simulator, %"
    assert found[title, "10 tokens"].ours == pytest.approx((10 + 30) / 2)
    assert found[title, "20 tokens"].ours == pytest.approx((20 + 10) / 2)
    assert found[title, "all jobs and allocations"].ours == pytest.approx((10 + 20 + 30 + 10) / 4)
    assert found[title, "all jobs and allocations"].paper == "9.8"
    assert found[title, "largest"].ours == pytest.approx(30)
    assert not any("Amdahl" in figure for figure, _ in found)


def test_a_profile_of_some_executors_is_held_against_runs_with_others() -> None:
    def cell(policy: str, took: list[float], predicted: list[float]) -> dict[str, Any]:
        table = pa.table({"took_s": took, "predicted_s": predicted})
        trace = {"trace.trained_at": 20, "trace.executors": 50}
        return {"policy": policy, **trace, "latency_error": 0.0, "table": table}

    at = "trained with 20, run with 50"
    found = looked(
        jockey_spark,
        [
            cell("jockey", [10.0, 10.0, 20.0], [9.0, 12.0, 26.0]),
            cell("jockey_amdahl", [10.0], [5.0]),
        ],
    )
    assert found["prediction error, simulator, %", at].ours == pytest.approx((10 + 20 + 30) / 3)
    assert found["prediction error, Amdahl's law, %", at].ours == pytest.approx(50)
    middle = "predicted over measured, simulator, median over queries"
    assert found[middle, at].ours == pytest.approx(1.2)
    tasks = dict.fromkeys(jockey_spark.OF_TASKS, 0.25)
    found = looked(jockey_spark, [{"trace.trained_at": 20, "trace.executors": 50, **tasks}])
    assert {one.ours for one in found.values()} == {25.0}
    assert len(found) == 4


def test_indicators_are_means_in_percent() -> None:
    rows = [
        {
            f"{metric}.{name}": value
            for metric in jockey_fig10.METRICS
            for name in jockey_fig10.PAPER
        }
        for value in (0.02, 0.04)
    ]
    found = looked(jockey_fig10, rows)
    assert found["ΔT, %", "cp"].ours == pytest.approx(3.0)
    assert found["ΔT, %", "cp"].paper == "3.0"
    assert found["longest constant interval, %", "minstage-inf"].paper == "26.7"
    assert len(found) == 12
