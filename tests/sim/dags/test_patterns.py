"""Scatter, gather, and Algorithm 1 against a literal implementation."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from sim.base.errors import InputError
from sim.base.random import stream
from sim.dags import classes, decompose, is_complex, is_gather, is_scatter, uniform_dags
from tests.sim.dags.small import assorted, digraph, every_dag, graphs_of, job_of

CHAIN = (4, [(0, 1), (1, 2), (2, 3)])
GATHER = (6, [(0, 3), (1, 3), (2, 4), (3, 5), (4, 5)])
SCATTER = (6, [(c, p) for p, c in GATHER[1]])
DIAMOND = (4, [(0, 1), (0, 2), (1, 3), (2, 3)])
PAIR = (2, [(0, 1)])


def components(job, max_parents, min_children) -> tuple[set[int], set[int]]:
    def pruned(dag):
        left = None
        while left != len(dag):
            left = len(dag)
            for v in sorted(dag):
                if dag.in_degree(v) > max_parents:
                    dag.remove_node(v)
            for v in sorted(dag):
                if dag.in_degree(v) == 0 and dag.out_degree(v) < min_children:
                    dag.remove_node(v)
        return set(dag)

    return pruned(digraph(job)), pruned(digraph(job).reverse())


def actual(graphs, max_parents=1, min_children=1) -> list[tuple[set[int], set[int]]]:
    parts = decompose(graphs, max_parents, min_children)
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


@pytest.mark.parametrize("max_parents", [1, 2, 3])
@pytest.mark.parametrize("min_children", [0, 1, 2, 3])
def test_decomposition_is_the_plain_reading_of_algorithm_1(max_parents, min_children):
    jobs = assorted(150, 12)
    literal = [components(job, max_parents, min_children) for job in jobs]
    assert actual(graphs_of(*jobs), max_parents, min_children) == literal


@pytest.mark.parametrize("max_parents", [1, 2])
@pytest.mark.parametrize("job", [CHAIN, PAIR, (7, [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6)])])
def test_chains_are_erased_as_printed_and_stay_if_only_isolated_stages_go(job, max_parents):
    every = set(range(job[0]))
    assert actual(graphs_of(job), max_parents, 2) == [(set(), set())]
    assert actual(graphs_of(job), max_parents, 1) == [(every, every)]


def test_the_printed_readings_are_the_defaults():
    jobs = graphs_of(*assorted(60, 9))
    default, printed = decompose(jobs), decompose(jobs, 2, 2)
    assert (default.scatter == printed.scatter).all()
    assert (default.gather == printed.gather).all()


def test_a_tree_is_its_own_component_down_to_the_chain_at_its_head():
    headed = (6, [(0, 1), (1, 2), (2, 3), (2, 4), (2, 5)])
    scatter, gather = actual(graphs_of(headed))[0]
    assert scatter == {0, 1, 2, 3, 4, 5}
    assert gather == {0, 1}  # without 2, of three children


def test_a_scatter_that_feeds_a_gather_falls_into_both():
    # 0 scatters to 1, 2, 3; 1, 2 and 3 are gathered by 4; then 5
    composed = (6, [(0, 1), (0, 2), (0, 3), (1, 4), (2, 4), (3, 4), (4, 5)])
    graphs = graphs_of(composed)
    assert actual(graphs) == [({0, 1, 2, 3}, {1, 2, 3, 4, 5})]
    parts = decompose(graphs, 1, 1)
    assert parts.overlap.tolist() == [3 / 6]
    assert parts.coverage.tolist() == [1.0]
    assert decompose(graphs, 3, 1).overlap.tolist() == [1.0]


def test_rows_are_pruned_in_order_by_their_current_degrees():
    # 2 has parents 0 and 1, 3 has parents 1 and 2: once 2 is gone 3 has one parent and stays
    assert actual(graphs_of((4, [(0, 2), (1, 2), (1, 3), (2, 3)])))[0][0] == {1, 3}
    # the same job with 2 and 3 in other rows: the child is met first, both go, and nothing stays
    assert actual(graphs_of((4, [(0, 3), (1, 3), (1, 2), (3, 2)])))[0][0] == set()


def test_max_parents_is_at_least_one():
    with pytest.raises(InputError, match="max_parents is at least 1, not 0"):
        decompose(graphs_of(DIAMOND), 0)


def test_no_jobs_have_no_patterns():
    empty = graphs_of()
    assert len(is_complex(empty)) == 0
    assert len(decompose(empty).overlap) == 0


def relabelled(job, seed: int):
    n, edges = job
    name = stream(seed, "test relabel").permutation(n).tolist()
    return n, [(name[p], name[c]) for p, c in edges]


def ring(*lengths: int):
    """Return rings of alternating sources and sinks: each stage has two neighbours."""
    n, edges = 0, []
    for length in lengths:
        for i in range(0, length, 2):
            edges += [(n + i, n + i + 1), (n + i, n + (i - 1) % length)]
        n += length
    return n, edges


@pytest.mark.parametrize(("n", "unlabelled"), [(1, 1), (2, 2), (3, 6), (4, 31)])
def test_there_are_as_many_classes_as_unlabelled_dags(n, unlabelled):
    # Robinson 1977; OEIS A003087
    actual = classes(graphs_of(*every_dag(n)))
    assert actual.max() + 1 == unlabelled


@pytest.mark.slow
def test_all_29281_dags_of_five_stages_fall_into_302_classes():
    assert classes(graphs_of(*every_dag(5))).max() + 1 == 302


def test_classes_are_those_of_networkx():
    jobs = assorted(70, 6)
    actual = classes(graphs_of(*jobs)).tolist()
    for a in range(len(jobs)):
        for b in range(a):
            is_equal = nx.is_isomorphic(digraph(jobs[a]), digraph(jobs[b]))
            assert is_equal == (actual[a] == actual[b]), (jobs[a], jobs[b])


def test_names_of_stages_do_not_matter():
    graphs = uniform_dags([6, 8, 12, 25, 40] * 4, seed=9)
    originals = [job_of(graphs, j) for j in range(20)] + assorted(60, 30)
    copies = [relabelled(job, seed) for seed, job in enumerate(originals)]
    actual = classes(graphs_of(*originals, *copies))
    assert actual[: len(originals)].tolist() == actual[len(originals) :].tolist()


def test_vf2_distinguishes_dags_of_equal_colours():
    first, second, other = ring(12), ring(6, 6), ring(4, 8)
    jobs = [relabelled(job, seed) for seed in range(12) for job in (first, second, other)]
    assert classes(graphs_of(*jobs)).tolist() == [0, 1, 2] * 12


def test_jobs_of_many_components_are_distinguished_quickly():
    # as one graph each, VF2 alone would try the rings of one on those of the other in every order
    first, second = ring(8, 8, 8, 8, 8, 8), ring(8, 16, 8, 8, 8)
    jobs = [first, second, relabelled(first, 1), relabelled(second, 2)]
    assert classes(graphs_of(*jobs)).tolist() == [0, 1, 0, 1]
    pieces = (9, [(0, 1), (2, 3), (2, 4), (5, 6), (6, 7)])
    joined = (9, [(0, 1), (2, 3), (4, 3), (5, 6), (6, 7)])
    jobs = [pieces, joined, relabelled(joined, 3), relabelled(pieces, 4)]
    assert classes(graphs_of(*jobs)).tolist() == [0, 1, 1, 0]


def test_classes_are_numbered_by_first_appearance():
    chain, fork, reverse = (3, [(0, 1), (1, 2)]), (3, [(0, 1), (0, 2)]), (3, [(2, 1), (1, 0)])
    assert classes(graphs_of(fork, chain, fork, reverse, (2, []))).tolist() == [0, 1, 0, 1, 2]
    assert len(classes(graphs_of())) == 0
