"""Jobs and resource use by hour, as if nothing waited."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sim
from sim.describe import Dataset, hourly
from tests.sim.describe.workloads import by_key, dataset, drawn, job

H = 3600.0


def rows(table, population="all"):
    selected = [r for r in table.to_pylist() if r["population"] == population]
    return {
        name: [r[name] for r in selected] for name in table.column_names if name != "population"
    }


def test_use_is_spread_over_the_hours_in_which_it_happens():
    long = {"durations_s": [2.5 * H, 0.5 * H], "demand": {"cpu": 2.0}}
    data = dataset(
        job(0.5 * H, {"a": "", "b": "a"}, a=long, b={"durations_s": [0.25 * H]}),
        job(1.0 * H, {"a": ""}, a={"durations_s": [H]}),
        job(4.75 * H, {"a": ""}),
    )
    table = rows(hourly.hourly(data))
    assert table["hour"] == [0, 1, 2, 3, 4]
    assert table["whole"] == [False, True, True, True, False]
    assert table["jobs_submitted"] == [1, 1, 0, 0, 1]
    # the first job runs from 0.5 to 3.25 h, the second from 1 h to 2 h (touching hour 2)
    assert table["jobs_running"] == [1, 2, 2, 1, 1]
    # 2 tasks x 2 cpu for 0.5 h, then one task for 2 h, then b; the second job fills hour 1
    assert table["cpu_hours"] == pytest.approx([2.0, 2.0 + 1.0, 2.0, 0.25, 10 / H])
    linked = rows(hourly.hourly(data), "dag")
    assert linked["jobs_submitted"] == [1, 0, 0, 0, 0]
    assert linked["cpu_hours"] == pytest.approx([2.0, 2.0, 2.0, 0.25, 0.0])
    assert linked["cpu_hours"][4] == 0.0
    assert rows(hourly.hourly(data), "stages_2")["jobs_running"] == [1, 1, 1, 1, 0]


def test_tasks_that_are_alike_give_the_same(monkeypatch):
    w = drawn(300, seed=3)
    single = sim.Workload.from_tables(
        jobs=w.jobs, stages=w.stages, tasks=w.tasks, stage_edges=w.stage_edges, meta=w.meta
    )
    assert single.stage_duration_s is None
    monkeypatch.setattr(hourly, "_TASKS_AT_ONCE", 1000)
    a, b = (hourly.hourly(Dataset.from_workload("w", per_task)) for per_task in (w, single))
    for name in a.column_names[1:]:
        np.testing.assert_allclose(a[name].to_numpy(), b[name].to_numpy(), rtol=1e-9, atol=1e-9)


def test_all_of_the_use_is_there():
    w = drawn(400, seed=5, span_s=99 * H)
    late = sim.Workload.from_jobs([job(100 * H, {"a": ""})])  # so that no hour is cut off
    w = sim.Workload.from_tables(
        jobs=pa.concat_tables([w.jobs, late.jobs], promote_options="default"),
        stages=pa.concat_tables(
            [
                w.stages.append_column("duration_s", [w.stage_duration_s]),
                pa.table({"job": [400], "name": ["a"], "n_tasks": [1], "duration_s": [0.0],
                          "demand_cpu": [1.0], "demand_mem": [0.0]}),
            ],
            promote_options="permissive",
        ),
        stage_edges=w.stage_edges,
    )  # fmt: skip
    table = rows(hourly.hourly(Dataset.from_workload("w", w)))
    _, finish_s = Dataset.from_workload("w", w).spans_s
    assert finish_s.max() < 101 * H  # so that nothing is cut off
    for r, name in enumerate(w.resources):
        whole = float(w.columns.stage_work @ w.columns.stage_demand_f[:, r]) / H
        assert sum(table[f"{name}_hours"]) == pytest.approx(whole, rel=1e-9)
    assert sum(table["jobs_submitted"]) == w.n_jobs


def test_hours_are_those_of_the_traces_clock():
    w = sim.Workload.from_jobs([job(0.0, {"a": ""}), job(0.5 * H, {"a": ""})])
    meta = {**w.meta, "offset_s": 23.75 * H}
    w = sim.Workload.from_tables(w.jobs, w.stages, w.tasks, meta=meta)
    table = rows(hourly.hourly(Dataset.from_workload("w", w)))
    assert table["hour"] == [23, 24]
    assert table["jobs_submitted"] == [1, 1]
    assert table["cpu_hours"] == pytest.approx([10 / H, 10 / H])


def test_peak_to_trough_is_of_whole_hours_only():
    times_h = [0.5, 1.1, 1.2, 1.3, 2.5, 3.1, 3.2, 4.0, 4.1, 4.2, 4.3]
    data = dataset(*(job(t * H, {"a": ""}) for t in times_h))
    ratios = by_key(hourly.peak_to_trough(data, hourly.hourly(data)))
    assert ratios["all_jobs_submitted"] == 3.0
    assert ratios["all_cpu_hours"] == pytest.approx(3.0)
    assert np.isnan(ratios["dag_jobs_submitted"])
    short = dataset(job(0.0, {"a": ""}), job(100.0, {"a": ""}))
    assert np.isnan(by_key(hourly.peak_to_trough(short, hourly.hourly(short)))["all_jobs_running"])
    gap = dataset(*(job(t * H, {"a": ""}) for t in (0.0, 0.1, 2.5, 4.0)))
    assert by_key(hourly.peak_to_trough(gap, hourly.hourly(gap)))["all_jobs_submitted"] == np.inf


def test_stages_start_when_their_parents_are_done():
    data = dataset(
        job(100.0, {"a": "", "b": "a", "c": "a", "d": "bc"}, b={"durations_s": [3.0, 50.0]})
    )
    start_s, finish_s = data.spans_s
    assert start_s.tolist() == [100.0, 110.0, 110.0, 160.0]
    assert finish_s.tolist() == [110.0, 160.0, 120.0, 170.0]
    assert data.workload.columns.job_submit.tolist() == [100.0]  # untouched
