"""Evaluator of size estimates: each job's size, estimate, queue and waiting time.

As in SLearn's experiments (Jajoo et al., NSDI 2022, §5.2 and the appendix).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sim.base import maths
from sim.base.arrays import F8, I8
from sim.evaluators import Evaluation, Simulate


def evaluate(
    run: Simulate, workload: Any, cluster: Any, policy: Any, seed: int,
    resistance: bool = False,
    first_threshold_s: float = 1000.0,
    growth: float = 10.0,
    queues: int = 10,
) -> Evaluation:  # fmt: skip
    """Simulate once, with a record of every task.

    Parameters
    ----------
    run, workload, cluster, policy, seed
        As for every evaluator.
    resistance : bool
        Also compute the work that each job finds ahead of it.
    first_threshold_s, growth, queues : float, float, int
        Upper end of the first queue for estimates and sizes, growth of the ends, number of queues.

    Returns
    -------
    metrics : dict of str to float
        See `sim.metrics`.
    jobs : pyarrow.Table
        A row per job: ``submit_s``, ``finish_s``; ``size_s``, the sum of its task durations;
        ``n_tasks``; ``estimate_s``, the policy's estimate of its size (NaN for none); ``waits``,
        the mean over its tasks of the time from submission to start, over their mean duration;
        ``queue`` and ``right_queue``, those of its estimate and of its size (0 for the first; -1
        without an estimate); and, with `resistance`, ``resistance_s`` (`resistances`).
    """
    recording = _RecordingPolicy(policy)
    result = run(workload, cluster, recording, seed=seed, record="tasks")
    assert result.task_start is not None, "tasks are recorded"
    assert result.task_finish is not None, "tasks are recorded"
    columns = result.workload.columns
    first = columns.stage_task0[columns.job_stage0]
    n_tasks = np.diff(first)
    submit_s, size_s, estimate_s = columns.job_submit, columns.job_work, result.estimate_s
    wait_s = np.add.reduceat(result.task_start, first[:-1]) / n_tasks - submit_s
    with np.errstate(invalid="ignore", divide="ignore"):
        waits = wait_s * n_tasks / size_s
    bounds = first_threshold_s * maths.power(growth, np.arange(queues - 1))
    queue = np.where(np.isnan(estimate_s), -1, np.searchsorted(bounds, estimate_s, side="right"))
    jobs = {
        "submit_s": submit_s,
        "finish_s": result.job_finish,
        "size_s": size_s,
        "n_tasks": n_tasks.astype(np.int32),
        "estimate_s": estimate_s,
        "waits": waits,
        "queue": queue.astype(np.int32),
        "right_queue": np.searchsorted(bounds, size_s, side="right").astype(np.int32),
    }
    if resistance:
        known_s = recording.known_s + result.workload.origin_s  # the policy has the run's clock
        when_s = np.where(np.isnan(known_s), submit_s, known_s)
        jobs["resistance_s"] = resistances(
            submit_s, when_s, np.maximum(queue, 0), first, result.task_start, result.task_finish
        )
    return {name: float(value) for name, value in result.metrics.items()}, pa.table(jobs)


def resistances(
    submit_s: F8, known_s: F8, queue: NDArray[Any], first: I8, start_s: F8, finish_s: F8
) -> F8:
    """Compute the work ahead of each job when its queue is known (NSDI 2022, appendix).

    A job whose queue is not known yet is in the queue of pilots, between the first and the second.
    """
    left_s = np.zeros(len(submit_s))
    order = np.argsort(known_s, kind="stable")
    moments = known_s[order]
    for job in range(len(submit_s)):
        own = slice(first[job], first[job + 1])
        end_s = finish_s[own].max()
        low, high = np.searchsorted(moments, [submit_s[job], end_s])
        concurrent = order[low:high]
        known_at_s = moments[low:high]
        is_known = known_s[job] <= known_at_s
        own_queue = np.where(is_known, queue[job], 0.5)
        ahead = (own_queue < queue[concurrent]) | (
            (own_queue == queue[concurrent]) & (job < concurrent)
        )
        concurrent, known_at_s = concurrent[ahead], known_at_s[ahead, None]
        counts = is_known[ahead, None] | (start_s[own] < known_s[job])
        left = np.where(counts, finish_s[own] - np.maximum(known_at_s, start_s[own]), 0.0)
        left_s[concurrent] += np.maximum(left, 0.0).sum(axis=1)
    return left_s


class _RecordingPolicy:
    """Wrapper of a policy that records the time at which it first estimates each job's size."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self.known_s = np.zeros(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def begin(self, world: Any, plan: Any) -> object:
        self.known_s = np.full(len(plan.estimate_s), np.nan)
        return self._policy.begin(world, plan)

    def react(self, memory: object, batch: Any, world: Any, plan: Any) -> None:
        self._policy.react(memory, batch, world, plan)
        self.known_s[np.isnan(self.known_s) & ~np.isnan(plan.estimate_s)] = batch.now
