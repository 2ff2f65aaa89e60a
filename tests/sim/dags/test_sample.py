"""The published shares and slopes on the real sample."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

from sim.base import maths
from sim.dags import (
    chain_ratio,
    classes,
    compact_levels,
    critical_path_length,
    decompose,
    edge_density,
    edge_spans,
    is_complex,
    is_gather,
    is_scatter,
    mean_by_size,
    uniform_dags,
    width,
)
from sim.published import numbers
from tests.sim.dags.small import clean_sample, digraph, job_of
from tests.sim.dags.test_patterns import components
from tests.sim.dags.test_properties import width_by_matching


@pytest.fixture(scope="module")
def sample(shared_traces):
    return clean_sample(shared_traces)


@pytest.fixture(scope="module")
def large(sample):
    return sample.at_least(6)


def test_scatter_and_gather_shares(sample):
    more_than_two = sample.job_n_stages > 2
    assert round(100 * is_scatter(sample)[more_than_two].mean(), 1) == 34.7  # paper: 36.03
    assert round(100 * is_gather(sample)[more_than_two].mean(), 1) == 78.8  # paper: 78.54


def test_the_decomposition_is_algorithm_1(sample):
    complex_jobs = sample.take(is_complex(sample))
    for max_parents, min_children, overlap, coverage in (  # paper: 0.1155 and 0.8168
        (2, 2, 0.448, 0.942),
        (1, 2, 0.176, 0.665),
        (2, 1, 0.797, 0.988),
        (1, 1, 0.477, 0.919),
    ):
        parts = decompose(complex_jobs, max_parents, min_children)
        assert parts.overlap.mean() == pytest.approx(overlap, abs=0.001)
        assert parts.coverage.mean() == pytest.approx(coverage, abs=0.001)
    parts = decompose(complex_jobs)
    for job in range(0, complex_jobs.n_jobs, 7):
        stages = slice(*complex_jobs.job_stage0[job : job + 2])
        scatter, gather = components(job_of(complex_jobs, job), 2, 2)
        assert set(np.flatnonzero(parts.scatter[stages]).tolist()) == scatter
        assert set(np.flatnonzero(parts.gather[stages]).tolist()) == gather


def test_jobs_of_six_stages_and_more(large):
    assert large.n_jobs == 1278
    assert np.median(edge_density(large)) == 0.25
    assert np.median(chain_ratio(large)) == pytest.approx(1 / 3)


def test_widths_are_those_of_networkx_and_grow_with_size(large):
    widths = width(large)
    rows = range(0, large.n_jobs, 9)
    assert widths[list(rows)].tolist() == [width_by_matching(job_of(large, j)) for j in rows]
    sizes, means, _ = mean_by_size(large.job_n_stages, widths)
    assert maths.slope(sizes, means) == pytest.approx(0.41, abs=0.005)  # paper, all jobs: 0.491


def test_paths_stay_short_and_those_of_random_dags_do_not(large):
    sizes, means, _ = mean_by_size(large.job_n_stages, critical_path_length(large))
    assert maths.slope(sizes, means) < 0.1
    random = uniform_dags(large.job_n_stages, seed=0)
    sizes, means, _ = mean_by_size(large.job_n_stages, critical_path_length(random))
    assert maths.slope(sizes, means) == pytest.approx(
        numbers("alibaba")["random"]["structure"]["length_slope"], abs=0.04
    )  # the paper's


def test_most_edges_span_one_level_and_those_of_random_dags_do_not(sample, large):
    spans = edge_spans(sample, compact_levels(sample))
    assert (spans == 1).mean() == pytest.approx(0.9654, abs=0.01)  # the paper's
    random = uniform_dags(large.job_n_stages[:1000], seed=0)
    spans = edge_spans(random, compact_levels(random))
    assert (spans == 1).mean() == pytest.approx(0.2992, abs=0.05)  # the paper's


def test_classes_are_those_of_networkx(large):
    small = large.take(np.flatnonzero(large.job_n_stages == 6)[:60])
    actual = classes(small).tolist()
    dags = [digraph(job_of(small, j)) for j in range(small.n_jobs)]
    for a in range(len(dags)):
        for b in range(a):
            assert nx.is_isomorphic(dags[a], dags[b]) == (actual[a] == actual[b])


def test_compact_levels_of_the_whole_sample_are_the_smallest_optimal_ones(sample):
    # one linear program for all jobs; see least_compact in test_levels
    lengths = critical_path_length(sample)[sample.stage_job]
    spans = sample.n_parents - sample.n_children
    both = np.stack([sample.edge_parent, sample.edge_child], axis=1).ravel()
    signs = np.tile([1.0, -1.0], sample.n_edges)
    rows = csr_array(
        (signs, both, np.arange(0, 2 * sample.n_edges + 1, 2)),
        shape=(sample.n_edges, sample.n_stages),
    )
    weights = spans * (sample.job_n_stages[sample.stage_job] * lengths + 1.0) + 1.0
    bounds = np.stack([np.ones(sample.n_stages), lengths], axis=1)
    best = linprog(weights, rows, -np.ones(sample.n_edges), bounds=bounds)
    assert np.rint(best.x).astype(int).tolist() == compact_levels(sample).tolist()
