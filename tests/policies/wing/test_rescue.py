"""Predictions of `wing_dep`, and its order by the value that is left."""

from __future__ import annotations

import pyarrow as pa
import pytest

import sim
from policies.wing.lineage.worth import WAITS_S, decay_columns
from policies.wing.rescue import predicted
from sim.engine.plan import World
from tests.policies.wing.worlds import ONE, H, job, order, recurring, with_worth


def world(past, jobs_of, demands):
    worth = {c: [1] * len(jobs_of) for c in ("value", "compute_s", "agg_value", "agg_compute_s")}
    workload = recurring(past, who=jobs_of, **worth)
    column = workload.stages.column_names.index("demand_tokens")
    stages = workload.stages.set_column(column, "demand_tokens", pa.array([1.0, *demands]))
    tables = {n: getattr(workload, n) for n in ("jobs", "tasks", "history")}
    return World(sim.Workload.from_tables(stages=stages, **tables).columns, ONE, 0, {})


def test_a_program_has_mean_value_over_geometric_mean_resource_time():
    past = [("p", "u", 1, v, c) for v, c in ((2.0, 1.0), (4.0, 4.0))]
    assert predicted(world(past, [("p", "u")], [1.0]))[1] == pytest.approx(3.0 / 2.0)


def test_the_efficiency_of_an_ad_hoc_job_falls_with_its_demand():
    # past jobs took a unit in an hour; two are worth 1 and 4 a unit, and a third nothing
    past = [("", "ann", 1, v, 2.0) for v in (2.0, 8.0, 0.0)]
    got = predicted(world(past, [("", "ann"), ("", "ann"), ("", "new")], [1.0, 4.0, 1.0]))
    assert got[1:] * H == pytest.approx([2.0 * 2 / 3, 0.5 * 2 / 3, 2.0 * 2 / 3])


def test_lost_readers_take_no_resources():
    jobs = [job("block", 0, 3.0), job("j0", 0.1, 0.5), job("j1", 0.1, 0.5)]
    late = {
        column: [0, 10.0 if wait < 2 * H else 1.0, 5]
        for column, wait in zip(decay_columns("rescued"), WAITS_S, strict=True)
    }
    workload = with_worth(
        jobs, value=[0, 0, 0], compute_s=[1, 1, 1], agg_value=[0, 10, 5],
        agg_compute_s=[1, 10, 10], **late,
    )  # fmt: skip
    # after three hours j0 has 1 of 10 left, for which 1.9 of 10 are needed; j1 has 5 for 10
    assert order(workload, "wing_dep", knowledge="true") == ["block", "j0", "j1"]
    assert order(workload, "wing_agg", knowledge="true") == ["block", "j0", "j1"]
    small = with_worth(
        jobs, value=[0, 0, 0], compute_s=[1, 10, 1], agg_value=[0, 10, 5],
        agg_compute_s=[1, 10, 10], **late,
    )  # fmt: skip
    assert order(small, "wing_dep", knowledge="true") == ["block", "j1", "j0"]  # all its own
