"""Attributes by job size: distributions of single stages and of DAGs, round trip through a file."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from sim.base.correlation import rank_correlation
from sim.base.errors import InputError
from sim.synth.fitted.draw_joint import longest_over_mean, spread_tasks
from sim.synth.fitted.fit import fit_workload
from sim.synth.fitted.fit_sizes import fit_by_size
from sim.synth.fitted.histograms import Histogram
from sim.synth.fitted.tables_file import read_tables, write_tables

N = 3000


def flat(seed=100):
    """Jobs of one stage with correlated memory and duration, and tasks that differ."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=N)
    n_tasks = 1 + np.floor(np.exp(rng.normal(size=N))).astype(np.int32)
    task_s = np.exp(np.repeat(common, n_tasks) + 0.3 * rng.normal(size=n_tasks.sum()))
    return sim.Workload.from_tables(
        jobs={"job_id": [str(i) for i in range(N)], "submit_s": np.arange(N) * 60.0},
        stages={"job": np.arange(N), "n_tasks": n_tasks, "demand_cpu": np.ones(N),
                "demand_mem": np.ceil(np.exp(common + rng.normal(size=N)))},
        tasks={"stage": np.repeat(np.arange(N, dtype=np.int32), n_tasks), "duration_s": task_s},
    )  # fmt: skip


def stage_values(workload):
    task0, task_s = workload.stage_task0, workload.tasks["duration_s"].to_numpy()
    mean = np.add.reduceat(task_s, task0[:-1]) / np.diff(task0)
    mem = workload.stages["demand_mem"].to_numpy()
    return mean, longest_over_mean(task_s, task0), np.diff(task0).astype(float), mem


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    path = tmp_path_factory.mktemp("t") / "flat.json"
    write_tables(fit_workload(flat()), path)
    return path


def test_a_workload_without_edges_keeps_its_correlations(tables):
    real = stage_values(flat())
    synthesized = stage_values(
        sim.synthesize("alibaba2018", jobs=N, seed=1, tables=tables, joint=True)
    )
    independent = stage_values(sim.synthesize("alibaba2018", jobs=N, seed=1, tables=tables))
    for i in range(4):
        assert abs(np.log(synthesized[i]).mean() - np.log(real[i]).mean()) < 0.06
        for j in range(i):
            expected = rank_correlation(real[i], real[j])
            assert rank_correlation(synthesized[i], synthesized[j]) == pytest.approx(
                expected, abs=0.05
            )
    assert rank_correlation(real[0], real[3]) > 0.6
    assert abs(rank_correlation(independent[0], independent[3])) < 0.05
    assert (synthesized[1] <= synthesized[2] + 1e-9).all()


def test_tables_are_read_as_written_and_errors_name_the_entry(tables, tmp_path):
    read = read_tables(tables)
    write_tables(read, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == tables.read_bytes()
    assert read.by_size.parts[0].cells is not None
    text = tables.read_text()
    for old, new, message in (
        ('"by_size": {\n  "1":', '"by_size": {\n  "0":', "by_size must begin with jobs of 1 stage"),
        ('"cells": {', '"cell": {', "unknown entry 'cell'; did you mean 'cells'"),
        (
            '"block_s": 3600.0',
            '"block_s": -1',
            "block_s: must be a number above 0, not -1",
        ),
        ('"clock_s": 3600.0', '"clock_s": 5000', "clock_s a multiple of block_s, at most the sum"),
        ('"counts": [1,', '"counts": [0,', "counts: must be whole numbers of at least 1"),
    ):
        assert old in text
        (tmp_path / "bad.json").write_text(text.replace(old, new))
        with pytest.raises(InputError, match=message):
            read_tables(tmp_path / "bad.json")


def test_each_size_has_separate_tables():
    rng = np.random.default_rng(100)
    size = rng.integers(1, 4, 900)
    jobs = []
    for i, (n, job_effect) in enumerate(zip(size, rng.normal(size=900), strict=True)):
        duration_s = np.exp(2 * n + job_effect + 0.3 * rng.normal(size=n)).tolist()
        stages = [
            {"name": f"s{k}", "durations_s": [d] * (1 + k), "parents": [f"s{k - 1}"] * (k > 0)}
            for k, d in enumerate(duration_s)
        ]
        jobs.append({"submit_s": 60.0 * i, "stages": stages})
    workload = sim.Workload.from_jobs(jobs)
    fitted = fit_workload(workload)
    assert fitted.by_size.lower.tolist() == [1, 2, 3]
    again = [part.tables["n_tasks"].values.tolist() for part in fitted.by_size.parts]
    assert again == [[1], [1, 2], [1, 2, 3]]
    medians = [np.median(np.log(p.tables["duration_s"].values)) for p in fitted.by_size.parts]
    assert np.diff(medians) == pytest.approx([2, 2], abs=0.3)


def test_each_size_with_enough_jobs_has_tables():
    workload = sim.synthesize("alibaba2018", jobs=600, seed=100)
    from sim.dags import Graphs

    graphs = Graphs.from_workload(workload)
    metrics = {
        "duration_s": workload.stage_duration_s,
        "n_tasks": workload.stages["n_tasks"].to_numpy().astype(float),
    }
    actual = fit_by_size(graphs, metrics, lambda _, values: Histogram.count(values))
    assert actual.lower[0] == 1
    for low, high, part in zip(actual.lower, [*actual.lower[1:], 1000], actual.parts, strict=True):
        n = graphs.job_n_stages[(graphs.job_n_stages >= low) & (graphs.job_n_stages < high)]
        assert part.tables["n_tasks"].counts.sum() == n.sum()


def test_tasks_have_the_given_mean_and_maximum():
    n_tasks = np.array([1, 2, 5, 300, 4])
    mean, longest = np.array([3.0, 2.0, 1.0, 10.0, 0.0]), np.array([1.0, 1.5, 4.0, 6.0, 1.0])
    task_s = spread_tasks(mean, longest, n_tasks, 1)
    task0 = np.concatenate([[0], np.cumsum(n_tasks)])
    assert longest_over_mean(task_s, task0) == pytest.approx(longest, rel=0.02)
    assert np.add.reduceat(task_s, task0[:-1]) / n_tasks == pytest.approx(mean, rel=0.02)
    assert (task_s >= 0).all()
    many = task_s[8:308]
    assert len(np.unique(many)) > 290
    assert abs(np.corrcoef(np.arange(300), many)[0, 1]) < 0.2
