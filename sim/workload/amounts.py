"""Amounts of a workload, as a reader's account counts them (`sim.base.reading.account`)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sim.base.losses import kind_of
from sim.base.reading import Account, BadRows
from sim.workload.schema import DEMAND_PREFIX
from sim.workload.tables import values
from sim.workload.workload import Workload


def amounts(workload: Workload) -> dict[str, float]:
    """Return jobs, tasks, edges between stages and jobs, and demand × duration of each resource.

    Demands count as they stand in the table, before they are rounded to quanta.
    """
    runs = workload.runs
    run_s = runs.duration_s * runs.count
    run0 = runs.stage0[:-1]
    work_s = np.add.reduceat(run_s, run0) if len(run0) else np.empty(0)
    totals: dict[str, float] = {
        "jobs": workload.n_jobs,
        "tasks": workload.n_tasks,
        "edges": workload.stage_edges.num_rows + workload.job_edges.num_rows,
    }
    for name in workload.resources:
        demand = values(workload.stages, f"{DEMAND_PREFIX}{name}")
        totals[kind_of(name)] = float(np.sum(demand * work_s))
    return totals


def with_change(workload: Workload, rule: str) -> Workload:
    """Enter in the account, under `rule`, how a workload was changed since its reader made it."""
    report: dict[str, Any] = dict(workload.meta.get("report", {}))
    after, account = amounts(workload), dict(report.get("account", {}))
    for kind, entry in account.items():
        taken = entry["workload"] - after.get(kind, 0.0)
        if not math.isclose(entry["workload"], after.get(kind, 0.0)):
            by_rule = dict(entry.get("changed_by", {}))
            by_rule[rule] = by_rule.get(rule, 0.0) + taken
            account[kind] = entry | {
                "workload": after.get(kind, 0.0),
                "changed": entry["changed"] + taken,
                "changed_by": by_rule,
            }
    return workload.with_meta({"report": report | {"account": account}})


def with_account(workload: Workload, account: Account, bad: BadRows | None = None) -> Workload:
    """Return the workload with its reader's account in ``meta["report"]["account"]``.

    ``warnings`` of the report has the account's; ``bad_examples`` has the first bad row of each
    rule, and ``noticed`` counts the rows that were put right.
    """
    report: dict[str, Any] = dict(workload.meta.get("report", {}))
    report["account"] = account.entries(amounts(workload))
    if account.warnings:
        report["warnings"] = list(account.warnings)
    if bad:
        report["bad_examples"] = dict(bad.examples)
    if bad is not None and bad.repaired:
        report["noticed"] = {**report.get("noticed", {}), **bad.repaired}
    return workload.with_meta({"report": report})
