"""How long a rigid job is taken to run: as requested, in truth, or as its user's last jobs."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.errors import InputError
from sim.engine.plan import Batch, Event, Plan, World
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
        self.predicted = self.requested.copy()
        self.user = columns.job_user
        self.width: I8 = columns.job_n_tasks
        self.first = self.requested.copy()
        self.corrections = np.zeros(len(self.user), dtype=np.int64)
        self.last: dict[int, tuple[float, ...]] = {}

    def look(self, batch: Batch, world: World, plan: Plan) -> list[int]:
        """Learn from what has happened; return the jobs whose prediction is another."""
        changed = []
        for kind, j in zip(batch.kind.tolist(), batch.row.tolist(), strict=True):
            if kind == Event.JOB_DONE:
                ran = batch.now - world.view["start"].item(j)
                user = self.user.item(j)
                self.last[user] = (*self.last.get(user, ()), ran)[-2:]
            elif kind == Event.JOB_ARRIVED:
                last = self.last.get(self.user.item(j), ())
                if len(last) == 2:
                    self._predict(j, (last[0] + last[1]) / 2, plan)
                    self.first[j] = self.predicted[j]
                changed.append(j)
            elif kind == Event.SERVICE:
                n = self.corrections.item(j)
                self.corrections[j] = n + 1
                more = MORE_S[n] if n < len(MORE_S) else np.inf
                self._predict(j, self.first.item(j) + more, plan)
                changed.append(j)
        return changed

    def _predict(self, j: int, seconds: float, plan: Plan) -> None:
        """Expect job `j` to run so long, and have it said when it has."""
        requested = self.requested.item(j)
        seconds = min(seconds, requested)
        self.predicted[j] = seconds
        wanted = seconds * self.width.item(j) if seconds < requested else np.inf
        plan.set_jobs(j, service_at=wanted)
