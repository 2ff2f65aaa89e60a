"""Turns a workload, a cluster and a filled plan into the arrays of the kernel's state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.columns import capacity_quanta
from sim.errors import InputError, PolicyError, unknown
from sim.kernels import state as layout
from sim.packing import Packing
from sim.plan import NO_LIMIT, Event, Fit, Order, Plan

if TYPE_CHECKING:
    from sim.cluster import Cluster
    from sim.workload import Columns

I8 = NDArray[np.int64]
NO_CAP = np.iinfo(np.int64).max // 4


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
        Arrays that the policy watches (`sim.plan.World.view`).
    keep_tasks : bool
        Whether start, finish and machine of every task are kept.

    Returns
    -------
    dict of str to array
        The fields of `sim.kernels.state`, in their order.
    """
    n_jobs, n_stages = len(columns.job_submit), len(columns.stage_job)
    n_tasks = len(columns.task_duration)
    resources, n_rigid, n_fit = _order_resources(cluster, plan)
    quantum = _quantum(columns, cluster, resources)
    order = [cluster.resources.index(name) for name in resources]
    capacity = capacity_quanta(cluster.capacity.take(order, axis=1), quantum)
    total = capacity.sum(axis=0)
    demand = _demand(columns, cluster, resources)
    gangs = bool(columns.job_min_tasks.any())
    org, org_cap, org_weight = _organisations(columns, cluster, total)
    n_queues = len(org_weight) * len(plan.queues.weight)
    flags = _flags(columns, cluster, plan, events, keep_tasks, n_queues, gangs)
    flags[layout.N_RIGID] = n_rigid
    outages = bool(len(cluster.outages))
    flags[layout.REMOTE] = _may_be_remote(columns, len(capacity))
    overbooks = outages or n_fit < len(resources)
    overbooks |= bool(flags[layout.OVERBOOK] or flags[layout.REMOTE])
    flags[layout.OVERBOOKS] = overbooks
    if plan.share >= 0:
        flags[layout.SHARE] = resources.index(cluster.resources[plan.share])
    usage, per_task = bool(flags[layout.USAGE]), bool(flags[layout.PER_TASK])
    heaps = per_task or outages
    n_sure = n_rigid if overbooks else n_fit
    n_slots = _most_running(demand[:, :n_sure], total[:n_sure], n_tasks, cluster.unit)
    n_paced, n_stretchy = (n_slots, len(capacity)) if overbooks else (1, 1)
    n_ends = 2 * n_slots + 64 if overbooks else n_slots
    slot = _gang_slots(columns, demand, cluster.unit) if gangs else np.zeros((1, len(total)), "i8")
    task_order, task_turn = _turns(columns, plan)

    def filled(value: float, dtype: str, *shape: int) -> NDArray[Any]:
        return np.full(shape, value, dtype=dtype)

    views["stage_left"][:] = np.diff(columns.stage_task0)
    bundle, pack = plan.packing.bundle, plan.packing
    hold0 = np.zeros(n_jobs + 1 if gangs else 1, dtype=np.int64)
    if gangs:
        np.cumsum(columns.job_min_tasks, out=hold0[1:])
    n_resources, n_machines = len(total), len(capacity)
    views["left"][:] = np.diff(columns.stage_task0[columns.job_stage0])
    remaining = _weighted_work(columns, plan)
    wants = _event_room(events, n_jobs, n_stages)
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
        **_inputs(columns),
        "w_stage_job": columns.stage_job,
        "w_stage_task0": columns.stage_task0,
        "w_stage_demand": demand,
        "w_stage_fit": _must_be_free(demand, n_rigid, n_fit) if overbooks else demand,
        "w_stage_o2o": _o2o_bits(columns, outages),
        "w_stage_home": columns.stage_home,
        "w_stage_remote_factor": columns.stage_remote_factor,
        "w_task_duration": columns.task_duration,
        "w_edge0": columns.edge0,
        "w_edge_child": columns.edge_child,
        "w_edge_kind": columns.edge_kind,
        **cluster.outages.in_order(),
        "c_total": total,
        "c_scale": np.where(total > 0, 1.0 / np.maximum(total, 1), 0.0),
        "c_dot": 1.0 / np.maximum(capacity[:, :n_fit], 1).astype(np.float64) ** 2,
        "c_capacity": capacity if overbooks else filled(0, "i8", 1, 1),
        "c_org_cap": org_cap,
        "c_org_weight": org_weight,
        **{f"p_job_{name}": plan.jobs[name] for name in Plan.JOB_COLUMNS},
        **{f"p_stage_{name}": plan.stages[name] for name in Plan.STAGE_COLUMNS},
        "p_task_order": task_order,
        "p_task_turn": task_turn,
        "p_turn_priority": _per_turn(columns, plan, "task_priority", "f8"),
        "p_turn_prefers": _per_turn(columns, plan, "task_prefers", "i4"),
        "p_pack": np.array([pack.remaining, pack.remote, pack.unfairness]),
        "p_queue_weight": plan.queues.weight,
        "p_queue_tier": plan.queues.tier,
        "p_queue_order": plan.queues.order,
        "p_queue_demote_at": plan.queues.demote_at,
        "p_queue_demote_to": plan.queues.demote_to,
        "state_f": np.array([0.0, plan.timer_s, 0.0, 0.0]),
        "state_i": flags,
        "state_job_turn": filled(-1, "i4", n_jobs),
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
        "state_stage_next": filled(0, "i4", n_stages),
        "state_stage_waiting": filled(0, "i4", n_stages),
        "state_stage_left": views["stage_left"],
        "state_stage_done_work": views["stage_done_work"],
        "state_stage_barriers": columns.stage_n_barrier.copy(),
        "state_stage_ready_next": filled(-1, "i4", n_stages),
        "state_stage_ready_prev": filled(-1, "i4", n_stages),
        "state_stage_child": filled(-1, "i4", n_stages),
        "state_stage_sibling": filled(-1, "i4", n_stages),
        "state_stage_prev": filled(-1, "i4", n_stages),
        "state_task_missing": _missing(columns, n_tasks) if heaps else filled(0, "i4", 1),
        "state_task_heap": filled(0, "i4", n_tasks if heaps else 1),
        "state_queue_root": filled(-1, "i4", n_queues),
        "state_queue_used": filled(0, "i8", n_queues, n_resources),
        "state_queue_blocked": filled(0, "i1", n_queues),
        "state_queue_blocked_stage": filled(-1, "i4", n_queues),
        "state_queue_waiting": filled(0, "i4", n_queues),
        "state_queue_deficit": filled(0, "f8", n_queues),
        "state_org_used": filled(0, "i8", len(org_weight), n_resources),
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
        "state_slot_free": np.arange(n_slots - 1, -1, -1, dtype=np.int32),
        "state_slot_next": filled(-1, "i4", n_paced),
        "state_slot_prev": filled(-1, "i4", n_paced),
        "state_slot_rate": filled(1.0, "f8", n_paced),
        "state_slot_left": filled(0, "f8", n_paced),
        "state_slot_since": filled(0, "f8", n_paced),
        "state_slot_end": filled(-1.0, "f8", n_paced),
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


