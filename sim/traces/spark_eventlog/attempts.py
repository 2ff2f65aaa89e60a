"""Attempts of an application's tasks with their work; those that are no tasks enter the account."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.base.reading import Account
from sim.traces.spark_eventlog.application import COLUMN, Application, demand
from sim.traces.spark_eventlog.partitions import partitions

_WORK: Final = ("cpu_s", "mem_gib_s")
_EVENT: Final = (
    "stage", "attempt", "partition", "task", "executor", "launch_ms", "finish_ms", "kind",
    "speculative",
)  # fmt: skip


def new_account() -> Account:
    """Return an account without rows: work is entered application by application."""
    return Account(dict.fromkeys((*_WORK, "jobs", "tasks", "edges"), np.empty(0)))


class Attempts:
    """Attempts of an application, with their partitions and work.

    Attributes
    ----------
    rows : (A, len(ROW)) float64
        As in the log.
    partition : (A,) float64
    run_s : (A,) float64
        NaN if the end is not known.
    """

    def __init__(self, app: Application, account: Account) -> None:
        self.app = app
        self.rows = app.attempts
        self.partition = partitions(app)
        self.run_s = (self["finish_ms"] - self["launch_ms"]) / 1000
        self._account = account
        stages, self._row_stage = np.unique(self["stage"], return_inverse=True)
        self._demands = np.array([self._demand(int(stage)) for stage in stages]).reshape(-1, 2)

    def __getitem__(self, name: str) -> F8:
        """Return a column of `rows`."""
        return self.rows[:, COLUMN[name]]

    def repeated(self) -> Mask:
        """Return the rows that an earlier one equals in everything."""
        repeated = np.zeros(len(self.rows), dtype=bool)
        task = self["task"]
        if len(np.unique(task)) == len(task):
            return repeated
        keys = [self[name] for name in _EVENT]
        order = np.lexsort(keys)  # stable
        equal = np.ones(max(len(order) - 1, 0), dtype=bool)
        for key in keys:
            ordered = np.nan_to_num(key[order], nan=-1.0)
            equal &= ordered[1:] == ordered[:-1]
        repeated[order[1:][equal]] = True
        return repeated

    def leave_out(self, rule: str, rows: I8, *, n_tasks: int = 0, is_loss: bool = True) -> None:
        """Count rows that become no task, each of them `n_tasks` of the log.

        Attempts beside the one that counts are none: the cluster did their work in vain. Without
        `is_loss` the rows are copies of others.
        """
        self.app.drop(rule, len(rows))
        self._enter(rule, self._work(rows), n_tasks * len(rows))
        if not is_loss:
            self._account.add(rule, by_option=True)
        elif not n_tasks:
            self._account.mark_wasted(rule)

    def leave_out_unknown(self, rule: str, n: int, n_tasks: int) -> None:
        """Enter `n` attempts of unknown work, which are `n_tasks` of the log."""
        self._account.add(rule, tasks=n_tasks)
        self._account.add_unknown(n, *_WORK)

    def leave_out_unread(self) -> None:
        """Enter what can be read of bad lines, which are counted where they are read."""
        for line in self.app.unread:
            work = np.array([self._demand(line.stage)]) * line.run_ms / 1000
            self._enter(line.rule, work, int(line.is_success))

    def keep(self, rows: I8) -> None:
        """Enter rows that become tasks."""
        self._account.count(**_amounts(self._work(rows)), tasks=len(rows))

    def change(self, rule: str, stage: int, added_s: float, n_tasks: int = 0) -> None:
        """Enter seconds that are added to tasks of a stage, of which `n_tasks` are made so."""
        self._account.change(rule, **_amounts(-added_s * np.array([self._demand(stage)])))
        self._account.count(tasks=n_tasks)

    def _enter(self, rule: str, work: F8, n_tasks: int) -> None:
        self._account.add(rule, tasks=n_tasks, **_amounts(work))
        self._account.add_unknown(int(np.count_nonzero(np.isnan(work[:, 0]))), *_WORK)

    def _work(self, rows: I8) -> F8:
        """Return CPU seconds and GiB seconds of rows, (R, 2)."""
        return self._demands[self._row_stage[rows]] * self.run_s[rows, np.newaxis]

    def _demand(self, stage: int) -> tuple[float, float]:
        """Return CPUs and GiB of a task of a stage."""
        return demand(self.app, self.app.stages[stage].profile if stage in self.app.stages else 0)


def _amounts(work: F8) -> dict[str, Any]:
    """Return the sums of rows of CPU seconds and GiB seconds, without those that are not known."""
    return dict(zip(_WORK, np.nansum(work, axis=0).tolist(), strict=True))
