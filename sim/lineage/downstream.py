"""How many jobs are downstream of each, within ω: exact, without a pair of the closure.

Algorithm 1 with `sim.lineage.functions.N_DOWNSTREAM` counts the same. Here a pass over the jobs in
topological order serves 62 sources at once, a bit each.
"""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8
from sim.lineage.dependencies import Dependencies
from sim.lineage.graph import Graph, Window, graph


def count_downstream(
    edges: Dependencies, within: Window | None = None, *, numbered: Graph | None = None
) -> F8:
    """Return the number of jobs that depend on each job, directly or not."""
    from sim.lineage.kernels.reach import BITS, count_reached
    from sim.workload.kernels.edges import by_child

    g = graph(edges) if numbered is None else numbered
    n = edges.n_jobs
    in0, order = by_child(n, g.child)
    parent = np.repeat(np.arange(n, dtype=np.int32), np.diff(g.out0))[order]
    submit_s = np.zeros(n) if within is None else within.submit_s[g.row]
    cut_s = np.zeros(n) if within is None else within.cut_s
    last = np.full(n, n, np.int32) if within is None else g.end(within.submit_s, cut_s)
    out = np.zeros(n)
    counted = edges.n_downstream() > 0
    if within is not None:
        out[~within.valid] = np.nan
        counted &= within.valid
    job = np.flatnonzero(counted)
    job = job[np.argsort(g.number[job])]
    reached = np.zeros(n, np.int64)
    for at in range(0, len(job), BITS):
        here = job[at : at + BITS]
        out[here] = count_reached(
            in0, parent, g.number[here], int(last[here].max()), submit_s, cut_s[here], reached
        )
    return out
