"""The numbers of a description, beside those of the paper."""

from __future__ import annotations

from typing import Any

import pytest

import sim
from sim import evaluators
from tests.sim.describe.workloads import CHAIN, LARGE, SCATTER, job
from tests.sweep.papers.looked import looked


def described(name: str) -> Any:
    jobs = [job(float(i), parents) for i, parents in enumerate([LARGE, CHAIN, SCATTER, SCATTER])]
    made = sim.Workload.from_jobs(jobs)
    tables = {key: getattr(made, key) for key in ("jobs", "stages", "tasks", "stage_edges")}
    workload = sim.Workload.from_tables(**tables, meta={"name": name})
    cluster = sim.Cluster.slots(1)
    return evaluators.evaluate("described", sim.simulate, workload, cluster, None, 0)


def test_the_papers_numbers_stand_beside_its_own_trace_alone() -> None:
    metrics, table = described("alibaba2018")
    assert metrics == {"jobs": 4.0, "stages": 15.0}
    rows = {(r["dataset"], r["section"], r["key"]): r for r in table.to_pylist()}
    assert rows["trace", "shapes", "scatter"]["value"] == 3 / 4  # all but the one that gathers
    assert rows["trace", "shapes", "scatter"]["paper"] == 0.3603
    assert rows["random", "structure", "width_slope"]["paper"] != 0.491
    _, other = described("another")
    assert all(paper != paper for paper in other["paper"].to_pylist())


def test_shares_are_in_percent_and_counts_left_out() -> None:
    _, table = described("alibaba2018")

    named = looked("alibaba/described", [{"table": table.to_pydict()}])
    scatter = named["Scatter and gather (§4.1)", SCATTERED]
    assert scatter.ours == pytest.approx(75.0)
    assert scatter.paper == "36.03"
    at_most = "children of a stage, at most 3, %"
    assert named["random DAGs: Structure (§4.2)", at_most].paper == "64.1"
    assert named["Structure (§4.2)", at_most].paper == "99"
    assert not any("Overview" in figure for figure, _ in named)


def test_the_papers_numbers_of_a_generator_stand_beside_means_over_seeds() -> None:
    of_seed = {"figure": ["Table 1"], "what": ["a"], "paper": [1.23456]}
    rows = [{"table": {**of_seed, "ours": [ours]}} for ours in (1.0, 2.0)]
    one = looked("dagps/workload", rows)["Table 1", "a"]
    assert (one.ours, one.paper) == (1.5, "1.235")


SCATTERED = "jobs of more than two stages, scatter: each stage has at most one parent, %"
