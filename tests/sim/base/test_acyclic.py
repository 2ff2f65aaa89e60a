"""The cycle check against NetworkX."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.base.acyclic import direct_parents, find_cycle, nodes_on_cycles
from tests.examples import examples

EDGES = st.integers(2, 9).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=14, unique=True),
    )
)


@given(EDGES)
@settings(max_examples=examples(600), deadline=None)
def test_cycles_are_those_of_the_graph(drawn):
    n, edges = drawn
    tail = np.array([a for a, _ in edges], np.int32)
    head = np.array([b for _, b in edges], np.int32)
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(range(n))
    cycle = find_cycle(tail, head, n)
    assert bool(cycle) != nx.is_directed_acyclic_graph(graph)
    for i, node in enumerate(cycle):
        assert graph.has_edge(node, cycle[(i + 1) % len(cycle)])
    expected = {
        v for part in nx.strongly_connected_components(graph) if len(part) > 1 for v in part
    }
    expected |= {a for a, b in edges if a == b}
    assert nodes_on_cycles(tail, head, n).tolist() == sorted(expected)


def test_a_long_chain_down_the_rows_is_no_cycle():
    n = 200_000
    tail = np.arange(n - 1, 0, -1, dtype=np.int32)
    assert find_cycle(tail, tail - 1, n) == []
    closed = np.append(tail, np.int32(0)), np.append(tail - 1, np.int32(n - 1))
    assert len(find_cycle(*closed, n)) == n


@given(EDGES, st.sets(st.integers(0, 9)))
@settings(max_examples=examples(400), deadline=None)
def test_direct_parents_are_the_reduced_precedence_of_the_chosen(drawn, chosen):
    n, edges = drawn
    graph = nx.DiGraph((min(edge), max(edge)) for edge in edges if edge[0] != edge[1])
    graph.add_nodes_from(range(n))
    chosen &= set(range(n))
    parents = {str(node): {str(p) for p in graph.predecessors(node)} for node in graph}
    direct = direct_parents(parents, {str(node) for node in chosen})
    closure = nx.transitive_closure_dag(graph).subgraph(chosen)
    reduced = nx.transitive_reduction(closure)
    for node in chosen:
        assert direct[str(node)] == {str(p) for p in reduced.predecessors(node)}
    assert direct.keys() == parents.keys()
