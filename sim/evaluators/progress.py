"""How steadily progress indicators foretell the end of a job (Jockey, EuroSys 2012, Fig. 10)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8
from sim.evaluators import Evaluation, Simulate

if TYPE_CHECKING:
    from sim.result import Result


HAIR = 1e-12
"""Progress that differs by less is the same."""


def evaluate(
    run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int, step_s: float = 60.0
) -> Evaluation:
    """Simulate once, and follow every progress indicator through the jobs with a deadline.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        As every evaluator is given; the policy has a method
        ``predict_progress(columns, row, done, tokens)``: by indicator, progress and the time left.
    step_s : float
        Time between two looks at a job, s.

    Returns
    -------
    metrics : dict of str to float
        By indicator, means over the jobs, as fractions of a job's duration: ``delta_t.<name>``,
        the mean of |T_t - T_{t+1}| over its looks, where T_t is the time gone by and what is left
        at that progress with the tokens of the time; ``longest_constant.<name>``, the longest time
        in which progress stays the same.
    table : pyarrow.Table
        A row a job, indicator and look: ``job``, ``indicator``, ``elapsed_s``, ``tokens``,
        ``progress`` and ``predicted_s`` (T_t).
    """
    result: Result = run(workload, cluster, policy, seed=seed, record="tasks")
    submit, finish = result.job_submit, result.job_finish
    columns = result.workload.columns
    by_indicator: dict[str, tuple[list[float], list[float]]] = {}
    parts = []
    for job in np.flatnonzero(np.isfinite(columns.job_deadline) & np.isfinite(finish)).tolist():
        took_s = float(finish[job] - submit[job])
        looks = np.arange(0.0, took_s, step_s)
        ends = _ends(result, job)
        at = np.concatenate([looks, np.unique(np.concatenate(ends))])
        done = np.stack([np.searchsorted(e, at, side="right") / len(e) for e in ends], axis=1)
        tokens = _tokens(result, job, at)
        n = len(looks)
        for name, (progress, left_s) in policy.predict_progress(columns, job, done, tokens).items():
            moves = np.flatnonzero(np.abs(np.diff(progress[n:], prepend=0.0)) > HAIR)
            still = np.diff(np.concatenate([[0.0], at[n:][moves], [took_s]]))
            predicted = looks + left_s[:n]
            delta, longest = by_indicator.setdefault(name, ([], []))
            delta.append(float(np.abs(np.diff(predicted)).mean() / took_s) if n > 1 else 0.0)
            longest.append(float(still.max() / took_s))
            parts.append(
                pa.table(
                    {
                        "job": np.full(n, job, np.int64),
                        "indicator": [name] * n,
                        "elapsed_s": looks,
                        "tokens": tokens[:n],
                        "progress": progress[:n],
                        "predicted_s": predicted,
                    }
                )
            )
    metrics = {}
    for name, (delta, longest) in by_indicator.items():
        metrics[f"delta_t.{name}"] = float(np.mean(delta))
        metrics[f"longest_constant.{name}"] = float(np.mean(longest))
    return metrics, pa.concat_tables(parts) if parts else pa.table({})


def _ends(result: Result, job: int) -> list[F8]:
    """Return when the tasks of each stage end, ascending, s from the job's submission."""
    columns = result.workload.columns
    assert result.task_finish is not None
    g0, g1 = columns.job_stage0[job : job + 2]
    bounds = columns.stage_task0[g0 : g1 + 1]
    since = result.task_finish - result.job_submit[job]
    return [np.sort(since[a:b]) for a, b in pairwise(bounds.tolist())]


def _tokens(result: Result, job: int, at: F8) -> I8:
    """Return what the job was guaranteed at each time since its submission."""
    limits = result.limits
    mine = limits["job"].to_numpy() == job
    since = limits["time_s"].to_numpy()[mine] - result.job_submit[job]
    place = np.searchsorted(since, at, side="right") - 1
    held: I8 = limits["tokens"].to_numpy()[mine][place].astype(np.int64)
    return held
