"""Evaluator of an earlier run as a prediction of a job's run time.

For each job with a recorded run of its template, the recorded task times are scheduled like the
job's own tasks, alone on the cluster's slots, first come, first served. Both are compared:
makespans, and task times stage by stage.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I4
from sim.dags.properties import distance
from sim.evaluators import Evaluation, Simulate
from sim.workload.tables import values
from sim.workload.workload import Workload

USES_POLICY = False

_DECIMALS = 6
"""Digits to round recorded durations to: they are differences of two times."""


def evaluate(run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int) -> Evaluation:
    """Compare every job with the earlier run of its template.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        As for every evaluator; the cluster is a pool of slots.

    Returns
    -------
    metrics : dict of str to float
        ``prediction_error_p50``, ``prediction_error_p90``: over jobs, of |earlier makespan over
        makespan - 1|; ``earlier_over_now_p50``: of the ratio; ``task_error_p50``,
        ``task_error_p90``: over stages, of the same error of the mean time of a task;
        ``task_distance_p50``: over stages, of the Kolmogorov-Smirnov distance between both
        distributions of task times. NaN where no job has an earlier run.
    table : pyarrow.Table
        A row per job with an earlier run: ``job``, ``makespan_s``, ``earlier_s``.
    """
    from sim.engine.recording import run_alone  # loads the kernels; planning asks for options alone

    columns = workload.columns
    known = columns.training
    held_s = np.round(known.column("finish_s") - known.column("start_s"), _DECIMALS)
    slots = int(cluster.total[0])
    rows, errors, distances = [], [], []
    for job, template in enumerate(columns.job_template):
        picked = np.flatnonzero((known.template == template) & (known.column("run") == 0))
        if not len(picked):
            continue
        job_alone = workload.take(np.array([job])).slice_time(
            float(columns.job_submit[job]), np.inf
        )
        before = with_times(job_alone, known.column("stage")[picked], held_s[picked])
        makespan_s, earlier_s = (
            float(run_alone(w, slots).job_finish[0]) for w in (job_alone, before)
        )
        rows.append({"job": job, "makespan_s": makespan_s, "earlier_s": earlier_s})
        for now, then in zip(_by_stage(job_alone), _by_stage(before), strict=True):
            mean = now.mean()
            errors.append(abs(then.mean() / mean - 1) if mean > 0 else np.nan)
            distances.append(distance(now, then))
    types = [("job", pa.int64()), ("makespan_s", pa.float64()), ("earlier_s", pa.float64())]
    table = pa.Table.from_pylist(rows, pa.schema(types))
    ratio = np.array([row["earlier_s"] / row["makespan_s"] for row in rows])
    off = np.abs(ratio - 1)
    return {
        "prediction_error_p50": _percentile(off, 50),
        "prediction_error_p90": _percentile(off, 90),
        "earlier_over_now_p50": _percentile(ratio, 50),
        "task_error_p50": _percentile(np.array(errors), 50),
        "task_error_p90": _percentile(np.array(errors), 90),
        "task_distance_p50": _percentile(np.array(distances), 50),
    }, table


def with_times(workload: Any, stage: I4, held_s: F8) -> Any:
    """Return a workload of one job with the recorded tasks of each stage."""
    n_tasks = np.bincount(stage, minlength=workload.n_stages).astype(np.int32)
    column_names = [name for name in workload.stages.column_names if name != "n_tasks"]
    return Workload.from_tables(
        jobs=workload.jobs,
        stages={**{name: workload.stages[name] for name in column_names}, "n_tasks": n_tasks},
        tasks={"stage": stage, "duration_s": held_s},
        stage_edges={
            "parent": values(workload.stage_edges, "parent"),
            "child": values(workload.stage_edges, "child"),
            "kind": workload.stage_edges["kind"],
        },
    )


def _by_stage(workload: Any) -> list[F8]:
    columns = workload.columns
    rounded = np.round(columns.task_duration, _DECIMALS)
    return np.split(rounded, columns.stage_task0[1:-1])


def _percentile(values: F8, q: int) -> float:
    known = values[~np.isnan(values)] if len(values) else values
    return float(np.percentile(known, q)) if len(known) else float("nan")
