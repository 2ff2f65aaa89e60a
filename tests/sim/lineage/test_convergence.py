"""Rounds of Fig. 6, against Algorithm 1 stopped after as many."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.lineage.convergence import convergence, value_by_round
from sim.lineage.dependencies import plain_edges
from sim.lineage.functions import value_of
from sim.lineage.graph import graph, window
from sim.lineage.multi_hop import multi_hop
from tests.sim.lineage.dags import dags


@given(dags(max_jobs=20), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_each_round_finds_what_algorithm_1_does(edges, seed):
    value = 1.0 + (np.arange(edges.n_jobs) * (seed + 3)) % 5
    found = value_by_round(edges, value, graph(edges))
    for k in range(len(found) + 1):
        want = value + multi_hop(edges, value_of(value), rounds=k)
        assert np.allclose(found[min(k, len(found) - 1)], want)
    if len(found) > 1:
        assert not np.allclose(found[-1], found[-2])


def test_a_chain_doubles():
    chain = plain_edges(9, range(8), range(1, 9))
    value = np.array([0.0] * 8 + [1.0])
    table = convergence(chain, value, graph(chain))
    # of 9 jobs 1, 3, 5, 9 reach the end within 0, 2, 4, 8 hops
    assert table["round"].to_pylist() == [0, 1, 2, 3]
    assert np.allclose(table["found"].to_numpy(), np.array([1, 3, 5, 9]) / 9)


def test_a_window_shortens_it():
    chain = plain_edges(9, range(8), range(1, 9))
    submit = np.arange(9.0)
    within = window(submit, submit + 0.5, 2.5, end_s=99.0)
    table = convergence(chain, np.ones(9), graph(chain), within)
    assert table["found_within"].to_pylist()[2:] == [1, 1]
    assert table["found_within"][0].as_py() == 9 / (6 * 4 + 3 + 2 + 1)
