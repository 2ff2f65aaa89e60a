"""Transform that records earlier runs of templates, for policies to learn from."""

from __future__ import annotations

import numpy as np

from sim.base import maths
from sim.base.errors import InputError
from sim.base.parameters import Count, NotNegative, checked
from sim.base.random import stream
from sim.transforms.parts import ready_without_waiting, rebuild, training_table
from sim.workload.workload import Workload


@checked
def record_runs(
    workload: Workload, runs: Count = 1, sigma: NotNegative = 0.1, jobs: Count = 2, seed: int = 0
) -> Workload:
    """Record earlier runs of recurring templates, for policies to learn from (``training``).

    A template recurs if at least `jobs` jobs of the workload run it. An earlier run has the stages
    and tasks of the first of these jobs; each stage took exp(sigma · z) times as long, z standard
    normal, which is how runs of a program differ in the trace production_dags. No task waited.
    The workload's jobs stay as they are.

    Parameters
    ----------
    workload : Workload
        Workload without recorded runs.
    runs : int
        Number of earlier runs of each template, at least 1.
    sigma : float
        Spread of the logarithm of a stage's durations between runs; 0: all equal.
    jobs : int
        Number of jobs from which on a template recurs.
    seed : int
        Seed of the earlier runs.

    Raises
    ------
    InputError
        If the workload has recorded runs.
    """
    if workload.training.num_rows:
        raise InputError("the workload has recorded runs already; remove the transform record_runs")
    columns = workload.columns
    templates, first, n_jobs = np.unique(
        columns.job_template, return_index=True, return_counts=True
    )
    named = np.array([bool(columns.template_names[code]) for code in templates], dtype=bool)
    rows = first[named & (n_jobs >= jobs)]
    parts = []
    for run in range(runs):
        draws = stream(seed, "record_runs", run).normal(size=workload.n_stages)
        factor = maths.exp(sigma * draws)
        ready_s = ready_without_waiting(workload, factor * columns.stage_max_s)
        task_s = columns.task_duration * np.repeat(factor, columns.stage_n_tasks)
        number = np.full(len(rows), run)
        parts.append(training_table(workload, rows, number, ready_s, task_s))
    training = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    transform = {"record_runs": runs, "sigma": sigma, "templates": len(rows), "seed": int(seed)}
    return rebuild(workload, transform, training=training if len(rows) else None)
