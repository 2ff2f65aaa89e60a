"""Multi-hop analyses: the four functions that define each (Chung et al., OSDI 2020, §4.4).

Wing's Algorithm 1 takes four functions from its user: edge weights, the operation that combines
weights along a path, the one that combines them over paths, and an aggregate of everything
downstream. `policies.wing.lineage.multi_hop` computes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from policies.wing.lineage.dependencies import WeightFunction, share_of_inputs
from sim.base.arrays import F8, I4, I8
from sim.base.errors import InputError
from sim.base.random import stream

_TRIALS = 200
_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows of the closure: source jobs, and the downstream jobs that each reaches."""

    upstream: I4  # rows of the job table
    row0: I8  # first index of each source's pairs, (S + 1,)
    downstream: I4  # jobs reached, each once a source
    weight: F8  # weights aggregated along paths and over all paths

    def reduce(self, operation: Any, values: F8, empty: float) -> F8:
        """Reduce each source's `values`, (P,), by the ufunc `operation`; `empty` without pairs."""
        out = np.full(len(self.upstream), empty)
        non_empty = self.row0[1:] > self.row0[:-1]
        if non_empty.any():
            out[non_empty] = operation.reduceat(values, self.row0[:-1][non_empty])
        return out


@dataclass(frozen=True)
class Functions:
    """The four functions of an analysis."""

    wt_fn: WeightFunction  # weights of edges: from `Dependencies` to (E,) float64
    e_op: Any  # combines the weights of two legs of a path; distributes over `p_op`
    # combines the weights of two paths between the same jobs. Both are associative; turn functions
    # of your own into ufuncs with ``numpy.frompyfunc(f, 2, 1)``
    p_op: Any
    # aggregates over everything downstream: from `Pairs` to (S,) float64
    ds_op: Callable[[Pairs], F8]


def check_laws(functions: Functions) -> None:
    """Test the algebraic laws that Algorithm 1 relies on with random numbers; refuse violations."""
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
            trial = int(np.flatnonzero(differ)[0])
            raise InputError(
                f"{law}: {x[trial]:.4g}, {y[trial]:.4g}, {z[trial]:.4g} give {a[trial]} one way "
                f"and {b[trial]} the other; Algorithm 1 needs this law to combine partial paths",
                rule="algebra",
            )


def value_functions(value: F8) -> Functions:
    """Sum `value`, (N,), over downstream jobs, weighted by the source's share in each (§4.5.2).

    The sum excludes the source's own value.
    """
    return Functions(
        share_of_inputs,
        np.multiply,
        np.add,
        lambda p: p.reduce(np.add, p.weight * value[p.downstream], 0.0),
    )
