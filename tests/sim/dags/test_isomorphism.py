"""Isomorphism classes against counts of unlabelled DAGs, networkx, and graphs WL can't tell."""

from __future__ import annotations

import networkx as nx
import pytest

from sim.base.random import stream
from sim.dags import classes, uniform_dags
from tests.sim.dags.small import assorted, digraph, every_dag, graphs_of, job_of


def relabelled(job, seed: int):
    n, edges = job
    name = stream(seed, "test relabel").permutation(n).tolist()
    return n, [(name[p], name[c]) for p, c in edges]


def ring(*lengths: int):
    """Sources and sinks in turn around rings: each stage has two neighbours."""
    n, edges = 0, []
    for length in lengths:
        for i in range(0, length, 2):
            edges += [(n + i, n + i + 1), (n + i, n + (i - 1) % length)]
        n += length
    return n, edges


@pytest.mark.parametrize(("n", "unlabelled"), [(1, 1), (2, 2), (3, 6), (4, 31)])
def test_there_are_as_many_classes_as_unlabelled_dags(n, unlabelled):
    # Robinson 1977; OEIS A003087
    found = classes(graphs_of(*every_dag(n)))
    assert found.max() + 1 == unlabelled


@pytest.mark.slow
def test_all_29281_dags_of_five_stages_fall_into_302_classes():
    assert classes(graphs_of(*every_dag(5))).max() + 1 == 302


def test_classes_are_those_of_networkx():
    jobs = assorted(70, 6)
    found = classes(graphs_of(*jobs)).tolist()
    for a in range(len(jobs)):
        for b in range(a):
            alike = nx.is_isomorphic(digraph(jobs[a]), digraph(jobs[b]))
            assert alike == (found[a] == found[b]), (jobs[a], jobs[b])


def test_names_of_stages_do_not_matter():
    graphs = uniform_dags([6, 8, 12, 25, 40] * 4, seed=9)
    originals = [job_of(graphs, j) for j in range(20)] + assorted(60, 30)
    copies = [relabelled(job, seed) for seed, job in enumerate(originals)]
    found = classes(graphs_of(*originals, *copies))
    assert found[: len(originals)].tolist() == found[len(originals) :].tolist()


def test_vf2_tells_apart_what_colours_cannot():
    one, two, other = ring(12), ring(6, 6), ring(4, 8)
    jobs = [relabelled(job, seed) for seed in range(12) for job in (one, two, other)]
    assert classes(graphs_of(*jobs)).tolist() == [0, 1, 2] * 12


def test_jobs_of_many_pieces_are_told_apart_quickly():
    # as one graph each, VF2 alone would try the rings of one on those of the other in every order
    one, two = ring(8, 8, 8, 8, 8, 8), ring(8, 16, 8, 8, 8)
    jobs = [one, two, relabelled(one, 1), relabelled(two, 2)]
    assert classes(graphs_of(*jobs)).tolist() == [0, 1, 0, 1]
    pieces = (9, [(0, 1), (2, 3), (2, 4), (5, 6), (6, 7)])
    others = (9, [(0, 1), (2, 3), (4, 3), (5, 6), (6, 7)])
    jobs = [pieces, others, relabelled(others, 3), relabelled(pieces, 4)]
    assert classes(graphs_of(*jobs)).tolist() == [0, 1, 1, 0]


def test_classes_are_numbered_by_first_appearance():
    chain, fork, reverse = (3, [(0, 1), (1, 2)]), (3, [(0, 1), (0, 2)]), (3, [(2, 1), (1, 0)])
    assert classes(graphs_of(fork, chain, fork, reverse, (2, []))).tolist() == [0, 1, 0, 1, 2]
    assert len(classes(graphs_of())) == 0
