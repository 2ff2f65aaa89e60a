"""Releases of the naive simulator: when jobs are submitted, and when they are eligible."""

from __future__ import annotations

import math

import numpy as np

from sim.engine.plan import Event
from sim.workload.schema import JOB_EDGE_KINDS

INF = math.inf
POLLS, BLIND = 2, 1


class Releasing:
    """The part of the simulator that submits jobs, and lets them wait for others."""

    def _init_releases(self, cluster):
        releases, jobs = self.c.releases, range(self.n_jobs)
        first, downstream, kinds, delays = releases.edges
        uppers = np.repeat(np.arange(self.n_jobs), np.diff(first)).tolist()
        edges = zip(uppers, downstream.tolist(), kinds.tolist(), delays.tolist(), strict=True)
        named = [(u, d, JOB_EDGE_KINDS[kind], delay) for u, d, kind, delay in edges]
        self.inputs = [[u for u, d, kind, _ in named if d == j and kind == "hard"] for j in jobs]
        self.waits_for = [[e for e in named if e[1] == j and e[2] != "hard"] for j in jobs]
        self.followers = [[(d, kind) for u, d, kind, _ in named if u == j] for j in jobs]
        group = releases.namesakes[0]
        self.namesakes = [[i for i in jobs if i != j and group[i] == group[j]] for j in jobs]
        self.cancels = cluster.unmet_dependencies == "fail"
        self.seen_jobs = set()  # whose own time of submission has come
        self.begun_at, self.failed_at, self.alone_at = {}, {}, {}
        self.eligible = np.full(self.n_jobs, np.nan)

    def _is_gone(self, j):
        return bool(self.view["failed"][j]) or not math.isnan(self.view["finish"][j])

    def _is_over(self):
        """Tell whether nothing can happen any more: all jobs that are left wait for each other."""
        left = [j for j in range(self.n_jobs) if not self._is_gone(j)]
        waiting = [j for j in left if j in self.seen_jobs and j not in self.submitted]
        return all(j in waiting and self._due(j) == INF for j in left)

    def _unreleased(self):
        return np.array([not self._is_gone(j) for j in range(self.n_jobs)])

    def _due(self, j):
        """Return the next time of job j: its submission, its failure, or when it is eligible."""
        if j in self.submitted or self.view["failed"][j]:
            return INF
        if j not in self.seen_jobs:
            return float(self.c.job_submit[j])
        begin = float(self.c.releases.begin_s[j])
        return max(self._submitted_at(j), begin, self._met_at(j))

    def _submitted_at(self, j):
        submit = float(self.c.job_submit[j])
        if self.c.job_input_mode[j] != POLLS:
            return submit
        output_times = [self._output_s(i) for i in self.inputs[j]]
        if any(math.isnan(t) for t in output_times):
            return INF
        return max([submit] + [t + float(self.c.job_poll_lag[j]) for t in output_times])

    def _dependencies(self, j):
        """List when each dependency of job j is met: inf for not yet, NaN for never."""
        times = []
        for u, _, kind, delay in self.waits_for[j]:
            lag = self._completing_s(u) if u in self.begun_at else 0.0
            done, failed = self._output_s(u) + lag, self.failed_at.get(u, math.nan) + lag
            ended = failed if math.isnan(done) else done
            met = {
                "after": self.begun_at.get(u, failed),
                "afterok": done,
                "afternotok": failed,
                "afterany": ended,
            }[kind]
            if not math.isnan(met):
                times.append(met + delay)
            else:
                times.append(INF if math.isnan(ended) else math.nan)
        if self.c.releases.is_singleton[j]:
            if j not in self.alone_at and self._is_alone(j):
                self.alone_at[j] = self.now
            times.append(self.alone_at.get(j, INF))
        return times

    def _is_alone(self, j):
        left = [i for i in self.namesakes[j] if not self._is_gone(i)]
        return not any(i < j or i in self.begun_at for i in left)

    def _met_at(self, j):
        times = self._dependencies(j)
        if self._is_doomed(j):
            return INF
        if self.c.releases.needs_any[j] and times:
            return min(t for t in times if not math.isnan(t))
        return max(times, default=0.0)

    def _is_doomed(self, j):
        never = [math.isnan(t) for t in self._dependencies(j)]
        return all(never) and never != [] if self.c.releases.needs_any[j] else any(never)

    def _arrivals(self):
        """Submit what is due, by row; what that releases or fails comes due at once."""
        while due := [j for j in range(self.n_jobs) if self._due(j) <= self.now]:
            j = due[0]
            if j not in self.seen_jobs:
                self._see(j)
            if self._due(j) <= self.now:
                self._arrive(j)

    def _see(self, j):
        self.seen_jobs.add(j)
        output_times = [self._output_s(i) for i in self.inputs[j]]
        is_missing = self.c.job_input_mode[j] == BLIND and np.isnan(output_times).any()
        if is_missing or (self.cancels and self._is_doomed(j)):
            self._fail(j)

    def _arrive(self, j):
        if not self._may_submit(j) or self._over_at(j) <= self.now:
            self._fail(j, why=3)
            return
        self.view["turn"][j] = len(self.submitted)
        self.submitted.append(j)
        polls = self.c.job_input_mode[j] == POLLS
        met_at = self._met_at(j) if polls else 0.0  # nobody asked for it before
        self.view["submit"][j] = max(self._submitted_at(j), met_at)
        self.eligible[j] = self.since[j] = self.now
        self._emit(Event.JOB_ARRIVED, j)

    def _fail(self, *jobs, why=1):
        """Fail jobs, and with them those that can never be submitted or eligible any more."""
        failing = []
        self._add_failing(failing, jobs, why)
        for i in failing:
            self.failed_at[i] = self.now
            self._emit(Event.JOB_FAILED, i)
            self._add_failing(failing, self._failing_after(i), 1)

    def _add_failing(self, failing, jobs, why):
        for j in jobs:
            self.view["failed"][j] = why
            failing.append(j)

    def _end_of_job(self, j):
        self._fail(*self._failing_after(j))

    def _failing_after(self, ended):
        """List the jobs that fail as another one ended."""
        jobs = []
        for d, kind in self.followers[ended]:
            if self.view["failed"][d]:
                continue
            misses = kind == "hard" and self.c.job_input_mode[d] == POLLS
            misses = misses and bool(self.view["failed"][ended])
            waits = d in self.seen_jobs and d not in self.submitted
            if misses or (self.cancels and kind != "hard" and waits and self._is_doomed(d)):
                jobs.append(d)
        return jobs
