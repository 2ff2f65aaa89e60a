"""Cumulative work of a workload over time on an unlimited cluster (an arrival curve).

Every task starts as soon as its stage's parents have ended. Work after the last submission is not
counted: a long job that arrives late leaves a tail that no cluster could have worked on earlier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, offsets, ranges
from sim.workload.columns import chunks, stage_durations, stage_request
from sim.workload.record import Tables
from sim.workload.tables import values

N_STEPS = 1000
"""Number of equal time steps, from the first submission to the last, at whose ends work is summed
up."""

SLOT = "slot"
"""Resource of a pool (`sim.Cluster.slots`): every task takes one, regardless of its demand."""


@dataclass(frozen=True, eq=False)
class Inflow:
    """Work that an unlimited cluster has done by each time.

    Attributes
    ----------
    resources : tuple of str
        The workload's resources, and `SLOT`.
    time_s : (B,) float64
        Time since the first submission; ends at the last submission, above 0.
    work : (resources, B) float64
        Request × s done by then, by resource: what tasks hold, be it more than they need.
    """

    resources: tuple[str, ...]
    time_s: F8
    work: F8


def inflow(workload: Tables) -> Inflow:
    """Compute the cumulative work on an unlimited cluster while jobs arrive.

    Jobs count from their submission, also those that wait for other jobs. A one-to-one edge counts
    as a barrier. If all jobs are submitted at one instant, all their work can be done in the time
    of the longest critical path (1 s if that is 0): one step, and no tail.
    """
    work, longest, shortest = stage_durations(workload)
    quanta, _, quantum = stage_request(workload)
    names = (*workload.resources, SLOT)
    submit = values(workload.jobs, "submit_s")
    head = stage_start_s(workload, longest)
    span = float(submit[-1] - submit[0])
    if span == 0:
        path_s = float((head + longest).max()) or 1.0
        total = np.append(maths.dot(work, quanta) * quantum, work.sum())
        return Inflow(names, np.array([0.0, path_s]), np.stack([np.zeros_like(total), total], 1))
    time = np.linspace(0.0, span, N_STEPS + 1)
    start = submit[values(workload.stages, "job")] - submit[0] + head
    demand = np.column_stack([quanta * quantum, np.ones(workload.n_stages)])
    n_tasks = values(workload.stages, "n_tasks")
    done = np.stack([step_integral(start, column * n_tasks, time) for column in demand.T])
    # equal tasks count as one, so that the sums have the same bits in either representation
    is_uniform = longest == shortest
    weight = (demand * n_tasks[:, None])[is_uniform]
    for resource in range(len(names)):
        done[resource] -= step_integral((start + longest)[is_uniform], weight[:, resource], time)
    for stages in chunks(workload, np.flatnonzero(~is_uniform)):
        stage, duration = np.repeat(stages, n_tasks[stages]), workload.stage_tasks_s(stages)
        for resource in range(len(names)):
            done[resource] -= step_integral(start[stage] + duration, demand[stage, resource], time)
    return Inflow(names, time, np.maximum.accumulate(np.maximum(done, 0.0), axis=1))


def stage_start_s(workload: Tables, longest_s: F8, submit_s: F8 | None = None) -> F8:
    """Return the earliest start of each stage, (G,) s; stages last as long as their longest task.

    Starts are relative to the job's submission, or absolute if each stage's `submit_s` is given.
    One-to-one edges count as barriers.
    """
    n_stages = workload.n_stages
    parent, child = (values(workload.stage_edges, end) for end in ("parent", "child"))
    edge0 = offsets(np.bincount(parent, minlength=n_stages))
    n_waiting = np.bincount(child, minlength=n_stages)
    start = np.zeros(n_stages) if submit_s is None else submit_s.copy()
    ready = np.flatnonzero(n_waiting == 0)
    position = np.empty(n_stages, np.int64)
    while len(ready):  # all stages at once whose parents are done: one step for each level
        edges = ranges(edge0[ready], edge0[ready + 1])
        finish = np.repeat(start[ready] + longest_s[ready], edge0[ready + 1] - edge0[ready])
        np.maximum.at(start, child[edges], finish)
        np.subtract.at(n_waiting, child[edges], 1)
        reached = child[edges]
        reached = reached[n_waiting[reached] == 0]
        position[reached] = np.arange(len(reached))  # the last one's, of a stage with several
        ready = reached[position[reached] == np.arange(len(reached))]
    return start


def step_integral(time: F8, weight: F8, edges: F8) -> F8:
    """Integrate steps of height `weight` that start at `time`, up to each of ascending `edges`.

    Σ weight × (edge - time) over the times before each edge.
    """
    first = np.searchsorted(edges, time, side="left")  # the first edge not before the time
    n = len(edges)
    total = np.cumsum(np.bincount(first, weight, n)[:n])
    moment = np.cumsum(np.bincount(first, weight * time, n)[:n])
    return edges * total - moment
