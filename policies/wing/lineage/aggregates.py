"""Linear aggregates over downstream jobs, such as value, computed without the closure.

An aggregate over everything downstream, Σ_d A(j, d) · k_d with A(j, d) = Σ over paths of Π of edge
weights (§4.5.1), is what Algorithm 1 computes with (×, +) and a summing ds_op. A is the closure
W + W² + … of the matrix W of edge weights, so that

    t = W (k + t)        for the totals t_j = Σ_d A(j, d) k_d,

and as every edge leads to a higher topological number, one pass from the last job to the first
solves it exactly: each t_j needs only totals of higher numbers. No pair is ever formed.

With the window ω the sum runs over downstream jobs that are submitted by the cut-off
c_j = finish_j + ω of *its own source*, so that one pass serves jobs of one cut-off only:

    t^c = W (k·[submit ≤ c] + t^c),        needed: t_j at c = c_j for each j.

Three facts make this cheap, and exact to the bit:

1. *Monotonicity.* With no negative k and W, t^c does not fall as c grows. Rounded sums and products
   are monotone too, so this holds for the floating-point numbers, each computed in the same order.
   So if a pass at a ≤ c_j and one at b ≥ c_j give the same t_j, a pass at c_j gives that number.
2. *Lanes.* A pass is limited by memory bandwidth, so eight cut-offs cost little more than one. And
   a pass can stop at the number from which all jobs are submitted after the cut-off.
3. *Rows.* The jobs left over have some downstream value between their two cut-offs. Those that
   reach few jobs are solved row by row: a search from the job visits the jobs that it reaches, adds
   in the same order as a pass, and forms no pair either. Those that reach many get a lane under
   their exact cut-off.

So the cost does not depend on the closure's size: at worst a lane for each distinct cut-off.
The cut-offs of passes are spaced evenly among the jobs' own, so every job lies between two
neighbours. `aggregate_bounds` stops after step 2 and returns both numbers: a rigorous interval at a
fixed cost.

`count_downstream` returns the same counts as Algorithm 1 would: a pass in topological order serves
62 sources at once, one bit each. `convergence` is Fig. 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from policies.wing.lineage.dependencies import Dependencies, Graph, Window, graph, share_of_inputs
from sim.base.arrays import F8, I4, Mask
from sim.base.errors import InputError
from sim.base.random import stream

JOBS_PER_CUT = 200
"""Number of jobs that share the two cut-offs enclosing their own."""
ROW_BUDGET = 20_000
"""Maximum number of jobs a search visits; beyond it, a lane costs less."""


def aggregate(
    edges: Dependencies,
    value: F8,
    *,
    within: Window | None = None,
    dag: Graph | None = None,
    jobs_per_cut: int = JOBS_PER_CUT,
) -> F8:
    """Compute each job's own value plus its share of the value of everything downstream."""
    from policies.wing.lineage.kernels.flows import (  # loads numba
        downstream_totals,
        totals_by_search,
    )

    dag = graph(edges) if dag is None else dag
    weight = share_of_inputs(edges)[dag.edge]
    values = _check_values(value)[dag.row]
    if within is None:
        total = downstream_totals(dag.out0, dag.child, weight, values)
        return total[dag.number]
    enclosed = _enclose(dag, weight, values, within, within.valid, jobs_per_cut)
    low, open_jobs = enclosed.low, np.flatnonzero(enclosed.low != enclosed.high)
    if len(open_jobs):
        low[open_jobs] = totals_by_search(
            dag.out0, dag.child, weight, values, within.submit_s[dag.row], dag.number[open_jobs],
            dag.end(within.submit_s, within.cut_s[open_jobs]), within.cut_s[open_jobs], ROW_BUDGET,
        )  # fmt: skip
        large = np.isnan(low)
        low = np.where(large, _enclose(dag, weight, values, within, large, 1).low, low)
    return np.where(within.valid, low, np.nan)


@dataclass(frozen=True, eq=False)
class Bounds:
    """An interval for each job's aggregate; (N,) float64 each, NaN for jobs that are not valid."""

    low: F8
    high: F8


def aggregate_bounds(
    edges: Dependencies,
    value: F8,
    within: Window,
    *,
    dag: Graph | None = None,
    jobs_per_cut: int = JOBS_PER_CUT,
) -> Bounds:
    """Compute an interval around `aggregate`'s result; its cost doesn't grow with the closure."""
    dag = graph(edges) if dag is None else dag
    values = _check_values(value)[dag.row]
    enclosed = _enclose(
        dag, share_of_inputs(edges)[dag.edge], values, within, within.valid, jobs_per_cut
    )
    return Bounds(
        np.where(within.valid, enclosed.low, np.nan), np.where(within.valid, enclosed.high, np.nan)
    )


