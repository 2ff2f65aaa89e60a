"""Outcome of a run, of the kernel or of the naive simulator, as named arrays that can be compared.

An outcome holds what a run records, the batches that the policy got, and the views that it saw at
each callback and at the end. Two outcomes are equal to the bit or they are not: nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import sim
from tests.sim.engine import reference

COLUMNS = (
    *("task_start", "task_finish", "task_machine", "job_estimate"),
    *("job_submit", "job_start", "job_finish", "job_failed"),
)
VIEWS = (
    *("left", "running", "started", "done", "done_work", "first_work", "submit", "start", "finish"),
    *("failed", "turn", "stage_left", "stage_started"),
)
LEARNT = ("mean_s", "work_s", "n_tasks", "runs")


class Spy:
    """A policy that also records the batches that it gets."""

    def __init__(self, policy):
        self.policy = policy
        self.name, self.events = policy.name, policy.events
        self.demands = getattr(policy, "demands", "declared")
        self.batches = []
        self.views = {name: [] for name in VIEWS}

    def begin(self, world, plan):
        self.view, self.plan = world.view, plan
        return self.policy.begin(world, plan)

    def react(self, memory, batch, world, plan):
        times = None if batch.time_s is None else tuple(batch.time_s.tolist())
        kinds, rows = tuple(batch.kind.tolist()), tuple(batch.row.tolist())
        self.batches.append((batch.now, kinds, rows, times))
        for name, values in self.views.items():
            values.append(self.view[name].copy())
        self.policy.react(memory, batch, world, plan)


def run_kernel(workload, cluster, policy) -> tuple[sim.Result, dict[str, Any]]:
    """Run the kernel; return its result and its outcome."""
    spy = Spy(policy)
    run = sim.simulate(workload, cluster, spy, record="tasks")
    stopped = run.stopped
    values = (stopped.stop_s, stopped.task, stopped.machine, stopped.start_s)
    reasons = run.stops["reason"].to_pylist()
    stops = [*zip(*(v.tolist() for v in values), reasons, stopped.kept_s.tolist(), strict=True)]
    return run, _outcome(run, stops, spy, policy, cluster)


def run_reference(workload, cluster, policy) -> tuple[Any, dict[str, Any]]:
    """Run the naive simulator; return its result and its outcome."""
    spy = Spy(policy)
    run = reference.simulate(workload, cluster, spy)
    return run, _outcome(run, run.stopped, spy, policy, cluster)


def _outcome(run, stops, seen, policy, cluster) -> dict[str, Any]:
    columns = {name: np.array(getattr(run, name)) for name in COLUMNS}
    if cluster.enforce_limits or len(cluster.reservations):
        columns["job_timeout"] = np.array(run.job_timeout)
    if seen.plan.preemption is not None:
        columns["job_cancelled"] = np.array(run.job_cancelled)
    if cluster.limits or cluster.rules or len(cluster.reservations):
        columns["job_rejected"] = np.array(run.job_rejected)
    if cluster.devices:
        columns["task_devices"] = np.array(run.task_devices)
    if run.task_placed is not None:
        columns["task_placed"] = np.array(run.task_placed)
    if run.job_eligible is not None:
        columns |= {"job_eligible": run.job_eligible, "job_unreleased": run.job_unreleased}
    views = VIEWS if policy.events else ()  # else nobody looks
    columns |= {f"view of {name}": np.array([*seen.views[name], seen.view[name]]) for name in views}
    learning = seen.plan.learning
    learnt = LEARNT if learning is not None else ()
    columns |= {f"learnt {name}": np.array(getattr(learning, name)) for name in learnt}
    return columns | {"stops": stops, "batches": seen.batches}


def differences(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Return the names of what differs between two outcomes."""
    return [
        name for name in _names(first, second) if not _is_same(first.get(name), second.get(name))
    ]


def _names(*outcomes: dict[str, Any]) -> Iterable[str]:
    return dict.fromkeys(name for outcome in outcomes for name in outcome)


def _is_same(first: Any, second: Any) -> bool:
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    return type(first) is type(second) and first == second
