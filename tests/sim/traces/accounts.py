"""Check of a reader's account: log = workload + left out + changed, for each kind of amount."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sim.workload.workload import Workload

TOLERANCE = 1e-9


def check_account(workload: Workload, **log: float) -> dict[str, Any]:
    """Check the account of a workload that was read; `log` has amounts counted by other means.

    The workload's amounts are summed anew here, task by task.
    """
    report = workload.meta["report"]
    account: dict[str, Any] = report["account"]
    for kind, actual in _amounts(workload).items():
        if kind in account:
            assert account[kind]["workload"] == pytest.approx(actual, rel=TOLERANCE), kind
    for kind, entry in account.items():
        total = entry["workload"] + entry["left_out"] + entry["changed"]
        slack = TOLERANCE * max(abs(entry["log"]), abs(entry["workload"]), 1.0)
        assert entry["log"] == pytest.approx(total, abs=slack), (kind, entry)
        assert entry["left_out"] >= 0
        assert entry["left_out"] == pytest.approx(sum(entry.get("left_out_by", {}).values()))
        assert entry["changed"] == pytest.approx(sum(entry.get("changed_by", {}).values()))
    for kind, amount in log.items():
        assert account[kind]["log"] == pytest.approx(amount, rel=TOLERANCE), kind
    return account


def _amounts(workload: Workload) -> dict[str, float]:
    stage = workload.tasks["stage"].to_numpy()
    duration_s = workload.tasks["duration_s"].to_numpy()
    amounts: dict[str, float] = {
        "jobs": workload.n_jobs,
        "tasks": len(stage),
        "edges": workload.stage_edges.num_rows + workload.job_edges.num_rows,
    }
    for resource in workload.resources:
        demand = workload.stages[f"demand_{resource}"].to_numpy()
        kind = "mem_gib_s" if resource == "mem" else f"{resource}_s"
        amounts[kind] = float(np.sum(demand[stage] * duration_s))
    return amounts


def counts(workload: Workload) -> dict[str, Any]:
    """Return a reader's report without its account, and without the texts of bad rows."""
    report = workload.meta["report"]
    texts = ("account", "bad_examples", "warnings")
    return {key: value for key, value in report.items() if key not in texts}
