"""Exact width against all antichains and against networkx's matching."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from networkx.algorithms.bipartite import hopcroft_karp_matching

from sim.base.errors import InputError
from sim.dags import longest_path_levels, uniform_dags, width
from tests.sim.dags.small import assorted, digraph, every_dag, graphs_of, job_of, random_job


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
