from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sim.base.errors import InputError
from sweep.report import gantt as report_gantt
from sweep.report import job_samples
from sweep.report import plots as report_plots
from sweep.stats.summary import summarise
from sweep.store.cache import Cache
from sweep.store.cell import CellResult
from tests.sweep import frames

TASKS = {
    "job": [0, 0, 1, 2],
    "stage": [0, 0, 1, 2],
    "machine": [0, 0, 1, 0],
    "start_s": [0.0, 0.0, 1.0, 2.0],
    "finish_s": [4.0, 2.0, 3.0, 5.0],
}


def jct_of(policy: str, seed: int, n: int = 40) -> np.ndarray[Any, Any]:
    jobs = np.random.default_rng(seed).lognormal(3.0, 1.0, n)
    return np.asarray(jobs * frames.FACTOR[policy])


def cached(tmp_path: Path, cells: pa.Table, n_jobs: int = 40, **metadata: Any) -> Cache:
    """Write a cached result for each cell of a table."""
    cache = Cache(tmp_path)
    for row in cells.to_pylist():
        if row["status"] == "failed":
            continue
        jct = jct_of(row["policy"], row["seed"], n_jobs)
        submit = np.arange(n_jobs, dtype=np.float64)
        failed = np.zeros(n_jobs, dtype=bool)
        failed[0] = row["policy"] == "las"
        jobs = pa.table(
            {
                "submit_s": submit,
                "finish_s": submit + jct,
                "failed": failed,
                "gap_lb": (jct / 10).astype(np.float32),
                "prediction_error": np.full(n_jobs, 0.5 if row["policy"] == "sjf" else np.nan),
            }
        )
        texts = {name: json.dumps(value) for name, value in metadata.items()}
        cache.put(CellResult(row["key"], {}, jobs.replace_schema_metadata(texts)), {})
    return Cache(tmp_path)


def read_samples(tmp_path: Path, cells: pa.Table, n_jobs: int = 40) -> job_samples.JobSamples:
    use = {"resource": "cpu", "begin_s": 0.0, "end_s": 7200.0, "used": [0.5, 1.0]}
    value = {"begin_s": 0.0, "end_s": 3600.0, "attained": [0.0, 0.25, 0.5]}
    cache = cached(tmp_path, cells, n_jobs, utilization=use, value=value)
    return job_samples.sample_jobs(cells, cache, swept=(), baseline="fifo")


def drawn(sampled: job_samples.JobSamples, cells: pa.Table) -> dict[str, dict[str, Any]]:
    columns = summarise(cells, baseline="fifo").columns
    figures = {name: f for name, _, f in report_plots.figures(sampled.samples[0], columns)}
    for figure in figures.values():
        go.Figure(figure)  # raises on an attribute that plotly does not know
    return figures


def test_curves_are_of_the_jobs_of_all_seeds(tmp_path: Path) -> None:
    cells = frames.frame(capacities=[1.0], seeds=[0, 1])
    figures = drawn(read_samples(tmp_path, cells), cells)
    assert list(figures) == [
        "JCT of jobs",
        "Speed-up of jobs",
        "Distance to the lower bound",
        "Errors of predictions",
        "Utilisation over time",
        "Value attained over time",
    ]
    jct = figures["JCT of jobs"]["data"]
    assert [trace["name"] for trace in jct] == list(frames.POLICIES)
    expected = np.sort(np.concatenate([jct_of("sjf", 0), jct_of("sjf", 1)]))
    np.testing.assert_allclose(jct[1]["x"], expected, rtol=1e-4)
    np.testing.assert_allclose(jct[1]["y"], np.arange(1, 81) / 80, rtol=1e-4)
    assert len(jct[2]["x"]) == 78  # a job of las failed with each seed
    speedup = figures["Speed-up of jobs"]["data"]
    assert [trace["name"] for trace in speedup] == ["sjf", "las", "srpt"]
    np.testing.assert_allclose(speedup[0]["x"], frames.FACTOR["fifo"] / frames.FACTOR["sjf"], 1e-4)
    assert min(figures["Distance to the lower bound"]["data"][0]["x"]) > 1
    assert [trace["name"] for trace in figures["Errors of predictions"]["data"]] == ["sjf"]
    use = figures["Utilisation over time"]["data"][0]
    assert (use["x"], use["y"]) == ([0.5, 1.5], [50.0, 100.0])
    value = figures["Value attained over time"]["data"][1]
    assert (value["x"], value["y"]) == ([0.0, 0.5, 1.0], [0.0, 25.0, 50.0])


