"""The dependency DAG in topological numbers, as the kernels walk it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from sim.base.arrays import F8, I4, I8, Mask
from sim.base.errors import InputError
from sim.lineage.dependencies import Dependencies
from sim.lineage.single_hop import DAY_S

WeightFunction = Callable[[Dependencies], F8]
"""wt_fn: a weight for each edge, from all edges (so from a job and its in-edges)."""

OMEGA_S: Final = 7 * DAY_S
"""The multi-hop window (§4.5.1)."""


@dataclass(frozen=True, eq=False)
class Window:
    """Which pairs of jobs count (§4.5.1)."""

    submit_s: F8  # submission of each job, s
    cut_s: F8  # a job's downstream counts if submitted by then: its completion + ω, s
    valid: Mask  # jobs that complete at least ω before the end of observation


def window(
    submit_s: F8, finish_s: F8, omega_s: float = OMEGA_S, end_s: float | None = None
) -> Window:
    """Make the window of length `omega_s`; observation ends at `end_s`, or the last completion."""
    end = float(finish_s.max(initial=0.0)) if end_s is None else end_s
    return Window(submit_s, finish_s + omega_s, finish_s + omega_s <= end)


@dataclass(frozen=True, eq=False)
class Graph:
    """Jobs numbered so that every edge leads to a higher number, near the order of submission."""

    row: I4  # row of the job table of each number
    number: I4  # the inverse
    out0: I8  # first place of each number's edges in `child`
    child: I4  # the dependent jobs' numbers, ascending for each job
    edge: I8  # the place of each edge in the `Dependencies`

    def end(self, submit_s: F8, cut_s: F8) -> I4:
        """Return, for each cut-off, the number from which on no job is submitted by then.

        So what lies there, or only leads there, can be left out under that cut-off.
        """
        latest = np.minimum.accumulate(submit_s[self.row][::-1])[::-1]
        out: I4 = np.searchsorted(latest, cut_s, side="right").astype(np.int32)
        return out


def graph(edges: Dependencies) -> Graph:
    """Give the jobs numbers in topological order."""
    from sim.lineage.kernels.topological import topological_order
    from sim.workload.kernels.edges import by_child

    n = edges.n_jobs
    if (edges.upstream < edges.downstream).all():
        row = np.arange(n, dtype=np.int32)
        number = row
    else:
        out0, order = by_child(n, edges.upstream)
        row = topological_order(out0, edges.downstream[order])
        if len(row) < n:
            raise InputError(
                "the dependencies form a cycle; sim.lineage.without_cycles breaks it", rule="cycle"
            )
        number = np.empty(n, np.int32)
        number[row] = np.arange(n, dtype=np.int32)
    child = number[edges.downstream]
    _, first = by_child(n, child)
    out0, second = by_child(n, number[edges.upstream][first])
    edge = first[second]
    return Graph(row, number, out0, child[edge], edge)


def share_of_inputs(edges: Dependencies) -> F8:
    """Return 1/N for each edge into a job that depends on N jobs (§4.5.1, equal contribution)."""
    out: F8 = 1.0 / edges.n_upstream()[edges.downstream]
    return out