def _order_resources(cluster: Cluster, plan: Plan) -> tuple[tuple[str, ...], int, int]:
    """Return the resources in the kernel's order, how many are rigid, how many decide what fits.

    Those that can't be overbooked come first, then the fungible ones that are looked at.
    """
    wanted = plan.fit_resources or cluster.resources
    for name in wanted:
        if name not in cluster.resources:
            raise PolicyError(unknown("resource in fit_resources", name, cluster.resources))
    rigid = tuple(name for name in cluster.resources if name not in cluster.fungible)
    for name in rigid:
        if name not in wanted:
            raise PolicyError(
                f"fit_resources leaves out {name}, which can't be overbooked; only fungible "
                f"resources may be left out (here: {', '.join(cluster.fungible) or 'none'}); "
                f"name {name} too, or declare it fungible in the cluster"
            )
    looked_at = rigid + tuple(name for name in cluster.fungible if name in wanted)
    rest = tuple(name for name in cluster.fungible if name not in wanted)
    return looked_at + rest, len(rigid), len(looked_at)


def _quantum(columns: Columns, cluster: Cluster, resources: tuple[str, ...]) -> NDArray[np.float64]:
    if cluster.unit:
        return np.ones(1)
    known = dict(zip(columns.resources, columns.quantum, strict=True))
    return np.array([known.get(name, 1.0) for name in resources])


def _demand(columns: Columns, cluster: Cluster, resources: tuple[str, ...]) -> I8:
    if cluster.unit:
        return np.ones((1, 1), dtype=np.int64)
    if columns.resources == resources:
        return columns.stage_demand
    at = {name: i for i, name in enumerate(columns.resources)}
    demand = np.zeros((len(columns.stage_job), len(resources)), dtype=np.int64)
    for r, name in enumerate(resources):
        if name in at:
            demand[:, r] = columns.stage_demand[:, at[name]]
    return demand


def _must_be_free(demand: I8, n_rigid: int, n_fit: int) -> I8:
    """Return the demands, lower than any room where a resource is left out or not demanded."""
    must = demand.copy()
    must[:, n_fit:] = -NO_CAP
    fungible = must[:, n_rigid:n_fit]
    fungible[fungible == 0] = -NO_CAP
    return must


