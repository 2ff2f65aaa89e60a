"""Layout of periodic planning: its requirements, and the arrays of its options and registers."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I8
from sim.base.errors import PolicyError
from sim.engine.kernels.rigid import replan_registers as register
from sim.engine.plan import Plan
from sim.engine.plan.replan import Replan

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster

_LOW = {
    "interval_s": 1,
    "resolution_s": 1,
    "window_s": 1,
    "first_window_s": 1,
    "depth": 2,
    "main_interval_s": 1,
}


def check_replan(plan: Plan) -> None:
    """Refuse options out of range."""
    if plan.replan is None:
        return
    for field in fields(Replan):
        values, low = np.asarray(getattr(plan.replan, field.name)), _LOW.get(field.name, 0)
        if not ((low <= values) & (values < 2**31)).all():
            raise PolicyError(f"plan.replan.{field.name} must be at least {low}, not {values}")
    if plan.replan.window_s < plan.replan.resolution_s:
        raise PolicyError("plan.replan.window_s must be at least its resolution_s")
    if plan.reservations:
        raise PolicyError("plan.replan takes the place of plan.reservations; set one of them")


def replan_fields(plan: Plan, n_jobs: int) -> dict[str, NDArray[Any]]:
    """Return the fields of the options and registers; short ones without periodic planning."""
    state, times = np.zeros(register.N_STATE, np.int64), np.zeros(2)
    options, options_s, completing_s = np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    factors = np.zeros(0)
    if plan.replan is not None:
        replan = plan.replan
        options = np.array(
            [
                replan.plans,
                replan.resolution_s,
                replan.window_s,
                replan.first_window_s,
                replan.linear_s,
                replan.kill_wait_s,
                replan.depth,
                replan.reserved,
                replan.main_depth,
                replan.main_interval_s,
                replan.main_delay_s,
            ],
            dtype=np.int64,
        )
        options_s = np.array(
            [
                replan.interval_s,
                replan.cycle_s,
                replan.job_cycle_s,
                replan.clock_s,
                replan.poll_phase_s,
            ]
        )
        completing_s = np.array(np.broadcast_to(replan.completing_s, n_jobs), dtype=np.float64)
        factors = np.array(replan.cycle_factors, dtype=np.float64, ndmin=1)
        state[register.LAST_POLL] = -(10**9)
        state[register.NEXT_FULL] = replan.main_phase
        state[register.LAST_UPDATE] = -1
        times[register.WAKE] = replan.plan_phase_s
    return {
        "p_replan": options,
        "p_replan_s": options_s,
        "p_completing_s": completing_s,
        "p_cycle_factors": factors,
        "state_replan": state,
        "state_replan_s": times,
    }


def node_weights(plan: Plan, cluster: Cluster) -> I8:
    """Return the weight of each node, (U,), all alike unless the cluster has some."""
    if plan.replan is None:
        return np.ones(1, np.int64)
    n_nodes = int(cluster.capacity[0, 0]) if cluster.unit else len(cluster.capacity)
    return cluster.weight if len(cluster.weight) else np.ones(n_nodes, np.int64)


def n_steps(plan: Plan, n_jobs: int) -> int:
    """Return the largest number of steps of the table of reservations."""
    return 1 if plan.replan is None else min(plan.replan.depth, 2 * n_jobs) + 3
