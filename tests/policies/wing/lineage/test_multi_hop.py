"""Multi-hop analysis against the literal Algorithm 1, and this against all paths, enumerated."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.wing.lineage import multi_hop as module
from policies.wing.lineage.aggregates import aggregate
from policies.wing.lineage.analyses import Functions, check_laws, value_functions
from policies.wing.lineage.dependencies import edges_from_pairs, window
from policies.wing.lineage.multi_hop import SEMIRINGS, multi_hop, rows
from sim.base.errors import InputError
from tests.examples import examples
from tests.paper.wing_algorithm1 import algorithm_1
from tests.policies.wing.lineage.dags import dags, paths, windows
from tests.policies.wing.lineage.four_functions import (
    LONGEST_CHAIN,
    N_DOWNSTREAM,
    earliest_arrival,
    most_probable_path,
)

NAMES = ["plus_times", "max_plus", "max_times", "min_plus", "max_min"]
OWN = Functions(  # addition in the exponent, over maxima: not compiled
    lambda edges: np.linspace(0.5, 2, len(edges)),
    np.frompyfunc(lambda a, b: a + b, 2, 1),
    np.frompyfunc(max, 2, 1),
    lambda p: p.reduce(np.maximum, p.weight, -1.0),
)


def functions_of(e_op, p_op):
    weights = lambda edges: 0.25 + (np.arange(len(edges)) * 7 % 5) / 4  # noqa: E731
    return Functions(weights, e_op, p_op, lambda p: p.reduce(np.add, p.weight, 0.0))


def by_paths(edges, functions, max_hops=10**9, within=None):
    weight = functions.wt_fn(edges)
    result = {}
    for (u, d), ways in paths(edges, weight).items():
        ways = [w for w in ways if len(w) <= max_hops]
        counts = within is None or (within.valid[u] and within.submit_s[d] <= within.cut_s[u])
        if ways and counts:
            along = [reduce(functions.e_op, way) for way in ways]
            result[u, d] = reduce(functions.p_op, along)
    return result


def as_dict(blocks):
    result = {}
    for b in blocks:
        up = np.repeat(b.upstream, np.diff(b.row0))
        for u, d, w in zip(up.tolist(), b.downstream.tolist(), b.weight.tolist(), strict=True):
            assert (u, d) not in result
            result[u, d] = w
    return result


def same(got, want):
    assert got.keys() == want.keys()
    assert np.allclose([got[k] for k in want], [want[k] for k in want], rtol=1e-12)


@pytest.fixture(params=["searches", "lanes"])
def way(request, monkeypatch):
    """Make rows by searches, or all that have more than two pairs by lanes."""
    if request.param == "lanes":
        monkeypatch.setattr(module, "_ROW_BUDGET", 3)
    return request.param


@pytest.mark.parametrize("pair", SEMIRINGS, ids=NAMES)
@given(dags(), st.sampled_from([None, 0, 1, 2, 3]), st.data())
@settings(max_examples=25, deadline=None)
def test_algorithm_1_counts_every_path_once(pair, edges, rounds, data):
    within = data.draw(st.one_of(st.none(), windows(edges.n_jobs)))
    functions = functions_of(*pair)
    hops = {None: 10**9, 0: 0}.get(rounds, 2**rounds if rounds else 0)
    got = algorithm_1(edges, functions, rounds, within)
    same(got, by_paths(edges, functions, hops, within))


@pytest.mark.parametrize("pair", SEMIRINGS, ids=NAMES)
def test_rows_equal_algorithm_1(pair, way):
    @given(dags(), st.data())
    @settings(max_examples=30, deadline=None)
    def holds(edges, data):
        within = data.draw(st.one_of(st.none(), windows(edges.n_jobs)))
        rounds = data.draw(st.sampled_from([None, None, 0, 1, 2]))
        functions = functions_of(*pair)
        got = as_dict(rows(edges, functions, within=within, rounds=rounds, block_pairs=7))
        same(got, algorithm_1(edges, functions, rounds, within))

    holds()


@given(dags(), st.sampled_from([None, 1, 2]), st.data())
@settings(max_examples=examples(80), deadline=None)
def test_functions_that_are_not_compiled_go_by_joins(edges, rounds, data):
    within = data.draw(st.one_of(st.none(), windows(edges.n_jobs)))
    got = as_dict(rows(edges, OWN, within=within, rounds=rounds, block_pairs=30))
    same(got, algorithm_1(edges, OWN, rounds, within))


@given(dags(), st.data())
@settings(max_examples=examples(80), deadline=None)
def test_the_fast_path_equals_algorithm_1(edges, data):
    n = edges.n_jobs
    value = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), float)
    within = data.draw(st.one_of(st.none(), windows(n)))
    slow = value + multi_hop(edges, value_functions(value), within=within)
    assert np.allclose(aggregate(edges, value, within=within), slow, rtol=1e-12, equal_nan=True)


def test_what_comes_with_it(way):
    #  0 → 1 → 3, 0 → 2 → 3, 3 → 4
    edges = edges_from_pairs(6, [0, 0, 1, 2, 3], [1, 2, 3, 3, 4])
    submit = np.array([0.0, 3.0, 2.0, 5.0, 9.0, 9.0])
    probability = np.array([0.5, 0.75, 0.5, 0.5, 1.0])
    assert multi_hop(edges, N_DOWNSTREAM).tolist() == [4, 2, 2, 1, 0, 0]
    assert multi_hop(edges, LONGEST_CHAIN).tolist() == [3, 2, 2, 1, 0, 0]
    assert multi_hop(edges, most_probable_path(probability)).tolist() == [0.75, 0.5, 0.5, 1, 0, 0]
    never = float("inf")
    assert multi_hop(edges, earliest_arrival(submit)).tolist() == [2, 2, 3, 4, never, never]
    assert multi_hop(edges, value_functions(np.ones(6))).tolist() == [4, 1, 1, 1, 0, 0]


def test_rounds_reach_twice_as_far_each_time():
    chain = edges_from_pairs(20, range(19), range(1, 20))
    reach = [multi_hop(chain, N_DOWNSTREAM, rounds=k)[0] for k in range(7)]
    assert reach == [0, 2, 4, 8, 16, 19, 19]
    assert sum(up == 0 for up, _ in algorithm_1(chain, N_DOWNSTREAM, rounds=3)) == 8


def test_a_job_that_started_long_ago_may_be_downstream_of_a_later_one():
    # 1 was submitted at 0 and read late; 2 reads what 1 made: both count under a window
    edges = edges_from_pairs(3, [1, 0], [0, 2])
    within = window(np.array([0.0, 5.0, 6.0]), np.array([6.0, 6.0, 7.0]), 0.0, end_s=99.0)
    assert multi_hop(edges, N_DOWNSTREAM, within=within).tolist() == [1, 2, 0]


def test_only_the_sources_asked_for():
    edges = edges_from_pairs(3, [0, 1], [1, 2])
    (pairs,) = rows(edges, N_DOWNSTREAM, sources=np.array([1], np.int32))
    assert (pairs.upstream.tolist(), pairs.downstream.tolist()) == ([1], [2])


@pytest.mark.parametrize(
    ("e_op", "p_op", "message"),
    [
        (np.subtract, np.add, "e_op is not associative"),
        (np.multiply, np.subtract, "p_op is not associative"),
        (np.maximum, np.add, "e_op does not distribute over p_op from the left"),
        (np.add, np.multiply, "e_op does not distribute"),
        (np.frompyfunc(lambda a, b: a, 2, 1), np.add, "from the left"),
    ],
    ids=["minus", "over minus", "max", "swapped", "first"],
)
def test_functions_that_break_a_law_are_refused(e_op, p_op, message):
    wrong = Functions(lambda edges: np.ones(len(edges)), e_op, p_op, lambda p: p.weight)
    with pytest.raises(InputError, match=message):
        list(rows(edges_from_pairs(2, [0], [1]), wrong))


def test_all_that_comes_with_it_keeps_the_laws():
    for functions in (value_functions(np.ones(1)), N_DOWNSTREAM, LONGEST_CHAIN, OWN):
        check_laws(functions)
    with pytest.raises(InputError, match="rounds must be at least 0, not -1"):
        multi_hop(edges_from_pairs(1, [], []), N_DOWNSTREAM, rounds=-1)