def _organisations(
    columns: Columns, cluster: Cluster, total: I8
) -> tuple[NDArray[np.int32], I8, NDArray[np.float64]]:
    """Return each job's organisation, the caps [O, R] in quanta, and the weights [O]."""
    n_jobs = len(columns.job_submit)
    if cluster.queue_mode == "global":
        cap = np.full((1, len(total)), NO_CAP, dtype=np.int64)
        return np.zeros(n_jobs, dtype=np.int32), cap, np.ones(1)
    names = columns.queue_names
    table = cluster.queue_share or {name: 1 / len(names) for name in names}
    share = np.array([table[name] for name in names])
    cap = np.full((len(names), len(total)), NO_CAP, dtype=np.int64)
    if cluster.queue_mode == "hard":
        cap = capacity_quanta(np.outer(share, total), np.ones(1))
    return columns.job_queue, cap, share


def _flags(
    columns: Columns,
    cluster: Cluster,
    plan: Plan,
    events: Event,
    keep_tasks: bool,
    n_queues: int,
    gangs: bool,
) -> I8:
    flags = np.zeros(layout.N_I, dtype=np.int64)
    queues, jobs = plan.queues, plan.jobs
    if not -1 <= plan.share < len(cluster.resources):
        raise PolicyError(
            f"plan.share is {plan.share}; valid: -1 (dominant) to {len(cluster.resources) - 1}"
        )
    shares = bool((queues.order == Order.SHARE).any())
    limits = any((jobs[name] < NO_LIMIT).any() for name in ("run_limit", "start_gate"))
    crossings = np.isfinite(queues.demote_at).any() or np.isfinite(jobs["service_at"]).any()
    flags[layout.FIT] = int(plan.fit)
    flags[layout.SHARE] = plan.share
    flags[layout.UNIT] = cluster.unit
    flags[layout.EVENTS] = int(events)
    flags[layout.RECORD] = keep_tasks
    flags[layout.HARD] = cluster.queue_mode == "hard"
    flags[layout.USAGE] = n_queues > 1 or shares or cluster.queue_mode == "hard"
    flags[layout.SERVICE] = crossings or bool(events & Event.SERVICE)
    flags[layout.MOVING] = bool((queues.order >= Order.REMAINING).any())
    flags[layout.LIMITS] = limits or events != Event.NONE
    flags[layout.GANGS] = gangs
    flags[layout.INPUTS] = bool(columns.job_input_mode.any())
    flags[layout.PER_TASK] = bool(columns.stage_n_o2o.any())
    flags[layout.TASK_ORDER] = plan.task_order is not None or plan.task_prefers is not None
    flags[layout.BUNDLE] = plan.packing.bundle
    flags[layout.PRIORITY] = plan.task_priority is not None
    flags[layout.PREFERS] = plan.task_prefers is not None
    flags[layout.SEEN] = not np.isnan(plan.stages["seen_s"]).all()
    pack = plan.fit == Fit.PACK
    flags[layout.OVERBOOK] = pack and plan.packing.overbook and bool(cluster.fungible)
    scored = plan.packing != Packing() or plan.task_priority is not None
    scored = pack and (scored or plan.task_prefers is not None)
    flags[layout.SCORED] = scored
    if cluster.unit and not gangs and not scored:
        flags[layout.FIT] = int(Fit.STRICT)  # like demands: what fits one fits all
        rare = ("EVENTS", "LIMITS", "HARD", "PER_TASK", "TASK_ORDER", "SEEN", "INPUTS")
        plain = not any(flags[getattr(layout, name)] for name in rare) and not cluster.outages
        flags[layout.POOL] = plain and cluster.queue_mode == "global"
    return flags


def _most_running(demand: I8, total: I8, n_tasks: int, unit: bool) -> int:
    """Bound how many tasks can run at once: each holds at least the least dominant share."""
    if unit:
        return min(n_tasks, int(total[0]))
    dominant = (demand / np.maximum(total, 1)).max(axis=1, initial=0.0)
    least = dominant.min()
    if least <= 0:
        return n_tasks
    return int(min(n_tasks, np.ceil(len(total) / least) + 1))


