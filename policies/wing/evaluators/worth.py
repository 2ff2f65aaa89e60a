"""Evaluator of the value of jobs and of everything downstream, and of its prediction.

Chung et al., OSDI 2020, Figs. 6, 8 and 9, on a workload with the values of its jobs
(`policies.wing.lineage.worth`). It needs no policy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from policies.wing.lineage.templates import medians
from sim.base import maths
from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.evaluators import Evaluation, Simulate
from sim.workload.tables import names, values

USES_POLICY = False


NEAR = 0.2
"""Maximum relative error of an accurate prediction (Fig. 9)."""
FROM = 10.0
"""Minimum value of the jobs that the exponent is fitted to; the low end is excluded (§6.3)."""


def evaluate(run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int) -> Evaluation:
    """Compute values, and predict them by the medians of each template's past jobs (§6.3).

    Returns
    -------
    metrics : dict of str to float
        ``value_mean`` and ``agg_value_mean`` over jobs; ``hidden``, the share of the latter that
        the former lacks; ``zipf_value`` and ``zipf_agg_value``, the exponents of rank; ``near_own``
        and ``near_agg``, the shares of recurring jobs with a value and with past runs
        whose value over resource-time is predicted within `NEAR`.
    table : pyarrow.Table
        A row per job: ``value``, ``agg_value``, and ``error_own`` and ``error_agg``, the
        prediction over the truth, minus 1 (NaN for jobs that do not count).

    Raises
    ------
    InputError
        If the workload has no values of its jobs.
    """
    if "agg_value" not in workload.jobs.column_names:
        raise InputError("evaluator=worth needs a workload with values, such as trace=cosmos")
    truth = {name: workload.jobs[name].to_numpy() for name in ("value", "agg_value")}
    errors = {
        "own": _errors(workload, "value", "compute_s"),
        "agg": _errors(workload, "agg_value", "agg_compute_s"),
    }
    own, total = truth["value"].mean(), truth["agg_value"].mean()
    metrics = {"value_mean": own, "agg_value_mean": total, "hidden": 1.0 - own / total}
    metrics |= {f"zipf_{name}": _exponent(values) for name, values in truth.items()}
    for name, error in errors.items():
        known = error[~np.isnan(error)]
        metrics[f"near_{name}"] = float((np.abs(known) <= NEAR).mean())
    table = pa.table({**truth, **{f"error_{name}": error for name, error in errors.items()}})
    return {name: float(value) for name, value in metrics.items()}, table


def _errors(workload: Any, value: str, compute: str) -> F8:
    known = {name: code for code, name in enumerate(names(workload.jobs, "template")) if name}
    past = workload.history
    lookup = np.array([known.get(n, -1) for n in names(past, "template")], dtype=np.int32)
    past_template = lookup[values(past, "template")]
    now = values(workload.jobs, "template")
    n = max(known.values(), default=-1) + 1
    value_median, compute_median = (
        np.append(
            medians(values(past, c)[past_template >= 0], past_template[past_template >= 0], n),
            np.nan,
        )
        for c in (value, compute)
    )
    recurring = np.isin(now, list(known.values()))
    template_row = np.where(recurring, now, n)
    truth = workload.jobs[value].to_numpy() / workload.jobs[compute].to_numpy()
    out = np.full(len(now), np.nan)
    np.divide(
        value_median[template_row] / compute_median[template_row],
        truth,
        out=out,
        where=recurring & (truth > 0),
    )
    return out - 1.0


def _exponent(value: F8) -> float:
    ranked = np.sort(value)[::-1]
    high = ranked >= FROM
    if high.sum() < 2:
        return float("nan")
    rank = np.arange(1, len(ranked) + 1)
    return -maths.slope(maths.log(rank[high]), maths.log(ranked[high]))
