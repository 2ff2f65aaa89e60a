"""Analyses by the four functions that define each, besides that of value."""

from __future__ import annotations

import numpy as np

from policies.wing.lineage.analyses import Functions
from policies.wing.lineage.dependencies import Dependencies
from sim.base.arrays import F8


def _ones(edges: Dependencies) -> F8:
    return np.ones(len(edges))


N_DOWNSTREAM = Functions(
    _ones, np.multiply, np.maximum, lambda p: np.diff(p.row0).astype(np.float64)
)
"""Number of downstream jobs."""
LONGEST_CHAIN = Functions(_ones, np.add, np.maximum, lambda p: p.reduce(np.maximum, p.weight, 0.0))
"""Number of hops of the longest path that starts at a job."""


def most_probable_path(probability: F8) -> Functions:
    """Compute the probability of the most probable path to a downstream job; (E,) per edge."""
    return Functions(
        lambda edges: probability,
        np.multiply,
        np.maximum,
        lambda p: p.reduce(np.maximum, p.weight, 0.0),
    )


def earliest_arrival(submit_s: F8) -> Functions:
    """Compute the time from a job's submission to its first downstream arrival, s; inf if none."""
    return Functions(
        lambda edges: submit_s[edges.downstream] - submit_s[edges.upstream],
        np.add,
        np.minimum,
        lambda p: p.reduce(np.minimum, p.weight, np.inf),
    )
