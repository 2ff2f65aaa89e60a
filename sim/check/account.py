"""Check of a reader's account: log = workload + left out + changed, for each kind of amount."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sim.base.losses import kind_of
from sim.check.broken import BrokenRuleError
from sim.workload.columns import stage_work_s
from sim.workload.workload import Workload

TOLERANCE = 1e-9


def check_account(workload: Workload, **log: float) -> dict[str, Any]:
    """Check the account of a workload that was read; return it.

    The workload's amounts are summed anew here, task by task.

    Parameters
    ----------
    workload : Workload
        A workload with ``meta["report"]["account"]`` (`sim.base.reading.Account`).
    **log : float
        Amounts of the log that were counted by other means, by kind.

    Raises
    ------
    BrokenRuleError
        If there is no account, or it does not balance.
    """
    account: dict[str, Any] | None = workload.meta.get("report", {}).get("account")
    if account is None:
        raise BrokenRuleError(
            "the workload has no account of the log: count what is left out and changed with "
            "sim.base.reading.Account, and end with sim.workload.amounts.with_account"
        )
    for kind, actual in _amounts(workload).items():
        if kind in account and not _is_close(account[kind]["workload"], actual):
            raise BrokenRuleError(
                f"the account says that the workload has {account[kind]['workload']:g} {kind}, and "
                f"it has {actual:g}"
            )
    for kind, entry in account.items():
        _check_entry(kind, entry)
    for kind, amount in log.items():
        if not _is_close(account[kind]["log"], amount):
            raise BrokenRuleError(
                f"the account says that the log has {account[kind]['log']:g} {kind}, and it has "
                f"{amount:g}"
            )
    return account


def _check_entry(kind: str, entry: dict[str, Any]) -> None:
    total = entry["workload"] + entry["left_out"] + entry["changed"]
    slack = TOLERANCE * max(abs(entry["log"]), abs(entry["workload"]), 1.0)
    if not math.isclose(entry["log"], total, rel_tol=0, abs_tol=slack):
        raise BrokenRuleError(
            f"the account does not balance: of {entry['log']:g} {kind} in the log "
            f"{entry['workload']:g} are in the workload, {entry['left_out']:g} left out and "
            f"{entry['changed']:g} changed"
        )
    if entry["left_out"] < 0:
        raise BrokenRuleError(
            f"the account leaves out {entry['left_out']:g} {kind}, less than none"
        )
    for part in ("left_out", "changed"):
        by_rule = sum(entry.get(f"{part}_by", {}).values())
        if not math.isclose(entry[part], by_rule, rel_tol=1e-6, abs_tol=1e-12):
            raise BrokenRuleError(
                f"the account has {entry[part]:g} {kind} as {part.replace('_', ' ')}, and its "
                f"rules add up to {by_rule:g}"
            )


def _is_close(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=TOLERANCE, abs_tol=1e-12)


def _amounts(workload: Workload) -> dict[str, float]:
    work_s = stage_work_s(workload)  # not by task: a stage may have billions of like ones
    amounts: dict[str, float] = {
        "jobs": workload.n_jobs,
        "tasks": workload.n_tasks,
        "edges": workload.stage_edges.num_rows + workload.job_edges.num_rows,
    }
    for resource in workload.resources:
        demand = workload.stages[f"demand_{resource}"].to_numpy()
        amounts[kind_of(resource)] = float(np.sum(demand * work_s))
    return amounts
