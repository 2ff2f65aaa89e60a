"""Evaluator of recurring and ad hoc jobs: failures and value of each kind.

Chung et al., OSDI 2020, §7.1, ask if ad hoc jobs are at a disadvantage.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.evaluators import Evaluation, Simulate


def evaluate(run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int) -> Evaluation:
    """Simulate once, and evaluate jobs with a template (recurring) and without (ad hoc).

    Returns
    -------
    metrics : dict of str to float
        See `sim.metrics`; and for ``recurring`` and ``ad_hoc`` jobs the fractions
        ``jobs_failed_<kind>`` of these jobs, ``value_attained_<kind>`` of their downloads, and
        ``value_of_<kind>`` of all downloads; NaN if there are none.
    jobs : pyarrow.Table
        A row per job, see `sim.result.Result.jobs`.
    """
    result = run(workload, cluster, policy, seed=seed, record="tasks")
    columns = workload.columns
    has_name = np.array([bool(name) for name in columns.template_names])
    recurring = has_name[columns.job_template]
    job = workload.downloads["job"].to_numpy()
    n = workload.downloads["n"].to_numpy().astype(np.float64)
    done = np.isfinite(result.job_finish) & ~result.job_failed
    attained = done[job] & (workload.downloads["time_s"].to_numpy() >= result.job_finish[job])
    metrics = {name: float(value) for name, value in result.metrics.items()}
    for kind, rows in (("recurring", recurring), ("ad_hoc", ~recurring)):
        is_kind = rows[job]
        metrics[f"jobs_failed_{kind}"] = _part(result.job_failed[rows].sum(), rows.sum())
        metrics[f"value_attained_{kind}"] = _part(n[is_kind & attained].sum(), n[is_kind].sum())
        metrics[f"value_of_{kind}"] = _part(n[is_kind].sum(), n.sum())
    return metrics, result.jobs


def _part(amount: float, total: float) -> float:
    return float(amount / total) if total else float("nan")
