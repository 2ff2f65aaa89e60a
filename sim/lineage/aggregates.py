"""Linear aggregates, such as value, without the closure.

An aggregate over everything downstream, Σ_d A(j, d) · k_d with A(j, d) = Σ over paths of Π of edge
weights (§4.5.1), is what Algorithm 1 computes with (×, +) and a summing ds_op. A is the closure
W + W² + … of the matrix W of edge weights, so that

    t = W (k + t)        for the totals t_j = Σ_d A(j, d) k_d,

and as every edge leads to a higher topological number, one pass from the last job to the first
solves it exactly: each t_j needs only totals of higher numbers. No pair is ever formed.

With the window ω the sum runs over downstream jobs that are submitted by the cut-off
c_j = finish_j + ω of *its own source*, so that one pass serves jobs of one cut-off only:

    t^c = W (k·[submit ≤ c] + t^c),        wanted: t_j at c = c_j for each j.

Three facts make this cheap, and exact to the bit:

1. *Monotony.* With no negative k and W, t^c does not fall as c grows. Rounded sums and products
   are monotone too, so it holds of the floating-point numbers, each computed in the same order. So
   if a pass at a ≤ c_j and one at b ≥ c_j give the same t_j, a pass at c_j gives that number.
2. *Lanes.* A pass is limited by memory, so that eight cut-offs cost little more than one; and
   under a cut-off no job counts from the number on from which all are submitted later.
3. *Rows.* What is left are jobs that something of value downstream of lies between their two
   cut-offs. Those that reach little are solved row by row: a search from the job that visits what
   it reaches, adds in the same order as a pass, and forms no pair either. Those that reach much
   get a lane under their very own cut-off.

So the cost is bounded whatever the closure's size: at worst a lane for each distinct cut-off.
Cut-offs of passes are taken evenly among the jobs' own, so every job lies between two neighbours.
`bounds` stops after step 2 and gives both numbers: a rigorous interval at a fixed cost.

`count_downstream` counts what Algorithm 1 with `sim.lineage.analyses.N_DOWNSTREAM` does: a
pass in topological order serves 62 sources at once, a bit each. `convergence` is Fig. 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4, Mask
from sim.base.errors import InputError
from sim.base.random import stream
from sim.lineage.dependencies import Dependencies, Graph, Window, graph, share_of_inputs

JOBS_PER_CUT = 200
"""How many jobs share the two cut-offs that enclose theirs."""
ROW_BUDGET = 20_000
"""Most jobs that a search visits; beyond, a lane of its own costs less."""


def aggregate(
    edges: Dependencies,
    value: F8,
    *,
    within: Window | None = None,
    numbered: Graph | None = None,
    jobs_per_cut: int = JOBS_PER_CUT,
) -> F8:
    """Return each job's own value plus what it passes on from everything downstream."""
    from sim.lineage.kernels.flows import downstream_totals, totals_by_search  # loads numba

    g = graph(edges) if numbered is None else numbered
    weight = share_of_inputs(edges)[g.edge]
    own = _checked(value)[g.row]
    if within is None:
        total = downstream_totals(g.out0, g.child, weight, own)
        return total[g.number]
    enclosed = _enclose(g, weight, own, within, within.valid, jobs_per_cut)
    low, places = enclosed.low, np.flatnonzero(enclosed.low != enclosed.high)
    if len(places):
        low[places] = totals_by_search(
            g.out0, g.child, weight, own, within.submit_s[g.row], g.number[places],
            g.end(within.submit_s, within.cut_s[places]), within.cut_s[places], ROW_BUDGET,
        )  # fmt: skip
        large = np.isnan(low)
        low = np.where(large, _enclose(g, weight, own, within, large, 1).low, low)
    return np.where(within.valid, low, np.nan)


@dataclass(frozen=True, eq=False)
class Bounds:
    """An interval for each job's aggregate; (N,) float64 each, NaN for jobs that are not valid."""

    low: F8
    high: F8


def bounds(
    edges: Dependencies,
    value: F8,
    within: Window,
    *,
    numbered: Graph | None = None,
    jobs_per_cut: int = JOBS_PER_CUT,
) -> Bounds:
    """Enclose what `aggregate` returns, at a cost that does not depend on the closure's size."""
    g = graph(edges) if numbered is None else numbered
    own = _checked(value)[g.row]
    enclosed = _enclose(g, share_of_inputs(edges)[g.edge], own, within, within.valid, jobs_per_cut)
    return Bounds(
        np.where(within.valid, enclosed.low, np.nan), np.where(within.valid, enclosed.high, np.nan)
    )


