"""Joint attributes: preserved correlations and marginals, §5's variability of the sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import sim
from policies.alibaba.synth.shipped import SHIPPED
from sim.base.errors import InputError
from sim.dags import Graphs
from sim.dags.properties import distance
from sim.synth.fitted.draw_joint import draw_jointly
from sim.synth.fitted.fit_joint import Binned, copying_chance, correlation, fit_joint
from sim.synth.fitted.histograms import Histogram
from sim.synth.fitted.tables_file import read_tables, write_tables

SAMPLE = "alibaba2018/batch_task_6600_jobs.csv.gz"
METRICS = ("duration_s", "n_tasks", "demand cpu", "demand mem")


@pytest.fixture(scope="module")
def sample(shared_traces):
    """The DAGs and the metrics of the real sample."""
    workload = sim.read_trace("alibaba2018", shared_traces / SAMPLE, on_bad_row="skip")
    stages = workload.stages
    columns = [stages[c].to_numpy() for c in ("n_tasks", "demand_cpu", "demand_mem")]
    values = [workload.stage_duration_s, *(column.astype(float) for column in columns)]
    return Graphs.from_workload(workload), dict(zip(METRICS, values, strict=True))


@pytest.fixture(scope="module")
def drawn(sample):
    graphs, metrics = sample
    tables = {name: Histogram.count(values) for name, values in metrics.items()}
    return draw_jointly(fit_joint(graphs, metrics), tables, graphs, seed=1)


def factors(graphs, values):
    """Ratios between dependent stages, in jobs of at least six stages (§5)."""
    large = (graphs.job_n_stages >= 6)[graphs.stage_job[graphs.edge_parent]]
    ratio = values[graphs.edge_child[large]] / values[graphs.edge_parent[large]]
    return np.maximum(ratio, 1 / ratio)


@pytest.mark.parametrize(
    ("metric", "limit"), [("duration_s", 0.06), ("n_tasks", 0.07), ("demand mem", 0.07)]
)
def test_dependent_pairs_differ_as_in_the_sample_and_not_as_independent_ones(
    sample, drawn, metric, limit
):
    graphs, metrics = sample
    real = factors(graphs, metrics[metric])
    independent = factors(graphs, np.random.default_rng(0).permutation(metrics[metric]))
    joint = factors(graphs, drawn[metric])
    assert distance(real, joint) < limit
    assert distance(real, independent) > 2 * distance(real, joint)
    for factor in (1.0, 2.0, 5.0, 10.0):
        assert (joint > factor).mean() == pytest.approx((real > factor).mean(), abs=0.06)


def test_a_demand_that_belongs_to_the_job_is_the_same_in_all_its_stages(sample, drawn):
    graphs, metrics = sample
    assert (factors(graphs, metrics["demand cpu"]) == 1).mean() > 0.99
    assert (factors(graphs, drawn["demand cpu"]) == 1).all()
    assert len(np.unique(drawn["demand cpu"])) > 1


@pytest.mark.parametrize("metric", METRICS)
def test_marginals_are_preserved(sample, drawn, metric):
    assert distance(drawn[metric], sample[1][metric]) < 0.035
    assert np.isin(drawn[metric], sample[1][metric]).all()


def test_correlations_within_a_stage_and_along_edges_are_preserved(sample, drawn):
    graphs, metrics = sample
    role = np.minimum(graphs.n_parents, 2)
    all_stages = np.arange(graphs.n_stages)
    names = ("duration_s", "n_tasks", "demand mem")
    real, synthesized = (
        [Binned(table[name], role * (name != "duration_s")) for name in names]
        for table in (metrics, drawn)
    )
    for first in range(3):
        for second in range(3):
            for a, b in ((all_stages, all_stages), (graphs.edge_parent, graphs.edge_child)):
                expected = correlation(real[first], real[second], a, b)
                actual = correlation(synthesized[first], synthesized[second], a, b)
                assert actual == pytest.approx(expected, abs=0.09)


@pytest.mark.parametrize("rho", [-0.6, 0.0, 0.3, 0.9])
def test_the_latent_correlation_is_recovered_despite_ties(rho):
    n = 60_000
    latent = multivariate_normal([0, 0], [[1, rho], [rho, 1]], seed=1).rvs(n)
    coarse = np.digitize(latent[:, 0], [-0.2, 0.9]).astype(float)
    fine = np.exp(latent[:, 1])
    role = np.zeros(n, dtype=np.int64)
    rows = np.arange(n)
    actual = correlation(Binned(coarse, role), Binned(fine, role), rows, rows)
    assert actual == pytest.approx(rho, abs=0.02)


def test_roles_have_separate_ranks_and_one_correlation():
    n, rho = 60_000, 0.7
    latent = multivariate_normal([0, 0], [[1, rho], [rho, 1]], seed=2).rvs(n)
    role = np.repeat(np.arange(3), n // 3)
    values = np.floor(np.exp(latent[:, 0] + role))
    other_values = np.floor(np.exp(latent[:, 1] - role))
    rows = np.arange(n)
    first, second = Binned(values, role), Binned(other_values, role)
    assert correlation(first, second, rows, rows) == pytest.approx(rho, abs=0.02)
    uniform = norm.cdf(latent[:, 0])
    mapped = Histogram.count(values).draw(np.minimum(first.ranks.rank(uniform, role), 1 - 1e-12))
    assert (mapped == values).mean() > 0.9


def test_copied_values_are_distinguished_from_ties():
    random = np.random.default_rng(3)
    n, rho, chance = 50_000, 0.5, 0.3
    latent = multivariate_normal([0, 0], [[1, rho], [rho, 1]], seed=3).rvs(n)
    child = np.ceil(np.exp(2 * latent[:, 1]))
    parent = np.where(random.random(n) < chance, child, np.ceil(np.exp(2 * latent[:, 0])))
    values = np.concatenate([parent, child])
    binned = Binned(values, np.zeros(2 * n, dtype=np.int64))
    a, b = np.arange(n), np.arange(n) + n
    actual = copying_chance(binned, a, b, float((parent == child).mean()))
    assert actual == pytest.approx((chance, rho), abs=0.03)


def test_a_workload_is_drawn_jointly_and_the_same_again():
    synthesized = sim.synthesize("alibaba2018", jobs=800, seed=5, joint=True)
    independent = sim.synthesize("alibaba2018", jobs=800, seed=5)
    assert synthesized.stage_edges.equals(independent.stage_edges)
    assert synthesized.meta["synth"]["joint"] is True
    again = sim.synthesize("alibaba2018", jobs=800, seed=5, joint=True)
    assert again.digest == synthesized.digest
    few = sim.synthesize("alibaba2018", jobs=100, seed=5, joint=True)
    assert synthesized.take(np.arange(100)).digest == few.digest
    tables = read_tables(SHIPPED)
    for column, table in (("n_tasks", tables.n_tasks), ("demand_mem", tables.demand["mem"])):
        assert np.isin(synthesized.stages[column].to_numpy(), table.values).all()
    capped = sim.synthesize("alibaba2018", jobs=100, joint=True, max_tasks_per_stage=9)
    assert capped.stages["n_tasks"].to_numpy().max() <= 9


def test_tables_without_a_joint_distribution_are_an_error(tmp_path):
    write_tables(replace(read_tables(SHIPPED), joint=None), tmp_path / "t.json")
    with pytest.raises(InputError, match="take joint=false"):
        sim.synthesize("alibaba2018", jobs=5, tables=tmp_path / "t.json", joint=True)


def test_constant_metrics_are_preserved():
    stages = [
        {"name": "a", "durations_s": [2.0]},
        {"name": "b", "durations_s": [2.0], "parents": ["a"]},
        {"name": "c", "durations_s": [2.0], "parents": ["b"]},
    ]
    workload = sim.Workload.from_jobs([{"submit_s": float(i), "stages": stages} for i in range(8)])
    graphs = Graphs.from_workload(workload)
    metrics = {"duration_s": np.full(24, 2.0), "n_tasks": np.tile([1.0, 4.0, 9.0], 8)}
    tables = {name: Histogram.count(values) for name, values in metrics.items()}
    joint = fit_joint(graphs, metrics)
    actual = draw_jointly(joint, tables, graphs, 0)
    assert (actual["duration_s"] == 2.0).all()
    for name in ("job", "root", "pull", "noise"):
        assert np.isfinite(getattr(joint, name)).all()
    assert np.isin(
        draw_jointly(replace(joint, unequal=0.5), tables, graphs, 0)["n_tasks"], [1, 4, 9]
    ).all()
