"""Fits: synthesized jobs recover their tables."""

from __future__ import annotations

import numpy as np
import pytest

import sim
from policies.alibaba.synth.shipped import SHIPPED
from sim.base.errors import InputError
from sim.synth.fitted.fit import fit_workload
from sim.synth.fitted.histograms import MIN_CELL, Histogram
from sim.synth.fitted.tables_file import read_tables

SAMPLE = "alibaba2018/batch_task_6600_jobs.csv.gz"


def ks_distance(first: Histogram, second: Histogram) -> float:
    """Kolmogorov-Smirnov distance between two histograms."""
    values = np.union1d(first.values, second.values)
    cdfs = []
    for table in (first, second):
        cum = np.concatenate([[0], np.cumsum(table.counts)]) / table.counts.sum()
        cdfs.append(cum[np.searchsorted(table.values, values, side="right")])
    return float(np.abs(cdfs[0] - cdfs[1]).max())


@pytest.fixture(scope="module")
def refitted():
    drawn = sim.synthesize("alibaba2018", jobs=20_000, seed=4, variant="paper")
    return fit_workload(drawn, joint=False)


@pytest.mark.parametrize("name", ["n_stages", "n_tasks", "duration_s", "interval_s"])
def test_a_fit_on_synthesized_jobs_recovers_the_plain_tables(refitted, name):
    assert ks_distance(getattr(refitted, name), getattr(read_tables(SHIPPED), name)) < 0.014


def test_a_fit_on_synthesized_jobs_recovers_the_demands(refitted):
    for name, table in read_tables(SHIPPED).demand.items():
        assert ks_distance(refitted.demand[name], table) < 0.008
    assert refitted.quantum == {"cpu": 0.01, "mem": 0.01}


def test_a_fit_on_synthesized_jobs_recovers_the_lengths(refitted):
    shipped = read_tables(SHIPPED).length
    for size in range(2, 12):
        cell = refitted.length.parts[refitted.length.part_of(np.array([size]))[0]]
        expected = shipped.parts[shipped.part_of(np.array([size]))[0]].up_to(size)
        assert ks_distance(cell, expected) < 1.95 / np.sqrt(cell.counts.sum())


def test_a_fit_on_synthesized_jobs_comes_near_the_levels(refitted):
    # not the same table: the first vertices take one level each (line 6), which evens levels out
    shipped = read_tables(SHIPPED).level
    for length in range(2, 9):
        condition = np.array([length])
        cell = refitted.level.parts[refitted.level.part_of(condition)[0]]
        expected = shipped.parts[shipped.part_of(condition)[0]].up_to(length)
        assert cell.values.tolist() == list(range(1, length + 1))
        assert ks_distance(cell, expected) < 0.15


def test_cells_of_few_jobs_are_pooled_and_named():
    jobs = []
    for n_stages, n_jobs in ((1, 40), (2, 29), (3, 2), (5, 31), (8, 3)):
        stages = [{"name": f"s{i}", "durations_s": [1.0]} for i in range(n_stages)]
        jobs += [{"submit_s": float(len(jobs) + k), "stages": stages} for k in range(n_jobs)]
    tables = fit_workload(sim.Workload.from_jobs(jobs))
    assert MIN_CELL == 30
    assert tables.length.lower.tolist() == [1, 2, 5]
    assert tables.provenance["pooled"] == [
        "length: one table for 2 to 3 (31 jobs)",
        "length: one table for 5 to 8 (34 jobs)",
    ]
    assert all(cell.values.tolist() == [1] for cell in tables.length.parts)


def test_a_stage_is_counted_with_its_mean_duration():
    stage = {"durations_s": [1.0, 3.0], "demand": {"gpu": 2.0}}
    jobs = [{"submit_s": s, "stages": [stage]} for s in (0.0, 2.0, 9.0)]
    tables = fit_workload(sim.Workload.from_jobs(jobs))
    assert tables.duration_s.values.tolist() == [2.0]
    assert tables.n_tasks.values.tolist() == [2.0]
    assert tables.interval_s.values.tolist() == [2.0, 7.0]
    assert list(tables.demand) == ["gpu"]


def test_many_distinct_values_are_rounded_to_three_digits():
    durations = 10 ** np.linspace(-1, 3, 20_000)
    numbers = np.arange(len(durations))
    jobs = {"job_id": numbers.astype(str), "submit_s": numbers.astype(float)}
    stages = {"job": numbers, "duration_s": durations}
    stages |= {name: np.ones(len(numbers), np.int32) for name in ("n_tasks", "demand_cpu")}
    tables = fit_workload(sim.Workload.from_tables(jobs=jobs, stages=stages))
    assert len(tables.duration_s.values) < 4_096
    assert ks_distance(tables.duration_s, Histogram.count(durations)) < 0.005
    assert tables.provenance["changed"] == {
        "duration_s": "20000 values rounded to three significant digits"
    }


def test_tables_of_the_real_sample_are_near_the_published_ones(shared_traces):
    real = sim.read_trace("alibaba2018", shared_traces / SAMPLE, on_bad_row="skip")
    sample = fit_workload(real, joint=False)
    shipped = read_tables(SHIPPED)
    for length in range(2, 8):
        condition = np.array([length])
        cell = sample.level.parts[sample.level.part_of(condition)[0]]
        assert ks_distance(cell, shipped.level.parts[shipped.level.part_of(condition)[0]]) < 0.08
    for size in range(2, 9):
        condition = np.array([size])
        cell = sample.length.parts[sample.length.part_of(condition)[0]]
        assert ks_distance(cell, shipped.length.parts[shipped.length.part_of(condition)[0]]) < 0.08


def test_a_single_job_is_an_error():
    with pytest.raises(InputError, match="at least 2 jobs"):
        fit_workload(sim.synthesize("alibaba2018", jobs=1))
