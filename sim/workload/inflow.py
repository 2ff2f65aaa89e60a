"""What of a workload's work could be done by when, if there were always room for it.

Every task starts as soon as its stage's parents have ended, as on a cluster without limits. Nothing
is counted after the last submission: a long job that comes late leaves a tail that no cluster could
have worked on meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sim.base import maths
from sim.base.arrays import F8, I8, offsets, ranges
from sim.workload.columns import stage_demand, stage_durations
from sim.workload.record import Tables
from sim.workload.tables import values

N_STEPS = 1000
"""Equal parts of the time in which jobs arrive, at whose ends the work is summed up."""

CHUNK = 2**20
"""Tasks looked at together."""

SLOT = "slot"
"""What every task takes one of in a pool, whatever it demands (`sim.Cluster.slots`)."""


@dataclass(frozen=True, eq=False)
class Inflow:
    """The work that can be done, summed up from the first submission on.

    Attributes
    ----------
    resources : tuple of str
        Those of the workload, and `SLOT`.
    time_s : (B,) float64
        Since the first submission; the last is the last submission's, above 0.
    work : (resources, B) float64
        Demand × s done by then, by resource.
    """

    resources: tuple[str, ...]
    time_s: F8
    work: F8


def inflow(workload: Tables) -> Inflow:
    """Sum up the work that can be done while jobs arrive.

    Jobs count from their submission, also those that wait for other jobs. A one-to-one edge counts
    as a barrier. Where all jobs come at one instant, all their work can be done in the time of the
    longest critical path (1 s if that is 0): one step, and no tail.
    """
    work, longest, shortest = stage_durations(workload)
    quanta, _, quantum = stage_demand(workload)
    names = (*workload.resources, SLOT)
    submit = values(workload.jobs, "submit_s")
    head = stage_start_s(workload, longest)
    span = float(submit[-1] - submit[0])
    if span == 0:
        alone = float((head + longest).max()) or 1.0
        total = np.append(maths.dot(work, quanta) * quantum, work.sum())
        return Inflow(names, np.array([0.0, alone]), np.stack([np.zeros_like(total), total], 1))
    time = np.linspace(0.0, span, N_STEPS + 1)
    start = submit[values(workload.stages, "job")] - submit[0] + head
    held = np.column_stack([quanta * quantum, np.ones(workload.n_stages)])
    n_tasks = values(workload.stages, "n_tasks").astype(np.float64)
    done = np.stack([step_integral(start, of_one * n_tasks, time) for of_one in held.T])
    # like tasks count as one, so that the sums have the same bits however they are held
    alike = longest == shortest
    weight = (held * n_tasks[:, None])[alike]
    for resource in range(len(names)):
        done[resource] -= step_integral((start + longest)[alike], weight[:, resource], time)
    for stage, duration in _unlike(workload, np.flatnonzero(~alike)):
        for resource in range(len(names)):
            done[resource] -= step_integral(start[stage] + duration, held[stage, resource], time)
    return Inflow(names, time, np.maximum.accumulate(np.maximum(done, 0.0), axis=1))


def _unlike(workload: Tables, stages: I8) -> Iterator[tuple[I8, F8]]:
    """Give the stage and duration of each task of some stages, about `CHUNK` at a time."""
    task0 = workload.stage_task0
    upto = np.cumsum(task0[stages + 1] - task0[stages])
    for part in np.split(stages, np.flatnonzero(np.diff(upto // CHUNK)) + 1):
        if len(part):
            rows = ranges(task0[part], task0[part + 1])
            stage = np.repeat(part, task0[part + 1] - task0[part])
            yield stage, values(workload.tasks, "duration_s")[rows]


def stage_start_s(workload: Tables, longest_s: F8, submit_s: F8 | None = None) -> F8:
    """Return when each stage could start at the earliest, (G,) s, if it lasts its longest task.

    That is after its job's submission, or since 0 where each stage's `submit_s` is given. Edges
    from task to task count as barriers.
    """
    n_stages = workload.n_stages
    parent, child = (values(workload.stage_edges, end) for end in ("parent", "child"))
    edge0 = offsets(np.bincount(parent, minlength=n_stages))
    waits = np.bincount(child, minlength=n_stages)
    start = np.zeros(n_stages) if submit_s is None else submit_s.copy()
    ready = np.flatnonzero(waits == 0)
    while len(ready):  # all stages at once whose parents are all known: as often as paths are long
        edges = ranges(edge0[ready], edge0[ready + 1])
        known = np.repeat(start[ready] + longest_s[ready], edge0[ready + 1] - edge0[ready])
        np.maximum.at(start, child[edges], known)
        np.subtract.at(waits, child[edges], 1)
        reached = np.unique(child[edges])
        ready = reached[waits[reached] == 0]
    return start


def step_integral(time: F8, weight: F8, edges: F8) -> F8:
    """Σ weight × (edge - time) over the times before each edge; edges ascend."""
    at = np.searchsorted(edges, time, side="left")  # the first edge that is not before the time
    n = len(edges)
    total = np.cumsum(np.bincount(at, weight, n)[:n])
    moment = np.cumsum(np.bincount(at, weight * time, n)[:n])
    return edges * total - moment
