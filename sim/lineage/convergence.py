"""How much aggregate value each round of the analysis finds (Fig. 6)."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4
from sim.base.random import stream
from sim.lineage.dependencies import Dependencies
from sim.lineage.graph import Graph, WeightFunction, Window, share_of_inputs

N_SOURCES: Final = 200
"""Jobs that a profile draws."""

_MOST_ROUNDS = 31  # paths of 2^31 hops: more than there are jobs


def value_by_round(
    edges: Dependencies,
    value: F8,
    numbered: Graph,
    sources: I4,
    within: Window | None = None,
    *,
    wt_fn: WeightFunction = share_of_inputs,
) -> F8:
    """Return aggregate values after 0, 1, … rounds of Algorithm 1, up to convergence.

    After round 0 it is the local value, after round k ≥ 1 that of all paths of at most 2^k hops.
    """
    from sim.lineage.kernels.flows import sums_by_round

    g, n = numbered, edges.n_jobs
    submit_s = np.zeros(n) if within is None else within.submit_s
    cut_s = np.zeros(len(sources)) if within is None else within.cut_s[sources]
    added = sums_by_round(
        g.out0,
        g.child,
        np.asarray(wt_fn(edges), np.float64)[g.edge],
        value[g.row],
        submit_s[g.row],
        g.number[sources],
        g.end(submit_s, cut_s),
        cut_s,
        _MOST_ROUNDS,
    )
    some = np.flatnonzero(added.any(axis=0))
    n_rounds = int(some[-1]) + 1 if len(some) else 1
    out: F8 = np.cumsum(added[:, :n_rounds], axis=1)
    return out


def convergence(
    edges: Dependencies,
    value: F8,
    numbered: Graph,
    within: Window | None = None,
    *,
    n_sources: int = N_SOURCES,
    seed: int = 0,
) -> pa.Table:
    """Return how much of the aggregate value each round has found, in jobs drawn at random."""
    ok = np.ones(edges.n_jobs, bool) if within is None else within.valid
    drawn = stream(seed, "lineage", "convergence").permutation(np.flatnonzero(ok))[:n_sources]
    sources = np.sort(drawn).astype(np.int32)
    values = value_by_round(edges, value, numbered, sources, within)
    last = values[:, -1]
    worth = last > 0
    if not worth.any():
        values, last, worth = np.ones((1, 1)), np.ones(1), np.ones(1, bool)
    return pa.table(
        {
            "round": np.arange(values.shape[1], dtype=np.int32),
            "found": values.sum(axis=0) / last.sum(),
            "found_per_job": (values[worth] / last[worth, None]).mean(axis=0),
        }
    )
