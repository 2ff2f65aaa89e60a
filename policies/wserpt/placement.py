"""Placement of tasks: in strict order, skipping, holding machines, packing, or reserving."""

from __future__ import annotations

from typing import Literal

import numpy as np

from policies.wserpt import offers
from sim.base.arrays import F8, ranges
from sim.base.errors import PolicyError
from sim.cluster.sizing import stage_shares
from sim.engine.plan import NO_LIMIT, Fit, Plan, World
from sim.engine.plan.queues import Packing
from sim.workload.columns import Columns, task_homes

PlacementName = Literal["auto", "strict", "skip", "hold", "pack", "reserve"]


def choose(name: PlacementName, world: World) -> PlacementName:
    """Return the placement of a workload: strict order wastes room where demands differ."""
    if name != "auto":
        return name
    if not offers.several_resources(world):
        return "strict"
    return "hold" if offers.holdable(world) else "skip"


def place(
    name: PlacementName, world: World, plan: Plan, remaining: float, held_machines: int
) -> None:
    """Set the placement of one run.

    `remaining` is the weight of remaining work in packing scores, `held_machines` the number of
    machines held for the first in order that does not fit. Remaining work is resource-time: on
    machines a task's second counts by its demands, as fractions of a machine.
    """
    if not world.cluster.unit:
        plan.set_stages(weight=stage_shares(world.columns, world.cluster).sum(axis=1))
    plan.held_machines = held_machines if name == "hold" else 0
    if name in ("strict", "skip", "hold"):
        plan.fit = Fit.STRICT if name == "strict" else Fit.SKIP
        return
    if name == "reserve":
        reserve(world, plan)
        return
    columns, cluster = world.columns, world.cluster
    plan.fit = Fit.PACK
    plan.task_prefers = task_homes(columns, len(cluster.capacity))
    plan.packing = Packing(
        remaining=remaining, rebased=True, pending=True, remote=0.8, bundle=16, overbook=True
    )


def order_tasks(columns: Columns, plan: Plan, *, inside_stages: bool) -> None:
    """Order all tasks by row, so that a job's may be ordered when it arrives."""
    plan.task_priority = tasks_after(columns)
    if inside_stages:
        n_tasks = columns.stage_n_tasks
        plan.task_order = ranges(np.zeros_like(n_tasks), n_tasks).astype(np.int32)


def tasks_after(columns: Columns) -> F8:
    """Return the number of tasks of its job after each task, (T,), in the order of rows."""
    job_task0 = columns.stage_task0[columns.job_stage0]
    n_tasks = np.diff(job_task0)
    after = np.repeat(job_task0[1:], n_tasks) - 1 - np.arange(job_task0[-1])
    return after.astype(np.float64)


def reserve(world: World, plan: Plan) -> None:
    """Reserve room for all rigid jobs, in order, by their expected run times."""
    if not offers.rigid(world):
        raise PolicyError("placement=reserve needs rigid jobs, all of whose tasks start together")
    plan.reservations = NO_LIMIT
    for job in range(len(world.columns.job_submit)):
        expect_run_time(job, world, plan)


def expect_run_time(job: int, world: World, plan: Plan) -> None:
    """Set the run time of a rigid job: that of its longest stage, as expected now."""
    first, last = world.columns.job_stage0[job : job + 2].tolist()
    expected_s = plan.stages["expected_s"][first:last]
    if np.isnan(expected_s).any():
        expected_s = world.columns.stage_max_s[first:last]
    longest_s = float(expected_s.max())
    plan.set_jobs(job, expected_s=longest_s, fill_key=longest_s)
