"""Random DAGs of jobs, and what is known of them by brute force."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from policies.wing.lineage.dependencies import Dependencies, Window, edges_from_pairs, window


@st.composite
def dags(draw, max_jobs: int = 12) -> Dependencies:
    """Draw a DAG whose edges need not follow the order of rows."""
    n = draw(st.integers(1, max_jobs))
    order = draw(st.permutations(range(n)))
    pairs = draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=3 * n))
    pairs = {(order[min(p)], order[max(p)]) for p in pairs if p[0] != p[1]}
    up, down = zip(*sorted(pairs), strict=True) if pairs else ((), ())
    return edges_from_pairs(n, up, down)


@st.composite
def windows(draw, n: int) -> Window:
    """Draw submissions, in order, completions and ω, such that many coincide."""
    submit_s = np.sort(draw(st.lists(st.integers(0, 12), min_size=n, max_size=n))).astype(float)
    took_s = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), float)
    return window(submit_s, submit_s + took_s, float(draw(st.integers(0, 8))))


def paths(edges: Dependencies, weight: np.ndarray) -> dict[tuple[int, int], list[list[float]]]:
    """Enumerate the weights along every path, by (upstream, downstream)."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(edges.n_jobs))
    for u, d, w in zip(edges.upstream.tolist(), edges.downstream.tolist(), weight, strict=True):
        graph.add_edge(u, d, w=float(w))
    reached = {}
    for u in graph:
        for d in nx.descendants(graph, u):
            reached[u, d] = [
                [graph.edges[a, b]["w"] for a, b in path]
                for path in nx.all_simple_edge_paths(graph, u, d)
            ]
    return reached
