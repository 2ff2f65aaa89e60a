"""Demand over time if nothing waits: from which capacity on that is so."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8
from sim.workload.columns import stage_durations, stage_request
from sim.workload.inflow import SLOT, stage_start_s
from sim.workload.record import Tables
from sim.workload.tables import values

MAX_STAGES = 2_000_000
"""Stages up to which a workload's peaks are part of its description: a second or two."""


def in_use_at_starts(start_s: F8, finish_s: F8, amount: F8) -> F8:
    """Return the amount in use just after each stage has started, (G,), in no particular order.

    All tasks of a stage start at `start_s` and hold `amount` together until `finish_s`, (G,) each.
    Of stages that start at one instant each finds those before it. Ends come before starts.
    """
    time_s = np.concatenate([finish_s, start_s])
    order = np.argsort(time_s, kind="stable")
    in_use: F8 = np.cumsum(np.concatenate([-amount, amount])[order])
    return in_use[order >= len(start_s)]


def peak_demands(workload: Tables) -> dict[str, float]:
    """Return the largest amount of each resource, and of slots, in use at once if nothing waits.

    A stage's tasks count as long as its longest; one-to-one edges count as barriers.
    """
    submit_s = values(workload.jobs, "submit_s")[values(workload.stages, "job")]
    longest_s = stage_durations(workload)[1]
    start_s = stage_start_s(workload, longest_s, submit_s)
    _, request, _ = stage_request(workload)
    n_tasks = values(workload.stages, "n_tasks").astype(np.float64)
    amounts = {name: request[:, r] * n_tasks for r, name in enumerate(workload.resources)}
    amounts[SLOT] = n_tasks
    return {
        name: float(in_use_at_starts(start_s, start_s + longest_s, amount).max(initial=0.0))
        for name, amount in amounts.items()
    }
