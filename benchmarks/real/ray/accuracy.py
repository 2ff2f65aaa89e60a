"""Accuracy of the simulator on tables of real runs of Ray: completion of tasks, policy by policy.

To the simulator a task is a job of one task, its queue is its scheduling class, and raylets are
machines. A task lasts as its process noted. Ray's scheduler is none of the policies: in a raylet
the classes take turns by their number of running tasks, each in the order of submission, and a
class whose next task does not fit blocks no other (``ray/raylet/scheduling/local_lease_manager``);
`fair` is the nearest by its rules. Which raylet a task goes to is `HybridSchedulingPolicy`'s
choice: the driver's own while it is less than half full, then the least used; here the first that
has room, or for ``best_fit`` the fullest. Raylets tell each other of room every 100 ms (Ray's
setting ``raylet_report_resources_period_milliseconds``), so a start lags by up to that.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import policies
import sim
from benchmarks.real.ray.workload import N_NODES, NODE
from sim.base.arrays import F8

POLICIES = ("fifo", "fair", "best_fit")
LAUNCH_S = {"low": 0.0, "high": 0.1}
N_SEEDS = 10


def rows(tables: Sequence[Path]) -> list[dict[str, Any]]:
    """Return a row for each table and policy, as `benchmarks.real.spark.accuracy.rows` has them.

    Simulated numbers are means over `N_SEEDS` runs, which draw other lags.
    """
    logs = {path: _read(path) for path in sorted(tables)}
    recorded = {path: log[1] for path, log in logs.items()}
    result = []
    for path, (workload, real_s) in logs.items():
        mean_s = float(real_s.mean())
        other_runs_s = [
            recorded[other]
            for other in logs
            if other != path and _workload_name(other) == _workload_name(path)
        ]
        between = [float(np.abs(other - real_s).mean()) / mean_s for other in other_runs_s]
        for policy in POLICIES:
            runs_s = [simulated_completion_s(workload, policy, seed) for seed in range(N_SEEDS)]
            simulated_mean_s = float(np.mean(runs_s))
            result.append(
                {
                    "run": path.name.removesuffix(".csv.gz"),
                    "policy": policy,
                    "jobs": len(real_s),
                    "recorded_mean_s": round(mean_s, 3),
                    "simulated_mean_s": round(simulated_mean_s, 3),
                    "error": round(simulated_mean_s / mean_s - 1, 4),
                    "job_error": round(float(np.abs(runs_s - real_s).mean()) / mean_s, 4),
                    "real_error": round(float(np.mean(between)), 4) if between else None,
                }
            )
    return result


def simulated_completion_s(workload: sim.Workload, policy: str, seed: int) -> F8:
    """Return the simulated completion of each task of a table, end - submission, s."""
    cluster = sim.Cluster.machines(N_NODES, **NODE).with_launch(LAUNCH_S, seed)
    result = sim.simulate(workload, cluster, policies.build(policy))
    completion_s: F8 = result.job_finish - workload.columns.job_submit
    return completion_s


def write(tables: Sequence[Path], target: Path) -> None:
    """Write the rows as JSON, a line each."""
    lines = ",\n".join(json.dumps(row) for row in rows(tables))
    target.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def _read(path: Path) -> tuple[sim.Workload, F8]:
    """Read a table; return its tasks, and their recorded completion, s."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        table = list(csv.DictReader(stream))
    jobs = [
        {
            "job_id": row["job_id"], "submit_s": float(row["submit_s"]), "queue": row["queue"],
            "stages": [{
                "durations_s": [float(row["end_s"]) - float(row["start_s"])],
                "demand": {"cpu": int(row["cpus"]), "disk": int(row["disks"])},
            }],
        }
        for row in table
    ]  # fmt: skip
    completion_s = [float(row["end_s"]) - float(row["submit_s"]) for row in table]
    return sim.Workload.from_jobs(jobs), np.array(completion_s)


def _workload_name(path: Path) -> str:
    """Return kind and seed of a run's workload, from its file's name."""
    return path.name.rsplit("-", 1)[0]