def test_many_jobs_are_thinned_to_quantiles_that_occur(tmp_path: Path) -> None:
    cells = frames.frame(policies=["fifo"], capacities=[1.0], seeds=[0])
    figures = drawn(read_samples(tmp_path, cells, n_jobs=5000), cells)
    (trace,) = figures["JCT of jobs"]["data"]
    values = np.sort(jct_of("fifo", 0, 5000))
    assert len(trace["x"]) == report_plots.N_POINTS
    assert trace["x"][0] == pytest.approx(values[0], rel=1e-4)
    assert (trace["x"][-1], trace["y"][-1]) == (pytest.approx(values[-1], rel=1e-4), 1.0)
    for x, y in zip(trace["x"], trace["y"], strict=True):
        assert np.mean(values <= x * 1.0001) == pytest.approx(y, abs=2e-3)


def test_omissions_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = frames.frame(
        policies=["fifo", "sjf"],
        capacities=[0.2, 0.4, 0.6, 0.8, 1.0],
        seeds=range(12),
        traces=list("abcdef"),
    )
    cache = cached(tmp_path, cells)
    sampled = job_samples.sample_jobs(cells, cache, swept=(), baseline="fifo")
    assert {sample.capacity for sample in sampled.samples} == {0.2, 0.6, 1.0}
    assert {sample.block for sample in sampled.samples} == {0, 1, 2, 3}
    assert {
        len(jobs.jct_s) for sample in sampled.samples for jobs in sample.jobs_by_column.values()
    } == {10}
    assert sampled.left_out == [
        "2 of 6 traces and settings",
        "all capacities but the lowest, the middle and the highest",
        "all but the first 10 seeds",
    ]
    monkeypatch.setattr(job_samples, "MAX_BYTES", 1)
    smallest = job_samples.sample_jobs(cells, cache, swept=(), baseline="fifo")
    assert {
        len(jobs.jct_s) for sample in smallest.samples for jobs in sample.jobs_by_column.values()
    } == {1}


def test_failed_and_missing_cells_have_no_curves(tmp_path: Path) -> None:
    cells = frames.frame(capacities=[1.0], seeds=[0], failed=[("sjf", 1.0, 0)])
    cache = cached(tmp_path, cells)
    missing = next(row["key"] for row in cells.to_pylist() if row["policy"] == "fifo")
    for file in (tmp_path / "cache" / "shards").iterdir():
        if bytes.fromhex(missing) in pq.ParquetFile(file).read()["key"].to_pylist():
            file.unlink()
    sampled = job_samples.sample_jobs(cells, cache, swept=(), baseline="fifo")
    assert list(sampled.samples[0].jobs_by_column) == [2, 3]
    assert "Speed-up of jobs" not in drawn(sampled, cells)
    empty = job_samples.sample_jobs(cells, Cache(tmp_path / "none"), swept=(), baseline="fifo")
    assert (empty.samples, empty.left_out) == ([], [])


def test_a_schedule_has_a_bar_a_task_that_overlaps_no_other(tmp_path: Path) -> None:
    cells = frames.frame(capacities=[1.0], seeds=[0], failed=[("sjf", 1.0, 0)])
    cache = cached(tmp_path, cells, tasks=TASKS)
    gantt = report_gantt.choose(cells, cache)
    assert gantt is not None
    assert (gantt.row, gantt.title) == (0, "fifo, alibaba2018, capacity 1, seed 0")
    figure = report_gantt.figure(gantt)
    go.Figure(figure)
    bars = [
        (
            trace["y"][task],
            trace["base"][task],
            trace["base"][task] + trace["x"][task],
            trace["name"],
        )
        for trace in figure["data"]
        for task in range(len(trace["x"]))
    ]
    # on machine 0 the task that begins at 2 s takes the line that was free by then
    assert sorted(bars) == [
        (0, 0.0, 2.0, "job 0"),
        (0, 2.0, 5.0, "job 2"),
        (1, 0.0, 4.0, "job 0"),
        (2, 1.0, 3.0, "job 1"),
    ]
    assert figure["layout"]["yaxis"]["tickvals"] == [0, 2]
    requested = report_gantt.choose(cells, cache, 3)
    assert requested is not None
    assert requested.title.startswith("srpt")


def test_the_first_trace_that_is_small_is_drawn(tmp_path: Path) -> None:
    cells = frames.frame(capacities=[1.0], seeds=[0], traces=["large", "small", "smaller"])
    cached(tmp_path, cells.slice(0, 4))
    cache = cached(tmp_path, cells.slice(4), tasks=TASKS)
    gantt = report_gantt.choose(cells, cache)
    assert gantt is not None
    assert (gantt.row, gantt.title) == (4, "fifo, small, capacity 1, seed 0")


def test_a_schedule_that_cannot_be_drawn_is_an_error(tmp_path: Path) -> None:
    cells = frames.frame(capacities=[1.0], seeds=[0], failed=[("sjf", 1.0, 0)])
    cache = cached(tmp_path, cells)
    assert report_gantt.choose(cells, cache) is None
    for row, words in ((0, "300 tasks or fewer"), (1, "failed"), (4, "valid: 0 to 3")):
        with pytest.raises(InputError, match=words):
            report_gantt.choose(cells, cache, row)
