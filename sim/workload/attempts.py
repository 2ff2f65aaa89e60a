"""Log of attempts at tasks, as orchestrators record them, and the workload that it shows.

A task may have been tried several times. The attempt that counts becomes the task; the others have
a rule that says why they do not, and the account of the log holds their work
(`sim.base.reading.account`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from sim.base.arrays import Mask
from sim.base.losses import kind_of
from sim.base.reading import Account, BadRows, count_rule, no_job_left, resolution_s
from sim.workload.amounts import with_account
from sim.workload.attempt_tables import Attempt, Layout, LoggedJob, make_tables
from sim.workload.workload import Workload

__all__ = [
    "FAILED", "NEVER_RAN", "RUNNING", "WAITING", "Attempt", "AttemptLog", "LoggedJob",
    "rule_of",
]  # fmt: skip

FAILED: Final = "a failed attempt, before another"
NEVER_RAN: Final = "never ran"
WAITING: Final = "never ran: waiting when the log ended (censored)"
RUNNING: Final = "still running when the log ended (censored)"
MAX_SHARE: Final = 0.02
"""Share of a log's pods or work from which on a user is told."""


def rule_of(has_started: bool, is_over: bool, is_lost: bool = False) -> str:
    """Return why an attempt becomes no task; "" if it does.

    `is_over` if it goes on no more, `is_lost` if another followed it.
    """
    if not has_started:
        return NEVER_RAN if is_over else WAITING
    if not is_over:
        return RUNNING
    return FAILED if is_lost else ""


class AttemptLog:
    """Jobs and attempts of a log, and what was met while they were read.

    Parameters
    ----------
    path : path-like
        The log.
    per_s : float
        Number of units of its clock in a second; a task of 0 becomes half a unit.

    Attributes
    ----------
    jobs : dict of str to LoggedJob
        By the key that attempts have.
    attempts : list of Attempt
    bad : BadRows
    noticed : dict of str to int
        Counts of peculiarities.
    wasted : set of str
        Rules of attempts that the cluster made in vain.
    warnings : list of str
        Sentences for the account.
    """

    def __init__(self, path: str | os.PathLike[str], per_s: float) -> None:
        self.path, self.per_s = path, per_s
        self.jobs: dict[str, LoggedJob] = {}
        self.attempts: list[Attempt] = []
        self.bad = BadRows()
        self.noticed: dict[str, int] = {}
        self.wasted = {FAILED}
        self.warnings: list[str] = []

    def notice(self, rule: str, n: int = 1) -> None:
        """Count peculiarities by rule."""
        if n:
            self.noticed[rule] = self.noticed.get(rule, 0) + n

    def workload(self, name: str, quantum: Mapping[str, float]) -> Workload:
        """Build the workload, with its account in ``meta["report"]``.

        Raises
        ------
        InputError
            If no attempt becomes a task.
        """
        return _Columns(self).workload(name, quantum)


