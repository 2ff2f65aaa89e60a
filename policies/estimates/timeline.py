"""Recorded history as a sequence of events, for estimators that replay it."""

from __future__ import annotations

import numpy as np

from sim.workload.history import Features


def timeline(features: Features) -> list[tuple[float, bool, int]]:
    """List ends and arrivals of the history in time order; at one instant ends go first.

    Jobs without times end one before the next arrives, and all before any other job.
    """
    submit, finish = features.history_column("submit_s"), features.history_column("finish_s")
    rows = np.arange(len(submit))
    time = np.concatenate([finish, submit])
    is_arrival = np.concatenate([np.zeros(len(rows), bool), np.ones(len(rows), bool)])
    row = np.concatenate([rows, rows])
    rank = np.where(features.untimed[row], 2 * row + ~is_arrival - 2 * len(row), is_arrival)
    order = np.lexsort((row, rank, time))
    return list(
        zip(time[order].tolist(), is_arrival[order].tolist(), row[order].tolist(), strict=True)
    )
