"""The numbers of a description, beside those of the paper."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

import sim
from sim import measures
from sweep.papers.studies import alibaba_described
from sweep.report.findings import Finished
from tests.sim.describe.workloads import CHAIN, LARGE, SCATTER, job


def described(name: str) -> Any:
    jobs = [job(float(i), parents) for i, parents in enumerate([LARGE, CHAIN, SCATTER, SCATTER])]
    made = sim.Workload.from_jobs(jobs)
    tables = {key: getattr(made, key) for key in ("jobs", "stages", "tasks", "stage_edges")}
    workload = sim.Workload.from_tables(**tables, meta={"name": name})
    cluster = sim.Cluster.slots(1)
    return measures.measure("described", sim.simulate, workload, cluster, None, 0)


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

    class Tables(Finished):
        def table(self, row: Any) -> Any:
            return table

    found = alibaba_described.find(Tables([{}], {}, cache=cast(Any, SimpleNamespace())))
    named = {(one.figure, one.what): one for one in found}
    scatter = named["Scatter and gather (§4.1)", SCATTERED]
    assert scatter.ours == pytest.approx(75.0)
    assert scatter.paper == "36.03"
    at_most = "children of a stage, at most 3, %"
    assert named["random DAGs: Structure (§4.2)", at_most].paper == "64.1"
    assert named["Structure (§4.2)", at_most].paper == "99"
    assert not any("Overview" in one.figure for one in found)


SCATTERED = "jobs of more than two stages, scatter: at most one parent each, %"
