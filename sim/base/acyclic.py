"""Edges between rows: whether they form a cycle, and the rows in an order that follows them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I4, I8, Mask


def topological_order(n_nodes: int, tail: I4, head: I4) -> list[int]:
    """Return all rows so that each edge leads to a later one; the least row first of what may."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(n_nodes))
    graph.add_edges_from(zip(tail.tolist(), head.tolist(), strict=True))
    return list(nx.lexicographical_topological_sort(graph))


def find_cycle(tail: I4, head: I4, n_nodes: int) -> list[int]:
    """Return the nodes of one cycle in their order, or an empty list if there is none.

    Edges that lead to a higher row can't close a cycle by themselves, so only the connected parts
    that hold an edge to a lower row are looked at: those by strongly connected components.
    """
    part = _cyclic_part(tail, head, n_nodes)
    if part is None:
        return []
    nodes, label, a, b = part
    first = int(np.flatnonzero(label >= 0)[0])
    inside = (label[a] == label[first]) & (label[b] == label[first])
    return [int(nodes[n]) for n in _walk(a[inside], b[inside], first)]


def nodes_on_cycles(tail: I4, head: I4, n_nodes: int) -> I8:
    """Return all rows that lie on some cycle, ascending; parameters as for `find_cycle`."""
    part = _cyclic_part(tail, head, n_nodes)
    if part is None:
        return np.empty(0, np.int64)
    nodes, label, _, _ = part
    return nodes[label >= 0].astype(np.int64)


def _cyclic_part(
    tail: I4, head: I4, n_nodes: int
) -> tuple[I4, NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]] | None:
    # Returns some nodes, for each the cyclic component it is in (-1: none), and the edges between
    # them as indices into the nodes; None where there is no cycle.
    down = tail >= head
    if not down.any():
        return None
    tail, head = _near_descents(tail, head, down, n_nodes)
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    nodes, local = np.unique(np.concatenate([tail, head]), return_inverse=True)
    a, b = local[: len(tail)], local[len(tail) :]
    graph = csr_array((np.ones(len(a), np.int8), (a, b)), shape=(len(nodes), len(nodes)))
    n_parts, part = connected_components(graph, directed=True, connection="strong")
    cyclic = np.bincount(part, minlength=n_parts) > 1
    cyclic[part[a[a == b]]] = True
    if not cyclic.any():
        return None
    return nodes, np.where(cyclic[part], part, -1), a, b


def _near_descents(tail: I4, head: I4, down: Mask, n_nodes: int) -> tuple[I4, I4]:
    # A cycle spans an interval of rows that holds a descent; merge the descents' intervals and
    # keep the edges between rows of one interval, as all rows of a cycle lie in one.
    cover = np.zeros(n_nodes + 1, np.int32)
    np.add.at(cover, head[down], 1)
    np.add.at(cover, tail[down], -1)
    covered = np.cumsum(cover[:-1]) > 0
    keep = (tail == head) | (covered[tail] | covered[np.maximum(tail, 1) - 1]) & (
        covered[head] | covered[np.maximum(head, 1) - 1]
    )
    return tail[keep], head[keep]


def _walk(tail: NDArray[np.intp], head: NDArray[np.intp], start: int) -> list[int]:
    # Breadth first from `start` within its component, until an edge leads back to it.
    order = np.argsort(tail, kind="stable")
    tail, head = tail[order], head[order]
    came_from = {start: -1}
    queue = [start]
    for node in queue:
        begin, end = np.searchsorted(tail, [node, node + 1])
        for other in head[begin:end].tolist():
            if other == start:
                path = [node]
                while came_from[path[-1]] >= 0:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if other not in came_from:
                came_from[other] = node
                queue.append(other)
    raise AssertionError("a strongly connected component of several nodes holds a cycle")
