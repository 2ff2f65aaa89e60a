"""Columns of a plan, with their types and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import filled

NO_LIMIT = np.iinfo(np.int32).max
"""A run limit or start gate that never binds."""

ANYWHERE = -1
"""Bits of all classes of machines."""

JOB_COLUMNS: Mapping[str, tuple[type, float]] = {
    "key": (np.float64, 0.0),
    "queue": (np.int32, 0),
    "run_limit": (np.int32, NO_LIMIT),
    "start_gate": (np.int32, NO_LIMIT),
    "overflow_queue": (np.int32, -1),
    "notify_at": (np.int32, 0),
    "service_at": (np.float64, np.inf),
    "expected_s": (np.float64, np.inf),
    "fill_key": (np.float64, 0.0),
    "worth": (np.float64, 1.0),
    "beyond": (np.float64, 0.0),
    "preempt_level": (np.float64, 0.0),
    "preempts_below": (np.float64, -np.inf),
    "when_preempted": (np.int32, 0),
    "width": (np.int32, NO_LIMIT),
    "runs_on": (np.int64, ANYWHERE),
}
STAGE_COLUMNS: Mapping[str, tuple[type, float]] = {
    "key": (np.float64, 0.0),
    "weight": (np.float64, 1.0),
    "cost": (np.float64, 1.0),
    "expected_s": (np.float64, np.nan),
}

TASK_COLUMNS: Mapping[str, type] = {
    "order": np.int32,
    "priority": np.float64,
    "prefers": np.int32,
}


def defaults(spec: Mapping[str, tuple[type, float]], n: int) -> dict[str, NDArray[Any]]:
    """Return columns of `n` rows at their defaults."""
    return {name: filled(n, default, dtype) for name, (dtype, default) in spec.items()}