def _enclose(
    g: Graph, weight: F8, own: F8, within: Window, wanted: Mask, jobs_per_cut: int
) -> Bounds:
    """Return the totals of some jobs under the cut-offs below and above each one's own."""
    from sim.lineage.kernels.flows import LANES, downstream_totals_by_cutoff  # loads numba

    if jobs_per_cut < 1:
        raise InputError(f"jobs_per_cut must be at least 1, not {jobs_per_cut}")
    n = len(g.row)
    low, high = np.zeros(n), np.zeros(n)
    job = np.flatnonzero(wanted)
    if not len(job):
        return Bounds(low, high)
    job = job[np.argsort(within.cut_s[job], kind="stable")]
    cut = within.cut_s[job]
    cuts = np.unique(np.append(cut[::jobs_per_cut], cut[-1]))
    submit_s = within.submit_s[g.row]
    end = g.end(within.submit_s, cuts)
    total = np.zeros((n, LANES))
    step = LANES - 1  # neighbouring passes share a cut-off
    for at in range(0, max(len(cuts) - 1, 1), step):
        lanes = np.minimum(np.arange(at, at + LANES), len(cuts) - 1)
        begin = np.searchsorted(cut, cuts[lanes[0]], side="left" if at == 0 else "right")
        stop = np.searchsorted(cut, cuts[lanes[-1]], side="right")
        here = job[begin:stop]
        if not len(here):
            continue
        node = g.number[here]
        first, last = int(node.min()), int(end[lanes[-1]])
        downstream_totals_by_cutoff(
            g.out0, g.child, weight, own, submit_s, first, max(last, first + 1), cuts[lanes], total
        )
        above = np.searchsorted(cuts[lanes], cut[begin:stop], side="left")
        below = np.where(cuts[lanes][above] == cut[begin:stop], above, above - 1)
        # a job counts itself, though a cut-off below its own may lie before its submission
        itself = np.where(submit_s[node] <= cuts[lanes][below], 0.0, own[node])
        low[here], high[here] = total[node, below] + itself, total[node, above]
    return Bounds(low, high)


def _checked(value: F8) -> F8:
    if len(value) and not (value.min() >= 0 and np.isfinite(value.max())):
        raise InputError(f"every value must be finite and at least 0; found {value.min()}")
    return value


def count_downstream(
    edges: Dependencies, within: Window | None = None, *, numbered: Graph | None = None
) -> F8:
    """Return the number of jobs that depend on each job, directly or not."""
    from sim.lineage.kernels.flows import BITS, count_reached  # loads numba
    from sim.workload.kernels.paths import by_child

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
    job = job[np.argsort(g.number[job], kind="stable")]
    reached = np.zeros(n, np.int64)
    for at in range(0, len(job), BITS):
        here = job[at : at + BITS]
        out[here] = count_reached(
            in0, parent, g.number[here], int(last[here].max()), submit_s, cut_s[here], reached
        )
    return out


N_SOURCES: Final = 200
"""Jobs that a profile draws."""
_MOST_ROUNDS = 31  # paths of 2^31 hops: more than there are jobs


def value_by_round(
    edges: Dependencies, value: F8, numbered: Graph, sources: I4, within: Window | None = None
) -> F8:
    """Return aggregate values after 0, 1, … rounds of Algorithm 1, up to convergence.

    After round 0 it is the local value, after round k ≥ 1 that of all paths of at most 2^k hops.
    """
    from sim.lineage.kernels.flows import added_by_round  # loads numba

    g, n = numbered, edges.n_jobs
    submit_s = np.zeros(n) if within is None else within.submit_s
    cut_s = np.zeros(len(sources)) if within is None else within.cut_s[sources]
    added = added_by_round(
        g.out0, g.child, share_of_inputs(edges)[g.edge], value[g.row],
        submit_s[g.row], g.number[sources], g.end(submit_s, cut_s), cut_s, _MOST_ROUNDS,
    )  # fmt: skip
    some = np.flatnonzero(added.any(axis=0))
    n_rounds = int(some[-1]) + 1 if len(some) else 1
    return np.cumsum(added[:, :n_rounds], axis=1)


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
