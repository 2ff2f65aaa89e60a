"""Workloads whose unknown part changes: a policy that does not know it must decide the same.

Given a run, `changed` alters all that a policy must not know at an instant: durations of tasks that
have not ended, and whatever else it declares not to know. The policy has seen nothing of that, so
that the run of the changed workload must have the same starts before the instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from policies.knows import Knows
from policies.views import SECONDS
from sim.base.arrays import F8
from sim.check.record import Record, plan_of
from sim.engine.plan import Scheduler
from sim.result import Result
from sim.simulation import simulate
from sim.workload.workload import Workload

TEMPLATES = ("a", "b", "c", "")
USERS = ("u", "v")


def recurring(seed: int, own_columns: Sequence[str] = (), n_jobs: int = 30) -> Workload:
    """Make jobs of templates, and ad hoc ones, with all that policies learn from.

    Columns of a policy's own (`policies.Policy.own_columns`) are drawn, too.
    """
    rng = np.random.default_rng(seed)
    shapes = [_shape(rng) for _ in TEMPLATES]
    speed = rng.lognormal(0.0, 1.5, len(TEMPLATES))
    jobs: list[dict[str, Any]] = []
    for t in np.cumsum(rng.exponential(2.0, n_jobs)):
        i = int(rng.integers(len(TEMPLATES)))
        stages = [stage | {"durations_s": _draw(rng, speed[i], stage)} for stage in shapes[i]]
        more = {"deadline_s": float(rng.uniform(100, 900))} if i < 2 else {}
        jobs.append(
            {
                "submit_s": float(t),
                "template": TEMPLATES[i],
                "application": TEMPLATES[i],
                "user": str(rng.choice(USERS)),
                "queue": str(rng.choice(("x", "y", "z"))),
                "priority": int(rng.integers(4)),
                "requested_s": float(rng.uniform(10, 1000)),
                "stages": [{k: v for k, v in s.items() if k != "n_tasks"} for s in stages],
                **more,
            }
        )
    workload = Workload.from_jobs(jobs)
    table = workload.jobs
    for name in own_columns:
        table = table.append_column(name, pa.array(rng.lognormal(2.0, 1.0, n_jobs)))
    return _replaced(
        workload,
        jobs=table,
        history=_history(rng, speed, own_columns),
        training=_training(rng, shapes, speed),
    )


def _shape(rng: np.random.Generator) -> list[dict[str, Any]]:
    stages: list[dict[str, Any]] = []
    for i in range(int(rng.integers(1, 4))):
        demand = {"cpu": int(rng.integers(1, 4)), "mem": float(rng.integers(1, 9)) / 2}
        parents = [f"s{p}" for p in range(i) if rng.random() < 0.6]
        n_tasks = int(rng.integers(2, 9))
        stages.append({"name": f"s{i}", "demand": demand, "parents": parents, "n_tasks": n_tasks})
    return stages


def _draw(rng: np.random.Generator, speed: float, stage: dict[str, Any]) -> list[float]:
    lengths: list[float] = (speed * rng.lognormal(1.0, 1.0, stage["n_tasks"])).tolist()
    return lengths


def _history(rng: np.random.Generator, speed: F8, own_columns: Sequence[str]) -> dict[str, Any]:
    n = 12
    template = rng.integers(len(TEMPLATES), size=n)
    submit = np.sort(rng.uniform(-1e5, -1e3, n))
    return {
        "submit_s": submit,
        "finish_s": submit + 500.0,
        "n_tasks": rng.integers(1, 20, n),
        "mean_task_s": 3 * speed[template] * rng.lognormal(0.0, 0.3, n),
        "user": rng.choice(USERS, n).tolist(),
        "template": [TEMPLATES[i] for i in template],
        "application": [TEMPLATES[i] for i in template],
    } | {name: rng.lognormal(2.0, 1.0, n) for name in own_columns}


def _training(
    rng: np.random.Generator, shapes: list[list[dict[str, Any]]], speed: F8
) -> dict[str, Any]:
    rows: list[tuple[str, int, int, float, float]] = []
    for template, stages, factor in zip(TEMPLATES, shapes, speed, strict=True):
        start = 0.0
        for s, stage in enumerate(stages if template else []):
            lengths = _draw(rng, factor, stage)
            rows += [(template, s, k, start, start + length) for k, length in enumerate(lengths)]
            start += max(lengths)
    names, stage_rows, tasks, starts, finishes = zip(*rows, strict=True)
    zeros = np.zeros(len(rows), dtype="i4")
    return {
        "template": names, "run": zeros, "stage": stage_rows, "task": tasks,
        "ready_s": starts, "start_s": starts, "finish_s": finishes,
    }  # fmt: skip


def differences(result: Result, policy: Scheduler, knows: Knows, instant_s: float) -> int:
    """Count the tasks that start before `instant_s` otherwise once the unknown has changed.

    Only the last start of a task is recorded. Under policies that preempt, therefore, only
    those count that have ended.
    """
    own_columns = getattr(policy, "own_columns", ())
    other = simulate(
        changed(result, knows, instant_s, own_columns),
        result.cluster,
        policy,
        seed=result.seed,
        record="tasks",
    )
    column = "task_finish" if plan_of(result).preemption else "task_start"
    early = (getattr(result, column) < instant_s) | (getattr(other, column) < instant_s)
    same = (result.task_start == other.task_start) & (result.task_machine == other.task_machine)
    return int((early & ~same).sum())


def changed(
    result: Result, knows: Knows, instant_s: float, own_columns: Sequence[str] = ()
) -> Workload:
    """Return the workload of a run with other values of all that is not known at an instant."""
    rng = np.random.default_rng(99)
    workload = result.workload
    tables = {"jobs": workload.jobs, "history": workload.history, "training": workload.training}
    replaced = dict(tables)
    values = tuple(name for name in own_columns if name not in SECONDS)

    def shuffle(table: str, columns: Iterable[str]) -> None:
        for name in columns:
            if name in replaced[table].column_names:
                column = replaced[table][name].take(rng.permutation(replaced[table].num_rows))
                i = replaced[table].column_names.index(name)
                replaced[table] = replaced[table].set_column(i, name, column.combine_chunks())

    # tasks only become longer: those that run now, or were evicted, had not ended before
    unfinished = ~(Record(result).finish < instant_s)
    factor = np.where(unfinished, rng.lognormal(2.0, 2.0, len(unfinished)).clip(1.0), 1.0)
    if knows.durations != "true":
        duration = workload.tasks["duration_s"].to_numpy() * factor
        tasks = workload.tasks.set_column(
            workload.tasks.column_names.index("duration_s"), "duration_s", pa.array(duration)
        )
        replaced["tasks"] = tasks
    if knows.durations not in ("true", "learnt"):
        shuffle("history", SECONDS)
        training = replaced["training"]
        finish = training["start_s"].to_numpy() + rng.exponential(9.0, training.num_rows)
        i = training.column_names.index("finish_s")
        replaced["training"] = training.set_column(i, "finish_s", pa.array(finish))
    if knows.durations == "nothing":
        shuffle("jobs", ["requested_s"])
    if "true" not in (knows.durations, knows.values):
        shuffle("jobs", ["compute_s", "agg_compute_s"])
    if knows.values != "true":
        shuffle("jobs", values)
    if knows.values not in ("true", "learnt"):
        shuffle("history", values)
    if knows.values == "nothing":
        shuffle("jobs", ["priority"])
    if knows.deadlines == "nothing":
        shuffle("jobs", ["deadline_s"])
    if knows.demands != "true":
        replaced["stages"] = _other_demands(result, instant_s, rng)
    return _replaced(workload, **replaced)


def _other_demands(result: Result, instant_s: float, rng: np.random.Generator) -> pa.Table:
    """Give all stages of the jobs that have not arrived the demands of a random one of them."""
    columns, stages = result.workload.columns, result.workload.stages
    rows = np.arange(stages.num_rows)
    late = np.flatnonzero(columns.job_submit[columns.stage_job] >= instant_s)
    rows[late] = rng.choice(late) if len(late) else late
    for name in [name for name in stages.column_names if name.startswith("demand_")]:
        i = stages.column_names.index(name)
        stages = stages.set_column(i, name, stages[name].take(rows).combine_chunks())
    return stages


def _replaced(workload: Workload, **tables: object) -> Workload:
    names = ("jobs", "stages", "tasks", "stage_edges", "job_edges", "downloads")
    more = ("history", "training", "failures")
    own = {name: getattr(workload, name) for name in (*names, *more)}
    every = own | tables
    return Workload.from_tables(
        **{k: v for k, v in every.items() if k in names or not isinstance(v, pa.Table) or len(v)},
        meta=workload.meta,
    )


def instants(result: Result) -> list[float]:
    """Return instants early in a run, in its middle, and late."""
    quantiles: list[float] = np.quantile(Record(result).finish, (0.1, 0.4, 0.7)).tolist()
    return quantiles
