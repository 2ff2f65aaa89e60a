"""Directed graphs over rows: cycle detection and topological order."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from graphlib import TopologicalSorter

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I4, I8, Mask


def topological_order(n_nodes: int, tail: I4, head: I4) -> list[int]:
    """Return all rows in the lexicographically smallest topological order."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(n_nodes))
    graph.add_edges_from(zip(tail.tolist(), head.tolist(), strict=True))
    return list(nx.lexicographical_topological_sort(graph))


def direct_parents(
    parents: Mapping[str, Collection[str]], chosen: Collection[str]
) -> dict[str, set[str]]:
    """Return the chosen nodes that each node comes right after, through any that are not chosen.

    A chosen node that another chosen one between them implies is left out.

    Parameters
    ----------
    parents : mapping of str to collection of str
        The nodes that go right before each node.
    chosen : collection of str
        Nodes.

    Raises
    ------
    graphlib.CycleError
        If nodes go before each other.
    """
    names = [*parents]
    bit = {name: 1 << i for i, name in enumerate(names)}
    direct = dict.fromkeys(names, 0)  # chosen nodes right before, as bits
    before = dict.fromkeys(names, 0)  # and those before them
    for name in TopologicalSorter(parents).static_order():
        for parent in parents[name]:
            is_chosen = parent in chosen
            direct[name] |= bit[parent] if is_chosen else direct[parent]
            before[name] |= before[parent] | (direct[parent] if is_chosen else 0)
        direct[name] &= ~before[name]
    return {name: {names[i] for i in _ones(direct[name])} for name in names}


def _ones(number: int) -> Iterator[int]:
    """Yield the positions of the bits that are 1."""
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


def find_cycle(tail: I4, head: I4, n_nodes: int) -> list[int]:
    """Return the nodes of one cycle in their order, or an empty list if there is none.

    Edges to a higher row can't close a cycle by themselves. So only the connected parts that hold
    an edge to a lower row are searched, by strongly connected components.
    """
    cyclic = _cyclic_subgraph(tail, head, n_nodes)
    if cyclic is None:
        return []
    nodes, label, a, b = cyclic
    first = int(np.flatnonzero(label >= 0)[0])
    inside = (label[a] == label[first]) & (label[b] == label[first])
    return [int(nodes[n]) for n in _shortest_cycle(a[inside], b[inside], first)]


def nodes_on_cycles(tail: I4, head: I4, n_nodes: int) -> I8:
    """Return all rows that lie on some cycle, ascending; parameters as for `find_cycle`."""
    cyclic = _cyclic_subgraph(tail, head, n_nodes)
    if cyclic is None:
        return np.empty(0, np.int64)
    nodes, label, _, _ = cyclic
    return nodes[label >= 0].astype(np.int64)


def _cyclic_subgraph(
    tail: I4, head: I4, n_nodes: int
) -> tuple[I4, NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]] | None:
    # Returns nodes, the cyclic component of each (-1: none), and the edges between them as indices
    # into the nodes; None if there is no cycle.
    descends = tail >= head
    if not descends.any():
        return None
    tail, head = _near_descents(tail, head, descends, n_nodes)
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    nodes, local = np.unique(np.concatenate([tail, head]), return_inverse=True)
    a, b = local[: len(tail)], local[len(tail) :]
    graph = csr_array((np.ones(len(a), np.int8), (a, b)), shape=(len(nodes), len(nodes)))
    n_components, component = connected_components(graph, directed=True, connection="strong")
    cyclic = np.bincount(component, minlength=n_components) > 1
    cyclic[component[a[a == b]]] = True
    if not cyclic.any():
        return None
    return nodes, np.where(cyclic[component], component, -1), a, b


def _near_descents(tail: I4, head: I4, descends: Mask, n_nodes: int) -> tuple[I4, I4]:
    # A cycle spans an interval of rows that holds a descent; merge the descents' intervals and
    # keep the edges between rows of one interval, as all rows of a cycle lie in one.
    cover = np.zeros(n_nodes + 1, np.int32)
    np.add.at(cover, head[descends], 1)
    np.add.at(cover, tail[descends], -1)
    covered = np.cumsum(cover[:-1]) > 0
    keep = (tail == head) | (covered[tail] | covered[np.maximum(tail, 1) - 1]) & (
        covered[head] | covered[np.maximum(head, 1) - 1]
    )
    return tail[keep], head[keep]


def _shortest_cycle(tail: NDArray[np.intp], head: NDArray[np.intp], start: int) -> list[int]:
    # Breadth-first search from `start` within its component, until an edge leads back to it.
    order = np.argsort(tail, kind="stable")
    tail, head = tail[order], head[order]
    predecessor = {start: -1}
    queue = [start]
    for node in queue:
        begin, end = np.searchsorted(tail, [node, node + 1])
        for child in head[begin:end].tolist():
            if child == start:
                path = [node]
                while predecessor[path[-1]] >= 0:
                    path.append(predecessor[path[-1]])
                return path[::-1]
            if child not in predecessor:
                predecessor[child] = node
                queue.append(child)
    raise AssertionError("a strongly connected component of several nodes holds a cycle")
