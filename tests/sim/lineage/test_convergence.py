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
from tests.sim.lineage.dags import dags, windows


@given(dags(max_jobs=20), st.integers(0, 5), st.data())
@settings(max_examples=50, deadline=None)
def test_each_round_finds_what_algorithm_1_does(edges, seed, data):
    n = edges.n_jobs
    value = 1.0 + (np.arange(n) * (seed + 3)) % 5
    within = data.draw(st.one_of(st.none(), windows(n)))
    ok = np.ones(n, bool) if within is None else within.valid
    sources = np.flatnonzero(ok).astype(np.int32)
    found = value_by_round(edges, value, graph(edges), sources, within)
    for k in range(found.shape[1] + 1):
        want = value + multi_hop(edges, value_of(value), rounds=k, within=within)
        assert np.allclose(found[:, min(k, found.shape[1] - 1)], want[sources])
    if found.shape[1] > 1:
        assert not np.allclose(found[:, -1], found[:, -2])


def test_a_chain_doubles():
    chain = plain_edges(9, range(8), range(1, 9))
    value = np.array([0.0] * 8 + [1.0])
    table = convergence(chain, value, graph(chain))
    # of 9 jobs 1, 3, 5, 9 reach the end within 0, 2, 4, 8 hops
    assert table["round"].to_pylist() == [0, 1, 2, 3]
    assert np.allclose(table["found"].to_numpy(), np.array([1, 3, 5, 9]) / 9)
    assert np.allclose(table["found_per_job"].to_numpy(), np.array([1, 3, 5, 9]) / 9)


def test_the_mean_of_shares_is_not_the_share_of_means():
    star = plain_edges(3, [0], [1])
    table = convergence(star, np.array([1.0, 3.0, 2.0]), graph(star))
    assert table["found"].to_pylist() == [6 / 9, 1]
    assert np.allclose(table["found_per_job"].to_numpy(), [(1 / 4 + 1 + 1) / 3, 1])


def test_a_window_shortens_it_and_only_so_many_are_drawn():
    chain = plain_edges(9, range(8), range(1, 9))
    submit = np.arange(9.0)
    within = window(submit, submit + 0.5, 2.5, end_s=99.0)
    table = convergence(chain, np.ones(9), graph(chain), within)
    assert table["found"].to_pylist() == [9 / (6 * 4 + 3 + 2 + 1), 1 - 6 / 30, 1]
    one = convergence(chain, np.ones(9), graph(chain), within, n_sources=1, seed=3)
    assert one.equals(convergence(chain, np.ones(9), graph(chain), within, n_sources=1, seed=3))
    assert one["found"][0].as_py() in (1, 1 / 2, 1 / 3, 1 / 4)


def test_nothing_of_value():
    table = convergence(plain_edges(2, [0], [1]), np.zeros(2), graph(plain_edges(2, [0], [1])))
    assert table.to_pylist() == [{"round": 0, "found": 1.0, "found_per_job": 1.0}]
