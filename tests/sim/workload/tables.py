"""Small valid tables to break or to vary, and random ones with every kind of column."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import sim
from sim.workload.schema import OPTIONAL_TABLES


def small() -> dict[str, dict[str, list[Any]]]:
    """Three jobs: a map-reduce, a gang of two, and one that reads the first's output."""
    return {
        "jobs": {
            "job_id": ["a", "b", "c"],
            "submit_s": [0.0, 1.0, 5.0],
            "queue": ["q1", "q2", "q1"],
            "deadline_s": [60.0, None, None],
            "min_tasks": [0, 2, 0],
            "input_mode": ["none", "none", "blind"],
        },
        "stages": {
            "job": [0, 0, 1, 2],
            "name": ["map", "reduce", "work", "read"],
            "n_tasks": [2, 1, 2, 1],
            "demand_cpu": [1.0, 2.0, 1.5, 0.0],
            "demand_mem": [0.0, 4.0, 1.0, 1.0],
        },
        "tasks": {"stage": [0, 0, 1, 2, 2, 3], "duration_s": [3.0, 4.0, 5.0, 1.0, 1.0, 0.0]},
        "stage_edges": {"parent": [0], "child": [1], "kind": ["one_to_one"]},
        "job_edges": {"upstream": [0], "downstream": [2], "kind": ["hard"]},
        "downloads": {"job": [0, 0], "time_s": [9.0, 70.0], "n": [1, 3]},
    }


def build(**changes: dict[str, list[Any]]) -> sim.Workload:
    """Build the small workload with some columns of some tables replaced."""
    tables = small()
    for table, columns in changes.items():
        tables[table].update(columns)
    return sim.Workload.from_tables(**tables)


@st.composite
def table_workloads(draw: st.DrawFn) -> sim.Workload:
    """Draw a workload that uses every column of every table."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_jobs = draw(st.integers(1, 8))
    per_job = rng.integers(1, 5, n_jobs)
    job = np.repeat(np.arange(n_jobs), per_job)
    n_stages = len(job)
    n_tasks = rng.integers(1, 6, n_stages)
    kind = draw(st.sampled_from(["uniform", "runs", "single"]))
    uniform = kind == "uniform"
    stage_s = rng.choice([0.0, 0.5, 1.0, 7.25, 1e5], n_stages)
    stage = np.repeat(np.arange(n_stages), n_tasks)
    task_s = stage_s[stage] if uniform else rng.random(len(stage)) * 100
    tasks = None if uniform else {"stage": stage, "duration_s": task_s}
    if kind == "runs":  # a count for every piece of a run of like tasks
        run = np.sort(rng.integers(0, 4, len(stage)))
        task_s = task_s[np.searchsorted(run, run)]
        first = np.flatnonzero(
            np.append(
                True,
                (np.diff(stage) != 0) | (rng.random(len(stage) - 1) < 0.5) | (np.diff(run) != 0),
            )
        )
        count = np.diff(np.append(first, len(stage)))
        tasks = {"stage": stage[first], "duration_s": task_s[first], "count": count}
    stage0 = np.cumsum(per_job) - per_job
    edges = [
        (stage0[j] + order[a], stage0[j] + order[b])
        for j in range(n_jobs)
        for order in [rng.permutation(per_job[j])]
        for a in range(per_job[j])
        for b in range(a + 1, per_job[j])
        if rng.random() < 0.4
    ]
    rng.shuffle(edges)
    pairs = [(a, b) for a in range(n_jobs) for b in range(n_jobs) if a < b and rng.random() < 0.3]
    names = np.array(["", "x", "día", "a,b"])
    kinds = list(rng.choice(["barrier", "one_to_one"], len(edges)))
    deadline_s = np.where(rng.random(n_jobs) < 0.5, np.nan, rng.random(n_jobs) * 50)
    changes = ~np.isnan(deadline_s) & (rng.random(n_jobs) < 0.5)
    return sim.Workload.from_tables(
        jobs={
            "job_id": [f"job {i}" for i in range(n_jobs)],
            "submit_s": np.sort(rng.random(n_jobs) * 1000).round(draw(st.integers(0, 3))),
            "template": rng.choice(names, n_jobs),
            "user": rng.choice(names, n_jobs),
            "queue": rng.choice(names[1:], n_jobs),
            "priority": rng.normal(size=n_jobs),
            "deadline_s": deadline_s,
            "new_deadline_s": np.where(changes, 70.0, np.nan),
            "new_deadline_at_s": np.where(changes, 10.0, np.nan),
            "min_tasks": np.where(rng.random(n_jobs) < 0.7, 0, 1),
            "input_mode": rng.choice(["none", "blind", "poll"], n_jobs),
        },
        stages={
            "job": job,
            "name": rng.choice(names, n_stages),
            "n_tasks": n_tasks,
            "demand_cpu": rng.integers(0, 4, n_stages) / 2,
            "demand_gpu": rng.integers(0, 2, n_stages),
        }
        | ({"duration_s": stage_s} if uniform else {}),
        tasks=tasks,
        stage_edges={
            "parent": [int(a) for a, _ in edges],
            "child": [int(b) for _, b in edges],
            "kind": kinds,
        },
        job_edges={
            "upstream": [a for a, _ in pairs],
            "downstream": [b for _, b in pairs],
            "kind": list(rng.choice(["hard", "soft"], len(pairs))),
        },
        downloads={
            "job": rng.integers(0, n_jobs, 5),
            "time_s": rng.random(5) * 2000,
            "n": rng.integers(1, 4, 5),
        },
        training=_training(rng, names),
        failures=_failures(rng, stage, task_s, edges, kinds),
        meta={"name": "drawn", "quantum": {"cpu": 0.5, "gpu": 1.0}, "report": {"rows": 3}},
    )


def _training(rng: np.random.Generator, names: np.ndarray) -> dict[str, Any]:
    n = int(rng.integers(0, 7))
    ready, wait, ran = rng.random((3, n)) * 10
    return {
        "template": rng.choice(names, n),
        "run": np.zeros(n, np.int32),
        "stage": rng.permutation(n).astype(np.int32),
        "task": rng.integers(0, 3, n).astype(np.int32),
        "ready_s": ready,
        "start_s": ready + wait,
        "finish_s": ready + wait + ran,
        "init_s": ran / 2,
        "n_failed": rng.integers(0, 3, n).astype(np.int32),
    }


def _failures(
    rng: np.random.Generator,
    stage: np.ndarray,
    task_s: np.ndarray,
    edges: list[tuple[int, int]],
    kinds: list[str],
) -> dict[str, Any]:
    """Draw failures of tasks, some of them by a lost output of a parent."""
    rows: dict[str, list[Any]] = {"task": [], "after_s": [], "lost": []}
    for task in np.flatnonzero(rng.random(len(stage)) < 0.3):
        place = task - np.searchsorted(stage, stage[task])
        parents = [
            np.flatnonzero(stage == a)[place if kind == "one_to_one" else 0 :][:1]
            for (a, b), kind in zip(edges, kinds, strict=True)
            if b == stage[task]
        ]
        result = np.concatenate([[-1], *parents])
        rows["task"].append(int(task))
        rows["after_s"].append(float(task_s[task] * rng.random()))
        rows["lost"].append(int(rng.choice(result)))
    return rows


def expanded(workload: sim.Workload) -> sim.Workload:
    """Return the same workload with every task in a table."""
    names = ("jobs", "stages", "tasks", "stage_edges", "job_edges", "downloads", *OPTIONAL_TABLES)
    return sim.Workload.from_tables(
        **{name: getattr(workload, name) for name in names}, meta=workload.meta
    )
