"""Caps of users, accounts and others (``cluster.limits``): how much of each is in use over time."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.cluster.cap_groups import amounts, cap_groups
from sim.cluster.caps import JOBS, MINUTES, SUBMITTED, is_licence
from sim.engine.kernels.caps import REFRESH_S
from sweep.questions.why.attempts import Attempts
from sweep.questions.why.steps import Steps, from_changes


class Caps:
    """Use of the counters that a job shares with others."""

    def __init__(self, attempts: Attempts) -> None:
        self._a, self._known = attempts, dict[int, Steps]()
        columns, cluster = attempts.run.workload.columns, attempts.run.cluster
        self._groups = cap_groups(columns, cluster)
        quantum = dict(zip(columns.resources, columns.quantum.tolist(), strict=True))
        self._quantum = {name: quantum.get(name, 1.0) for name in attempts.resources}
        self._is_told = [
            row.resource in attempts.resources
            or (row.counted != SUBMITTED and (row.counted in JOBS or is_licence(row.counted)))
            for row in self._groups.caps
        ]

    def groups_of(self, job: int) -> list[int]:
        """Return the groups of a job whose caps hold for it."""
        groups = self._groups
        entries = slice(groups.job_group0[job], groups.job_group0[job + 1])
        own = groups.group[entries][~groups.is_spared[entries]].tolist()
        return [group for group in own if self._is_told[groups.cap[group]]]

    def use(self, job: int) -> list[Steps]:
        """Return the use of each of its groups: jobs, nodes, licences, quanta, or quanta × s."""
        return [self._use(group) for group in self.groups_of(job)]

    def is_over(self, job: int, demand: I8, times: F8) -> Mask:
        """Tell at which times a demand of a job, in quanta, would exceed a cap."""
        over, groups, a = np.zeros(len(times), np.bool_), self._groups, self._a
        begin_s, _ = self._span(np.array([job]))
        for group in self.groups_of(job):
            row = groups.caps[groups.cap[group]]
            limit = groups.number_at(group, times)
            if row.resource is not None:
                needs: I8 = np.full(len(times), demand[a.resources.index(row.resource)])
                limit = limit / self._quantum[row.resource]
                if row.counted.endswith(MINUTES):
                    needs, limit = needs * self._left(job).values_at(times), 60.0 * limit
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
            if row.resource is not None:
                rows = np.flatnonzero(np.isin(a.job, jobs))
                use = a.demand[a.stage[rows], a.resources.index(row.resource)] * a.count[rows]
                minutes = row.counted.endswith(MINUTES)
                add = self._minutes if minutes else self._amounts
                self._known[group] = add(rows, use)
            else:
                begin_s, end_s = self._span(jobs)
                ran = np.isfinite(begin_s)
                taken = amounts(a.columns, row)[jobs[ran]]
                self._known[group] = from_changes(begin_s[ran], end_s[ran], taken)
        return self._known[group]

    def _amounts(self, rows: I8, use: I8) -> Steps:
        return from_changes(self._a.placed_s[rows], self._a.held_s[rows], use)

    def _minutes(self, rows: I8, use: I8) -> Steps:
        """Return the sum over jobs of what each uses × the time left to its limit."""
        times, changes = [np.zeros(0)], [np.zeros(0, np.int64)]
        for job in np.unique(self._a.job[rows]).tolist():
            own = self._a.job[rows] == job
            used, left = self._amounts(rows[own], use[own]), self._left(job)
            times.append(np.union1d(used.times, left.times))
            product = used.values_at(times[-1]) * left.values_at(times[-1])
            changes.append(np.diff(product, prepend=0))
        all_times = np.concatenate(times)
        order = np.argsort(all_times, kind="stable")
        sums = np.cumsum(np.concatenate(changes)[order])
        return Steps(all_times[order], np.concatenate([[0], sums]))

    def _left(self, job: int) -> Steps:
        """Return the seconds left to the limit of a job, which go down at ticks once it runs."""
        limit_s = float(self._a.columns.job_requested[job])
        (begin_s,), (end_s,) = (span.tolist() for span in self._span(np.array([job])))
        last_s = min(end_s, begin_s + limit_s)
        n = max(int((last_s - begin_s) // REFRESH_S) + 2, 0) if np.isfinite(begin_s) else 0
        ticks = (np.floor(min(begin_s, 1e300) / REFRESH_S) + 1 + np.arange(n)) * REFRESH_S
        left = np.maximum(np.ceil(limit_s - (ticks - begin_s)), 0).astype(np.int64)
        return Steps(ticks, np.concatenate([[int(np.ceil(limit_s))], left]))

    def _span(self, jobs: I8) -> tuple[F8, F8]:
        """Return when the first attempt of each job took its room, and when the job ended, s."""
        a = self._a
        first = np.full(len(a.job0) - 1, np.inf)
        np.minimum.at(first, a.job, a.placed_s)
        end = a.run.job_finish[jobs]
        return first[jobs], np.where(np.isnan(end), np.inf, end)
