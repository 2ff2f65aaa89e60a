"""Limits of run time of the naive simulator: every job is looked at, at every instant."""

from __future__ import annotations

import math

import numpy as np


class Limits:
    """Mix-in of `tests.sim.engine.reference`: jobs that are ended at their limit."""

    def _init_limits(self, cluster):
        requested = self.c.job_requested.tolist()
        self.limit_s = [
            x if cluster.enforce_limits and not math.isnan(x) else math.inf for x in requested
        ]
        self.enforces = min(self.limit_s, default=math.inf) < math.inf

    def _limit_end(self, j):
        """Return when job j is to be ended; inf if it has not started, is over, or has no limit."""
        start = float(self.view["start"][j])
        if math.isnan(start) or self.view["left"][j] == 0:
            return math.inf
        return start + self.limit_s[j]

    def _time_out_jobs(self):
        for j in range(self.n_jobs):
            if self._limit_end(j) <= self.now:
                self._end_early(j, "timeout", 2)

    def _end_early(self, j, reason, why):
        """Stop what runs of job j, give back what it holds, and let it fail."""
        forgotten = []
        for entry in [e for e in self.running if self.c.stage_job[e[2]] == j]:
            self._stop_task(entry, reason)
            forgotten.append(entry[1])
        tasks = [
            task
            for g in self.job_stages[j]
            for task in range(int(self.c.stage_task0[g]), int(self.c.stage_task0[g + 1]))
        ]
        forgotten += [t for t in tasks if t in self.rerun and not self.task_done[t]]
        for task in forgotten:
            self.task_start[task] = self.task_finish[task] = np.nan
            self.task_machine[task] = -1
        self._release_slots(j)
        self.view["left"][j] = 0
        self._note_running(j)
        self.view["finish"][j] = self.now
        self._fail(j, why=why)

    def _output_s(self, i):
        """Return when the output of job i was made; NaN if it is not, or never will be."""
        return math.nan if self.view["failed"][i] else float(self.view["finish"][i])
