"""Evaluator of latency predictions by allocation (Jockey, EuroSys 2012, Fig. 8)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa

from sim.cluster.cluster import Cluster
from sim.evaluators import Evaluation, Simulate


def evaluate(
    run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int,
    tokens: tuple[int, ...] = (10, 20, 30, 40, 50, 60, 80, 100),
) -> Evaluation:  # fmt: skip
    """Run every job with a deadline alone with each allocation, and compare with the prediction.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        As for every evaluator; the policy has a method ``predicted_s(columns, row)``. Of the
        cluster only its slow periods count.
    tokens : tuple of int
        The allocations; the policy's predictions must reach the largest.

    Returns
    -------
    metrics : dict of str to float
        ``latency_error``, the mean of |predicted - actual| / actual over all jobs and allocations.
        The prediction is a worst case, so the mean over few runs is high.
    table : pyarrow.Table
        A row per job and allocation: ``job``, ``tokens``, ``took_s`` and ``predicted_s``.
    """
    from sim.engine.recording import FirstComeFirstServed  # loads the kernels

    columns = workload.columns
    rows = []
    for job in np.flatnonzero(np.isfinite(columns.job_deadline)).tolist():
        predicted = policy.predicted_s(columns, job)
        alone = workload.take(np.array([job]))
        # its run begins later than the workload's, from whose begin slow periods count
        since_s = float(columns.job_submit[0] - columns.job_submit[job])
        for n in tokens:
            slots = dataclasses.replace(Cluster.slots(n), slowdowns=cluster.slowdowns).delayed(
                since_s
            )
            result = run(alone, slots, FirstComeFirstServed(), seed=seed, record="jobs")
            run_s = float(result.job_finish[0] - result.job_submit[0])
            rows.append(
                {"job": job, "tokens": n, "took_s": run_s, "predicted_s": float(predicted[n - 1])}
            )
    names = ("job", "tokens", "took_s", "predicted_s")
    table = pa.table({name: [row[name] for row in rows] for name in names})
    error = [abs(row["predicted_s"] - row["took_s"]) / row["took_s"] for row in rows]
    return {"latency_error": float(np.mean(error)) if error else float("nan")}, table
