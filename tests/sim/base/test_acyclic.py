"""The cycle check against NetworkX, and the telling apart of strings against a dict."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.base import strings as text
from sim.base.acyclic import find_cycle, nodes_on_cycles

EDGES = st.integers(2, 9).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=14, unique=True),
    )
)


@given(EDGES)
@settings(max_examples=300, deadline=None)
def test_cycles_are_those_of_the_graph(drawn):
    n, edges = drawn
    tail = np.array([a for a, _ in edges], np.int32)
    head = np.array([b for _, b in edges], np.int32)
    graph = nx.DiGraph(edges)
    graph.add_nodes_from(range(n))
    found = find_cycle(tail, head, n)
    assert bool(found) != nx.is_directed_acyclic_graph(graph)
    for i, node in enumerate(found):
        assert graph.has_edge(node, found[(i + 1) % len(found)])
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


@given(st.lists(st.sampled_from(["", "a", "b", "ab", "ba", "j_1", "j_10", "é", "x" * 40])))
@settings(max_examples=200, deadline=None)
def test_strings_are_numbered_by_first_appearance(words):
    array = pa.array(["skipped", *words], pa.string()).slice(1)
    code, first = text.number_by_appearance(array)
    distinct = list(dict.fromkeys(words))
    assert code.tolist() == [distinct.index(word) for word in words]
    assert first.tolist() == [words.index(word) for word in distinct]
    repeats = [(i, words.index(w)) for i, w in enumerate(words) if words.index(w) < i]
    assert text.first_repeat(array) == (repeats[0] if repeats else None)


def test_strings_with_one_hash_are_still_told_apart(monkeypatch):
    monkeypatch.setattr(text, "_hash64", lambda strings: np.zeros(len(strings), np.uint64))
    array = pa.array(["b", "a", "b", "c"])
    code, first = text.number_by_appearance(array)
    assert code.tolist() == [0, 1, 0, 2]
    assert first.tolist() == [0, 1, 3]
    assert text.first_repeat(array) == (2, 0)
    assert text.first_repeat(pa.array(["b", "a"])) is None
