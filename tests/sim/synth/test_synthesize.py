"""Synthesized workloads: lookup by name, same bytes, marginals equal to the tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

import sim
from policies.alibaba.synth.shipped import SHIPPED
from sim.base.errors import InputError
from sim.synth import names, options
from sim.synth.fitted.histograms import Histogram
from sim.synth.fitted.tables_file import read_tables


@pytest.fixture(scope="module")
def workload() -> sim.Workload:
    return sim.synthesize("alibaba2018", jobs=3_000, seed=11)


def distance(sample, table: Histogram) -> float:
    """Kolmogorov-Smirnov distance between a sample and a histogram."""
    cdf = np.cumsum(table.counts) / table.counts.sum()
    actual_cdf = np.searchsorted(np.sort(sample), table.values, side="right") / len(sample)
    return float(np.abs(actual_cdf - cdf).max())


def test_the_distance_is_the_largest_gap_between_the_two_curves():
    table = Histogram.count([1.0, 2.0, 3.0], [5, 3, 2])
    assert distance(np.array([1, 1, 2, 3, 3, 3]), table) == pytest.approx(0.3)
    assert distance(np.array([1, 1, 1, 1, 1, 2, 2, 2, 3, 3]), table) == 0.0


def test_generators_are_the_modules_of_the_package():
    assert names() == [
        "alibaba2018",
        "cosmos",
        "everything",
        "hard_dags",
        "other_domains",
        "production_dags",
        "programs",
        "recurring",
        "scope_jobs",
        "training",
    ]
    assert options("alibaba2018") == {
        "jobs": 10_000, "seed": 0, "tables": None, "variant": "improved", "joint": False,
        "arrivals": "fitted", "max_tasks_per_stage": None, "machine": None, "load": 1.0,
            "heterogeneity": 1.0,
    }  # fmt: skip


def test_columns_are_the_schemas(workload):
    assert workload.n_jobs == 3_000
    assert workload.jobs["job_id"].to_pylist()[:2] == ["synth-0000000", "synth-0000001"]
    assert workload.resources == ("cpu", "mem")
    assert workload.quantum == {"cpu": 0.01, "mem": 0.01}
    assert workload.meta["synth"]["seed"] == 11
    assert workload.jobs["submit_s"][0].as_py() == 0.0
    first = workload.columns.job_stage0
    counts = np.diff(first)
    expected = [f"S{i + 1}" for n in counts[:50] for i in range(n)]
    assert workload.stages["name"].to_pylist()[: len(expected)] == expected
    assert set(workload.columns.edge_kind.tolist()) == {0}


def test_same_seed_same_content_and_another_seed_other_content(workload):
    again = sim.synthesize("alibaba2018", jobs=3_000, seed=11)
    assert again.digest == workload.digest
    assert sim.synthesize("alibaba2018", jobs=3_000, seed=12).digest != workload.digest


def test_content_is_pinned():
    synthesized = sim.synthesize("alibaba2018", jobs=200, seed=0)
    assert (synthesized.n_stages, synthesized.n_tasks, synthesized.stage_edges.num_rows) == (
        747,
        25_519,
        589,
    )
    assert synthesized.stage_duration_s.sum() == 30_997.5


def test_a_longer_workload_begins_with_the_same_jobs(workload):
    few = sim.synthesize("alibaba2018", jobs=500, seed=11)
    assert workload.take(np.arange(500)).digest == few.digest


def test_written_bytes_are_the_same(tmp_path):
    for folder in ("a", "b"):
        sim.synthesize("alibaba2018", jobs=50, seed=3).write(tmp_path / folder)
    for path in sorted((tmp_path / "a").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    read = sim.Workload.read(tmp_path / "a")
    assert read.digest == sim.synthesize("alibaba2018", jobs=50, seed=3).digest
    assert read.meta["synth"]["jobs"] == 50


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("n_tasks", "n_tasks"),
        ("duration_s", "duration_s"),
        ("cpu", "demand_cpu"),
        ("mem", "demand_mem"),
        ("n_stages", "n_stages"),
        ("interval_s", "interval_s"),
    ],
)
def test_marginals_are_the_tables(workload, table, column):
    tables = read_tables(SHIPPED)
    sample = {
        "duration_s": workload.stage_duration_s,
        "n_stages": np.diff(workload.columns.job_stage0),
        "interval_s": np.diff(workload.columns.job_submit),
    }.get(column)
    if sample is None:
        sample = workload.stages[column].to_numpy()
    expected = tables.demand.get(table) or getattr(tables, table)
    assert distance(sample, expected) < 1.95 / np.sqrt(len(sample))  # p = 0.001
    assert np.isin(sample, expected.values).all()


def test_attributes_are_independent_of_each_other(workload):
    columns = [
        workload.stages["n_tasks"].to_numpy(),
        workload.stage_duration_s,
        workload.stages["demand_cpu"].to_numpy(),
        workload.stages["demand_mem"].to_numpy(),
    ]
    correlation = spearmanr(np.column_stack(columns)).statistic
    assert np.abs(correlation[~np.eye(4, dtype=bool)]).max() < 0.04


def test_a_cap_on_tasks_redraws_within_the_table_and_leaves_the_rest(workload):
    capped = sim.synthesize("alibaba2018", jobs=3_000, seed=11, max_tasks_per_stage=100)
    n_tasks = capped.stages["n_tasks"].to_numpy()
    assert n_tasks.max() <= 100 < workload.stages["n_tasks"].to_numpy().max()
    assert distance(n_tasks, read_tables(SHIPPED).n_tasks.up_to(100)) < 1.95 / np.sqrt(len(n_tasks))
    assert capped.stage_edges.equals(workload.stage_edges)
    assert (capped.stage_duration_s == workload.stage_duration_s).all()


def test_it_runs(workload):
    from policies import build

    small = workload.take(np.arange(100))
    result = sim.simulate(small, sim.Cluster.slots(500), build("fifo"), seed=0)
    assert set(result.jobs["outcome"].to_pylist()) == {"done"}


def test_the_shipped_tables_are_small_and_say_where_they_come_from():
    assert SHIPPED.stat().st_size < 300_000
    provenance = read_tables(SHIPPED).provenance
    assert provenance["made_by"].startswith("python -m sim fit ")
    assert "SoCC 2019" in provenance["source"]
    assert len(provenance["input_sha256"]) == 64


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("alibaba2081", {}, "did you mean 'alibaba2018'"),
        ("nonsense", {}, "unknown generator 'nonsense'; valid: alibaba2018"),
        ("alibaba2018", {"job": 5}, "unknown option of alibaba2018 'job'; did you mean 'jobs'"),
        ("alibaba2018", {"jobs": 0}, "jobs must be a whole number of at least 1, not 0"),
        ("alibaba2018", {"jobs": 2.5}, "jobs must be a whole number"),
        ("alibaba2018", {"jobs": True}, "jobs must be a whole number"),
        ("alibaba2018", {"seed": "x"}, "seed must be a whole number, not 'x'"),
        ("alibaba2018", {"max_tasks_per_stage": 0}, "at least 1 or null, not 0"),
        ("alibaba2018", {"tables": "absent.json"}, "absent.json: there is no such file"),
    ],
)
def test_wrong_input_names_the_way_out(name, arguments, message):
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        sim.synthesize(name, **arguments)
