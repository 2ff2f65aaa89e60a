"""Recorded history as a sequence of events and groups of similar jobs, for estimators' replay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from policies.estimates.similar import NO_GROUP, past_groups, stage_pairs
from sim.base.arrays import F8, I4, I8, Mask
from sim.workload.columns import Columns
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


def with_places(past: Replay, mean_task_s: F8, columns: Columns) -> tuple[Replay, F8]:
    """Add template and place as the first feature, and recorded runs of stages, before all else.

    A past job is of a place if its template's jobs have a single stage. `mean_task_s` are the mean
    task durations of past jobs, (H,); those of recorded stages follow them in the result.
    """
    stages, training = stage_pairs(columns), columns.training
    jobs = np.stack([past_groups(columns), np.zeros(len(mean_task_s), np.int64)], axis=1)
    longer = np.unique(stages[stages[:, 1] > 0, 0])
    jobs[np.isin(jobs[:, 0], longer) | (jobs[:, 0] == NO_GROUP)] = -1
    records = [training.template, training.column("run"), training.column("stage")]
    rows = np.stack([column.astype(np.int64) for column in records], axis=1)
    runs, run_index = np.unique(rows[rows[:, 0] >= 0], axis=0, return_inverse=True)
    task_s = (training.column("finish_s") - training.column("start_s"))[rows[:, 0] >= 0]
    n_tasks = np.bincount(run_index.reshape(-1), minlength=len(runs))
    run_s = np.bincount(run_index.reshape(-1), task_s, len(runs)) / np.maximum(n_tasks, 1)

    pairs = np.concatenate([stages, jobs, runs[:, [0, 2]]])
    places, code = np.unique(pairs, axis=0, return_inverse=True)
    code = np.where(pairs[:, 0] < 0, -1, code.reshape(-1)).astype(np.int32)
    unknown = np.full((len(runs), past.group.shape[1]), -1, dtype=np.int32)
    group = np.concatenate([past.group, unknown])
    group = np.column_stack([code, np.where(group >= 0, group + len(places), -1)]).astype(np.int32)

    order = np.lexsort((runs[:, 2], runs[:, 0], runs[:, 1]))  # run by run
    row = len(past.group) + order
    job = runs[order][:, :2]
    begins = np.ones(len(row), dtype=np.bool_)
    begins[1:] = (job[1:] != job[:-1]).any(axis=1)
    number = np.cumsum(begins)
    event = np.concatenate([row, -1 - row])[
        np.lexsort((np.tile(row, 2), np.repeat([0, 1], len(row)), np.tile(number, 2)))
    ]
    time = np.concatenate([np.full(len(event), -np.inf), past.time])
    return (
        Replay(group, past.n_groups + len(places), time, np.concatenate([event, past.event])),
        np.concatenate([mean_task_s, run_s]),
    )
