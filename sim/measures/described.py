"""What a workload is like: everything that `sim.describe` measures of it, and of random DAGs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.measures import Measured, Simulate

USES_POLICY = False


def measure(run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int) -> Measured:
    """Describe the workload, beside a random DAG for each of its large jobs.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        As every measure is given; the seed draws the random DAGs.

    Returns
    -------
    metrics : dict of str to float
        ``jobs`` and ``stages``, how many there are.
    table : pyarrow.Table
        A row a number, see `sim.describe.measure.to_table`, and ``paper``: what Tian et al., SoCC
        2019, report of it where the workload is of their trace, else NaN.
    """
    import pyarrow as pa

    from sim.describe import Dataset, describe
    from sim.describe.measure import to_table
    from sim.describe.run import random_beside

    data = Dataset.of("trace", workload)
    found = describe(data, [random_beside(data, seed)])
    rows = [(name, one) for name in found.names for one in found.measures[name]]
    paper = [
        found.paper.get((one.section, one.key), float("nan")) if name == data.name else float("nan")
        for name, one in rows
    ]
    table = to_table(rows).append_column("paper", pa.array(paper, pa.float64()))
    return {"jobs": float(workload.n_jobs), "stages": float(workload.n_stages)}, table
