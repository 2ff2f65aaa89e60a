"""How much of the cluster a run used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sim.cluster.sizing import demand_of

if TYPE_CHECKING:
    from sim.engine.result import Result


def utilization(run: Result, done: NDArray[np.bool_], makespan_s: float) -> dict[str, float]:
    """Measure the utilisation of each resource, and of the bottleneck.

    Parameters
    ----------
    run : Result
        Of `sim.simulate`.
    done : (J,) bool
        The jobs whose tasks all ran. Tasks of other jobs count where the run recorded them.
    makespan_s : float
        Length of the run, s.

    Returns
    -------
    dict of str to float
        ``utilization_<resource>``, Σ duration × demand / (capacity × makespan), for each resource
        of the cluster, and first ``utilization``, the largest of them; NaN where nothing is done
        or the run takes no time.
    """
    columns, cluster = run.workload.columns, run.cluster
    if np.isfinite(makespan_s) and makespan_s > 0:
        work = columns.stage_work
        if not done.all():
            work = np.where(done[columns.stage_job], work, _recorded_work(run))
        each = (work @ demand_of(columns, cluster)) / (cluster.total * makespan_s)
    else:
        each = np.full(len(cluster.resources), np.nan)
    named = {f"utilization_{r}": float(u) for r, u in zip(cluster.resources, each, strict=True)}
    return {"utilization": float(each.max()), **named}


def _recorded_work(run: Result) -> NDArray[np.float64]:
    """Sum the recorded running time of each stage's tasks, (G,); 0 without records."""
    columns = run.workload.columns
    n_stages = len(columns.stage_job)
    if run.task_start is None or run.task_finish is None or n_stages == 0:
        return np.zeros(n_stages)
    ran = np.nan_to_num(run.task_finish - run.task_start)
    summed: NDArray[np.float64] = np.add.reduceat(ran, columns.stage_task0[:-1])
    return summed
