"""Numbers of a description, beside those of the paper."""

from __future__ import annotations

from typing import Any

import pytest

import sim
from sim import evaluators
from tests.sim.describe.workloads import CHAIN, LARGE, SCATTER, job
from tests.sweep.questions.papers.study_runs import study_results


def described(name: str) -> Any:
    jobs = [job(float(i), parents) for i, parents in enumerate([LARGE, CHAIN, SCATTER, SCATTER])]
    described_jobs = sim.Workload.from_jobs(jobs)
    tables = {
        key: getattr(described_jobs, key) for key in ("jobs", "stages", "tasks", "stage_edges")
    }
    workload = sim.Workload.from_tables(**tables, meta={"name": name})
    cluster = sim.Cluster.slots(1)
    return evaluators.evaluate("described", sim.simulate, workload, cluster, None, 0)


def test_only_its_own_trace_has_the_papers_numbers() -> None:
    metrics, table = described("alibaba2018")
    assert metrics == {"jobs": 4.0, "stages": 15.0}
    rows = {(r["dataset"], r["section"], r["key"]): r for r in table.to_pylist()}
    assert rows["trace", "shapes", "scatter"]["value"] == 3 / 4  # all but the one that gathers
    assert rows["trace", "shapes", "scatter"]["paper"] == 0.3603
    assert rows["random", "structure", "width_slope"]["paper"] != 0.491
    _, unnamed = described("another")
    assert all(paper != paper for paper in unnamed["paper"].to_pylist())


def test_shares_are_in_percent_and_counts_left_out() -> None:
    _, table = described("alibaba2018")

    results = study_results("alibaba/described", [{"table": table.to_pydict()}])
    scatter = results["Scatter and gather (§4.1)", SCATTERED]
    assert scatter.ours == pytest.approx(75.0)
    assert scatter.paper == "36.03"
    at_most = "children of a stage, at most 3, %"
    assert results["random DAGs: Structure (§4.2)", at_most].paper == "64.1"
    assert results["Structure (§4.2)", at_most].paper == "99"
    assert not any("Overview" in figure for figure, _ in results)


def test_the_papers_numbers_of_a_generator_are_compared_with_means_over_seeds() -> None:
    columns = {"figure": ["Table 1"], "what": ["a"], "paper": [1.23456]}
    rows = [{"table": {**columns, "ours": [ours]}} for ours in (1.0, 2.0)]
    finding = study_results("dagps/workload", rows)["Table 1", "a"]
    assert (finding.ours, finding.paper) == (1.5, "1.235")


SCATTERED = "jobs of more than two stages, scatter: each stage has at most one parent, %"
