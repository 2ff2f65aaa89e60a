"""Recorded history as a sequence of events and groups of similar jobs, for estimators' replay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sim.base.arrays import F8, I4, I8, Mask
from sim.workload.history import Features


class Replay(NamedTuple):
    """Rows are the stages of the workload, and after these the past jobs."""

    group: I4  # group of each row by feature, -1 for none, (N, 6)
    n_groups: int
    time: F8  # of arrivals and ends of past jobs, in order, s
    event: I8  # the row that arrives, or -1 - the row that ends


def replay(features: Features, uses: Mask | None = None) -> Replay:
    """Return ends and arrivals of the history in time order; at one instant ends go first.

    Rows with the same value of a feature are a group; of features that it not `uses`, there are
    none. Jobs without times end one before the next arrives, and all before any other job.
    """
    codes = np.concatenate(features.codes)
    if uses is not None:
        codes = np.where(uses, codes, -1)
    n_codes = codes.max(axis=0, initial=-1).astype(np.int64) + 1
    first_group = np.cumsum(n_codes) - n_codes
    group = np.where(codes >= 0, codes + first_group, -1).astype(np.int32)

    submit, finish = features.history_column("submit_s"), features.history_column("finish_s")
    rows = np.arange(len(submit))
    time = np.concatenate([finish, submit])
    is_arrival = np.concatenate([np.zeros(len(rows), bool), np.ones(len(rows), bool)])
    row = np.concatenate([rows, rows])
    rank = np.where(features.untimed[row], 2 * row + ~is_arrival - 2 * len(row), is_arrival)
    order = np.lexsort((row, rank, time))
    row, is_arrival = row[order] + len(codes) - len(rows), is_arrival[order]
    return Replay(group, int(n_codes.sum()), time[order], np.where(is_arrival, row, -1 - row))
