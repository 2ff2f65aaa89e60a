"""Elastic jobs: their fields, and mechanisms that do not run with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I8, offsets
from sim.base.errors import InputError
from sim.engine.plan import Plan
from sim.workload.elastic import has_elastic, paces

if TYPE_CHECKING:
    from sim.workload.columns import Columns

NOT_ELASTIC = "not with elastic jobs"
"""Rule of the error where a mechanism does not run with elastic jobs."""


def check_elastic(columns: Columns, plan: Plan) -> None:
    """Refuse what does not run with elastic jobs."""
    if not has_elastic(columns):
        return
    refused = {"reservations": plan.reservations > 0, "periodic planning": plan.replan is not None}
    for mechanism, is_used in refused.items():
        if is_used:
            raise InputError(
                f"elastic jobs do not run with {mechanism}: both width and end of such a job may "
                "change at any time, and there is no single width and end to promise room by; "
                "take a policy without, or make the jobs gangs of one width (width_min: 0)",
                rule=NOT_ELASTIC,
            )


def gang_sizes(columns: Columns) -> I8:
    """Return how many slots each job may hold: (J,)."""
    is_elastic = columns.job_width_min > 0
    return np.where(is_elastic, columns.job_n_tasks, columns.job_min_tasks).astype(np.int64)


def elastic_fields(columns: Columns, is_needed: bool) -> dict[str, NDArray[Any]]:
    """Return the fields of elastic jobs, of one entry each where there are none."""
    if not is_needed:
        return {
            "w_job_width_min": np.zeros(1, np.int32),
            "w_job_reconfigure": np.zeros(1),
            "w_job_pace0": np.zeros(1, np.int64),
            "w_pace": np.zeros(1),
        }
    width = np.where(columns.job_width_min > 0, columns.job_n_tasks, 0)
    keys = np.stack([columns.job_speedup.astype(np.int64), width], axis=1)
    curves, curve = np.unique(keys, axis=0, return_inverse=True)
    rows = [
        paces(columns.speedups[k], width_max) if width_max else np.ones(1)
        for k, width_max in curves.tolist()
    ]
    return {
        "w_job_width_min": columns.job_width_min,
        "w_job_reconfigure": columns.job_reconfigure,
        "w_job_pace0": offsets(np.array([len(row) for row in rows]))[:-1][curve.ravel()],
        "w_pace": np.concatenate(rows),
    }
