"""Multi-hop analyses: the four functions of each (Chung et al., OSDI 2020, §4.4).

Wing's Algorithm 1 takes the functions that its user gives: weights of edges, how weights combine
along a path and over paths, and an aggregate of everything downstream. `sim.lineage.multi_hop`
computes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sim.base.arrays import F8, I4, I8
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
    """The functions of an analysis."""

    wt_fn: WeightFunction  # weights of edges: from `Dependencies` to (E,) float64
    e_op: Any  # combines the weights of two legs of a path; distributes over `p_op`
    # combines the weights of two paths between the same jobs. Both are associative; functions of
    # your own become ufuncs by ``numpy.frompyfunc(f, 2, 1)``
    p_op: Any
    # aggregates over everything downstream: from `Pairs` to (S,) float64
    ds_op: Callable[[Pairs], F8]


def check(functions: Functions) -> None:
    """Refuse functions that break a law that Algorithm 1 rests on, tried on random numbers."""
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


def value_functions(value: F8) -> Functions:
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


def most_probable_path(probability: F8) -> Functions:
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
