"""Turns a workload, a cluster and a filled plan into the arrays of the kernel's state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.engine.kernels import state as layout
from sim.engine.layout.flags import event_room, flags_of
from sim.engine.layout.resources import (
    demand_of,
    gang_slots,
    most_running,
    must_be_free,
    order_resources,
    organisations,
    quantum_of,
)
from sim.engine.layout.tasks import (
    inputs_of,
    may_be_remote,
    missing,
    o2o_bits,
    per_turn,
    turns,
    weighted_work,
)
from sim.engine.plan import Event, Plan
from sim.workload.columns import capacity_quanta

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def lay_out(
    columns: Columns,
    cluster: Cluster,
    plan: Plan,
    events: Event,
    views: dict[str, NDArray[Any]],
    keep_tasks: bool,
) -> dict[str, NDArray[Any]]:
    """Allocate the state of one run.

    Parameters
    ----------
    columns, cluster, plan
        What is run, on what, and how; the plan's columns are used in place.
    events : Event
        What the policy subscribes to.
    views : dict of str to array
        Arrays that the policy watches (`sim.engine.plan.World.view`).
    keep_tasks : bool
        Whether start, finish and machine of every task are kept.

    Returns
    -------
    dict of str to array
        The fields of `sim.engine.kernels.state`, in their order.
    """
    n_jobs, n_stages = len(columns.job_submit), len(columns.stage_job)
    n_tasks = len(columns.task_duration)
    resources, n_rigid, n_fit = order_resources(cluster, plan)
    quantum = quantum_of(columns, cluster, resources)
    order = [cluster.resources.index(name) for name in resources]
    capacity = capacity_quanta(cluster.capacity.take(order, axis=1), quantum)
    total = capacity.sum(axis=0)
    demand = demand_of(columns, cluster, resources)
    gangs = bool(columns.job_min_tasks.any())
    org, org_cap, org_weight = organisations(columns, cluster, total)
    n_queues = len(org_weight) * len(plan.queues.weight)
    flags = flags_of(columns, cluster, plan, events, keep_tasks, n_queues, gangs)
    flags[layout.N_RIGID] = n_rigid
    fails = bool(len(columns.attempt_s))
    restarts = fails or plan.evict or bool(len(cluster.outages))
    flags[layout.FAILS] = fails
    flags[layout.EVICTS] = plan.evict
    flags[layout.REMOTE] = may_be_remote(columns, len(capacity))
    paced = restarts or len(cluster.slowdowns) > 0 or n_fit < len(resources)
    paced |= bool(flags[layout.OVERBOOK] or flags[layout.REMOTE])
    flags[layout.PACED] = paced
    if plan.share >= 0:
        flags[layout.SHARE] = resources.index(cluster.resources[plan.share])
    usage, per_task = bool(flags[layout.USAGE]), bool(flags[layout.PER_TASK])
    heaps = per_task or restarts
    n_sure = n_rigid if paced else n_fit
    n_slots = most_running(demand[:, :n_sure], total[:n_sure], n_tasks, cluster.unit)
    n_paced, n_stretchy = (n_slots, len(capacity)) if paced else (1, 1)
    n_ends = 2 * n_slots + 64 if paced else n_slots
    slot = gang_slots(columns, demand, cluster.unit) if gangs else np.zeros((1, len(total)), "i8")
    task_order, task_turn = turns(columns, plan)
    speed_time, speed = cluster.slowdowns.steps()

    def filled(value: float, dtype: str, *shape: int) -> NDArray[Any]:
        return np.full(shape, value, dtype=dtype)

    views["stage_left"][:] = np.diff(columns.stage_task0)
    bundle, pack = plan.packing.bundle, plan.packing
    hold0 = np.zeros(n_jobs + 1 if gangs else 1, dtype=np.int64)
    if gangs:
        np.cumsum(columns.job_min_tasks, out=hold0[1:])
    n_resources, n_machines = len(total), len(capacity)
    views["left"][:] = np.diff(columns.stage_task0[columns.job_stage0])
    remaining = weighted_work(columns, plan)
    wants = event_room(events, n_jobs, n_stages)
    service = bool(flags[layout.SERVICE])
    scan = n_stages if flags[layout.FIT] else 1
    fields: dict[str, NDArray[Any]] = {
        "w_job_submit": columns.job_submit,
        "w_job_stage0": columns.job_stage0,
        "w_job_min_tasks": columns.job_min_tasks,
        "w_job_org": org,
        "w_job_work": columns.job_work,
        "w_job_slot": slot,
        "w_job_hold0": hold0,
        **inputs_of(columns),
        "w_stage_job": columns.stage_job,
        "w_stage_task0": columns.stage_task0,
        "w_stage_demand": demand,
        "w_stage_fit": must_be_free(demand, n_rigid, n_fit) if paced else demand,
        "w_stage_o2o": o2o_bits(columns, restarts),
        "w_stage_home": columns.stage_home,
        "w_stage_remote_factor": columns.stage_remote_factor,
        "w_task_duration": columns.task_duration,
        "w_attempt0": columns.attempt0 if fails else filled(0, "i8", 1),
        "w_attempt_s": columns.attempt_s,
        "w_attempt_lost": columns.attempt_lost,
        "w_edge0": columns.edge0,
        "w_edge_child": columns.edge_child,
        "w_edge_kind": columns.edge_kind,
        **cluster.outages.in_order(),
        "c_total": total,
        "c_scale": np.where(total > 0, 1.0 / np.maximum(total, 1), 0.0),
        "c_dot": 1.0 / np.maximum(capacity[:, :n_fit], 1).astype(np.float64) ** 2,
        "c_capacity": capacity if paced else filled(0, "i8", 1, 1),
        "c_speed_time": speed_time,
        "c_speed": speed,
        "c_org_cap": org_cap,
        "c_org_weight": org_weight,
        **{f"p_job_{name}": plan.jobs[name] for name in Plan.JOB_COLUMNS},
        **{f"p_stage_{name}": plan.stages[name] for name in Plan.STAGE_COLUMNS},
        "p_task_order": task_order,
        "p_task_turn": task_turn,
        "p_turn_priority": per_turn(columns, plan, "task_priority", "f8"),
        "p_turn_prefers": per_turn(columns, plan, "task_prefers", "i4"),
        "p_pack": np.array([pack.remaining, pack.remote, pack.unfairness]),
        "p_queue_weight": plan.queues.weight,
        "p_queue_tier": plan.queues.tier,
        "p_queue_order": plan.queues.order,
        "p_queue_demote_at": plan.queues.demote_at,
        "p_queue_demote_to": plan.queues.demote_to,
        "state_f": np.array([0.0, plan.timer_s, 0.0, 0.0]),
        "state_i": flags,
        "state_job_turn": views["turn"],
        "state_job_left": views["left"],
        "state_job_started": views["started"],
        "state_job_running": views["running"],
        "state_job_first": filled(0, "i4", n_jobs),
        "state_job_done": views["done"],
        "state_job_notify": filled(0, "i4", n_jobs),
        "state_job_done_work": views["done_work"],
        "state_job_first_work": views["first_work"],
        "state_job_remaining": remaining,
        "state_job_attained": filled(0, "f8", n_jobs),
        "state_job_since": filled(0, "f8", n_jobs),
        "state_job_rank": filled(0, "f8", n_jobs),
        "state_job_home": filled(0, "i4", n_jobs),
        "state_job_where": filled(-1, "i4", n_jobs),
        "state_job_ready": filled(-1, "i4", n_jobs),
        "state_job_used": filled(0, "i8", n_jobs if usage else 1, n_resources),
        "state_job_gang": filled(-1, "i4", n_jobs if gangs else 1),
        "state_job_evicted": filled(0, "i4", n_jobs if plan.evict else 1),
        "state_stage_next": filled(0, "i4", n_stages),
        "state_stage_waiting": filled(0, "i4", n_stages),
        "state_stage_left": views["stage_left"],
        "state_stage_done_work": views["stage_done_work"],
        "state_stage_done": filled(0, "i1", n_stages),
        "state_stage_barriers": columns.stage_n_barrier.copy(),
        "state_stage_ready_next": filled(-1, "i4", n_stages),
        "state_stage_ready_prev": filled(-1, "i4", n_stages),
        "state_stage_child": filled(-1, "i4", n_stages),
        "state_stage_sibling": filled(-1, "i4", n_stages),
        "state_stage_prev": filled(-1, "i4", n_stages),
        "state_task_missing": missing(columns, n_tasks) if heaps else filled(0, "i4", 1),
        "state_task_heap": filled(0, "i4", n_tasks if heaps else 1),
        "state_task_failed": filled(0, "i4", n_tasks if fails else 1),
        "state_task_again": filled(0, "i1", n_tasks if fails else 1),
        "state_task_reader": filled(-1, "i4", n_tasks if fails else 1),
        "state_task_reader_next": filled(-1, "i4", n_tasks if fails else 1),
        "state_evict_room": filled(0, "i8", n_resources),
        "state_queue_root": filled(-1, "i4", n_queues),
        "state_queue_used": filled(0, "i8", n_queues, n_resources),
        "state_queue_blocked": filled(0, "i1", n_queues),
        "state_queue_blocked_stage": filled(-1, "i4", n_queues),
        "state_queue_waiting": filled(0, "i4", n_queues),
        "state_queue_deficit": filled(0, "f8", n_queues),
        "state_org_used": filled(0, "i8", len(org_weight), n_resources),
        "state_org_freed": filled(0, "i1", len(org_weight)),
        "state_mach_free": capacity.copy(),
        "state_mach_lost": filled(0, "i1", n_machines),
        "state_mach_dirty": filled(0, "i1", n_machines),
        "state_dirty": filled(0, "i4", n_machines),
        "state_mach_rate": filled(1.0, "f8", n_stretchy, n_resources),
        "state_mach_slot": filled(-1, "i4", n_stretchy),
        "state_mach_touched": filled(0, "i1", n_stretchy),
        "state_touched": filled(0, "i4", n_stretchy),
        "state_slot_task": filled(0, "i4", n_slots),
        "state_slot_stage": filled(0, "i4", n_slots),
        "state_slot_machine": filled(0, "i4", n_slots),
        "state_slot_flag": filled(0, "i1", n_slots),
        "state_slot_start": filled(0, "f8", n_slots),
        "state_slot_free": np.arange(n_slots - 1, -1, -1, dtype=np.int32),
        "state_slot_next": filled(-1, "i4", n_paced),
        "state_slot_prev": filled(-1, "i4", n_paced),
        "state_slot_rate": filled(1.0, "f8", n_paced),
        "state_slot_left": filled(0, "f8", n_paced),
        "state_slot_since": filled(0, "f8", n_paced),
        "state_slot_end": filled(-1.0, "f8", n_paced),
        "state_slot_entry": filled(-1.0, "f8", n_paced),
        "state_ended": filled(0, "i4", n_paced),
        "state_fin_time": filled(0, "f8", n_ends),
        "state_fin_slot": filled(0, "i4", n_ends),
        "state_service_time": filled(0, "f8", n_jobs if service else 1),
        "state_service_heap": filled(0, "i4", n_jobs if service else 1),
        "state_service_pos": filled(-1, "i4", n_jobs if service else 1),
        "state_scan": filled(-1, "i4", scan),
        "state_scan_queue": filled(0, "i4", scan),
        "state_scan_rank": filled(0, "f8", scan),
        "state_scan_key": filled(0, "f8", scan),
        "state_scan_demand": filled(0, "f8", n_fit, scan),
        "state_scan_at": filled(-1, "i4", scan),
        "state_scan_new": filled(0, "i1", scan),
        "state_scan_fresh": filled(0, "i4", scan),
        "state_scan_found": filled(0, "i4", scan),
        "state_scan_score": filled(0, "f8", scan + layout.BLOCK),
        "state_scan_room": filled(0, "f8", layout.BLOCK),
        "state_pick_found": filled(0, "i4", bundle),
        "state_pick_stage": filled(0, "i4", bundle),
        "state_pick_score": filled(0, "f8", bundle),
        "state_pick_worth": filled(0, "f8", bundle),
        "state_pick_left": filled(0, "f8", bundle),
        "state_pick_copies": filled(0, "i8", bundle),
        "state_pick_best": filled(0, "i8", bundle),
        "state_pick_at": filled(0, "i8", bundle),
        "state_pick_now": filled(0, "i8", bundle),
        "state_pick_total": filled(0, "f8", bundle + 1),
        "state_pick_rest": filled(0, "f8", bundle + 1),
        "state_pick_per": filled(0, "f8", bundle, n_fit),
        "state_pick_least": filled(0, "i8", bundle, n_fit),
        "state_pick_room": filled(0, "i8", bundle + 1, n_fit),
        "state_here_slot": filled(0, "i4", n_paced),
        "state_here_left": filled(0, "f8", n_paced),
        "state_here_end": filled(0, "f8", n_paced),
        "state_here_order": filled(0, "i4", n_paced),
        "state_here_free": filled(0, "i8", n_resources, n_paced),
        "state_here_work": filled(0, "f8", n_resources),
        "state_here_due": filled(0, "f8", n_resources),
        "state_here_rate": filled(1.0, "f8", n_resources),
        "state_gang_list": filled(0, "i4", n_jobs if gangs else 1),
        "state_gang_listed": filled(0, "i1", n_jobs if gangs else 1),
        "state_hold_machine": filled(0, "i4", max(int(hold0[-1]), 1)),
        "state_event_kind": filled(0, "i4", wants),
        "state_event_row": filled(0, "i4", wants),
        "out_job_submit": views["submit"],
        "out_job_start": views["start"],
        "out_job_finish": views["finish"],
        "out_job_failed": views["failed"],
        "out_task_start": filled(np.nan, "f8", n_tasks if keep_tasks else 1),
        "out_task_finish": filled(np.nan, "f8", n_tasks if keep_tasks else 1),
        "out_task_machine": filled(-1, "i4", n_tasks if keep_tasks else 1),
    }
    flags[layout.JOBS_LEFT] = n_jobs
    flags[layout.N_SLOT_FREE] = n_slots
    return {name: _frozen(name, fields[name]) for name in layout.NAMES}


def _frozen(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if not name.startswith(layout.READ_ONLY) or not array.flags.writeable:
        return array
    view = array.view()
    view.setflags(write=False)
    return view
