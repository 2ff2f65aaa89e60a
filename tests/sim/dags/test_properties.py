"""Degrees, density, chains, width and growth, against NetworkX and by hand."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from networkx.algorithms.bipartite import hopcroft_karp_matching
from scipy.stats import linregress

from sim.base import maths
from sim.base.errors import InputError
from sim.base.random import stream
from sim.dags import (
    ccdf,
    chain_ratio,
    edge_density,
    longest_path_levels,
    mean_by_size,
    uniform_dags,
    width,
)
from sim.describe.statistics import slope
from tests.sim.dags.small import assorted, digraph, every_dag, graphs_of, job_of, random_job

JOBS = assorted(80, 12)


def test_degrees_are_those_of_networkx():
    graphs = graphs_of(*JOBS)
    dags = [digraph(job) for job in JOBS]
    assert graphs.n_parents.tolist() == [d for dag in dags for _, d in dag.in_degree(sorted(dag))]
    assert graphs.n_children.tolist() == [d for dag in dags for _, d in dag.out_degree(sorted(dag))]


def test_edge_density_is_the_share_of_the_possible_edges():
    triangle = (3, [(0, 1), (0, 2), (1, 2)])
    chain = (4, [(0, 1), (1, 2), (2, 3)])
    density = edge_density(graphs_of(triangle, chain, (2, []), (1, [])))
    assert density[:3].tolist() == [1.0, 0.5, 0.0]
    assert np.isnan(density[3])


def test_chained_stages_have_one_parent_and_one_child():
    chain = (5, [(0, 1), (1, 2), (2, 3), (3, 4)])
    diamond = (4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    tail = (5, [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])
    ratios = chain_ratio(graphs_of(chain, diamond, tail, (2, [(0, 1)]), (1, [])))
    assert ratios.tolist() == [3 / 5, 2 / 4, 2 / 5, 0.0, 0.0]


def test_ccdf_is_the_share_above():
    x, share = ccdf(np.array([3, 0, 1, 1, 0, 0, 0, 0]))
    assert x.tolist() == [0.0, 1.0, 3.0]
    assert share == pytest.approx([3 / 8, 1 / 8, 0.0], abs=1e-15)
    assert share[-1] == 0.0


def test_no_jobs_have_no_measures():
    empty = graphs_of()
    for measure in (edge_density, chain_ratio):
        assert len(measure(empty)) == 0


def test_means_are_taken_by_size():
    sizes, means, counts = mean_by_size(np.array([6, 9, 6, 7]), [1, 5, 2, 4])
    assert sizes.tolist() == [6, 7, 9]
    assert means.tolist() == [1.5, 4.0, 5.0]
    assert counts.tolist() == [2, 1, 1]


def test_slope_is_that_of_scipy():
    rng = stream(0, "test slope")
    x = rng.integers(1, 50, 200)
    y = 0.5 * x + rng.normal(size=200)
    assert maths.slope(x, y) == pytest.approx(linregress(x, y).slope, rel=1e-12)


@pytest.mark.parametrize("x", [[], [4], [4, 4]])
def test_one_x_has_no_slope(x):
    assert np.isnan(slope(np.array(x), np.array(x)))


def width_by_matching(job) -> int:
    n, _ = job
    closure = nx.transitive_closure_dag(digraph(job))
    split = nx.Graph()
    split.add_nodes_from(("up", v) for v in range(n))
    split.add_nodes_from(("down", v) for v in range(n))
    split.add_edges_from((("up", a), ("down", b)) for a, b in closure.edges)
    matching = hopcroft_karp_matching(split, [("up", v) for v in range(n)])
    return n - len(matching) // 2


@pytest.mark.parametrize("jobs", [every_dag(4), assorted(120, 10)], ids=["all of 4", "assorted"])
def test_width_is_the_size_of_the_largest_antichain(jobs):
    largest = [max(len(a) for a in nx.antichains(digraph(job))) for job in jobs]
    assert width(graphs_of(*jobs)).tolist() == largest


@pytest.mark.parametrize("n", [61, 62, 63, 64, 124, 125, 150])
def test_width_of_larger_jobs_is_that_of_networkx(n):
    jobs = [random_job(i, n, d) for i, d in enumerate([0.01, 0.02, 0.03, 0.05, 0.1, 0.3])]
    assert width(graphs_of(*jobs)).tolist() == [width_by_matching(job) for job in jobs]


def test_width_of_uniform_dags_is_that_of_networkx():
    graphs = uniform_dags([5, 10, 20, 40, 80] * 6, seed=3)
    expected = [width_by_matching(job_of(graphs, j)) for j in range(graphs.n_jobs)]
    assert width(graphs).tolist() == expected


def test_the_widest_level_may_be_too_narrow():
    # two chains of 3 and a source and a sink beside them: b and the end of a chain are apart
    late = (6, [(0, 1), (1, 2), (3, 4), (3, 5), (0, 5), (4, 2)])
    graphs = graphs_of(late)
    assert np.bincount(longest_path_levels(graphs)).max() == 3
    assert width(graphs).tolist() == [3]
    # a chain 0-1-2-3 and, from its head, stages that end early
    early = (6, [(0, 1), (1, 2), (1, 3), (0, 4), (4, 5), (5, 2)])
    assert width(graphs_of(early)).tolist() == [width_by_matching(early)]


def test_trees_are_as_wide_as_their_leaves():
    gather = (7, [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)])
    scatter = (7, [(c, p) for p, c in gather[1]])
    assert width(graphs_of(gather, scatter, (3, []), (3, [(0, 1), (1, 2)]))).tolist() == [
        4,
        4,
        3,
        1,
    ]


def test_a_cycle_is_an_error():
    with pytest.raises(InputError, match="cycle"):
        width(graphs_of((2, [(0, 1), (1, 0)])))


def test_no_jobs_have_no_width():
    assert len(width(graphs_of())) == 0
