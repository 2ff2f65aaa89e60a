"""Evaluator of predictions of a job's readers, and of their arrival, from the week before.

Chung et al., OSDI 2020, §3, Figs. 2 and 3, on a workload with the readers of each output
(`policies.wing.lineage.predict`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from policies.wing.lineage import predict
from sim.base.errors import InputError
from sim.evaluators import Evaluation, Simulate
from sim.workload.tables import names, values

USES_POLICY = False

WEEK_S = 7 * 86_400.0
"""Time before the workload begins from which the predictor learns (§3.2)."""
METRIC_THRESHOLDS = (0, 20, 40, 60, 80, 100)
"""Thresholds tr that have metrics, %."""


def evaluate(run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int) -> Evaluation:
    """Learn from the history's last week, and test on the workload's recurring jobs.

    Returns
    -------
    metrics : dict of str to float
        ``best_tr``, which maximises precision × recall, %; and for each tr of `SHOWN`
        ``precision_<tr>`` and ``recall_<tr>`` of predicting that a template will use a job's
        output (T1), and for the time of the first use (T2) ``rmse_h_<tr>``, ``mae_min_<tr>`` (the
        *median* absolute error), ``within_20_<tr>`` and ``over_2x_<tr>``, shares by percentage
        error.
    table : pyarrow.Table
        A row per threshold, see `policies.wing.lineage.predict.threshold_table`.

    Raises
    ------
    InputError
        If the workload has no readers of outputs, or no dependency recurs.
    """
    tables = (workload.history, workload.jobs)
    if any(name not in table.column_names for table in tables for name in predict.READERS):
        raise InputError(
            "evaluator=readers needs a workload with readers of each output, such as cosmos"
        )
    known = {name for table in tables for name in names(table, "template") if name}
    for table in tables:
        known |= set(table["readers"].combine_chunks().flatten().unique().to_pylist())
    codes = {name: code for code, name in enumerate(sorted(known))}
    table_codes = []
    for table in tables:
        lookup = np.array([codes.get(n, -1) for n in names(table, "template")], dtype=np.int32)
        table_codes.append(lookup[values(table, "template")])
    past, now = table_codes
    submit_s = values(workload.history, "submit_s")
    seen = predict.parse_uses(workload.history, codes)
    model = predict.learn(seen, past, submit_s, (-WEEK_S, 0.0), len(known))
    recurring_jobs = np.flatnonzero(now >= 0)
    tested = predict.forecast(
        model, predict.parse_uses(workload.jobs, codes), now, recurring_jobs, len(known)
    )
    table = predict.threshold_table(tested)
    metrics = {"best_tr": predict.best_threshold(table)}
    for row in table.to_pylist():
        if row["tr"] in METRIC_THRESHOLDS:
            metrics |= {
                f"{name}_{row['tr']:g}": row[column] / unit
                for name, column, unit in (
                    ("precision", "precision", 1.0),
                    ("recall", "recall", 1.0),
                    ("rmse_h", "rmse_s", 3600.0),
                    ("mae_min", "mae_s", 60.0),
                    ("within_20", "within_20", 1.0),
                    ("over_2x", "over_2x", 1.0),
                )
            }
    return metrics, table
