"""Run time estimates of rigid jobs: requested, true, or predicted from the user's last jobs."""

from __future__ import annotations

import numpy as np

from policies.estimates.durations import requested_s
from sim.base.arrays import F8
from sim.engine.plan import Batch, Event, Plan
from sim.workload.columns import Columns
from sim.workload.paths import critical_path_s

EXTENSIONS_S = (
    60.0,
    300.0,
    900.0,
    1800.0,
    *(3600.0 * hours for hours in (1, 2, 5, 10, 20, 50, 100)),
)
"""Successive extensions of a prediction that proves too short (predictsim, SC 2015)."""


def expect_runs(columns: Columns, plan: Plan, knowledge: str) -> F8:
    """Set what is expected of each job before the run; return the run times, (J,) s.

    The truth is a job's run time once all of its tasks have started. A job without a request has no
    estimated size.
    """
    is_true = knowledge == "true"
    seconds = critical_path_s(columns) if is_true else requested_s(columns)
    plan.set_jobs(expected_s=seconds)
    plan.estimate_s[:] = (seconds if is_true else columns.job_requested) * columns.job_n_tasks
    return seconds


class UserHistory:
    """Predicted run times: the mean of the same user's last two finished jobs (TPDS 2007).

    A prediction never exceeds the request, which counts until the user has two finished jobs. A job
    that outlives its prediction gets the first prediction plus `EXTENSIONS_S`, one after the other,
    up to the request.
    """

    def __init__(self, columns: Columns) -> None:
        self.requested = requested_s(columns)
        self.first = self.requested.copy()  # prediction, s
        self.predicted = self.requested.copy()
        self.n_corrections = np.zeros(len(self.requested), dtype=np.int64)
        self.user = columns.job_user
        self.last: dict[int, tuple[float, ...]] = {}  # run times of each user's last two, s

    def learn(self, batch: Batch, start_s: F8) -> list[int]:
        """Process events; return the jobs with changed predictions."""
        changed = []
        for kind, j in zip(batch.kind.tolist(), batch.row.tolist(), strict=True):
            last = self.last.get(self.user.item(j), ())
            requested = self.requested.item(j)
            if kind == Event.JOB_DONE:
                self.last[self.user.item(j)] = (*last, batch.now - start_s.item(j))[-2:]
            elif kind == Event.JOB_ARRIVED and len(last) == 2:
                self.first[j] = self.predicted[j] = min((last[0] + last[1]) / 2, requested)
                changed.append(j)
            elif kind == Event.SERVICE:
                n = self.n_corrections.item(j)
                extension_s = EXTENSIONS_S[n] if n < len(EXTENSIONS_S) else np.inf
                self.predicted[j] = min(self.first.item(j) + extension_s, requested)
                self.n_corrections[j] = n + 1
                changed.append(j)
        return changed

    def limit_s(self, j: int) -> float:
        """Return the time after which job `j` outlives its prediction, s; inf at its request."""
        predicted_s = self.predicted.item(j)
        return predicted_s if predicted_s < self.requested.item(j) else np.inf
