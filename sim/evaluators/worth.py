"""What jobs and all downstream are worth, and how well the past foretells it; no policy needed.

Chung et al., OSDI 2020, Figs. 6, 8 and 9, on a workload that says what its jobs were worth
(`sim.lineage.worth`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sim.base import maths
from sim.base.arrays import F8
from sim.base.errors import InputError
from sim.evaluators import Evaluation, Simulate
from sim.lineage.templates import medians
from sim.workload.tables import names, values

USES_POLICY = False


NEAR = 0.2
"""A prediction is near if it is off by at most this part of the truth (Fig. 9)."""
FROM = 10.0
"""The exponent is fitted to jobs of at least this value; below lies the low end (§6.3)."""


def evaluate(run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int) -> Evaluation:
    """Measure worth, and its prediction by the medians of each template's past jobs (§6.3).

    Returns
    -------
    metrics : dict of str to float
        ``value_mean`` and ``agg_value_mean`` over jobs; ``hidden``, the part of the latter that
        the former lacks; ``zipf_value`` and ``zipf_agg_value``, the exponents of rank; ``near_own``
        and ``near_agg``, the parts of recurring jobs of some value, and of a template with a past,
        whose value over resource-time is predicted within `NEAR`.
    table : pyarrow.Table
        A row a job: ``value``, ``agg_value``, and ``error_own`` and ``error_agg``, what is
        predicted over the truth less 1 (NaN for jobs that do not count).

    Raises
    ------
    InputError
        If the workload does not say what its jobs were worth.
    """
    if "agg_value" not in workload.jobs.column_names:
        raise InputError("evaluator=worth needs a workload with worth, such as trace=cosmos")
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
    then = lookup[values(past, "template")]
    now = values(workload.jobs, "template")
    n = max(known.values(), default=-1) + 1
    of, over = (
        np.append(medians(values(past, c)[then >= 0], then[then >= 0], n), np.nan)
        for c in (value, compute)
    )
    recurring = np.isin(now, list(known.values()))
    at = np.where(recurring, now, n)
    truth = workload.jobs[value].to_numpy() / workload.jobs[compute].to_numpy()
    out = np.full(len(now), np.nan)
    np.divide(of[at] / over[at], truth, out=out, where=recurring & (truth > 0))
    return out - 1.0


def _exponent(value: F8) -> float:
    ranked = np.sort(value)[::-1]
    high = ranked >= FROM
    if high.sum() < 2:
        return float("nan")
    rank = np.arange(1, len(ranked) + 1)
    return -maths.slope(maths.log(rank[high]), maths.log(ranked[high]))
