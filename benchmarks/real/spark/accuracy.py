"""Accuracy of the simulator on event logs of real runs: completion of jobs, policy by policy.

The simulation has the log's submissions and durations of tasks, as many slots as its executors have
cores, and the lag of stages behind their parents that the log shows. `fair` breaks ties by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import policies
import sim
from sim.base.arrays import F8
from sweep.questions.backtest.capacity import logged_size
from sweep.questions.backtest.lags import stage_lag_s

POLICIES: dict[str, dict[str, Any]] = {"fifo": {}, "fair": {"ties": "name"}}
_NAME = re.compile(r"spark-(fifo|fair|fairback)-(\d+)-(\d+)\.gz")


def rows(logs: Sequence[Path]) -> list[dict[str, Any]]:
    """Return a row for each log and policy.

    ``error`` is that of the mean completion, ``job_error`` the mean absolute error of a job's
    completion over the recorded mean, ``real_error`` the same of the other runs of the same jobs
    under the same mode, in the mean over them (None without any).
    """
    workloads = {log: _read(log) for log in sorted(logs)}
    recorded = {log: _recorded_s(workload) for log, workload in workloads.items()}
    groups: dict[str, list[Path]] = {}
    for log in recorded:
        groups.setdefault(_names(log)[0], []).append(log)
    table = []
    for log, real_s in recorded.items():
        other_runs_s = [recorded[other] for other in groups[_names(log)[0]] if other != log]
        mean_s = float(real_s.mean())
        between = [float(np.abs(other - real_s).mean()) / mean_s for other in other_runs_s]
        for policy in POLICIES:
            simulated_s = simulated_completion_s(workloads[log], policy)
            table.append(
                {
                    "run": log.name.removesuffix(".gz"),
                    "mode": _names(log)[1][:4].upper(),
                    "policy": policy,
                    "jobs": len(real_s),
                    "recorded_mean_s": round(mean_s, 3),
                    "simulated_mean_s": round(float(simulated_s.mean()), 3),
                    "error": round(float(simulated_s.mean()) / mean_s - 1, 4),
                    "job_error": round(float(np.abs(simulated_s - real_s).mean()) / mean_s, 4),
                    "real_error": round(float(np.mean(between)), 4) if between else None,
                }
            )
    return table


def simulated_completion_s(workload: sim.Workload, policy: str) -> F8:
    """Return the simulated completion of each job of a log, finish - submission, s."""
    cluster = sim.Cluster.slots(logged_size(workload).n_slots)
    cluster = cluster.with_stage_lag(stage_lag_s(workload))
    result = sim.simulate(workload, cluster, policies.build(policy, **POLICIES[policy]))
    completion_s: F8 = result.job_finish - workload.columns.job_submit
    return completion_s


def write(logs: Sequence[Path], target: Path) -> None:
    """Write the rows as JSON, a line each."""
    lines = ",\n".join(json.dumps(row) for row in rows(logs))
    target.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def _read(log: Path) -> sim.Workload:
    return sim.read_trace("spark_eventlog", log, read_as="jobs")


def _recorded_s(workload: sim.Workload) -> F8:
    finish_s: F8 = workload.jobs["recorded_finish_s"].to_numpy()
    return finish_s - workload.columns.job_submit


def _names(log: Path) -> tuple[str, str]:
    """Return variant and workload of a run, together, and its variant."""
    match = _NAME.fullmatch(log.name)
    if match is None:
        raise ValueError(f"{log.name}: the name is not that of a run: spark-VARIANT-SEED-NUMBER.gz")
    return f"{match[1]}-{match[2]}", match[1]
