"""Evaluator of a DAG generator against the workload's held-out DAGs.

The paper (Tian et al., SoCC 2019, §7.3, Figs. 11 and 12) compares with the DAGs that its tables
were counted from. Here the real DAGs are halved at random, by the seed: a generator may use one
half, and is judged on the other by the Kolmogorov-Smirnov distances of six properties.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from policies.alibaba.synth.judge import clean_dags, judge
from sim.evaluators import Evaluation, Simulate

USES_POLICY = False


def evaluate(
    run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int,
    generator: str = "improved",
    fit: str = "histograms",
    per_dag: int = 20,
) -> Evaluation:  # fmt: skip
    """Judge a generator on one random split of the workload's whole DAGs of 6 or more stages.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        As for every evaluator; the seed splits and draws.
    generator, fit, per_dag
        See `policies.alibaba.synth.judge.judge`.

    Returns
    -------
    metrics : dict of str to float
        ``ks_<property>`` for each of `sim.dags.properties.PROPERTIES`.
    table : pyarrow.Table
        The same: ``property``, ``distance``.
    """
    distances = judge(clean_dags(workload), generator, seed, fit=fit, per_dag=per_dag)
    table = pa.table({"property": list(distances), "distance": list(distances.values())})
    return {f"ks_{name}": off for name, off in distances.items()}, table
