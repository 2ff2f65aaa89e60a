"""Evaluator of a policy on single DAGs: each job alone on a cluster of its own.

As Grandl et al. (DAGPS, MSR-TR-2016-19, §8.3) compare schedules, DAG by DAG.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sim.bounds import bound_arrays
from sim.bounds.machine_counts import machines_per_job
from sim.cluster.cluster import Cluster
from sim.evaluators import Evaluation, Simulate

GAPS = {"gap_lb": "new_lb", "gap_tight_lb": "tight_lb"}


def evaluate(
    run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int,
    low: float = 0.5,
    high: float = 4.0,
) -> Evaluation:  # fmt: skip
    """Simulate every job alone.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        As for every evaluator; of the cluster only the shape of its first machine matters.
    low, high : float
        See `sim.bounds.machine_counts.machines_per_job`; the same machines for every policy.

    Returns
    -------
    metrics : dict of str to float
        ``makespan_mean_s``, and the median and 90th percentile of makespan over NewLB - 1 and over
        the tighter bound - 1.
    table : pyarrow.Table
        A row per job: ``makespan_s``; ``built_s``, the makespan of the schedule that the policy
        builds beforehand (NaN if it builds none); ``machines``, their number; ``factor``, that
        number times the critical path over the work on one machine; the lower bounds.
    """
    shape = dict(zip(cluster.resources, cluster.capacity[0].tolist(), strict=True))
    counts = machines_per_job(workload, shape, seed, low, high).tolist()
    rows = []
    for job, n in enumerate(counts):
        alone = workload.take(np.array([job]))
        machines = Cluster.machines(n, fungible=cluster.fungible, **shape)
        result = run(alone, machines, policy, seed=seed, record="jobs")
        bounds = {
            name: float(bound[0])
            for name, bound in bound_arrays(alone.columns, machines, True).items()
        }
        factor = bounds["cp_len"] / bounds["twork"] if bounds["twork"] else np.inf
        rows.append(
            {
                "makespan_s": float(result.job_finish[0] - result.job_submit[0]),
                "built_s": float(policy.built_s(alone, machines)),
                "machines": n,
                "factor": factor,
                **bounds,
            }
        )
    table = pa.Table.from_pylist(rows)
    makespan = table["makespan_s"].to_numpy()
    metrics = {"makespan_mean_s": float(makespan.mean())}
    for name, bound in GAPS.items():
        gap = makespan / table[bound].to_numpy() - 1.0
        metrics |= {f"{name}_p{q}": float(np.percentile(gap, q)) for q in (50, 90)}
    return metrics, table
