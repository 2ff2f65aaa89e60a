"""Wing's Algorithm 1 (Chung et al., OSDI 2020, §4.4): multi-hop analysis by doubling, as joins.

An analysis is four functions (`Functions`). The printed pseudocode subtracts a table from another
whose weights are grouped already, which can be read in more than one way. What is meant: with F₀
the weighted single-hop edges and B₀ empty,

    F_{i+1} = F_i ⊗ F_i                  paths of exactly 2^{i+1} hops
    B_{i+1} = B_i ⊕ F_i ⊕ F_i ⊗ B_i      all shorter ones

where ⊗ joins two tables where paths meet and combines weights by ``e_op``, and ⊕ puts tables
together and groups equal pairs by ``p_op``. Both are associative and ⊗ distributes over ⊕, so every
path is counted once, whatever was grouped before. It ends when F is empty, after O(log diameter)
rounds, and B is the answer. `algorithm_1` is this, literally, in memory as a whole;
`sim.lineage.multi_hop` gives the same answer row by row and is tested against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sim.base.arrays import F8, I4, I8, ranges
from sim.base.errors import InputError
from sim.base.random import stream
from sim.lineage.dependencies import Dependencies, WeightFunction, share_of_inputs

_TRIALS = 200
_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows of the closure: jobs, and what each reaches."""

    upstream: I4  # rows of the job table
    row0: I8  # first place of each one's pairs
    downstream: I4  # whom it reaches; each once
    weight: F8  # weights aggregated along and over all paths

    def reduce(self, operation: Any, values: F8, empty: float) -> F8:
        """Return `operation` (a ufunc) over each one's `values`, (P,); `empty` if it has none."""
        out = np.full(len(self.upstream), empty)
        some = self.row0[1:] > self.row0[:-1]
        if some.any():
            out[some] = operation.reduceat(values, self.row0[:-1][some])
        return out


@dataclass(frozen=True)
class Functions:
    """What an analysis computes."""

    wt_fn: WeightFunction  # weights of edges: from `Dependencies` to (E,) float64
    e_op: Any  # combines the weights of two legs of a path; distributes over `p_op`
    # combines the weights of two paths between the same jobs. Both are associative; functions of
    # your own become ufuncs by ``numpy.frompyfunc(f, 2, 1)``
    p_op: Any
    # aggregates over everything downstream: from `Pairs` to (S,) float64
    ds_op: Callable[[Pairs], F8]


def check(functions: Functions) -> None:
    """Try the laws that Algorithm 1 rests on, on random numbers."""
    e, p = functions.e_op, functions.p_op
    x, y, z = stream(0, "lineage", "laws").uniform(0.01, 4.0, (3, _TRIALS))
    laws = {
        "e_op is not associative": (e(e(x, y), z), e(x, e(y, z))),
        "p_op is not associative": (p(p(x, y), z), p(x, p(y, z))),
        "p_op is not commutative": (p(x, y), p(y, x)),
        "e_op does not distribute over p_op from the left": (e(x, p(y, z)), p(e(x, y), e(x, z))),
        "e_op does not distribute over p_op from the right": (e(p(x, y), z), p(e(x, z), e(y, z))),
    }
    for law, (a, b) in laws.items():
        differ = ~np.isclose(np.asarray(a, float), np.asarray(b, float), rtol=_TOLERANCE, atol=0)
        if differ.any():
            at = int(np.flatnonzero(differ)[0])
            raise InputError(
                f"{law}: {x[at]:.4g}, {y[at]:.4g}, {z[at]:.4g} give {a[at]} one way and {b[at]} "
                f"the other; without it paths can't be aggregated as they are found",
                rule="algebra",
            )


def value_of(value: F8) -> Functions:
    """Sum `value`, (N,), over downstream jobs by the shares that reach the source (§4.5.2).

    The source's own value is not in it.
    """
    return Functions(
        share_of_inputs,
        np.multiply,
        np.add,
        lambda p: p.reduce(np.add, p.weight * value[p.downstream], 0.0),
    )


def _ones(edges: Dependencies) -> F8:
    return np.ones(len(edges))


N_DOWNSTREAM: Final = Functions(
    _ones, np.multiply, np.maximum, lambda p: np.diff(p.row0).astype(np.float64)
)
"""Number of downstream jobs."""
LONGEST_CHAIN: Final = Functions(
    _ones, np.add, np.maximum, lambda p: p.reduce(np.maximum, p.weight, 0.0)
)
"""Hops of the longest path that starts at a job."""


def most_probable(probability: F8) -> Functions:
    """Find the most probable path to any downstream job, by each edge's `probability`, (E,)."""
    return Functions(
        lambda edges: probability,
        np.multiply,
        np.maximum,
        lambda p: p.reduce(np.maximum, p.weight, 0.0),
    )


def earliest_arrival(submit_s: F8) -> Functions:
    """Find how soon after a job's submission a downstream job arrives, s; infinite if none does."""
    return Functions(
        lambda edges: submit_s[edges.downstream] - submit_s[edges.upstream],
        np.add,
        np.minimum,
        lambda p: p.reduce(np.minimum, p.weight, np.inf),
    )


Table = tuple[I4, I4, F8]
"""Pairs: upstream, downstream, weight."""


def algorithm_1(edges: Dependencies, functions: Functions, rounds: int | None = None) -> Table:
    """Return all pairs by doubling, as joins: (upstream, downstream, weight), sorted."""
    check_rounds(rounds)
    check(functions)
    n = edges.n_jobs
    frontier = single_hops(edges, functions)
    base: Table = (edges.upstream[:0], edges.downstream[:0], np.empty(0))
    if rounds == 0:
        return base
    i = 0
    while len(frontier[0]) and (rounds is None or i < rounds):
        reach = joined(frontier, base, functions.e_op)
        base = grouped(n, [base, frontier, reach], functions.p_op)
        frontier = grouped(n, [joined(frontier, frontier, functions.e_op)], functions.p_op)
        i += 1
    return grouped(n, [base, frontier], functions.p_op)


def single_hops(edges: Dependencies, functions: Functions) -> Table:
    """Return the weighted edges."""
    return edges.upstream, edges.downstream, np.asarray(functions.wt_fn(edges), np.float64)


def joined(left: Table, right: Table, e_op: Any) -> Table:
    """Join paths that meet: ``left.downstream == right.upstream`` (extend_reach)."""
    order = np.argsort(right[0], kind="stable")
    keys = right[0][order]
    first = np.searchsorted(keys, left[1], side="left")
    count = np.searchsorted(keys, left[1], side="right") - first
    a = np.repeat(np.arange(len(left[0])), count)
    b = order[ranges(first, first + count)]
    return left[0][a], right[1][b], np.asarray(e_op(left[2][a], right[2][b]), np.float64)


def grouped(n: int, tables: list[Table], p_op: Any) -> Table:
    """Put tables together and group equal pairs by p_op."""
    up, down, wt = (np.concatenate([t[i] for t in tables]) for i in range(3))
    if not len(up):
        return up, down, wt
    key = up.astype(np.int64) * n + down
    order = np.argsort(key, kind="stable")
    key = key[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    weight = np.asarray(p_op.reduceat(wt[order], first), np.float64)
    return up[order][first], down[order][first], weight


def check_rounds(rounds: int | None) -> None:
    """Refuse a negative number of rounds."""
    if rounds is not None and rounds < 0:
        raise InputError(f"rounds must be at least 0, not {rounds}")
