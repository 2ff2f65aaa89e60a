"""Evaluator that describes a workload and random DAGs with `sim.describe`."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sim.describe import Dataset, describe
from sim.describe.run import random_comparator
from sim.describe.statistics import to_table
from sim.evaluators import Evaluation, Simulate

USES_POLICY = False


def evaluate(run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int) -> Evaluation:
    """Describe the workload, and a random DAG (by the seed) for each of its large jobs.

    Returns
    -------
    metrics : dict of str to float
        ``jobs`` and ``stages``, their numbers.
    table : pyarrow.Table
        A row per number, see `sim.describe.statistics.to_table`, and ``paper``: the number in Tian
        et al., SoCC 2019, if the workload is of their trace, else NaN.
    """
    data = Dataset.from_workload("trace", workload)
    description = describe(data, [random_comparator(data, seed)])
    rows = [(name, number) for name in description.names for number in description.statistics[name]]
    paper = [
        description.paper.get((row.section, row.key), float("nan"))
        if name == data.name
        else float("nan")
        for name, row in rows
    ]
    table = to_table(rows).append_column("paper", pa.array(paper, pa.float64()))
    return {"jobs": float(workload.n_jobs), "stages": float(workload.n_stages)}, table
