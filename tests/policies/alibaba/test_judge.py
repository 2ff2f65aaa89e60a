"""Evaluation of generators of DAGs: six properties, their distances, held-out halves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

import sim
from policies.alibaba.synth.judge import GENERATORS, clean_dags, judge
from sim.base.errors import InputError
from sim.dags import Graphs, uniform_dags
from sim.dags.properties import PROPERTIES, distance, distances, properties


def test_the_distance_is_scipys():
    random = np.random.default_rng(0)
    for n, m in ((1, 1), (1, 9), (40, 55), (300, 200)):
        first, second = random.integers(0, 12, n), random.integers(2, 14, m)
        assert distance(first, second) == pytest.approx(ks_2samp(first, second).statistic)
    assert distance([1, 2, 3], [1, 2, 3]) == 0
    assert distance([1, 2], [3, 4]) == 1


def test_properties_of_a_diamond_with_a_tail():
    graphs = Graphs.from_edges(np.array([5]), np.array([0, 0, 1, 2, 3]), np.array([1, 2, 3, 3, 4]))
    actual = {name: values.tolist() for name, values in properties(graphs).items()}
    assert actual == {
        "critical_path_length": [4],
        "edge_density": [0.5],
        "chain_ratio": [0.4],
        "maximum_parallelism": [2],
        "in_degree": [0, 1, 1, 2, 1],
        "out_degree": [2, 1, 1, 1, 0],
    }
    same = properties(graphs)
    assert set(distances(same, same).values()) == {0.0}


@pytest.mark.slow
@pytest.mark.long
def test_the_same_seed_gives_the_same_distances():
    graphs = uniform_dags(np.arange(6, 46), 0)
    for generator in GENERATORS:
        scores = judge(graphs, generator, 5, per_dag=3)
        assert scores == judge(graphs, generator, 5, per_dag=3)
        assert scores != judge(graphs, generator, 6, per_dag=3)
        assert tuple(scores) == PROPERTIES


def test_incomplete_and_small_jobs_are_excluded():
    stages = [{"name": str(i), "durations_s": [1.0]} for i in range(6)]
    jobs = [{"submit_s": 0.0, "stages": stages[: 3 + i]} for i in range(4)]
    jobs[3]["stages"] = stages
    workload = sim.Workload.from_jobs([*jobs, {"submit_s": 0.0, "stages": stages}])
    assert clean_dags(workload, 4).n_jobs == 4
    assert clean_dags(workload).n_jobs == 2
    with pytest.raises(InputError, match="2 complete jobs of at least 7 stages, and there are 0"):
        clean_dags(workload, 7)


def test_unknown_generators_and_fits_are_errors():
    graphs = uniform_dags([6, 6, 7], 0)
    with pytest.raises(InputError, match="did you mean 'paper'"):
        judge(graphs, "papier", 0)
    with pytest.raises(InputError, match="did you mean 'half'"):
        judge(graphs, "paper", 0, fit="halb")
