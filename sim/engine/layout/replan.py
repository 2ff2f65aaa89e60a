"""Layout of periodic planning: its requirements, and the arrays of its options and registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I4, I8
from sim.base.errors import PolicyError
from sim.cluster.components import Components
from sim.engine.kernels.rigid import replan_registers as register
from sim.engine.layout.choice import codes_of
from sim.engine.layout.columns import gang_slots
from sim.engine.plan import Plan
from sim.engine.plan.replan import Replan
from sim.workload.columns import Columns

_LOW = {
    "interval_s": 1,
    "resolution_s": 1,
    "window_s": 1,
    "first_window_s": 1,
    "depth": 2,
    "main_interval_s": 1,
}
MOST_LIKE = 64
"""Kinds of like jobs for which room on nodes is kept."""
MOST_KEPT = 2**22
"""Numbers that are kept for all of them: 32 MiB."""
_UNBOUNDED = ("max_s", "yield_s")
_LEAST_CODE = {"reserved_in": 0, "array": -1, "throttle": 0, "fits_by": -1}


def check_replan(plan: Plan) -> None:
    """Refuse options out of range."""
    if plan.replan is None:
        return
    n_jobs = len(plan.jobs["key"])
    for field in fields(Replan):
        value, name = getattr(plan.replan, field.name), f"plan.replan.{field.name}"
        if field.name in ("depths", "main_depths"):
            for depth in value:
                _check_codes(f"{name}: group", depth.group, -1, n_jobs)
                if depth.at_most < 1:
                    raise PolicyError(f"{name}: at_most must be at least 1, not {depth.at_most}")
        elif field.name in _LEAST_CODE:
            if value is not None:
                _check_codes(name, value, _LEAST_CODE[field.name], n_jobs)
        else:
            values, low = np.asarray(value), _LOW.get(field.name, 0)
            below = values < 2**31 if field.name not in _UNBOUNDED else ~np.isnan(values)
            if not ((low <= values) & below).all():
                raise PolicyError(f"{name} must be at least {low}, not {values}")
    if plan.replan.window_s < plan.replan.resolution_s:
        raise PolicyError("plan.replan.window_s must be at least its resolution_s")
    if plan.reservations:
        raise PolicyError("plan.replan takes the place of plan.reservations; set one of them")


def _check_codes(name: str, codes: I4, low: int, n_jobs: int) -> None:
    """Refuse a column that is not a whole number of at least `low` of each job."""
    if np.shape(codes) != (n_jobs,) or not (codes >= low).all():
        raise PolicyError(f"{name} must have a whole number of at least {low} for each job")


def replan_fields(
    columns: Columns,
    plan: Plan,
    demand: I8,
    order: Sequence[int],
    n_nodes: int,
    n_slots: int,
    allowed: I8,
    components: Components | None,
) -> dict[str, NDArray[Any]]:
    """Return the fields of the options and registers; short ones without periodic planning.

    Of `demand` the first columns decide what fits, those of the resources of `order`, of which each
    is a number in the cluster's. `allowed`: classes of each stage, or one value for any.
    """
    n_jobs = len(columns.job_submit)
    state, times = np.zeros(register.N_STATE, np.int64), np.zeros(register.N_STATE_S)
    options, options_s, completing_s = np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    factors = np.zeros(0)
    like = np.zeros(1, np.int64), 0
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
                len(replan.depths),
                replan.starts,
                replan.main_starts,
                replan.array_reserved,
                replan.continues,
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
                replan.max_s,
                replan.yield_s,
                replan.sleep_s,
                replan.requeue_s,
            ]
        )
        completing_s = np.array(np.broadcast_to(replan.completing_s, n_jobs), dtype=np.float64)
        factors = np.array(replan.cycle_factors, dtype=np.float64, ndmin=1)
        like = _like_jobs(columns, demand, len(order), allowed, components)
        state[register.LAST_POLL] = -(10**9)
        state[register.NEXT_FULL] = replan.main_phase
        state[register.LAST_UPDATE] = -1
        times[register.WAKE] = replan.plan_phase_s
    return {
        "p_replan": options,
        "p_replan_s": options_s,
        "p_completing_s": completing_s,
        "p_cycle_factors": factors,
        "p_fits_by": _fits_by(columns, plan.replan, demand, order),
        **_count_fields(plan.replan, n_jobs),
        **_like_fields(*like, n_nodes, n_slots),
        "state_replan": state,
        "state_replan_s": times,
    }


def _like_fields(like: I8, n_kinds: int, n_nodes: int, n_slots: int) -> dict[str, NDArray[Any]]:
    """Return the kind of each job, the same if as many of its tasks fit any node; what is kept."""
    n_rows = min(n_kinds, MOST_LIKE, max(1, MOST_KEPT // (2 * n_nodes + n_slots)))
    return {
        "w_job_like": like.astype(np.int32),
        "state_like": np.full(n_rows, -1, np.int32),
        "state_like_ended": np.zeros(n_rows, np.int32),
        "state_node_first": np.zeros((n_rows, n_nodes), np.int64),
        "state_node_later": np.zeros((n_rows, n_nodes), np.int64),
        "state_gain": np.zeros((n_rows, n_slots), np.int64),
    }


def _like_jobs(
    columns: Columns, demand: I8, n_fit: int, allowed: I8, components: Components | None
) -> tuple[I8, int]:
    """Return a code of each job, and their number; of several components the first one counts."""
    first = columns.job_stage0[:-1]
    if len(demand) < len(columns.stage_job):  # of a pool, in which all are equal
        return np.zeros(len(first), np.int64), 1
    slot, own = gang_slots(columns, demand, unit=False, gangs=True), demand[first]
    width = np.diff(columns.stage_task0[columns.job_stage0]).astype(np.int64)
    classes, is_several = np.resize(allowed, len(demand))[first], np.zeros(len(first), np.int64)
    if components is not None:
        several = np.flatnonzero(components.is_heterogeneous)
        stage = components.stage[components.job0[several]]
        slot[several], own[several] = demand[stage], demand[stage]
        width[several] = components.size[components.job0[several]]
        classes[several], is_several[several] = np.resize(allowed, len(demand))[stage], 1
    free = np.where(slot[:, :n_fit].any(axis=1), 0, width)  # of what takes nothing all tasks fit
    single = columns.job_one_per_node.astype(np.int64)
    return codes_of([*slot.T, *own.T, single, is_several, classes, free])


def _fits_by(columns: Columns, replan: Replan | None, demand: I8, order: Sequence[int]) -> I4:
    """Return the column of what is free by which the nodes of each job are compared, -1 for none.

    None is one that does not decide what fits, nor any in a pool, in which all nodes are equal.
    """
    if replan is None:
        return np.zeros(0, np.int32)
    column = np.full(max(order, default=-1) + 2, -1, np.int32)  # the last one: of -1
    if len(demand) == len(columns.stage_job):
        column[list(order)] = np.arange(len(order))
    codes = np.full(len(columns.job_submit), -1) if replan.fits_by is None else replan.fits_by
    return column[np.minimum(codes, max(order, default=-1) + 1)]


def _count_fields(replan: Replan | None, n_jobs: int) -> dict[str, NDArray[Any]]:
    """Return the fields of groups and arrays whose jobs a cycle counts."""
    depths = [] if replan is None else [*replan.depths, *replan.main_depths]
    group = np.zeros((len(depths), n_jobs), np.int32)
    for k, depth in enumerate(depths):
        group[k] = depth.group
    array = throttle = np.zeros(0, np.int32)
    reserved_in = np.zeros(0 if replan is None else n_jobs, np.int32)
    if replan is not None and replan.reserved_in is not None:
        reserved_in = np.array(replan.reserved_in, np.int32)
    if replan is not None and replan.array is not None:
        array = np.array(replan.array, np.int32)
        throttle = np.zeros_like(array) if replan.throttle is None else replan.throttle
    n_arrays = int(array.max(initial=-1)) + 1
    return {
        "p_depth_group": group,
        "p_depth_most": np.array([depth.at_most for depth in depths], np.int64),
        "p_reserved_in": reserved_in,
        "p_job_array": array,
        "p_job_throttle": np.array(throttle, np.int32),
        "state_depth_used": np.zeros((len(depths), int(group.max(initial=-1)) + 1), np.int64),
        "state_reserved_in": np.zeros(int(reserved_in.max(initial=-1)) + 1, np.int64),
        "state_array_tried": np.zeros((2, n_arrays), np.int64),
        "state_array_reserved": np.zeros(n_arrays, np.int64),
    }


def n_steps(plan: Plan, n_jobs: int) -> int:
    """Return the largest number of steps of the table of reservations."""
    return 1 if plan.replan is None else min(plan.replan.depth, 2 * n_jobs) + 3
