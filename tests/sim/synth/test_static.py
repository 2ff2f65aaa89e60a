"""Synthesized DAGs beside real ones: the measure, and what each generator scores on the sample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

import sim
from sim.dags import Graphs, uniform_dags
from sim.dags.compare import PROPERTIES, distance, distances, properties
from sim.dags.static import clean_dags, compare_static, summarise_static
from sim.errors import InputError

SAMPLE = "alibaba2018/batch_task_6600_jobs.csv.gz"
PUBLISHED_IDEAL = (0.035, 0.026, 0.047, 0.031, 0.011, 0.010)
PUBLISHED_PAPER = (0.03, 0.09, 0.04, 0.09, 0.07, 0.11)


@pytest.fixture(scope="module")
def real(shared_traces) -> Graphs:
    path = shared_traces / SAMPLE
    return clean_dags(sim.read_trace("alibaba2018", path, on_bad_row="skip", unfinished="keep"))


@pytest.fixture(scope="module")
def scores(real) -> dict[str, dict[str, float]]:
    table = summarise_static(compare_static(real, halvings=12))
    found: dict[str, dict[str, float]] = {}
    for row in table.to_pylist():
        found.setdefault(row["generator"], {})[row["property"]] = row["mean"]
    return found


def test_the_distance_is_scipys():
    random = np.random.default_rng(0)
    for n, m in ((1, 1), (1, 9), (40, 55), (300, 200)):
        one, two = random.integers(0, 12, n), random.integers(2, 14, m)
        assert distance(one, two) == pytest.approx(ks_2samp(one, two).statistic)
    assert distance([1, 2, 3], [1, 2, 3]) == 0
    assert distance([1, 2], [3, 4]) == 1


def test_properties_of_a_diamond_with_a_tail():
    graphs = Graphs.from_edges(np.array([5]), np.array([0, 0, 1, 2, 3]), np.array([1, 2, 3, 3, 4]))
    found = {name: of.tolist() for name, of in properties(graphs).items()}
    assert found == {
        "critical_path_length": [4],
        "edge_density": [0.5],
        "chain_ratio": [0.4],
        "maximum_parallelism": [2],
        "in_degree": [0, 1, 1, 2, 1],
        "out_degree": [2, 1, 1, 1, 0],
    }
    same = properties(graphs)
    assert set(distances(same, same).values()) == {0.0}


def test_the_sample_has_1278_clean_jobs_of_six_stages_and_more(real):
    assert real.n_jobs == 1_278
    assert real.job_n_stages.min() == 6


def test_the_ideal_generator_scores_what_it_should(scores):
    assert list(scores["ideal"].values()) == pytest.approx(PUBLISHED_IDEAL, abs=0.01)


def test_algorithm_2_as_printed_scores_what_it_should(scores):
    assert list(scores["paper"].values()) == pytest.approx(PUBLISHED_PAPER, abs=0.025)


def test_the_improved_variant_is_near_the_ideal_generator(scores):
    for name in PROPERTIES:
        assert scores["improved"][name] <= 0.065
        assert scores["improved"][name] <= scores["ideal"][name] + 0.02


def test_it_is_also_when_everything_comes_from_the_half(real, scores):
    table = summarise_static(
        compare_static(real, generators=("improved",), halvings=12, fit="half")
    )
    for row in table.to_pylist():
        assert row["mean"] <= min(0.065, scores["ideal"][row["property"]] + 0.02)
        assert row["above_ideal"] is None


def test_random_dags_are_far_off(scores):
    assert min(scores["random"].values()) > 0.25


def test_the_same_seed_gives_the_same_table_and_intervals_hold_the_mean():
    some = uniform_dags(np.arange(6, 46), 0)
    one, two = (compare_static(some, halvings=2, per_dag=3, seed=5) for _ in range(2))
    assert one.equals(two)
    assert one.num_rows == 4 * 6 * 2
    assert not one.equals(compare_static(some, halvings=2, per_dag=3, seed=6))
    for row in summarise_static(one).to_pylist():
        assert row["low"] <= row["mean"] <= row["high"]


def test_jobs_that_lost_a_part_and_small_ones_are_left_out():
    stages = [{"name": str(i), "durations_s": [1.0]} for i in range(6)]
    jobs = [{"submit_s": 0.0, "stages": stages[: 3 + i]} for i in range(4)]
    jobs[3]["stages"] = stages
    workload = sim.Workload.from_jobs([*jobs, {"submit_s": 0.0, "stages": stages}])
    assert clean_dags(workload, 4).n_jobs == 4
    assert clean_dags(workload).n_jobs == 2
    with pytest.raises(InputError, match="0 whole jobs have 7 stages and more"):
        clean_dags(workload, 7)


def test_unknown_generators_and_fits_are_errors():
    some = uniform_dags([6, 6, 7], 0)
    with pytest.raises(InputError, match="did you mean 'paper'"):
        compare_static(some, generators=("papier",))
    with pytest.raises(InputError, match="did you mean 'half'"):
        compare_static(some, fit="halb")
