"""Caps of users, accounts and others (``cluster.limits``): how much of each is in use over time."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.cluster.cap_groups import amounts, cap_groups
from sim.cluster.caps import JOBS, MINUTES, SUBMITTED, is_licence
from sweep.questions.why.attempts import Attempts
from sweep.questions.why.steps import Steps, from_changes


class Caps:
    """Use of the counters that a job shares with others; those of minutes are left out."""

    def __init__(self, attempts: Attempts) -> None:
        self._a, self._known = attempts, dict[int, Steps]()
        columns, cluster = attempts.run.workload.columns, attempts.run.cluster
        self._groups = cap_groups(columns, cluster)
        quantum = dict(zip(columns.resources, columns.quantum.tolist(), strict=True))
        self._quantum = {name: quantum.get(name, 1.0) for name in attempts.resources}
        counted = [row.counted for row in self._groups.caps]
        self._is_told = [
            name != SUBMITTED
            and not name.endswith(MINUTES)
            and (name in JOBS or is_licence(name) or name in attempts.resources)
            for name in counted
        ]

    def groups_of(self, job: int) -> list[int]:
        """Return the groups of a job."""
        groups = self._groups
        own = groups.group[groups.job_group0[job] : groups.job_group0[job + 1]].tolist()
        return [group for group in own if self._is_told[groups.cap[group]]]

    def use(self, job: int) -> list[Steps]:
        """Return the use of each of its groups: jobs, nodes, licences, or quanta of a resource."""
        return [self._use(group) for group in self.groups_of(job)]

    def is_over(self, job: int, demand: I8, times: F8) -> Mask:
        """Tell at which times a demand of a job, in quanta, would exceed a cap."""
        over, groups, a = np.zeros(len(times), np.bool_), self._groups, self._a
        begin_s, _ = self._span(np.array([job]))
        for group in self.groups_of(job):
            row = groups.caps[groups.cap[group]]
            limit = groups.number_at(group, times)
            if row.counted in a.resources:
                r = a.resources.index(row.counted)
                needs: I8 | int = int(demand[r])
                limit = limit / self._quantum[row.counted]
            else:  # it counts from its first start
                needs = np.where(times < begin_s[0], amounts(a.columns, row)[job], 0)
            over |= self._use(group).values_at(times) + needs > limit * (1 + 1e-12) + 1e-9
        return over

    def members(self, job: int) -> Mask:
        """Return the mask of jobs that share a counter with a job, (J,)."""
        member = np.zeros(len(self._groups.job_group0) - 1, np.bool_)
        member[self._groups.jobs()[np.isin(self._groups.group, self.groups_of(job))]] = True
        return member

    def _use(self, group: int) -> Steps:
        if group not in self._known:
            groups, a = self._groups, self._a
            jobs = groups.jobs()[groups.group == group]
            row = groups.caps[groups.cap[group]]
            if row.counted in a.resources:
                rows = np.flatnonzero(np.isin(a.job, jobs))
                use = a.demand[a.stage[rows], a.resources.index(row.counted)] * a.count[rows]
                self._known[group] = from_changes(a.placed_s[rows], a.held_s[rows], use)
            else:
                begin_s, end_s = self._span(jobs)
                ran = np.isfinite(begin_s)
                taken = amounts(a.columns, row)[jobs[ran]]
                self._known[group] = from_changes(begin_s[ran], end_s[ran], taken)
        return self._known[group]

    def _span(self, jobs: I8) -> tuple[F8, F8]:
        """Return when the first attempt of each job took its room, and when the job ended, s."""
        a = self._a
        first = np.full(len(a.job0) - 1, np.inf)
        np.minimum.at(first, a.job, a.placed_s)
        end = a.run.job_finish[jobs]
        return first[jobs], np.where(np.isnan(end), np.inf, end)
