"""Small workloads of which everything can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import sim
from sim import dags
from sim.describe import Dataset


def job(
    submit_s: float, parents: Mapping[str, Sequence[str]], **changes: Mapping[str, Any]
) -> dict[str, Any]:
    """Write a job of stages of one task of 10 s; `changes` are keys of single stages."""
    stages = [
        {"name": name, "durations_s": [10.0], "parents": list(above), **changes.get(name, {})}
        for name, above in parents.items()
    ]
    return {"submit_s": submit_s, "stages": stages}


CHAIN = {"a": "", "b": "a", "c": "b"}
SCATTER = {"a": "", "b": "a", "c": "a"}
GATHER = {"a": "", "b": "", "c": "ab"}
DIAMOND = {"a": "", "b": "a", "c": "a", "d": "bc"}
LARGE = {"a": "", "b": "a", "c": "a", "d": "a", "e": "bcd", "f": "e"}
"""Six stages: one, three children of it, their one child, and one behind."""


def dataset(*jobs: dict[str, Any], name: str = "w") -> Dataset:
    return Dataset.from_workload(name, sim.Workload.from_jobs(jobs))


def drawn(n_jobs: int, seed: int, span_s: float = 100_000.0) -> sim.Workload:
    """Draw a workload of jobs of up to nine stages, all tasks of a stage alike."""
    rng = np.random.default_rng(seed)
    graphs = dags.uniform_dags(rng.integers(1, 10, n_jobs), seed)
    n_stages = graphs.n_stages
    return sim.Workload.from_tables(
        jobs={
            "job_id": [f"j{i}" for i in range(n_jobs)],
            "submit_s": np.sort(rng.random(n_jobs)) * span_s,
        },
        stages={
            "job": graphs.stage_job,
            "n_tasks": rng.integers(1, 20, n_stages).astype(np.int32),
            "duration_s": rng.exponential(500, n_stages).round(1),
            "demand_cpu": rng.integers(1, 4, n_stages) / 2,
            "demand_mem": rng.integers(0, 9, n_stages) / 10,
        },
        stage_edges={"parent": graphs.edge_parent, "child": graphs.edge_child},
    )


def with_columns(data: Dataset, **stages: Any) -> Dataset:
    """Return the dataset with further columns of its stages."""
    w = data.workload
    table = w.stages
    for name, column in stages.items():
        table = table.append_column(name, [np.asarray(column)])
    changed = sim.Workload.from_tables(
        jobs=w.jobs, stages=table, tasks=w.tasks, stage_edges=w.stage_edges, meta=w.meta
    )
    return Dataset.from_workload(data.name, changed)


def by_key(measures: Sequence[Any]) -> dict[str, float]:
    """Return the values by key."""
    by_key = {m.key: m.value for m in measures}
    assert len(by_key) == len(measures)
    return by_key
