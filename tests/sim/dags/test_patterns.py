"""Scatter, gather, and Algorithm 1 against a plain reading of it."""

from __future__ import annotations

import numpy as np
import pytest

from sim.base.errors import InputError
from sim.dags import decompose, is_complex, is_gather, is_scatter
from tests.sim.dags.small import assorted, digraph, graphs_of

CHAIN = (4, [(0, 1), (1, 2), (2, 3)])
GATHER = (6, [(0, 3), (1, 3), (2, 4), (3, 5), (4, 5)])
SCATTER = (6, [(c, p) for p, c in GATHER[1]])
DIAMOND = (4, [(0, 1), (0, 2), (1, 3), (2, 3)])
PAIR = (2, [(0, 1)])


def components(job, k) -> tuple[set[int], set[int]]:
    def pruned(dag):
        left = None
        while left != len(dag):
            left = len(dag)
            for v in sorted(dag):
                if dag.in_degree(v) > k:
                    dag.remove_node(v)
            for v in sorted(dag):
                if dag.degree(v) == 0:
                    dag.remove_node(v)
        return set(dag)

    return pruned(digraph(job)), pruned(digraph(job).reverse())


def found(graphs, k) -> list[tuple[set[int], set[int]]]:
    parts = decompose(graphs, k)
    bounds = graphs.job_stage0[1:-1]
    return [
        (set(np.flatnonzero(s).tolist()), set(np.flatnonzero(g).tolist()))
        for s, g in zip(
            np.split(parts.scatter, bounds), np.split(parts.gather, bounds), strict=True
        )
    ]


def test_scatter_and_gather_jobs():
    graphs = graphs_of(CHAIN, GATHER, SCATTER, DIAMOND, PAIR, (3, []), (1, []))
    assert is_scatter(graphs).tolist() == [True, False, True, False, False, True, False]
    assert is_gather(graphs).tolist() == [True, True, False, False, False, True, False]
    assert is_complex(graphs).tolist() == [False, False, False, True, False, False, False]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_decomposition_is_the_plain_reading_of_algorithm_1(k):
    jobs = assorted(150, 12)
    assert found(graphs_of(*jobs), k) == [components(job, k) for job in jobs]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("job", [CHAIN, PAIR, (7, [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6)])])
def test_chains_are_never_erased(job, k):
    every = set(range(job[0]))
    assert found(graphs_of(job), k) == [(every, every)]


def test_a_tree_is_its_own_component_down_to_the_chain_at_its_head():
    headed = (6, [(0, 1), (1, 2), (2, 3), (2, 4), (2, 5)])
    scatter, gather = found(graphs_of(headed), 1)[0]
    assert scatter == {0, 1, 2, 3, 4, 5}
    assert gather == {0, 1}  # without 2, of three children


def test_a_scatter_that_feeds_a_gather_falls_into_both():
    # 0 scatters to 1, 2, 3; 1, 2 and 3 are gathered by 4; then 5
    composed = (6, [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4), (4, 5)])
    graphs = graphs_of(composed)
    assert found(graphs, 1) == [({0, 1, 2, 3}, {1, 2, 3, 4, 5})]
    parts = decompose(graphs)
    assert parts.overlap.tolist() == [3 / 6]
    assert parts.coverage.tolist() == [1.0]
    assert decompose(graphs, 3).overlap.tolist() == [1.0]


def test_rows_are_pruned_in_order_with_what_is_left_at_the_time():
    # 2 has parents 0 and 1, 3 has parents 1 and 2: once 2 is gone 3 has one parent and stays
    assert found(graphs_of((4, [(0, 2), (1, 2), (1, 3), (2, 3)])), 1)[0][0] == {1, 3}
    # the same job with 2 and 3 in other rows: the child is met first, both go, and nothing stays
    assert found(graphs_of((4, [(0, 3), (1, 3), (1, 2), (3, 2)])), 1)[0][0] == set()


def test_k_is_at_least_one():
    with pytest.raises(InputError, match="at least 1, not 0"):
        decompose(graphs_of(DIAMOND), 0)


def test_no_jobs_have_no_patterns():
    empty = graphs_of()
    assert len(is_complex(empty)) == 0
    assert len(decompose(empty).overlap) == 0
