"""Run cells on a large workload; print the private memory that each worker used."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from sim import Workload
from sweep.execution.on_ray.launch import make_runner
from sweep.execution.on_ray.shared_workloads import LARGE_TASKS
from sweep.execution.plan import PlannedCell
from sweep.execution.result_batch import ResultBatch
from sweep.execution.workload_build import Recipe
from sweep.grid.grid import Cell

EVALUATOR = {"name": "simulation"}


def private_bytes() -> int:
    """Private memory of this process: no views of files or of the object store."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))


def simulate(workload: Workload, cluster: Any, policy: Any, *, seed: int, **_: Any) -> Any:
    """Read every column; return the memory in use as metrics."""
    total = sum(
        float(np.nansum(column))
        for column in (getattr(workload.columns, field.name) for field in fields(workload.columns))
        if isinstance(column, np.ndarray)
    )
    time.sleep(0.2)
    jobs = workload.columns.job_submit
    metrics = {
        "pid": float(os.getpid()),
        "private_bytes": float(private_bytes()),
        "total": total,
        "size": float(workload.columns.task_duration.nbytes),
    }
    failed = np.zeros(len(jobs), dtype=bool)
    return SimpleNamespace(
        workload=workload,
        metrics=metrics,
        job_submit=jobs,
        job_start=jobs,
        job_finish=jobs,
        job_failed=failed,
        estimate_s=jobs,
        slowdown=jobs,
        utility=None,
        job_eligible=None,
        job_worth=None,
        gap_lb=jobs,
        prediction_error=jobs,
        records=None,
    )


def write(folder: str) -> None:
    """Write a workload of 200 MB whose tasks differ."""
    n_jobs, n_tasks = 1000, 25_000
    duration_s = np.ones(n_jobs * n_tasks)
    duration_s[::2] = 2.0
    Workload.from_tables(
        jobs={
            "job_id": [str(index) for index in range(n_jobs)],
            "submit_s": np.arange(n_jobs, dtype=float),
        },
        stages={
            "job": np.arange(n_jobs, dtype=np.int32),
            "name": ["s"] * n_jobs,
            "n_tasks": np.full(n_jobs, n_tasks, dtype=np.int32),
        },
        tasks={
            "stage": np.repeat(np.arange(n_jobs, dtype=np.int32), n_tasks),
            "duration_s": duration_s,
        },
        validate=False,
    ).write(folder)


class SingleWorkload:
    """A single workload that is read from a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.n_built = 0

    def recipe(self, name: str) -> Recipe:
        """Return the recipe of the workload."""
        trace = {"format": "parquet", "path": self.folder}
        return Recipe(trace, {"shape": "slots", "count": 1, "load": None}, n_tasks=LARGE_TASKS + 1)

    def add_description(self, name: str, about: object) -> None:
        """Count the workloads that were built, each of which is described once."""
        self.n_built += 1


if __name__ == "__main__":
    policy = {"name": "fifo", "module": None, "params": {}}
    cluster = {"shape": "slots", "count": 1, "load": None}
    labels = {"policy": "fifo", "trace": "t", "capacity": 1.0}
    cells = [Cell({**labels, "seed": index}, policy, {}, cluster, EVALUATOR) for index in range(8)]
    work = [PlannedCell(index, cell, str(index), "w") for index, cell in enumerate(cells)]
    with tempfile.TemporaryDirectory() as folder:
        write(folder)
        workloads = SingleWorkload(folder)
        runner = make_runner({"kind": "local", "workers": 2}, simulate=simulate)
        events = [*runner.run(work, workloads)]
        runner.close()
    results = [
        result for part in events if isinstance(part, ResultBatch) for result in part.results
    ]
    json.dump([workloads.n_built, [[r.error, r.metrics] for r in results]], sys.stdout)