class _Columns:
    """Attempts as columns, (A,)."""

    def __init__(self, log: AttemptLog) -> None:
        self.log, attempts = log, log.attempts
        self.start = np.array([a.start for a in attempts], np.float64)
        self.end = np.array([a.end for a in attempts], np.float64)
        self.n_tasks = np.array([a.n_tasks for a in attempts], np.float64)
        number: dict[str, int] = {}
        self.job = np.array([number.setdefault(a.job, len(number)) for a in attempts], np.int64)
        names = sorted({"cpu", *(resource for a in attempts for resource in a.demand)})
        self.demand = {
            name: np.array([a.demand.get(name, 0.0) for a in attempts], np.float64)
            for name in names
        }
        self.run_s = (self.end - self.start) / log.per_s
        self.rules = np.array([a.rule for a in attempts], object)
        for rule, rows in {
            NEVER_RAN: np.isnan(self.start),
            "end unknown": np.isnan(self.end),
            "ends before it starts": self.run_s < 0,
        }.items():
            self.rules[rows & (self.rules == "")] = rule
        self.run_s[self.run_s < 0] = np.nan
        self.run_s[(self.rules == NEVER_RAN) | (self.rules == WAITING)] = 0.0
        self.is_task: Mask = self.rules == ""
        self.dropped: dict[str, int] = {}
        self.filled: dict[str, int] = {}

    def workload(self, name: str, quantum: Mapping[str, float]) -> Workload:
        """Build the workload; see `AttemptLog.workload`."""
        log, account = self.log, self._account()
        if not self.is_task.any():
            raise no_job_left(log.path, log.bad, self.dropped)
        account.warnings += [*log.warnings, *self._unequal_gangs()]
        account.warn_of_censored(RUNNING)
        self._fill(account)
        layout = Layout(log.jobs, log.attempts, np.flatnonzero(self.is_task))
        tables = make_tables(layout, log.attempts, self.run_s, self.demand, log.per_s, log.noticed)
        account.count(edges=len(tables["stage_edges"]["parent"]))
        for job in log.jobs.values():
            for rule, n in job.edges_left_out.items():
                account.add(rule, edges=n)
        submit = np.array([job.submit for job in log.jobs.values()])
        times = (submit, self.start[self.is_task], self.end[self.is_task])
        meta = {
            "name": name,
            "quantum": {k: size for k, size in quantum.items() if k in self.demand},
            "offset_s": layout.jobs[0].submit / log.per_s,
            "resolution_s": resolution_s(*(column / log.per_s for column in times)),
            "report": {
                "rows": len(log.attempts) + sum(log.bad.values()),
                "jobs": len(layout.jobs),
                "bad_rows": log.bad,
                "dropped": self.dropped,
                "filled": self.filled,
                "noticed": log.noticed,
            },
        }
        return with_account(Workload.from_tables(**tables, meta=meta), account, log.bad)

    def _account(self) -> Account:
        """Enter the attempts that become no task; a job counts once, at a task if it has one."""
        order = np.argsort(~self.is_task, kind="stable")
        is_first = np.zeros(len(order))
        is_first[order[np.unique(self.job[order], return_index=True)[1]]] = 1.0
        amounts = {"jobs": is_first, "tasks": self.n_tasks}
        for resource, demand in self.demand.items():
            amounts[kind_of(resource)] = demand * self.run_s * self.n_tasks
        account = Account(amounts)
        for rule in dict.fromkeys(self.rules.tolist()):
            if rule:
                rows = self.rules == rule
                account.leave_out(rule, rows, wasted=rule in self.log.wasted)
                count_rule(self.dropped, rule, rows)
        for rule, n in self.log.bad.items():
            account.add_bad(rule, {}, n)
        return account

    def _fill(self, account: Account) -> None:
        """Give tasks of unknown width one CPU, and those of 0 s half a unit of the clock."""
        half_s, cpu = 0.5 / self.log.per_s, self.demand["cpu"]
        is_unknown = self.is_task & np.isnan(cpu)
        rule = "CPUs unknown: 1"
        count_rule(self.filled, rule, is_unknown)
        cpu[is_unknown] = 1.0
        account.change(rule, cpu_s=-float(np.sum((self.run_s * self.n_tasks)[is_unknown])))
        is_zero = self.is_task & (self.run_s == 0)
        rule = f"0 s becomes {half_s:g} s"
        count_rule(self.filled, rule, is_zero)
        self.run_s[is_zero] = half_s
        for resource, demand in self.demand.items():
            more = half_s * float(np.sum((demand * self.n_tasks)[is_zero]))
            account.change(rule, **{kind_of(resource): -more})

    def _unequal_gangs(self) -> Iterator[str]:
        """Say that the tasks of gangs are unequal: each slot of a gang is as large as any.

        But for gangs whose tasks all start together: these hold what they demand.
        """
        n_tasks = np.bincount(self.job, self.n_tasks * self.is_task)[self.job]
        jobs = [self.log.jobs[attempt.job] for attempt in self.log.attempts]
        is_gang = self.is_task & np.array([
            job.min_tasks > 1 and (job.min_tasks < n or bool(job.edges))
            for job, n in zip(jobs, n_tasks.tolist(), strict=True)
        ])  # fmt: skip
        for resource, demand in self.demand.items():
            largest = np.zeros(int(self.job.max()) + 1)
            np.fmax.at(largest, self.job[self.is_task], demand[self.is_task])
            reserved = np.where(is_gang, largest[self.job], demand)
            more, work = (
                float(np.nansum((x * self.run_s)[self.is_task])) for x in (reserved, demand)
            )
            if more > (1 + MAX_SHARE) * work:
                yield (
                    f"gangs have tasks of unequal demand; a simulated gang holds as much for each "
                    f"as for its largest, {100 * (more / max(work, 1e-9) - 1):.1f} % more "
                    f"{resource} × time than the log's"
                )