def _enclose(
    dag: Graph, weight: F8, values: F8, within: Window, selected: Mask, jobs_per_cut: int
) -> Bounds:
    """Compute the totals of the selected jobs under the cut-offs just below and above their own."""
    from policies.wing.lineage.kernels.flows import (  # loads numba
        LANES,
        downstream_totals_by_cutoff,
    )

    if jobs_per_cut < 1:
        raise InputError(f"jobs_per_cut must be at least 1, not {jobs_per_cut}")
    n = len(dag.row)
    low, high = np.zeros(n), np.zeros(n)
    ordered = np.flatnonzero(selected)
    if not len(ordered):
        return Bounds(low, high)
    ordered = ordered[np.argsort(within.cut_s[ordered], kind="stable")]
    ordered_cut_s = within.cut_s[ordered]
    cuts = np.unique(np.append(ordered_cut_s[::jobs_per_cut], ordered_cut_s[-1]))
    submit_s = within.submit_s[dag.row]
    end = dag.end(within.submit_s, cuts)
    total = np.zeros((n, LANES))
    step = LANES - 1  # neighbouring passes share a cut-off
    for first_cut in range(0, max(len(cuts) - 1, 1), step):
        lanes = np.minimum(np.arange(first_cut, first_cut + LANES), len(cuts) - 1)
        begin = np.searchsorted(
            ordered_cut_s, cuts[lanes[0]], side="left" if first_cut == 0 else "right"
        )
        stop = np.searchsorted(ordered_cut_s, cuts[lanes[-1]], side="right")
        jobs = ordered[begin:stop]
        if not len(jobs):
            continue
        node = dag.number[jobs]
        first, last = int(node.min()), int(end[lanes[-1]])
        downstream_totals_by_cutoff(
            dag.out0,
            dag.child,
            weight,
            values,
            submit_s,
            first,
            max(last, first + 1),
            cuts[lanes],
            total,
        )
        above = np.searchsorted(cuts[lanes], ordered_cut_s[begin:stop], side="left")
        below = np.where(cuts[lanes][above] == ordered_cut_s[begin:stop], above, above - 1)
        # a job counts itself, though a cut-off below its own may lie before its submission
        own_value = np.where(submit_s[node] <= cuts[lanes][below], 0.0, values[node])
        low[jobs], high[jobs] = total[node, below] + own_value, total[node, above]
    return Bounds(low, high)


def _check_values(value: F8) -> F8:
    bad = ~((value >= 0) & np.isfinite(value))
    if bad.any():
        raise InputError(f"every value must be finite and at least 0, not {value[bad][0]:g}")
    return value


def count_downstream(
    edges: Dependencies, within: Window | None = None, *, dag: Graph | None = None
) -> F8:
    """Return the number of jobs that depend on each job, directly or not."""
    from policies.wing.lineage.kernels.flows import BITS, count_reached  # loads numba
    from sim.workload.kernels.paths import by_child

    dag = graph(edges) if dag is None else dag
    n = edges.n_jobs
    in0, order = by_child(n, dag.child)
    parent = np.repeat(np.arange(n, dtype=np.int32), np.diff(dag.out0))[order]
    submit_s = np.zeros(n) if within is None else within.submit_s[dag.row]
    cut_s = np.zeros(n) if within is None else within.cut_s
    end = np.full(n, n, np.int32) if within is None else dag.end(within.submit_s, cut_s)
    out = np.zeros(n)
    counted = edges.n_downstream() > 0
    if within is not None:
        out[~within.valid] = np.nan
        counted &= within.valid
    ordered = np.flatnonzero(counted)
    ordered = ordered[np.argsort(dag.number[ordered], kind="stable")]
    reached = np.zeros(n, np.int64)
    for batch in range(0, len(ordered), BITS):
        jobs = ordered[batch : batch + BITS]
        out[jobs] = count_reached(
            in0, parent, dag.number[jobs], int(end[jobs].max()), submit_s, cut_s[jobs], reached
        )
    return out


N_SOURCES: Final = 200
"""Number of jobs that `convergence` samples."""
_MAX_ROUNDS = 31  # paths of 2^31 hops: more than there are jobs


def value_by_round(
    edges: Dependencies, value: F8, dag: Graph, sources: I4, within: Window | None = None
) -> F8:
    """Compute aggregate values after 0, 1, … rounds of Algorithm 1, up to convergence.

    Round 0 gives the local value, round k ≥ 1 the value over all paths of at most 2^k hops.
    """
    from policies.wing.lineage.kernels.flows import added_by_round  # loads numba

    n = edges.n_jobs
    submit_s = np.zeros(n) if within is None else within.submit_s
    cut_s = np.zeros(len(sources)) if within is None else within.cut_s[sources]
    added = added_by_round(
        dag.out0, dag.child, share_of_inputs(edges)[dag.edge], value[dag.row],
        submit_s[dag.row], dag.number[sources], dag.end(submit_s, cut_s), cut_s, _MAX_ROUNDS,
    )  # fmt: skip
    rounds = np.flatnonzero(added.any(axis=0))
    n_rounds = int(rounds[-1]) + 1 if len(rounds) else 1
    return np.cumsum(added[:, :n_rounds], axis=1)


def convergence(
    edges: Dependencies,
    value: F8,
    dag: Graph,
    within: Window | None = None,
    *,
    n_sources: int = N_SOURCES,
    seed: int = 0,
) -> pa.Table:
    """Return the share of aggregate value found by each round, over jobs drawn at random."""
    valid = np.ones(edges.n_jobs, bool) if within is None else within.valid
    drawn = stream(seed, "lineage", "convergence").permutation(np.flatnonzero(valid))[:n_sources]
    sources = np.sort(drawn).astype(np.int32)
    values = value_by_round(edges, value, dag, sources, within)
    last = values[:, -1]
    has_value = last > 0
    if not has_value.any():
        values, last, has_value = np.ones((1, 1)), np.ones(1), np.ones(1, bool)
    return pa.table(
        {
            "round": np.arange(values.shape[1], dtype=np.int32),
            "found": values.sum(axis=0) / last.sum(),
            "found_per_job": (values[has_value] / last[has_value, None]).mean(axis=0),
        }
    )
