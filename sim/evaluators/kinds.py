"""The workload under the policy, and what becomes of recurring and of ad hoc jobs.

Chung et al., OSDI 2020, §7.1: whether ad hoc jobs are at a disadvantage.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.evaluators import Evaluation, Simulate


def evaluate(run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int) -> Evaluation:
    """Simulate once, and look at jobs with a template and at those without.

    Returns
    -------
    metrics : dict of str to float
        See `sim.metrics`; and for ``recurring`` and ``ad_hoc`` jobs ``jobs_failed_<kind>``, of
        them, ``value_attained_<kind>``, of their downloads, and ``value_of_<kind>``, of all
        downloads; NaN where there are none.
    jobs : pyarrow.Table
        A row a job, see `sim.result.Result.jobs`.
    """
    result = run(workload, cluster, policy, seed=seed, record="tasks")
    columns = workload.columns
    named = np.array([bool(name) for name in columns.template_names])
    recurring = named[columns.job_template]
    job = workload.downloads["job"].to_numpy()
    n = workload.downloads["n"].to_numpy().astype(np.float64)
    done = np.isfinite(result.job_finish) & ~result.job_failed
    attained = done[job] & (workload.downloads["time_s"].to_numpy() >= result.job_finish[job])
    metrics = {name: float(value) for name, value in result.metrics.items()}
    for kind, rows in (("recurring", recurring), ("ad_hoc", ~recurring)):
        own = rows[job]
        metrics[f"jobs_failed_{kind}"] = _part(result.job_failed[rows].sum(), rows.sum())
        metrics[f"value_attained_{kind}"] = _part(n[own & attained].sum(), n[own].sum())
        metrics[f"value_of_{kind}"] = _part(n[own].sum(), n.sum())
    return metrics, result.jobs


def _part(of: float, all_: float) -> float:
    return float(of / all_) if all_ else float("nan")
