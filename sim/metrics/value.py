"""Attained value: downloads of the workload after their job is done (Wing, OSDI 2020, §6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sim.base.arrays import F8
from sim.engine.record import Run
from sim.metrics.common import FRACTION, Metric, done_mask

N_POINTS = 121
"""Points of `value_over_time`."""


METRICS = {
    "value_attained": Metric(
        "1", "higher", "fraction of downloads that came after completion", span=FRACTION
    )
}


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute the value attained."""
    return {"value_attained": value_attained(run)}


def value_attained(run: Run) -> float:
    """Compute the fraction of downloads at or after the completion of their job.

    A failed job attains none. NaN without downloads.
    """
    _, n, attained = _downloads(run)
    return float(attained.sum() / n.sum()) if n.sum() else float("nan")


def value_over_time(run: Run, n_points: int = N_POINTS) -> dict[str, Any] | None:
    """Compute the attained fraction of the downloads so far, at equally spaced times."""
    time, n, attained = _downloads(run)
    time, n, attained = time[n > 0], n[n > 0], attained[n > 0]
    if len(n) == 0:
        return None
    begin, end = float(time.min()), float(time.max())
    times = np.linspace(begin, end, n_points)
    first = np.searchsorted(times, time)  # the first of the times that includes a download
    so_far = np.cumsum(np.bincount(first, n, n_points))
    share = np.cumsum(np.bincount(first, attained, n_points)) / so_far
    return {"begin_s": begin, "end_s": end, "attained": [float(f"{value:.4g}") for value in share]}


def _downloads(run: Run) -> tuple[F8, F8, F8]:
    """Return the time of each row of downloads, s, their number, and the number attained."""
    downloads = run.workload.downloads
    job, time = downloads["job"].to_numpy(), downloads["time_s"].to_numpy()
    n = downloads["n"].to_numpy().astype(np.float64)
    done = done_mask(run)
    return time, n, np.where(done[job] & (time >= run.job_finish[job]), n, 0.0)
