"""Jain's fairness index over time windows (DAGPS, §8.2.3, Table 4)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from sim.base.arrays import F8, I4
from sim.cluster.sizing import queue_shares, stage_demands
from sim.engine.record import Run
from sim.metrics.common import FRACTION, NAN, Metric

CHUNK = 2**20
"""Number of tasks processed together."""

METRICS = {
    "jain_10s": Metric(
        "1", "higher", "Jain's fairness index of the queues, windows of 10 s", span=FRACTION
    ),
    "jain_60s": Metric(
        "1", "higher", "Jain's fairness index of the queues, windows of 60 s", span=FRACTION
    ),
    "jain_240s": Metric(
        "1", "higher", "Jain's fairness index of the queues, windows of 240 s", span=FRACTION
    ),
}


def compute(run: Run, bounds: Mapping[str, F8]) -> dict[str, float]:
    """Compute Jain's index over windows of three lengths."""
    lengths = (10, 60, 240)
    return {f"jain_{w}s": index for w, index in zip(lengths, jain(run, lengths), strict=True)}


def jain(run: Run, windows_s: Sequence[float]) -> list[float]:
    """Average Jain's fairness index of the queues over time windows.

    Windows of one length follow each other from the first submission. A window counts if every
    queue has demand throughout it: at each instant, some job of the queue is submitted and not
    finished. In a window, x of a queue is its allocation over its share. The allocation is the
    dominant share of its tasks' resources on average over the window; the share is that of
    `sim.cluster.sizing.queue_shares`. The index is (Σ x)² / (n Σ x²): 1 if every queue gets its
    share, 1/n if one gets everything. A window without any allocation is left out.
    """
    columns = run.allocated
    queues = np.unique(columns.job_queue)
    if len(queues) <= 1:
        return [1.0 if len(queues) else NAN] * len(windows_s)
    if run.records is None:
        return [NAN] * len(windows_s)
    origin = columns.job_submit[0]
    finish = run.job_finish - origin
    busy = _all_busy(run.job_submit - origin, finish, columns.job_queue, queues)
    windows = [_windows_within(*busy, width) for width in windows_s]
    allocations = [np.zeros((len(queues), len(w))) for w in windows]
    share = queue_shares(columns, run.cluster)[queues]
    demand = stage_demands(columns, run.cluster) / run.cluster.total
    records = run.records
    stage = columns.task_stage() if records.task is None else columns.stages_of(records.task)
    stage_queue = columns.job_queue[columns.stage_job[stage]]
    begin_s, end_s = run.occupancy(slice(0, len(records.start_s)))
    ran = np.isfinite(end_s)
    for i, queue in enumerate(queues):
        rows = np.flatnonzero(ran & (stage_queue == queue))
        weight = demand[stage[rows]]
        count = None if records.count is None else records.count[rows]
        edges = (begin_s[rows] - origin, end_s[rows] - origin)
        began, ended = (_Ramp(edge, weight, count) for edge in edges)
        for window, out, width in zip(windows, allocations, windows_s, strict=True):
            low, high = window * width, (window + 1) * width
            used = (began(high) - ended(high)) - (began(low) - ended(low))
            out[i] = used.max(axis=1) / width / share[i]
    return [_mean_index(x) for x in allocations]


class _Ramp:
    """Integral up to t of `count` steps each of height `weight` at `time`, for sorted t.

    The running tasks' use of resources, integrated up to t, is the ramp of their starts minus
    that of their ends; prefix sums give all t at once.
    """

    def __init__(self, time: F8, weight: F8, count: I4 | None) -> None:
        order = np.argsort(time, kind="stable")
        self.time = time[order]
        counts = None if count is None else count[order]
        self.sum = _prefix_sums(weight[order], counts)
        self.moment = _prefix_sums(weight[order] * self.time[:, None], counts)

    def __call__(self, t: F8) -> F8:
        """Return the ramp at each of `t`, by resource: (len(t), R)."""
        n = np.searchsorted(self.time, t)
        out: F8 = self.sum[n] * t[:, None] - self.moment[n]
        return out


def _prefix_sums(values: F8, count: I4 | None) -> F8:
    """Return the sums of the first n rows, each added `count` times, for all n: (N+1, R).

    One addition a task, so that the bits are those of single tasks.
    """
    sums = np.zeros((len(values) + 1, values.shape[1]))
    if count is None:
        np.cumsum(values, axis=0, out=sums[1:])
        return sums
    cuts = np.searchsorted(np.cumsum(count) // CHUNK, np.arange(count.sum() // CHUNK + 1))
    for begin, end in itertools.pairwise([*np.unique(cuts).tolist(), len(values)]):
        tasks = np.repeat(values[begin:end], count[begin:end], axis=0)
        tasks[:1] += sums[begin]
        np.cumsum(tasks, axis=0, out=tasks)
        sums[begin + 1 : end + 1] = tasks[np.cumsum(count[begin:end]) - 1]
    return sums


def _all_busy(submit: F8, finish: F8, job_queue: I4, queues: I4) -> tuple[F8, F8]:
    """Return the begins and ends of the time spans in which every queue has a job."""
    begins, ends = [], []
    for queue in queues:
        rows = np.flatnonzero((job_queue == queue) & np.isfinite(finish))
        rows = rows[np.argsort(submit[rows], kind="stable")]
        if len(rows) == 0:
            return np.zeros(0), np.zeros(0)
        last = np.maximum.accumulate(finish[rows])
        new = np.concatenate([[True], submit[rows][1:] > last[:-1]])
        begins.append(submit[rows][new])
        ends.append(last[np.concatenate([new[1:], [True]])])
    begin, end = np.sort(np.concatenate(begins)), np.sort(np.concatenate(ends))
    # Every queue is busy between the begin that raises the count to all queues and the next end.
    time = np.concatenate([begin, end])
    step = np.repeat([1, -1], [len(begin), len(end)])
    order = np.lexsort((-step, time))
    level = np.cumsum(step[order])
    full = np.flatnonzero(level == len(queues))
    return time[order][full], time[order][full + 1]


def _windows_within(begin: F8, end: F8, width: float) -> F8:
    """List the indices k of the windows [k, k + 1) × width that lie in a span."""
    first = np.ceil(begin / width - 1e-9)
    count = np.maximum(0, np.floor(end / width + 1e-9) - first).astype(np.int64)
    offset = np.repeat(np.cumsum(count) - count, count)
    out: F8 = np.repeat(first, count) + (np.arange(count.sum()) - offset)
    return out


def _mean_index(x: F8) -> float:
    """Average Jain's index over the columns of `x`, (queues, windows)."""
    squares = (x * x).sum(axis=0)
    total = x.sum(axis=0)
    used = squares > 0
    if not used.any():
        return NAN
    return float((total[used] ** 2 / (len(x) * squares[used])).mean())
