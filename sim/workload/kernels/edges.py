"""The edges of DAGs seen from the children."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim.base.jit import jit

I8 = NDArray[np.int64]
I4 = NDArray[np.int32]


@jit
def by_child(n_stages: int, edge_child: I4) -> tuple[I8, I8]:
    """Sort edges by child, those of one child by row.

    Parameters
    ----------
    n_stages : int
        G.
    edge_child : (E,) int32
        Child of each edge.

    Returns
    -------
    (G + 1,) int64, (E,) int64
        First place of each child, and the rows of the edges.
    """
    in0 = np.zeros(n_stages + 1, np.int64)
    for e in range(len(edge_child)):
        in0[edge_child[e] + 1] += 1
    for s in range(n_stages):
        in0[s + 1] += in0[s]
    place = np.empty(n_stages, np.int64)
    for s in range(n_stages):
        place[s] = in0[s]
    in_edge = np.empty(len(edge_child), np.int64)
    for e in range(len(edge_child)):
        in_edge[place[edge_child[e]]] = e
        place[edge_child[e]] += 1
    return in0, in_edge
