"""Layout: the arrays of the kernel's state, from a workload, a cluster and a filled plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I4, I8, filled
from sim.cluster.cap_groups import Groups, cap_groups
from sim.cluster.classes import PARTS
from sim.cluster.exclusive import exclusive_jobs
from sim.cluster.fits import check_task_room, has_enforced_limits, max_running
from sim.engine.kernels import state as layout
from sim.engine.kernels.fields import FIELDS
from sim.engine.kernels.state import READ_ONLY
from sim.engine.layout.caps import kinds_by_caps, lay_out_caps
from sim.engine.layout.choice import (
    ABSENT,
    check_choice,
    check_held_machines,
    lay_out_choice,
    machine_quanta,
    set_registers,
    stage_kinds,
)
from sim.engine.layout.classes import machine_pools
from sim.engine.layout.columns import (
    demand_quanta,
    has_remote_penalty,
    input_fields,
    job_limits,
    missing_parent_tasks,
    o2o_bits,
    order_resources,
    organisations,
    preemption_fields,
    required_free,
    resource_quanta,
    scale_fields,
    stage_lags,
    weighted_work,
)
from sim.engine.layout.elastic import check_elastic, elastic_fields, gang_sizes
from sim.engine.layout.features import event_capacity, may_share, registers, select_features
from sim.engine.layout.learning import learning_fields
from sim.engine.layout.partitions import tiers_in_order
from sim.engine.layout.pins import pin_fields
from sim.engine.layout.quotas import (
    flavor_fields,
    queue_strategies,
    quota_fields,
    tree_of,
)
from sim.engine.layout.replan import check_replan, n_steps, replan_fields
from sim.engine.layout.rigid import check_rigid
from sim.engine.layout.slots import components_of, slot_fields
from sim.engine.layout.speeds import speed_fields
from sim.engine.layout.tasks import by_turn, max_priority, turns, uniform_stages
from sim.engine.layout.topology import topology_fields
from sim.engine.layout.windows import kinds_by_job, outage_fields, window_fields
from sim.engine.plan import Event, Plan

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.cluster.components import Components
    from sim.cluster.quotas import QuotaTree
    from sim.workload.columns import Columns


def lay_out(
    columns: Columns,
    cluster: Cluster,
    plan: Plan,
    events: Event,
    views: dict[str, NDArray[Any]],
    record_tasks: bool,
    shared: frozenset[str] = frozenset(),
) -> tuple[dict[str, NDArray[Any]], frozenset[str]]:
    """Allocate the state of one run; return it with the run's features.

    `shared`: features that it gets if they are its own and more, to share a compiled loop.
    """
    check_elastic(columns, plan)
    check_rigid(columns, cluster, plan)
    check_replan(plan)
    fit, skips = queue_strategies(columns, cluster, plan)
    n_jobs, n_stages, n_tasks = len(columns.job_submit), len(columns.stage_job), columns.n_tasks
    resources, n_rigid, n_fit = order_resources(cluster, plan)
    quantum = resource_quanta(columns, cluster, resources)
    order = [cluster.resources.index(name) for name in resources]
    capacity = machine_quanta(cluster, order, quantum)
    total = capacity.sum(axis=0)
    demand = demand_quanta(columns, cluster, resources)
    tree = tree_of(columns, cluster, resources, capacity, quantum)
    org, org_cap, org_weight = organisations(columns, cluster, total, resources, tree)
    n_queues = len(org_weight) * len(plan.queues.weight)
    remote = has_remote_penalty(columns, len(capacity))
    flags = registers(columns, cluster, plan, events, resources, record_tasks)
    flags[layout.N_RIGID], flags[layout.REMOTE] = n_rigid, remote
    flags[layout.ISOLATED] = tree.is_isolated if tree else cluster.queue_mode == "hard"
    check_choice(cluster, plan)
    check_held_machines(cluster, plan)
    set_registers(flags, columns, cluster, plan, resources, quantum)
    device, per_device = int(flags[layout.DEVICE]), int(flags[layout.DEVICE_QUANTA])
    components = components_of(columns, cluster, demand, capacity, device, per_device)
    stage_pools, mach_pool, job_pools = machine_pools(
        columns, cluster, plan, demand[:, :n_fit], capacity[:, :n_fit], components, fit
    )
    groups, in_pools = cap_groups(columns, cluster), len(np.unique(mach_pool)) > 1
    features = select_features(
        columns, cluster, plan, events, n_queues, remote, in_pools, groups, components is not None,
        fit, bool(skips.any()),
    )  # fmt: skip
    features = shared if may_share(features, shared) else features
    variable_ends, gangs = "VARIABLE_ENDS" in features, "GANGS" in features
    fails = bool(flags[layout.FAILS])
    restarts = fails or plan.preemption is not None or bool(len(cluster.outages))
    enforces = has_enforced_limits(columns, cluster)
    ends_jobs = enforces or bool(len(cluster.reservations))
    flags[layout.STOPS] = record_tasks and (restarts or ends_jobs or "ELASTIC" in features)
    n_binding = n_rigid if variable_ends else n_fit
    n_slots = max_running(demand[:, :n_binding], total[:n_binding], n_tasks)
    flags[layout.N_SLOT_FREE] = n_slots
    o2o = o2o_bits(columns, restarts)
    uniform = uniform_stages(columns, plan, o2o, "BATCHES" in features and not cluster.launch)
    task_order, task_turn = turns(columns, plan, uniform)
    speed_time, speed = cluster.slowdowns.steps()
    held0 = np.zeros(n_jobs + 1, dtype=np.int64)
    np.cumsum(gang_sizes(columns), out=held0[1:])
    _fill_views(views, columns, capacity)
    plans = plan.reservations > 0 or plan.replan is not None
    buckets = "STRICT" not in features and not plans
    kind, running_kind, n_kinds = _kinds(columns, cluster, groups, demand, features, buckets)
    choice = ABSENT
    if "CHOOSES" in features:
        choice = lay_out_choice(columns, cluster, plan, order, capacity, flags, n_kinds, components)
    n_buckets = min(n_stages, n_queues * (n_kinds + 1))
    stage_lag = stage_lags(columns, cluster)
    flags[layout.EXCLUSIVES] = takes_whole = gangs and PARTS in cluster.resources
    conditions = {
        "BUCKETS": buckets,
        "CAPACITIES": variable_ends or takes_whole or bool(features & {"HOLDS", "CHECKS"}),
        "CODES": bool(features & {"CLASS_SPEEDS", "RUNS_ON"}),
        "DEFERS": bool(plan.deferred),
        "DEVICES": record_tasks and bool(flags[layout.CONSTRAINED]),
        "SCORES": bool(flags[layout.CACHES_SCORES]),
        "DEMANDS": not cluster.unit,
        "EXCLUSIVES": takes_whole,
        "FAILS": fails,
        "KINDS": buckets or "CHOOSES" in features,
        "LEARNING": plan.learning is not None,
        "LAUNCHES": bool(flags[layout.LAUNCH]),
        "PLACED": record_tasks and bool(flags[layout.LAUNCH]),
        "HEAPS": restarts or bool(flags[layout.ONE_TO_ONE]),
        "PREFERS": bool(flags[layout.PREFERS]),
        "PRIORITY": bool(flags[layout.PRIORITY]),
        "BATCH_RECORDS": record_tasks and "BATCHES" in features,
        "TASK_RECORDS": record_tasks and "BATCHES" not in features,
        "STOPS": bool(flags[layout.STOPS]),
        "SINGLES": "BATCHES" not in features,
        "MERGED": "PLACES" in features or plan.replan is not None,
        "RUN_SPEEDS": fails and "CLASS_SPEEDS" in features,
        "REPLANNED": plan.replan is not None,
        "RESERVED": plan.reservations > 0,
        "SCAN": plans,
        "STAGE_LAG": bool(len(stage_lag)),
        "TURNS": bool(flags[layout.TASK_ORDER]),
    }
    conditions_met = features | {name for name, holds in conditions.items() if holds}
    if conditions_met & _FOR_EACH_TASK:
        check_task_room(n_tasks, n_slots if flags[layout.STOPS] else 0)
    sizes = {
        "J": n_jobs, "G": n_stages, "T": n_tasks, "E": len(columns.edge_child),
        "R": len(total), "M": len(capacity), "F": n_fit,
        "Q": n_queues, "O": len(org_weight), "L": len(plan.queues.weight),
        "S": n_slots, "N": 2 * n_slots + 64 if variable_ends else n_slots,
        "H": max(int(held0[-1]), 1),
        "B": plan.packing.bundle, "V": event_capacity(events, n_jobs, n_stages),
        "P": 3 * n_jobs + 2, "D": len(capacity) + len(org_weight) + 1, "A": n_tasks + 2 * n_jobs,
        "BLOCK": layout.BLOCK, "K": len(choice["p_mix_weight"]), "Y": n_kinds, "Z": n_buckets,
        "U": int(total[0]) if cluster.unit else len(capacity), "W": n_steps(plan, n_jobs),
        "X": len(columns.run_duration), "C": n_slots + MIN_RECORDS,
        "I": (4 if "ELASTIC" in features else 2) * n_slots + MIN_RECORDS,
    }  # fmt: skip
    inputs: dict[str, NDArray[Any]] = {
        "w_job_submit": columns.job_submit,
        "w_job_stage0": columns.job_stage0,
        "w_job_min_tasks": columns.job_min_tasks,
        "w_job_org": org,
        "w_job_one_per_node": (columns.job_one_per_node & (not cluster.unit)).astype(np.int8),
        **_whole_fields(columns, cluster, views, len(total), takes_whole),
        "w_job_tier": tiers_in_order(columns, cluster, "TIERS" in features),
        "w_job_work": columns.job_work,
        "w_job_limit": job_limits(columns, enforces, "ENFORCES" in features),
        **preemption_fields(columns, plan, features),
        **_slots(columns, cluster, demand, gangs, n_fit, choice, components, features, tree),
        "w_job_pools": job_pools if "CLASSES" in features else job_pools[:1],
        **elastic_fields(columns, "ELASTIC" in features),
        **topology_fields(columns, cluster, "TOPOLOGY" in features),
        **input_fields(columns, "INPUTS" in features, "RELEASES" in features),
        "w_stage_job": columns.stage_job,
        "w_stage_task0": columns.stage_task0,
        "w_stage_demand": demand,
        "w_least_demand": demand.min(axis=0),
        "w_stage_fit": required_free(demand, n_rigid, n_fit) if variable_ends else demand,
        "w_stage_pools": stage_pools if "CLASSES" in features else stage_pools[:1],
        "w_stage_kind": kind,
        "w_stage_running_kind": running_kind,
        **lay_out_caps(columns, groups, resources, quantum, "CAPS" in features),
        "w_stage_o2o": o2o,
        "w_stage_uniform": uniform,
        "w_stage_home": columns.stage_home,
        "w_stage_remote_factor": columns.stage_remote_factor,
        **_durations(columns, "BATCHES" in features),
        "w_attempt0": columns.attempt0 if fails else np.zeros(1, dtype=np.int64),
        "w_attempt_s": columns.attempt_s,
        "w_attempt_lost": columns.attempt_lost,
        "w_edge0": columns.edge0,
        "w_edge_child": columns.edge_child,
        "w_edge_kind": columns.edge_kind,
        **outage_fields(cluster),
        **window_fields(columns, cluster, mach_pool, features),
        **pin_fields(columns, plan, capacity, cluster.unit),
        **choice,
        **speed_fields(columns, cluster, features),
        "c_mach_pool": mach_pool if "CLASSES" in features else mach_pool[:1],
        "c_total": total,
        **scale_fields(resources, capacity, n_fit),
        "c_capacity": capacity if "CAPACITIES" in conditions_met else capacity[:1],
        "c_speed_time": speed_time,
        "c_speed": speed,
        "c_launch_s": cluster.launch.values_s,
        "w_stage_lag": stage_lag,
        "c_launch_key": cluster.launch.key,
        "c_org_cap": org_cap,
        "c_org_weight": org_weight,
        **quota_fields(tree, "CHECKS" in features),
        "c_org_skips": skips if "STRATEGIES" in features else skips[:1],
        **{f"p_job_{name}": plan.jobs[name] for name in Plan.JOB_COLUMNS},
        **{f"p_stage_{name}": plan.stages[name] for name in Plan.STAGE_COLUMNS},
        "p_task_order": task_order,
        "p_task_turn": task_turn,
        "p_turn_priority": by_turn(columns, plan, "priority"),
        "p_turn_prefers": by_turn(columns, plan, "prefers"),
        "p_pack": np.array([getattr(plan.packing, name) for name in _PACK_REGISTERS]),
        **{f"p_queue_{name}": getattr(plan.queues, name) for name in _QUEUE_COLUMNS},
        **replan_fields(
            *(columns, plan, demand, order[:n_fit], sizes["U"], n_slots),
            *(choice["w_stage_allowed"], components),
        ),
        **learning_fields(plan),
        "state_f": np.array(
            [
                *(0.0, plan.timer_s, 0.0, 0.0, max_priority(plan.task_priority)),
                *(np.inf, 0.0, np.inf, -np.inf if plan.pinned is None else plan.pinned.begins_s),
            ]
        ),
        "state_i": flags,
        **{f"state_job_{name}": views[name] for name in _JOB_VIEWS},
        "state_job_remaining": weighted_work(columns, plan),
        "state_stage_left": views["stage_left"],
        "state_stage_done_work": views["stage_done_work"],
        "state_stage_next": views["stage_started"],
        "state_stage_barriers": columns.stage_n_barrier.copy(),
        "state_task_missing": missing_parent_tasks(columns, n_tasks, "HEAPS" in conditions_met),
        "state_bucket_position": np.arange(n_buckets if buckets else 1, dtype=np.int32),
        "state_bucket_at": np.arange(n_buckets if buckets else 1, dtype=np.int32),
        "state_mach_free": views["free"],
        "state_room": np.zeros((3, n_fit), dtype=np.int64),
        "state_slot_free": np.arange(n_slots - 1, -1, -1, dtype=np.int32),
        **{f"out_job_{name}": views[name] for name in ("submit", "start", "finish", "failed")},
    }
    return allocate(sizes, conditions_met, inputs), features


MIN_RECORDS = 2**16
"""Records of batches, or of stops, that a run keeps before it empties them, at least."""
_FOR_EACH_TASK = {"SINGLES", "LAUNCHES", "TURNS", "HEAPS", "FAILS", "DEVICES", "REPLANNED"}
"""Conditions under which the state has rows for single tasks."""
_QUEUE_COLUMNS = ("weight", "tier", "order", "demote_at", "demote_to")
_PACK_REGISTERS = ("remaining", "remote", "unfairness", "order")
_JOB_VIEWS = ("turn", "left", "started", "running", "done", "done_work", "first_work")


def _fill_views(views: dict[str, NDArray[Any]], columns: Columns, capacity: I8) -> None:
    views["stage_left"][:] = np.diff(columns.stage_task0)
    views["left"][:] = np.diff(columns.stage_task0[columns.job_stage0])
    views["free"][:] = capacity


def _whole_fields(
    columns: Columns,
    cluster: Cluster,
    views: dict[str, NDArray[Any]],
    n_resources: int,
    takes_whole: bool,
) -> dict[str, NDArray[Any]]:
    """Return the fields of gangs that take whole machines, if there are any."""
    if not takes_whole:
        absent = np.zeros((1, n_resources), np.int64)
        return {"w_job_exclusive": np.zeros(1, np.int8), "state_job_whole": absent}
    is_exclusive = exclusive_jobs(columns, cluster).astype(np.int8)
    return {"w_job_exclusive": is_exclusive, "state_job_whole": views["whole"]}


def _slots(
    columns: Columns,
    cluster: Cluster,
    demand: I8,
    gangs: bool,
    n_fit: int,
    choice: dict[str, NDArray[Any]],
    components: Components | None,
    features: frozenset[str],
    tree: QuotaTree | None,
) -> dict[str, NDArray[Any]]:
    """Return the fields of slots of gangs, and of the flavors in which they and tasks are tried."""
    slots = slot_fields(
        columns, demand, cluster.unit, gangs, n_fit, choice["w_job_allowed"],
        choice["w_stage_allowed"], components, "COMPONENTS" in features,
    )  # fmt: skip
    total = slots["w_job_total"]
    return slots | flavor_fields(columns, cluster, tree, demand, total, "FLAVORS" in features)


def _durations(columns: Columns, batches: bool) -> dict[str, NDArray[Any]]:
    """Return the fields of durations: of runs of like tasks with batches, else of single tasks."""
    absent = np.zeros(1)
    return {
        "w_task_duration": absent if batches else columns.task_duration,
        "w_stage_run0": columns.stage_run0 if batches else absent.astype(np.int64),
        "w_run_task0": columns.run_task0 if batches else absent.astype(np.int64),
        "w_run_duration": columns.run_duration if batches else absent,
        "state_stage_run": (columns.stage_run0[:-1] if batches else absent).astype(np.int32),
    }


def _kinds(
    columns: Columns,
    cluster: Cluster,
    groups: Groups,
    demand: I8,
    features: frozenset[str],
    buckets: bool,
) -> tuple[I4, I4, int]:
    """Return the kind of each stage, its kind while caps count its job as running, their number."""
    kind, n_kinds = np.zeros(1, np.int32), 1
    if buckets or "CHOOSES" in features:
        kind, n_kinds = stage_kinds(columns, cluster, demand)
    running_kind = np.zeros(len(columns.stage_job) if "CAPS" in features else 1, np.int32)
    if "CAPS" in features and buckets:
        kind, running_kind, n_kinds = kinds_by_caps(columns, groups, kind, n_kinds)
    if features & {"RUNS_ON", "SPREADS", "WINDOWS"} and buckets:
        kind, running_kind, n_kinds = kinds_by_job(columns, cluster, kind, running_kind, features)
    return kind, running_kind, n_kinds


def allocate(
    sizes: Mapping[str, int], conditions_met: Collection[str], inputs: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Return all fields in their order: `inputs`, and the others at their initial values."""
    fields, left = {}, set(inputs)
    extents = {dim: _extent(dim, sizes, conditions_met) for dim in {*chain(*_DIMS)}}
    for (name, code, dims, fill), axes in zip(FIELDS, _DIMS, strict=True):
        shape = [extents[dim] for dim in axes]
        if fill is not None:
            fields[name] = filled(shape, fill, code)  # type: ignore[arg-type]  # none is *
            continue
        if name not in inputs:
            raise ValueError(f"no value for the field {name}")
        left.remove(name)
        array = inputs[name]
        if tuple(shape) != array.shape and not _fits(array, shape):
            raise ValueError(f"{name} has shape {array.shape}; FIELDS says {dims}: {shape}")
        fields[name] = _frozen(array) if name.startswith(READ_ONLY) else array
    if left:
        raise ValueError(f"no fields, or fields with an initial value in FIELDS: {sorted(left)}")
    return fields


_DIMS = tuple(tuple(dim.strip() for dim in dims.split(",")) for _, _, dims, _ in FIELDS)


def _fits(array: NDArray[Any], shape: Sequence[int | None]) -> bool:
    return all(n in (length, None) for n, length in zip(shape, array.shape, strict=False))


def _extent(dim: str, sizes: Mapping[str, int], conditions_met: Collection[str]) -> int | None:
    """Return the length of one axis, None for any."""
    if dim == "*":
        return None
    count, _, condition = dim.partition(":")
    if condition and condition not in conditions_met:
        return 1
    return sum(sizes[part] if part in sizes else int(part) for part in count.split("+"))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    if not array.flags.writeable:
        return array
    view = array.view()
    view.setflags(write=False)
    return view
