"""Levels: valid, exactly compact, the smallest compact ones, within the longest path."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

from sim.base.errors import InputError
from sim.dags import (
    Graphs,
    compact_levels,
    critical_path_length,
    edge_spans,
    level_counts,
    longest_path_levels,
    path_lengths,
    uniform_dags,
)
from tests.sim.dags.small import assorted, digraph, graphs_of, job_of

SMALL = assorted(120, 9)
LARGER = assorted(30, 26)


def levels_by_job(graphs: Graphs, levels) -> list[list[int]]:
    return [part.tolist() for part in np.split(levels, graphs.job_stage0[1:-1])]


def total_span(edges, levels) -> int:
    return sum(levels[c] - levels[p] for p, c in edges)


def least_compact(n, edges, length) -> tuple[int, list[int]]:
    """Compute the minimal sum of spans, and its smallest levels, by linear programming.

    The constraints are those of a dual of a flow, so that the corners are whole numbers. The
    second program adds the sum of the levels as a tie-break too light to change the first sum.
    """
    spans = np.zeros(n)
    rows = np.zeros((len(edges), n))
    for i, (p, c) in enumerate(edges):
        spans[c] += 1
        spans[p] -= 1
        rows[i, p], rows[i, c] = 1, -1
    limits = {"A_ub": rows, "b_ub": -np.ones(len(edges)), "bounds": (1, length)}
    if not edges:
        return 0, [1] * n
    total = linprog(spans, **limits).fun
    levels = linprog(spans * (n * length + 1) + 1, **limits).x
    return round(total), [round(level) for level in levels]


@pytest.mark.parametrize("jobs", [SMALL, LARGER], ids=["small", "larger"])
def test_longest_path_levels_and_lengths_are_those_of_networkx(jobs):
    graphs = graphs_of(*jobs)
    levels = longest_path_levels(graphs)
    for job, mine in zip(jobs, levels_by_job(graphs, levels), strict=True):
        dag = digraph(job)
        depth = {}
        for v in nx.topological_sort(dag):
            depth[v] = 1 + max((depth[p] for p in dag.predecessors(v)), default=0)
        assert mine == [depth[v] for v in range(job[0])]
    lengths = [nx.dag_longest_path_length(digraph(job)) + 1 for job in jobs]
    assert path_lengths(graphs, levels).tolist() == lengths
    assert critical_path_length(graphs).tolist() == lengths


@pytest.mark.parametrize("jobs", [SMALL, LARGER], ids=["small", "larger"])
def test_compact_levels_are_the_least_of_the_optimal_ones(jobs):
    graphs = graphs_of(*jobs)
    lengths = critical_path_length(graphs).tolist()
    by_job = levels_by_job(graphs, compact_levels(graphs))
    for (n, edges), length, mine in zip(jobs, lengths, by_job, strict=True):
        total, expected = least_compact(n, edges, length)
        assert total_span(edges, mine) == total
        assert mine == expected


def test_compact_levels_of_uniform_dags_are_the_least_of_the_optimal_ones():
    graphs = uniform_dags(np.repeat([3, 4, 5, 6, 7, 8, 12, 20], 12), seed=5)
    lengths = critical_path_length(graphs).tolist()
    for job, mine in enumerate(levels_by_job(graphs, compact_levels(graphs))):
        n, edges = job_of(graphs, job)
        assert mine == least_compact(n, edges, lengths[job])[1]


def test_compact_levels_are_valid_use_every_level_and_keep_the_length():
    graphs = graphs_of(*SMALL, *LARGER)
    plain, levels = longest_path_levels(graphs), compact_levels(graphs)
    assert (levels >= plain).all()
    assert (levels[graphs.edge_child] > levels[graphs.edge_parent]).all()
    assert (path_lengths(graphs, levels) == path_lengths(graphs, plain)).all()
    for mine in levels_by_job(graphs, levels):
        assert set(mine) == set(range(1, max(mine) + 1))


def test_a_lone_source_moves_up_to_its_child():
    chain_and_source = (5, [(0, 1), (1, 2), (2, 3), (4, 3)])
    assert compact_levels(graphs_of(chain_and_source)).tolist() == [1, 2, 3, 4, 3]


def test_a_chain_of_sources_moves_up_together():
    two_chains = (7, [(0, 1), (1, 2), (2, 3), (3, 4), (5, 6), (6, 4)])
    assert compact_levels(graphs_of(two_chains)).tolist() == [1, 2, 3, 4, 5, 3, 4]


def test_where_it_makes_no_difference_a_stage_stays_low():
    between = (5, [(0, 1), (1, 2), (2, 3), (0, 4), (4, 3)])
    assert compact_levels(graphs_of(between)).tolist() == [1, 2, 3, 4, 2]


def test_stages_rise_together_where_none_would_alone():
    # 4 to 6 are a fork and a join below a long chain: 5 and 6 hold 4 down, and only all three
    # together can follow the edge from 4's two children to the chain's end
    together = (7, [(0, 1), (1, 2), (2, 3), (4, 5), (4, 6), (5, 3), (6, 3)])
    assert compact_levels(graphs_of(together)).tolist() == [1, 2, 3, 4, 2, 3, 3]


def test_the_cap_holds_where_more_levels_would_shorten_edges():
    # without it 4 would go to level 0: its edge to 1 could then span one level, not two
    graphs = graphs_of((5, [(0, 1), (1, 2), (0, 3), (4, 3), (4, 2), (3, 2)]))
    levels = compact_levels(graphs)
    assert levels.min() == 1
    assert levels.max() == 3


def test_stages_without_edges_are_on_level_one():
    assert compact_levels(graphs_of((3, []), (1, []))).tolist() == [1, 1, 1, 1]


def test_a_jobs_levels_do_not_depend_on_its_neighbours():
    together = compact_levels(graphs_of(*SMALL))
    alone = np.concatenate([compact_levels(graphs_of(job)) for job in SMALL])
    assert (together == alone).all()


def test_no_jobs_have_no_levels():
    empty = graphs_of()
    assert len(compact_levels(empty)) == 0
    assert len(critical_path_length(empty)) == 0
    assert level_counts(empty, compact_levels(empty)).tolist() == [[0]]


def test_a_cycle_is_an_error_that_names_the_job():
    with pytest.raises(InputError, match="row 1 form a cycle"):
        compact_levels(graphs_of((2, [(0, 1)]), (3, [(0, 1), (1, 2), (2, 1)])))


def test_levels_are_counted_by_critical_path_length():
    gather = (4, [(0, 2), (1, 2), (2, 3)])
    pair = (2, [(0, 1)])
    graphs = graphs_of(gather, pair, pair)
    counts = level_counts(graphs, compact_levels(graphs))
    assert counts.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 2, 2, 0], [0, 2, 1, 1]]


def test_spans_are_differences_of_levels():
    graphs = graphs_of((3, [(0, 1), (1, 2), (0, 2)]))
    assert edge_spans(graphs, compact_levels(graphs)).tolist() == [1, 2, 1]
