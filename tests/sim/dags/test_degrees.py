"""Degrees, density and chains against counts by hand and by networkx."""

from __future__ import annotations

import numpy as np
import pytest

from sim.dags import ccdf, chain_ratio, edge_density, in_degree, out_degree
from tests.sim.dags.small import assorted, digraph, graphs_of

JOBS = assorted(80, 12)


def test_degrees_are_those_of_networkx():
    graphs = graphs_of(*JOBS)
    dags = [digraph(job) for job in JOBS]
    assert in_degree(graphs).tolist() == [d for dag in dags for _, d in dag.in_degree(sorted(dag))]
    assert out_degree(graphs).tolist() == [
        d for dag in dags for _, d in dag.out_degree(sorted(dag))
    ]


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


def test_ccdf_is_what_lies_above():
    x, share = ccdf(np.array([3, 0, 1, 1, 0, 0, 0, 0]))
    assert x.tolist() == [0.0, 1.0, 3.0]
    assert share == pytest.approx([3 / 8, 1 / 8, 0.0], abs=1e-15)
    assert share[-1] == 0.0


def test_no_jobs_have_no_measures():
    empty = graphs_of()
    for measure in (in_degree, out_degree, edge_density, chain_ratio):
        assert len(measure(empty)) == 0
