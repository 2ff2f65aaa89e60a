"""Aggregates without the closure, against sums over every path and Algorithm 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.wing.lineage.aggregates import (
    aggregate,
    aggregate_bounds,
    convergence,
    count_downstream,
    value_by_round,
)
from policies.wing.lineage.analyses import value_functions
from policies.wing.lineage.dependencies import (
    Window,
    edges_from_pairs,
    graph,
    share_of_inputs,
    window,
)
from policies.wing.lineage.multi_hop import multi_hop
from sim.base.errors import InputError
from tests.examples import examples
from tests.policies.wing.lineage.dags import dags, paths, windows
from tests.policies.wing.lineage.four_functions import N_DOWNSTREAM


def by_paths(edges, value, within=None):
    """The paper's formula (§4.5.1), path by path."""
    total = value.astype(float)
    for (u, d), ways in paths(edges, share_of_inputs(edges)).items():
        if within is None or within.submit_s[d] <= within.cut_s[u]:
            total[u] += sum(np.prod(way) for way in ways) * value[d]
    return total if within is None else np.where(within.valid, total, np.nan)


@given(dags(), st.data())
@settings(max_examples=examples(120), deadline=None)
def test_without_a_window_it_is_the_sum_over_paths(edges, data):
    n = edges.n_jobs
    value = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), float)
    assert np.allclose(aggregate(edges, value), by_paths(edges, value), rtol=1e-12)


@given(dags(), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_with_a_window_it_is_exact_however_coarse_the_cuts(edges, data):
    n = edges.n_jobs
    value = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), float)
    within = data.draw(windows(n))
    want = by_paths(edges, value, within)
    per_cut = data.draw(st.sampled_from([1, 2, 3, 5, 100]))
    got = aggregate(edges, value, within=within, jobs_per_cut=per_cut)
    assert np.allclose(got, want, rtol=1e-12, equal_nan=True)
    # the same bits, whichever way each job was settled
    finest = aggregate(edges, value, within=within, jobs_per_cut=1)
    assert np.array_equal(got, finest, equal_nan=True)
    enclosed = aggregate_bounds(edges, value, within, jobs_per_cut=per_cut)
    ok = within.valid
    assert (enclosed.low[ok] <= got[ok]).all()
    assert (got[ok] <= enclosed.high[ok]).all()
    assert np.isnan(enclosed.low[~ok]).all()


def test_bounds_of_a_coarse_cut_are_apart_where_it_matters():
    edges = edges_from_pairs(4, [0, 1], [2, 3])
    within = Window(
        np.array([0.0, 1.0, 10.0, 12.0]), np.array([10.0, 11.0, 20.0, 22.0]), np.ones(4, bool)
    )
    value = np.array([0.0, 0.0, 1.0, 1.0])
    enclosed = aggregate_bounds(edges, value, within, jobs_per_cut=4)
    assert enclosed.low.tolist() == [1, 0, 1, 1]
    assert enclosed.high.tolist() == [1, 1, 1, 1]
    assert aggregate(edges, value, within=within, jobs_per_cut=4).tolist() == [1, 0, 1, 1]


def test_what_is_wrong_is_said():
    edges = edges_from_pairs(2, [0], [1])
    with pytest.raises(InputError, match="every value must be finite and at least 0"):
        aggregate(edges, np.array([1.0, -1.0]))
    with pytest.raises(InputError, match="cycle"):
        aggregate(edges_from_pairs(2, [0, 1], [1, 0]), np.ones(2))


@given(dags(), st.data())
@settings(max_examples=examples(120), deadline=None)
def test_it_counts_what_algorithm_1_does(edges, data):
    within = data.draw(st.one_of(st.none(), windows(edges.n_jobs)))
    want = multi_hop(edges, N_DOWNSTREAM, within=within)
    assert np.array_equal(count_downstream(edges, within), want, equal_nan=True)


@pytest.mark.parametrize("n", [62, 63, 200])
def test_more_sources_than_a_pass_serves(n):
    chain = edges_from_pairs(n, range(n - 1), range(1, n))
    assert count_downstream(chain).tolist() == list(range(n - 1, -1, -1))


@given(dags(max_jobs=20), st.integers(0, 5), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_each_round_finds_what_algorithm_1_does(edges, seed, data):
    n = edges.n_jobs
    value = 1.0 + (np.arange(n) * (seed + 3)) % 5
    within = data.draw(st.one_of(st.none(), windows(n)))
    ok = np.ones(n, bool) if within is None else within.valid
    sources = np.flatnonzero(ok).astype(np.int32)
    result = value_by_round(edges, value, graph(edges), sources, within)
    for k in range(result.shape[1] + 1):
        want = value + multi_hop(edges, value_functions(value), rounds=k, within=within)
        assert np.allclose(result[:, min(k, result.shape[1] - 1)], want[sources])
    if result.shape[1] > 1:
        assert not np.allclose(result[:, -1], result[:, -2])


def test_a_chain_doubles():
    chain = edges_from_pairs(9, range(8), range(1, 9))
    value = np.array([0.0] * 8 + [1.0])
    table = convergence(chain, value, graph(chain))
    # of 9 jobs 1, 3, 5, 9 reach the end within 0, 2, 4, 8 hops
    assert table["round"].to_pylist() == [0, 1, 2, 3]
    assert np.allclose(table["found"].to_numpy(), np.array([1, 3, 5, 9]) / 9)
    assert np.allclose(table["found_per_job"].to_numpy(), np.array([1, 3, 5, 9]) / 9)


def test_the_mean_of_shares_is_not_the_share_of_means():
    star = edges_from_pairs(3, [0], [1])
    table = convergence(star, np.array([1.0, 3.0, 2.0]), graph(star))
    assert table["found"].to_pylist() == [6 / 9, 1]
    assert np.allclose(table["found_per_job"].to_numpy(), [(1 / 4 + 1 + 1) / 3, 1])


def test_a_window_shortens_it_and_only_so_many_are_drawn():
    chain = edges_from_pairs(9, range(8), range(1, 9))
    submit = np.arange(9.0)
    within = window(submit, submit + 0.5, 2.5, end_s=99.0)
    table = convergence(chain, np.ones(9), graph(chain), within)
    assert table["found"].to_pylist() == [9 / (6 * 4 + 3 + 2 + 1), 1 - 6 / 30, 1]
    single = convergence(chain, np.ones(9), graph(chain), within, n_sources=1, seed=3)
    assert single.equals(convergence(chain, np.ones(9), graph(chain), within, n_sources=1, seed=3))
    assert single["found"][0].as_py() in (1, 1 / 2, 1 / 3, 1 / 4)


def test_nothing_of_value():
    table = convergence(
        edges_from_pairs(2, [0], [1]), np.zeros(2), graph(edges_from_pairs(2, [0], [1]))
    )
    assert table.to_pylist() == [{"round": 0, "found": 1.0, "found_per_job": 1.0}]
