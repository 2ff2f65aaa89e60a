"""Pinned jobs and moments, in the kernel's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I8
from sim.base.errors import InputError

if TYPE_CHECKING:
    from sim.engine.plan import Plan
    from sim.engine.plan.state import State
    from sim.workload.columns import Columns


def pin_fields(columns: Columns, plan: Plan, capacity: I8, unit: bool) -> dict[str, NDArray[Any]]:
    """Return the fields of pinned jobs; short ones without a state.

    Raises
    ------
    InputError
        If a pinned job is no gang and has several tasks, or a machine does not exist.
    """
    state = plan.pinned
    if state is None:
        none = np.zeros(0)
        return {
            "w_pin_s": none, "w_pin_job": none.astype(np.int32),
            "w_pin_machine": np.zeros(1, np.int32), "w_moment_s": none,
        }  # fmt: skip
    jobs = np.flatnonzero(~np.isnan(state.placed_s))
    _check(columns, state, jobs, len(capacity))
    jobs = jobs[np.argsort(state.placed_s[jobs], kind="stable")].astype(np.int32)
    machine = np.minimum(state.machine, 0) if unit else state.machine
    job_of = np.repeat(np.arange(len(columns.job_submit)), columns.job_n_tasks)
    return {
        "w_pin_s": state.placed_s[jobs],
        "w_pin_job": jobs,
        "w_pin_machine": machine[np.lexsort((machine, machine < 0, job_of))].astype(np.int32),
        "w_moment_s": np.asarray(state.moments_s, np.float64),
    }


def _check(columns: Columns, state: State, jobs: I8, n_machines: int) -> None:
    n_jobs, n_tasks = len(columns.job_submit), columns.n_tasks
    if state.placed_s.shape != (n_jobs,) or state.machine.shape != (n_tasks,):
        raise InputError(
            f"a state has a time for each of {n_jobs} jobs and a machine for each of {n_tasks} "
            f"tasks, not {state.placed_s.shape} and {state.machine.shape}"
        )
    n_gang, n = columns.job_min_tasks[jobs], columns.job_n_tasks[jobs]
    loose = jobs[(n_gang != n) & (n > 1) & (columns.job_width_min[jobs] == 0)]
    if len(loose):
        raise InputError(
            f"the job in row {loose[0]} is in the state, and its tasks do not start together: set "
            "min_tasks to their number, or leave it out"
        )
    task0 = columns.stage_task0[columns.job_stage0]
    for j in jobs.tolist():
        machines = state.machine[task0[j] : task0[j + 1]]
        if (machines < -1).any() or (machines >= n_machines).any() or (machines < 0).all():
            raise InputError(
                f"the job in row {j} is in the state on machines {machines.tolist()}; valid: 0 to "
                f"{n_machines - 1}, and -1 for any of the others of its tasks"
            )
