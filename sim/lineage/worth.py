"""What jobs turned out to be worth, with all that depended on them: as columns of a workload.

Policies after Wing (Chung et al., OSDI 2020) learn from jobs of the past what jobs of a program are
worth, and their oracles know it of every job. So a workload's ``history`` and ``jobs`` have, beside
the columns of `sim.schema`, those of `COLUMNS`; ``history`` also has ``template``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sim.lineage.dependencies import plain_edges
from sim.lineage.fast import aggregate
from sim.lineage.functions import value_of
from sim.lineage.graph import OMEGA_S, Window, window
from sim.lineage.multi_hop import multi_hop

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

COLUMNS: Final = ("value", "compute_s", "agg_value", "agg_compute_s")
"""Downloads of a job's output; resources held × time; and both with the shares of all jobs
downstream that are submitted within ω of its end (§4.5.1): each job shares its own equally among
those that it depends on. In ``jobs`` only oracles may look at them."""


@dataclass(frozen=True, eq=False)
class Past:
    """N jobs in order of submission, E dependencies and D downloads.

    Attributes
    ----------
    submit_s, finish_s, compute_s : (N,) float64
        When, till when, and resources held × time.
    up, down : (E,) int64
        Rows of jobs; ``down`` depends on ``up``.
    taken, times_s, n : (D,) int64, float64, int64
        Of which job output is downloaded, when, and how often.
    """

    submit_s: F8
    finish_s: F8
    compute_s: F8
    up: I8
    down: I8
    taken: I8
    times_s: F8
    n: I8

    def until(self, end_s: float) -> tuple[I8, Past]:
        """Return the rows of jobs that had ended before a time, and what was known of them."""
        ended = self.finish_s < end_s
        rows = np.flatnonzero(ended)
        number = np.cumsum(ended) - 1
        edge = ended[self.up] & ended[self.down]
        load = ended[self.taken] & (self.times_s < end_s)
        return rows, Past(
            self.submit_s[rows],
            self.finish_s[rows],
            self.compute_s[rows],
            number[self.up[edge]],
            number[self.down[edge]],
            number[self.taken[load]],
            self.times_s[load],
            self.n[load],
        )

    def columns(
        self, end_s: float | None = None, rounds: int | None = None, omega_s: float = OMEGA_S
    ) -> dict[str, Any]:
        """Return `COLUMNS`, (N,) float64 each.

        Parameters
        ----------
        end_s : float, optional
            End of observation: aggregates of jobs that ended less than `omega_s` before it are NaN,
            as not all that depends on them was seen. Left out, all count.
        rounds : int, optional
            Of Algorithm 1: paths of at most 2^rounds hops; 0 is the job alone. Left out, all.
        omega_s : float
            ω, s.
        """
        within = window(self.submit_s, self.finish_s, omega_s, end_s)
        if end_s is None:
            valid = np.ones(len(self.submit_s), dtype=bool)
            within = Window(within.submit_s, within.cut_s, valid)
        value = np.bincount(self.taken, self.n, len(self.submit_s)).astype(np.float64)
        own = {"value": value, "compute_s": self.compute_s}
        edges = plain_edges(len(value), self.up, self.down)
        if rounds is None:
            total = {f"agg_{k}": aggregate(edges, x, within=within) for k, x in own.items()}
        else:
            total = {
                f"agg_{k}": x + multi_hop(edges, value_of(x), within=within, rounds=rounds)
                for k, x in own.items()
            }
        return own | total
