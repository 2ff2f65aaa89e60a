"""Synthesized workloads beside what is published: every number, where it stands, and ours."""

from __future__ import annotations

import pytest

import sim
from policies.dagps.synth.production_dags import statistics as production_dags
from policies.jockey.scope_jobs.structure import TABLE_2
from sim.evaluators import evaluate


def rows(workload, seed=0):
    metrics, table = evaluate("published", sim.simulate, workload, None, None, seed)
    return metrics, table.to_pylist()


def test_production_dags_are_beside_tables_1_and_2():
    workload = sim.synthesize("production_dags", jobs=30, seed=0, median_tasks=50, split_io=True)
    metrics, result = rows(workload)
    expected = production_dags.statistics(workload)
    assert {row["what"]: (row["paper"], row["ours"]) for row in result} == expected
    figures = [row["figure"] for row in result]
    assert (figures.count("Table 1"), figures.count("Table 2")) == (6, 15)
    off = [abs(got / paper - 1) for paper, got in expected.values() if paper]
    assert metrics["distance_max"] == max(off)


def test_scope_jobs_are_beside_tables_2_and_3():
    _, result = rows(sim.synthesize("scope_jobs", job="B", utilization=0.0), seed=3)
    named = {row["what"] for row in result if row["figure"] == "Table 2"}
    assert {f"job {job}, vertices" for job in TABLE_2} <= named
    assert "job A, 90th percentile, s" not in named
    third = {row["what"]: row for row in result if row["figure"] == "Table 3"}
    assert len(third) == 3 + 2 * 5
    assert third["job 1, latency, 90th percentile, s"]["paper"] == 36.6
    works = [third[f"{run}, work, h"]["ours"] for run in ("training", "job 2", "job 1")]
    assert works == sorted(works)
    _, other = rows(sim.synthesize("scope_jobs", job="B", utilization=0.0), seed=4)
    moved = {a["what"].split(",")[0] for a, b in zip(result, other, strict=True) if a != b}
    assert moved == {"job 1", "job 2"}


def test_of_other_workloads_nothing_is_known():
    workload = sim.Workload.from_jobs([{"submit_s": 0.0, "stages": [{"durations_s": [1.0]}]}])
    with pytest.raises(sim.InputError, match="valid: production_dags, scope_jobs"):
        rows(workload)
