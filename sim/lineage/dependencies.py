"""Dependencies between jobs: edges of a DAG whose nodes are rows of the job table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.acyclic import nodes_on_cycles
from sim.base.arrays import F8, I4, I8


@dataclass(frozen=True, eq=False)
class Dependencies:
    """Which job took what which other job had made; every pair once."""

    n_jobs: int  # rows of the job table
    upstream: I4  # rows; edges are sorted by downstream, then upstream
    downstream: I4
    # the first read, and the write that it met, s; of reads at one instant, the earliest write
    read_s: F8
    written_s: F8
    n_reads: I4  # reads behind the edge

    def __len__(self) -> int:
        """Return the number of edges."""
        return len(self.upstream)

    def where(self, keep: NDArray[Any]) -> Dependencies:
        """Return some of the edges, by mask or by place."""
        return Dependencies(
            self.n_jobs,
            self.upstream[keep],
            self.downstream[keep],
            self.read_s[keep],
            self.written_s[keep],
            self.n_reads[keep],
        )

    def n_upstream(self) -> I8:
        """Return how many jobs each job depends on directly."""
        return np.bincount(self.downstream, minlength=self.n_jobs)

    def n_downstream(self) -> I8:
        """Return how many jobs depend on each job directly."""
        return np.bincount(self.upstream, minlength=self.n_jobs)


def plain_edges(n_jobs: int, upstream: Any, downstream: Any) -> Dependencies:
    """Make dependencies of pairs alone, with no times: for analyses of graphs from elsewhere."""
    up, down = (np.asarray(a, np.int32) for a in (upstream, downstream))
    order = np.lexsort([up, down])
    unknown = np.full(len(up), np.nan)
    return Dependencies(
        n_jobs, up[order], down[order], unknown, unknown, np.ones(len(up), np.int32)
    )


def without_cycles(edges: Dependencies) -> tuple[Dependencies, int]:
    """Drop the edges that lead backward within a cycle.

    Jobs that run at the same time may read what each other writes. Within a strongly connected
    component only edges to jobs submitted later (to later rows) stay; what is left is acyclic.
    """
    cyclic = nodes_on_cycles(edges.upstream, edges.downstream, edges.n_jobs)
    if not len(cyclic):
        return edges, 0
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    local = np.full(edges.n_jobs, -1, np.int64)
    local[cyclic] = np.arange(len(cyclic))
    a, b = local[edges.upstream], local[edges.downstream]
    inside = (a >= 0) & (b >= 0)
    shape = (len(cyclic), len(cyclic))
    graph = csr_array((np.ones(inside.sum(), np.int8), (a[inside], b[inside])), shape=shape)
    _, part = connected_components(graph, directed=True, connection="strong")
    backward = inside & (edges.upstream >= edges.downstream)
    backward[backward] = part[a[backward]] == part[b[backward]]
    return edges.where(~backward), int(backward.sum())
