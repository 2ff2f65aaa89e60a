"""Hard shares of queues: how much of its queue's share is in use over time."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.cluster.exclusive import with_parts
from sim.engine.layout.columns import organisations
from sweep.questions.why.attempts import Attempts
from sweep.questions.why.steps import Steps, from_changes


class Shares:
    """Use of each queue, where the cluster's queues have hard shares."""

    def __init__(self, attempts: Attempts) -> None:
        self._a = attempts
        run = attempts.run
        self.are_hard = run.cluster.queue_mode == "hard"
        if not self.are_hard:
            return
        columns, cluster = with_parts(run.workload.columns, run.cluster)
        total = attempts.capacity.sum(axis=0)
        self.organisation, self._cap, _ = organisations(
            columns, cluster, total, attempts.resources, None
        )
        self._known: dict[int, tuple[Steps, ...]] = {}

    def use(self, job: int) -> tuple[Steps, ...]:
        """Return the use of its queue, a curve a resource, in quanta; none without hard shares."""
        if not self.are_hard:
            return ()
        org = int(self.organisation[job])
        if org not in self._known:
            a = self._a
            rows = np.flatnonzero(self.organisation[a.job] == org)
            amounts = a.demand[a.stage[rows]] * a.count[rows, None]
            self._known[org] = tuple(
                from_changes(a.placed_s[rows], a.held_s[rows], amounts[:, r])
                for r in range(amounts.shape[1])
            )
        return self._known[org]

    def is_over(self, job: int, demand: I8, times: F8) -> Mask:
        """Tell at which times a demand would exceed the share of its queue."""
        over = np.zeros(len(times), np.bool_)
        for r, curve in enumerate(self.use(job)):
            over |= curve.values_at(times) + demand[r] > self._cap[int(self.organisation[job]), r]
        return over
