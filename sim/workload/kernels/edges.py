"""The edges of DAGs seen from the children."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import I4, I8
from sim.base.jit import jit


@jit
def by_child(n_stages: int, edge_child: I4) -> tuple[I8, I8]:
    """Sort edges by child, those of one child by row."""
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
