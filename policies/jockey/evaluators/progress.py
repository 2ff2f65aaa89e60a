"""Evaluator of progress indicators as predictors of a job's end (Jockey, EuroSys 2012, Fig. 10)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sim.base.arrays import F8, I8
from sim.evaluators import Evaluation, Simulate

if TYPE_CHECKING:
    from sim.result import Result


HAIR = 1e-9
"""Tolerance of a whole per cent of progress, because sums of weights round."""


def evaluate(
    run: Simulate,
    workload: Any,
    cluster: Any,
    policy: Any,
    seed: int,
    step_s: float = 60.0,
    indicators: Sequence[str] | None = None,
) -> Evaluation:
    """Simulate once, and sample every progress indicator during the jobs with a deadline.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        As for every evaluator; the policy has a method
        ``predict_progress(columns, row, done, tokens, names)``: by indicator, progress and time
        left.
    step_s : float
        Time between two samples of a job, s.
    indicators : sequence of str, optional
        Names of the indicators; all by default.

    Returns
    -------
    metrics : dict of str to float
        By indicator, means over the jobs, as fractions of a job's duration: ``delta_t.<name>``,
        the mean of |T_t - T_{t+1}| over its samples, where T_t is the elapsed time plus the time
        left at that progress with the current tokens; ``longest_constant.<name>``, the longest
        time in which the samples of progress, in whole per cent, stay the same. (Between two ends
        of tasks any sum over tasks stays the same, so the paper's three sums differ only as they
        are sampled.)
    table : pyarrow.Table
        A row per job, indicator and sample: ``job``, ``indicator``, ``elapsed_s``, ``tokens``,
        ``progress`` and ``predicted_s`` (T_t).
    """
    result: Result = run(workload, cluster, policy, seed=seed, record="tasks")
    submit, finish = result.job_submit, result.job_finish
    columns = result.workload.columns
    by_indicator: dict[str, tuple[list[float], list[float]]] = {}
    parts = []
    for job in np.flatnonzero(np.isfinite(columns.job_deadline) & np.isfinite(finish)).tolist():
        run_s = float(finish[job] - submit[job])
        sample_s = np.arange(0.0, run_s, step_s)
        ends = _ends(result, job)
        done_share = np.stack(
            [np.searchsorted(e, sample_s, side="right") / len(e) for e in ends], axis=1
        )
        tokens = _tokens(result, job, sample_s)
        n = len(sample_s)
        for name, (progress, left_s) in policy.predict_progress(
            columns, job, done_share, tokens, indicators
        ).items():
            percent = np.floor(100.0 * progress + HAIR)
            moves = 1 + np.flatnonzero(np.diff(percent))
            constant_s = np.diff(np.concatenate([[0.0], sample_s[moves], [run_s]]))
            predicted = sample_s + left_s
            delta, longest = by_indicator.setdefault(name, ([], []))
            delta.append(float(np.abs(np.diff(predicted)).mean() / run_s) if n > 1 else 0.0)
            longest.append(float(constant_s.max() / run_s))
            parts.append(
                pa.table(
                    {
                        "job": np.full(n, job, np.int64),
                        "indicator": [name] * n,
                        "elapsed_s": sample_s,
                        "tokens": tokens,
                        "progress": progress,
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
    """Return the ends of each stage's tasks, ascending, s from the job's submission."""
    columns = result.workload.columns
    assert result.task_finish is not None
    g0, g1 = columns.job_stage0[job : job + 2]
    bounds = columns.stage_task0[g0 : g1 + 1]
    since = result.task_finish - result.job_submit[job]
    return [np.sort(since[a:b]) for a, b in pairwise(bounds.tolist())]


def _tokens(result: Result, job: int, time_s: F8) -> I8:
    """Return the job's run limit at each time since its submission."""
    limits = result.limits
    is_job = limits["job"].to_numpy() == job
    since = limits["time_s"].to_numpy()[is_job] - result.job_submit[job]
    index = np.searchsorted(since, time_s, side="right") - 1
    tokens: I8 = limits["tokens"].to_numpy()[is_job][index].astype(np.int64)
    return tokens
