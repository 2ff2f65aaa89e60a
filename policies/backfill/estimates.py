"""How long a rigid job is taken to run: as requested, in truth, or as its user's last jobs."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.engine.plan import Batch, Event
from sim.workload.columns import Columns
from sim.workload.paths import critical_path_s

MORE_S = (60.0, 300.0, 900.0, 1800.0, *(3600.0 * hours for hours in (1, 2, 5, 10, 20, 50, 100)))
"""What is added to a prediction that proves too short, time after time (predictsim, SC 2015)."""


def requested_s(columns: Columns) -> F8:
    """Return what the users asked for; for those who did not say, the most that anyone did: (J,) s.

    Raises
    ------
    InputError
        If nobody said.
    """
    asked = columns.job_requested
    known = np.isfinite(asked)
    if len(asked) and not known.any():
        raise InputError(
            "backfilling with policy.estimate=requested or predicted needs the time that users ask "
            "for, the column requested_s of jobs, and no job has one; take policy.estimate=true, "
            "or a trace that has it (swf, sacct)",
            rule="no requested time",
        )
    return np.where(known, asked, np.max(asked[known], initial=0.0))


def true_s(columns: Columns) -> F8:
    """Return how long each job runs once all of its tasks have started: (J,) s."""
    return critical_path_s(columns)


class UserHistory:
    """Predictions by the last two jobs of the same user that have ended (TPDS 2007).

    Their mean, and no more than requested, which is what counts until there are two. A job that
    outlives its prediction gets `MORE_S`, and no more than requested, on top of the first one.
    """

    def __init__(self, columns: Columns) -> None:
        self.requested = requested_s(columns)
        self.first = self.requested.copy()  # prediction, s
        self.predicted = self.requested.copy()
        self.corrected = np.zeros(len(self.requested), dtype=np.int64)
        self.user = columns.job_user
        self.last: dict[int, tuple[float, ...]] = {}  # run times of each user's last two, s

    def learn(self, batch: Batch, start_s: F8) -> list[int]:
        """Take note of what has happened; return the jobs that have another prediction now."""
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
                n = self.corrected.item(j)
                more = MORE_S[n] if n < len(MORE_S) else np.inf
                self.predicted[j] = min(self.first.item(j) + more, requested)
                self.corrected[j] = n + 1
                changed.append(j)
        return changed

    def outlived_s(self, j: int) -> float:
        """Return after how long job `j` will have outlived its prediction; inf if it may not."""
        seconds = self.predicted.item(j)
        return seconds if seconds < self.requested.item(j) else np.inf
