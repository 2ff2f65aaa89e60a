"""The workload under the policy on the cluster: what becomes of its jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.measures import Measured, Run


def measure(run: Run, workload: Any, cluster: Any, policy: Any, seed: int) -> Measured:
    """Simulate once.

    Returns
    -------
    metrics : dict of str to float
        See `sim.metrics`.
    jobs : pyarrow.Table
        A row a job: ``submit_s``, ``start_s``, ``finish_s`` (NaN if never), ``failed`` (bool),
        ``estimate_s`` (the policy's estimate of the job's size; NaN for none).
    """
    import pyarrow as pa

    result = run(workload, cluster, policy, seed=seed)
    jobs = {
        "submit_s": result.job_submit,
        "start_s": result.job_start,
        "finish_s": result.job_finish,
        "failed": result.job_failed,
        "estimate_s": result.estimate_s,
    }
    return {name: float(value) for name, value in result.metrics.items()}, pa.table(jobs)
