"""Account of a table: the work of its rows, and what the reader leaves out or changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sim.base.losses import kind_of
from sim.base.reading import Account, BadRows
from sim.traces.swf import ZERO_BECOMES_S
from sim.traces.table.dependencies import LEFT_OUT, Dependencies, count_stated
from sim.traces.table.jobs import LONGER, SHORTER, Ran, times_of
from sim.traces.table.raw import Log
from sim.traces.table.tasks import RULES, Per, Tasks, Width, demands_of

RETRIES = "from earlier attempts to their retries"
WITHOUT_GPUS = "GPUs, by trace.tasks=cpus"


def account_of(
    columns: Mapping[str, Any],
    ran: Ran,
    demands: Mapping[str, F8],
    task_unit: Tasks,
    per: Per,
    jobs: F8 | None = None,
) -> Account:
    """Return the account of the valid rows; `demands` are the rows' own, NaN where unknown.

    `jobs` is how many jobs each row counts as, 1 by default.
    """
    counts = {} if jobs is None else {"jobs": jobs}
    account = Account({**counts, **_amounts(columns, ran, demands, task_unit)})
    _enter_gpus(account, columns, ran, task_unit, per)
    return account


def enter_bad(account: Account, bad: BadRows, log: Log, task_unit: Tasks, per: Per) -> None:
    """Enter what can be read of bad rows, and the number of the others."""
    n_unread = dict(bad)
    for rule, columns in log.bad:
        n_rows = len(columns["submit_s"])
        ran = times_of(replace(log, columns=columns, later_s={}), {}, [])
        demands = demands_of(columns, n_rows, task_unit, per)
        account.add_bad(rule, _amounts(columns, ran, demands, task_unit), n_rows)
        _enter_gpus(account, columns, ran, task_unit, per)
        n_unread[rule] -= n_rows
        if "depends_on" in columns:
            account.add(LEFT_OUT, edges=count_stated(columns["depends_on"]))
    for rule, n_rows in n_unread.items():
        account.add_bad(rule, {}, n_rows)


def enter_changes(account: Account, width: Width, ran: Ran, task_unit: Tasks) -> None:
    """Enter the work that the reader changes.

    Defaults add some: for what is unknown, and for run times of 0 s. Run times that contradict
    start and end add or take away the difference.
    """
    run_s, surplus_s = ran.run_s, ran.between_s - ran.run_s
    for resource, total in width.total.items():
        kind, rows = kind_of(resource), width.unknown[resource]
        account.change(RULES[resource], **{kind: -float(np.sum(total[rows] * run_s[rows]))})
        known_s = np.where(rows, 0.0, surplus_s)
        for rule, part_s in ((LONGER, np.minimum(known_s, 0)), (SHORTER, np.maximum(known_s, 0))):
            account.change(rule, **{kind: float(np.sum(total * part_s))})
        added = float(np.sum(total[run_s == 0])) * ZERO_BECOMES_S
        account.change(f"0 s becomes {ZERO_BECOMES_S} s", **{kind: -added})
    if task_unit in ("nodes", "workers"):
        account.change(f"{task_unit} unknown: 1", tasks=-float(width.unknown_tasks.sum()))


def enter_edges(account: Account, edges: Dependencies) -> None:
    """Enter the dependencies, and those left out by reason."""
    n_retries = int(edges.is_retry.sum())
    account.count(edges=len(edges.upstream) - n_retries)
    account.change(RETRIES, edges=-n_retries)
    for reason, n in edges.left_out.items():
        account.add(reason, edges=n)


def _amounts(
    columns: Mapping[str, Any], ran: Ran, demands: Mapping[str, F8], task_unit: Tasks
) -> dict[str, F8]:
    """Return the amounts of each row by kind, without GPUs that an option leaves out."""
    amounts = {kind_of(resource): demand * _work_s(ran) for resource, demand in demands.items()}
    if task_unit in ("nodes", "workers"):
        amounts["tasks"] = columns[task_unit]
    return amounts


def _enter_gpus(
    account: Account, columns: Mapping[str, Any], ran: Ran, task_unit: Tasks, per: Per
) -> None:
    """Enter the GPU time that is left out if tasks are CPUs."""
    if task_unit == "cpus" and "gpus" in columns:
        gpus = demands_of(columns, len(ran.run_s), "job", per)["gpu"]
        gpu_s = float(np.nansum(gpus * _work_s(ran)))
        account.add(WITHOUT_GPUS, by_option=True, gpu_s=gpu_s)


def _work_s(ran: Ran) -> F8:
    """Return run times as start and end have them, else as such, s; NaN for negative ones."""
    return np.where(ran.run_s < 0, np.nan, ran.between_s)