def _inputs(columns: Columns) -> dict[str, NDArray[Any]]:
    """Return the fields about what jobs make for each other, of one entry where no job looks."""
    looks = bool(columns.job_input_mode.any())
    n = len(columns.job_submit) if looks else 1
    readers = columns.input_reader if looks else np.zeros(0, dtype=np.int32)
    return {
        "w_job_mode": columns.job_input_mode[:n],
        "w_job_poll_lag": columns.job_poll_lag[:n],
        "w_input0": columns.input0 if looks else np.zeros(1, dtype=np.int64),
        "w_input_reader": readers,
        "state_job_missing": np.bincount(readers, minlength=n).astype(np.int32),
        "state_job_due": np.zeros(n),
        "state_due_heap": np.zeros(n, dtype=np.int32),
        "state_failing": np.zeros(n, dtype=np.int32),
    }


def _gang_slots(columns: Columns, demand: I8, unit: bool) -> I8:
    """Return what one held slot of each job holds: the most that any of its stages demands."""
    if unit:
        return np.ones((len(columns.job_submit), 1), dtype=np.int64)
    most: I8 = np.maximum.reduceat(demand, columns.job_stage0[:-1], axis=0)
    return most


def _weighted_work(columns: Columns, plan: Plan) -> NDArray[np.float64]:
    stage_work, seen_s = columns.stage_work, plan.stages["seen_s"]
    if not np.isnan(seen_s).all():
        stage_work = np.diff(columns.stage_task0) * seen_s
    weighted = stage_work * plan.stages["weight"]
    for name, column in (("weight", plan.stages["weight"]), ("seen_s", stage_work)):
        if not np.isfinite(column).all():
            raise PolicyError(f"stage column {name!r} must be finite, for all stages or for none")
    work: NDArray[np.float64] = np.add.reduceat(weighted, columns.job_stage0[:-1])
    return work


def _turns(columns: Columns, plan: Plan) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    order = plan.task_order
    if order is None and plan.task_prefers is None:
        return np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.int32)
    sizes = np.diff(columns.stage_task0)
    base = np.repeat(columns.stage_task0[:-1], sizes)
    own = np.arange(len(base)) - base
    order = np.array(own if order is None else order, dtype=np.int32, order="C")
    if order.shape != base.shape:
        raise PolicyError(f"task_order has shape {order.shape}; wanted {base.shape}")
    at = base + order
    inside = (order >= 0) & (order < np.repeat(sizes, sizes))
    if not inside.all() or (np.bincount(at, minlength=len(base)) != 1).any():
        raise PolicyError("task_order must hold, for each stage, a permutation of its tasks")
    turn = np.empty(len(base), dtype=np.int32)
    turn[at] = own
    return order, turn


def _per_turn(columns: Columns, plan: Plan, name: str, dtype: str) -> NDArray[Any]:
    """Return the column `name` of the plan's tasks, in the order of their turns in each stage."""
    column, sizes = getattr(plan, name), np.diff(columns.stage_task0)
    if column is None:
        return np.zeros(1, dtype=dtype)
    array: NDArray[Any] = np.array(column, dtype=dtype, order="C")  # the kernel reorders it
    low, n_tasks = -1 if name == "task_prefers" else 0, int(sizes.sum())
    if array.shape != (n_tasks,) or not (np.isfinite(array) & (array >= low)).all():
        raise PolicyError(
            f"{name} must hold a finite number of at least {low} for each of the {n_tasks} tasks"
        )
    if plan.task_order is None:
        return array
    by_turn: NDArray[Any] = array[np.repeat(columns.stage_task0[:-1], sizes) + plan.task_order]
    return by_turn


def _may_be_remote(columns: Columns, n_machines: int) -> bool:
    slower = (columns.stage_home >= 0) & (columns.stage_remote_factor > 1)
    return n_machines > 1 and bool(slower.any())


def _o2o_bits(columns: Columns, outages: bool) -> NDArray[np.int8]:
    bits = ((columns.stage_n_o2o > 0) | outages).astype(np.int8)
    parents = np.repeat(np.arange(len(bits)), np.diff(columns.edge0))
    bits[parents[columns.edge_kind == 1]] |= 2
    return bits


def _missing(columns: Columns, n_tasks: int) -> NDArray[np.int32]:
    """Count for each task how many one-to-one parents' tasks it waits for."""
    one = columns.edge_kind == 1
    parent = np.repeat(np.arange(len(columns.stage_job)), np.diff(columns.edge0))[one]
    child = columns.edge_child[one]
    sizes = np.diff(columns.stage_task0)
    pairs = np.minimum(sizes[parent], sizes[child])
    first = np.repeat(columns.stage_task0[child], pairs)
    within = np.arange(pairs.sum()) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    return np.bincount(first + within, minlength=n_tasks).astype(np.int32)


def _event_room(events: Event, n_jobs: int, n_stages: int) -> int:
    if events == Event.NONE:
        return 1
    if n_jobs + n_stages > 2**28:
        raise InputError("too many jobs for a policy with callbacks")
    return 6 * n_jobs + n_stages + 2
