"""Checks before a run that the cluster can hold the workload: no demand or gang waits for ever."""

from __future__ import annotations

from typing import NamedTuple, NoReturn

import numpy as np

from sim.base.arrays import F8, I8, Mask
from sim.base.errors import InputError, did_you_mean
from sim.base.memory import check_memory
from sim.cluster.allowed import allowed_codes, job_nodes, unadmitted_jobs
from sim.cluster.cap_checks import check_caps
from sim.cluster.classes import ANY, SEPARATOR, capacity_in_quanta, quanta_per_device
from sim.cluster.cluster import Cluster
from sim.cluster.components import (
    Components,
    Machines,
    by_devices,
    fit_together,
    gang_components,
    needs_at_once,
)
from sim.cluster.default_times import with_default_times
from sim.cluster.domains import asked_levels, most_in_a_domain
from sim.cluster.exclusive import machine_parts
from sim.cluster.flavors import flavors_of, has_flavors
from sim.cluster.partitions import NO_RULES
from sim.cluster.quotas import quota_tree
from sim.cluster.requests import requested
from sim.cluster.reservations import jobs_in
from sim.workload.columns import Columns, capacity_quanta, job_stage0, stage_demand
from sim.workload.tables import names, values
from sim.workload.workload import Workload


def check_fits(workload: Workload, cluster: Cluster) -> None:
    """Check that every task, and every gang, fits the empty cluster and its own queue.

    A task needs one machine with room for all that it requests, be it more than it uses. A gang of
    ``min_tasks`` needs as many slots at once, on any machines, each large enough for any of the
    job's tasks, or for those of its component (`sim.cluster.components`). In hard queues both stay
    within the queue's share: the whole quanta in share × total, for each resource; equal shares
    over the workload's queues where the cluster states none. With quotas they stay within what
    their queue may use and borrow while the others use nothing. In a pool of slots each task takes
    one slot. With machine classes, it must be a machine on which the task may run, and of the job's
    advance reservation, if it asks for one; of devices a task takes whole ones, or a part of one.
    Jobs that are rejected, as no partition admits them, are not looked at, unless the cluster says
    that they are an error.
    """
    workload = with_default_times(requested(workload, cluster), cluster)
    rejected = _check_admission(workload, cluster)
    demand, quantum, resources = _demands(workload, cluster)
    if rejected.any():
        demand = np.where(rejected[workload.columns.stage_job][:, None], 0, demand)
    device = resources.index(cluster.devices) if cluster.devices in resources else None
    capacity = capacity_in_quanta(_for_resources(cluster, resources), quantum, device)
    in_devices = None
    if device is not None:
        _check_devices(workload, demand[:, device], quantum[device], resources[device])
        in_devices = _Devices(device, quanta_per_device(quantum[device]))
    runs_on = _check_classes(workload, cluster)
    parts = machine_parts(workload.columns, cluster)
    fit_demand, fit_capacity = demand, capacity
    if parts is not None:
        fit_demand = np.column_stack([demand, parts * ~rejected[workload.columns.stage_job]])
        n_parts = np.full(len(capacity), workload.columns.n_tasks)
        fit_capacity = np.column_stack([capacity, n_parts])
    code = cluster.machine_class if len(cluster.machine_class) else np.zeros(len(capacity), int)
    kinds, count = np.unique(np.column_stack([code, fit_capacity]), axis=0, return_counts=True)
    shapes = kinds[:, 1:]
    allowed = (runs_on[:, None] >> kinds[:, 0]) & 1
    n_resources = len(resources)
    _check_tasks(workload, demand, quantum, resources, shapes[:, :n_resources], allowed)
    machines = Machines(fit_capacity, code.astype(np.int64))
    if in_devices is not None:
        machines = Machines(fit_capacity, machines.code, in_devices.row, in_devices.quanta)
    columns = workload.columns
    components = None if cluster.unit else gang_components(columns, fit_demand, runs_on, machines)
    may_be_equal = ~rejected
    if components is not None:
        may_be_equal &= ~components.is_heterogeneous
        _check_components(workload, components, fit_demand, runs_on, machines, rejected)
    _check_domains(workload, cluster, components, fit_demand, runs_on, machines, rejected)
    whole_gangs = _Gangs(workload, fit_demand, may_be_equal)
    _check_gangs(workload, whole_gangs, shapes, count, allowed, in_devices, is_pool=cluster.unit)
    needs = needs_at_once(columns, demand, components)
    total = capacity.sum(axis=0)
    if cluster.queue_mode == "quota":
        _check_quotas(workload, cluster, demand, needs, quantum, resources, capacity, runs_on)
    elif cluster.queue_mode != "global":
        _check_queue_names(workload, cluster)
    if cluster.queue_mode == "hard":
        share = queue_quanta(workload, cluster, total)
        _check_queues(workload, demand, needs, quantum, resources, share, _BY_SHARE)
    check_caps(workload, cluster, needs, quantum, resources)
    _check_reservations(
        workload, cluster, demand, capacity, runs_on, code.astype(np.int64), rejected
    )


def has_constraints(columns: Columns, cluster: Cluster) -> bool:
    """Tell whether tasks may run on some machines only, or machines have devices."""
    if cluster.unit:
        return False
    if cluster.partitions or has_flavors(cluster.quotas):
        return True
    return cluster.devices is not None or any(text != ANY for text in columns.runs_on)


def has_enforced_limits(columns: Columns, cluster: Cluster) -> bool:
    """Tell whether some job is to be ended at its limit of run time."""
    return cluster.enforce_limits and not bool(np.isnan(columns.job_requested).all())


MACHINE_BYTES, RESOURCE_BYTES = 100, 80
TASK_BYTES, STAGE_BYTES, JOB_BYTES = 100, 500, 300
RUN_BYTES, SLOT_BYTES, BATCH_STAGE_BYTES, DEMAND_BYTES = 50, 60, 200, 16
"""Largest state of a run for each machine, and each resource of it, task, stage and job, bytes; and
where batches move, for each run of like tasks, slot, stage, and resource that a stage demands."""
STOP_BYTES = 170
"""For each slot where attempts may stop: ends that change, and a buffer of two records of 25 bytes
each."""


def check_room(workload: Workload, cluster: Cluster) -> None:
    """Refuse a run whose state exceeds the memory, before any of it is allocated."""
    check_memory(
        run_bytes(workload, cluster),
        f"a run of {workload.n_tasks:,} tasks on {cluster.n_machines:,} machines",
        "lower the capacity, or take fewer jobs",
    )


def check_task_room(n_tasks: int, n_stoppable: int) -> None:
    """Refuse a run in which each task moves by itself, if there are more than the memory holds.

    `n_stoppable`: running tasks whose attempts may be stopped (0 for none).
    """
    check_memory(
        TASK_BYTES * n_tasks + STOP_BYTES * n_stoppable,
        f"a run that moves each of {n_tasks:,} tasks by itself",
        "take fewer jobs, or a policy and cluster under which like tasks move as one",
    )


def run_bytes(workload: Workload, cluster: Cluster, *, by_task: bool = False) -> int:
    """Return the memory that the state of a run takes at most, bytes.

    Like tasks are assumed to move as one, unless each moves by itself (`by_task`), as where tasks
    fail or machines are lost. `check_task_room` checks later what only the policy decides. There
    are never more batches than tasks that can run at once. Records are checked as they grow.
    """
    restarts = bool(workload.failures.num_rows or len(cluster.outages) or cluster.enforce_limits)
    restarts = restarts or bool(len(cluster.reservations))
    n_machines, n_resources = cluster.n_machines, len(cluster.resources)
    n_bytes = n_machines * (MACHINE_BYTES + RESOURCE_BYTES * n_resources)
    n_bytes += JOB_BYTES * workload.n_jobs
    n_demands, n_running = _running(workload, cluster)
    if by_task or restarts:
        n_bytes += TASK_BYTES * workload.n_tasks + STAGE_BYTES * workload.n_stages
        return n_bytes + STOP_BYTES * n_running * restarts
    n_bytes += RUN_BYTES * len(workload.runs.duration_s)
    n_bytes += BATCH_STAGE_BYTES * workload.n_stages + DEMAND_BYTES * n_demands
    return n_bytes + SLOT_BYTES * n_running


def _running(workload: Workload, cluster: Cluster) -> tuple[int, int]:
    """Return the number of demands on machines, and a bound on the tasks that run at once."""
    if cluster.unit:
        return 0, min(int(cluster.total[0]), workload.n_tasks)
    demand, quantum, resources = _demands(workload, cluster)
    total = np.floor(_for_resources(cluster, resources).sum(axis=0) / quantum + 1)
    return demand.size, max_running(demand, total, workload.n_tasks)


def max_running(demand: I8, total: I8 | F8, n_tasks: int) -> int:
    """Bound the number of running tasks: each holds at least the least dominant share."""
    dominant = np.zeros(len(demand))
    for r, quanta in enumerate(np.maximum(total, 1).tolist()):
        np.maximum(dominant, demand[:, r] / quanta, out=dominant)
    min_share = dominant.min()
    if min_share <= 0:
        return n_tasks
    return int(min(n_tasks, np.ceil(len(total) / min_share) + 1))


def queue_quanta(workload: Workload, cluster: Cluster, total: I8) -> I8:
    """Return the hard share of each of the workload's queues in whole quanta, (Q, R)."""
    queue_names = names(workload.jobs, "queue")
    table = cluster.queue_share or dict.fromkeys(queue_names, 1 / len(queue_names))
    share = np.array([table[name] for name in queue_names])
    return capacity_quanta(np.outer(share, total), 1.0)


_BY_SHARE = "has a hard share of", "give the queue a larger share"
_BY_QUOTA = "may use, and borrow, at most", "give it a larger quota, or let others lend more"


class _Devices(NamedTuple):
    """The resource that comes in devices: its row among the resources, and quanta of each."""

    row: int
    quanta: int


class _Gangs:
    """Gang jobs, with the room of one slot of each: the largest demand of any of its stages."""

    def __init__(self, workload: Workload, demand: I8, may_run: Mask) -> None:
        self.size = values(workload.jobs, "min_tasks").astype(np.int64) * may_run
        self.rows = np.flatnonzero(self.size)
        if len(self.rows):
            self.size = self.size[self.rows]
            first = job_stage0(workload)[:-1]
            self.slot = np.maximum.reduceat(demand, first, axis=0)[self.rows]
            is_single = workload.columns.job_one_per_node[self.rows]
            self.at_most = np.where(is_single, 1, self.size)  # of a machine


def _demands(workload: Workload, cluster: Cluster) -> tuple[I8, F8, tuple[str, ...]]:
    if cluster.unit:
        return np.ones((workload.n_stages, 1), np.int64), np.ones(1), cluster.resources
    demand, _, quantum = stage_demand(workload)
    for r, name in enumerate(workload.resources):
        if name not in cluster.resources and demand[:, r].any():
            stage = int(np.argmax(demand[:, r] > 0))
            _fail(
                f"{_stage(workload, stage)} demands {name}, of which the cluster has none; it has "
                f"{', '.join(cluster.resources)}: give its machines some {name}",
                "missing resource",
            )
    used = [r for r, name in enumerate(workload.resources) if name in cluster.resources]
    return demand[:, used], quantum[used], tuple(workload.resources[r] for r in used)


def _for_resources(cluster: Cluster, resources: tuple[str, ...]) -> F8:
    return cluster.capacity[:, [cluster.resources.index(r) for r in resources]]


def _check_tasks(
    workload: Workload, demand: I8, quantum: F8, resources: tuple[str, ...], shapes: I8, allowed: I8
) -> None:
    fits = np.zeros(len(demand), dtype=bool)
    for i, shape in enumerate(shapes):
        fits |= (demand <= shape).all(axis=1) & (allowed[:, i] > 0)
    if fits.all():
        return
    stage = int(np.argmin(fits))
    may_host = allowed[stage] > 0
    suffix = "" if may_host.all() else f" that it may run on ({_runs_on(workload, stage)})"
    if not may_host.any():
        _fail(
            f"{_stage(workload, stage)} may run on no machine of the cluster (class "
            f"{_runs_on(workload, stage) or 'any'}, in its job's partition); give the cluster "
            "such a machine, or drop the job",
            "demand too large",
        )
    largest = shapes[may_host].max(axis=0)
    over = np.flatnonzero(demand[stage] > largest)
    if len(over):
        r = int(over[0])
        _fail(
            f"{_stage(workload, stage)} demands {_amount(demand[stage, r], quantum[r])} "
            f"{resources[r]} per task, but the largest machine{suffix} has "
            f"{_amount(largest[r], quantum[r])}; make the machines larger or drop the job",
            "demand too large",
        )
    demand_text = ", ".join(
        f"{_amount(d, q)} {r}" for d, q, r in zip(demand[stage], quantum, resources, strict=True)
    )
    _fail(
        f"{_stage(workload, stage)} demands {demand_text} per task, and no single "
        f"machine{suffix} has all of it; make the machines larger or drop the job",
        "demand too large",
    )


def _check_devices(workload: Workload, device_demand: I8, quantum: np.float64, name: str) -> None:
    """Refuse a demand that is neither a part of one device nor a whole number of them."""
    per = quanta_per_device(quantum)
    is_invalid = (device_demand > per) & (device_demand % per > 0)
    if is_invalid.any():
        stage = int(np.argmax(is_invalid))
        _fail(
            f"{_stage(workload, stage)} demands {_amount(device_demand[stage], quantum)} {name} "
            f"per task, which is neither a part of one {name} nor a whole number of them",
            "part of devices",
        )


def _check_classes(workload: Workload, cluster: Cluster) -> I8:
    """Return the codes of machines that each stage may run on, as bits; refuse those of none."""
    columns = workload.columns
    if cluster.unit:
        return np.ones(len(columns.stage_job), np.int64)
    bits = allowed_codes(columns, cluster)
    has_none = bits == 0
    if has_none.any():
        stage = int(np.argmax(has_none))
        if cluster.partitions:
            _check_partition(workload, cluster, int(columns.stage_job[stage]))
        if has_flavors(cluster.quotas):
            queue = columns.queue_names[columns.job_queue[columns.stage_job[stage]]]
            _fail(
                f"{_stage(workload, stage)} may run on no machine of a flavor of its queue "
                f"{queue!r}; give cluster.quotas.{queue} a quota of such a class",
                "no machine of the class",
            )
        class_names = ", ".join(dict.fromkeys(name for name in cluster.classes if name)) or "none"
        _fail(
            f"{_stage(workload, stage)} may only run on machines of class "
            f"{_runs_on(workload, stage)}, of which the cluster has none; its classes: "
            f"{class_names}",
            "no machine of the class",
        )
    return bits


def _check_partition(workload: Workload, cluster: Cluster, job: int) -> None:
    """Refuse a job whose partitions the cluster has none of."""
    columns = workload.columns
    text = columns.partitions[int(columns.job_partition[job])] or cluster.default_partition
    known = list(dict.fromkeys(name for names_ in cluster.partitions for name in names_))
    if text and not {*text.split(SEPARATOR)} & {*known}:
        _fail(
            f"{_job(workload, job)} may only run in partition {text}, of which the cluster has "
            f"none; {did_you_mean(text, known)}its partitions: {', '.join(known)}",
            "no such partition",
        )


def _check_reservations(
    workload: Workload,
    cluster: Cluster,
    demand: I8,
    capacity: I8,
    runs_on: I8,
    code: I8,
    rejected: Mask,
) -> None:
    """Refuse jobs that ask for a reservation without a machine for some stage of theirs."""
    reserved = cluster.reservations
    if not len(reserved):
        return
    own = np.where(rejected, -1, jobs_in(workload.columns, reserved)[0])
    own = own[workload.columns.stage_job]
    for r, name in enumerate(reserved.names):
        fits = own != r
        for m in np.unique(reserved.machine[reserved.code == r]):
            fits |= (demand <= capacity[m]).all(axis=1) & ((runs_on >> code[m]) & 1 > 0)
        if not fits.all():
            stage = int(np.argmin(fits))
            _fail(
                f"{_stage(workload, stage)} is to run in reservation {name!r}, none of whose "
                "machines it may use and fits; reserve larger machines, or drop the job",
                "demand too large",
            )


def _check_admission(workload: Workload, cluster: Cluster) -> Mask:
    """Return which jobs no partition admits, (J,); refuse them if the cluster does."""
    if not cluster.rules:
        return np.zeros(workload.n_jobs, bool)
    columns = workload.columns
    rejected = unadmitted_jobs(columns, cluster)
    if cluster.unadmitted == "error" and rejected.any():
        job = int(np.argmax(rejected))
        text = columns.partitions[int(columns.job_partition[job])] or cluster.default_partition
        limits = "; ".join(
            f"{name}: {cluster.rules.get(name, NO_RULES).limits()}"
            for name in text.split(SEPARATOR)
        )
        _fail(
            f"{_job(workload, job)} requests {columns.job_requested[job]:g} s and "
            f"{job_nodes(columns)[job]} nodes, and no partition that it names admits it ({limits});"
            " change the job or the partition, or let the cluster reject such jobs",
            "no partition admits it",
        )
    return rejected


def _check_gangs(
    workload: Workload, gangs: _Gangs, shapes: I8, count: I8, allowed: I8,
    device: _Devices | None, *, is_pool: bool,
) -> None:  # fmt: skip
    """Refuse gangs that the empty cluster has no room for: `allowed` is (stages, shapes)."""
    if not len(gangs.rows):
        return
    first = job_stage0(workload)[:-1]
    may_hold = np.bitwise_and.reduceat(allowed, first, axis=0)[gangs.rows] > 0
    room = np.zeros(len(gangs.rows), np.int64)
    for i, (shape, n) in enumerate(zip(shapes, count, strict=True)):
        with np.errstate(divide="ignore", invalid="ignore"):
            slots = np.where(gangs.slot > 0, shape // gangs.slot, gangs.size[:, None])
        fits = slots.min(axis=1, initial=np.iinfo(np.int32).max)
        if device is not None:
            amount = gangs.slot[:, device.row]
            fits = np.minimum(fits, by_devices(amount, shape[device.row], device.quanta))
        at_most = gangs.size if is_pool else gangs.at_most
        room += n * np.minimum(fits, at_most) * may_hold[:, i]
    over = np.flatnonzero(room < gangs.size)
    if not len(over):
        return
    g = int(over[0])
    job, size = int(gangs.rows[g]), gangs.size[g]
    if not may_hold[g].any():
        _fail(
            f"{_job(workload, job)} is a gang whose slots each take tasks of any of its stages, "
            "and no machine may run all of them; let its stages run on common classes of machines, "
            "or set min_tasks to 0",
            "gang of several classes",
        )
    more = f"; of {workload.n_jobs:,} jobs {len(over):,} are so large" if len(over) > 1 else ""
    _fail(
        f"{_job(workload, job)} is a gang of {size} tasks that start together, but the empty "
        f"cluster has room for only {room[g]} of them at once (each slot holds the largest demand "
        f"of any stage of the job, and with one_per_node no two share a machine){more}; make the "
        "cluster larger or drop the job, or let its tasks start one by one (min_tasks 0; of most "
        "logs trace.gang=false). No policy.fit helps: none starts a part of a gang",
        "gang too large",
    )


def _check_components(
    workload: Workload, components: Components, demand: I8, runs_on: I8, machines: Machines,
    rejected: Mask,
) -> None:  # fmt: skip
    """Refuse heterogeneous gangs that the empty cluster has no room for."""
    columns = workload.columns
    known: dict[bytes, int] = {}
    for job in np.flatnonzero(components.is_heterogeneous & ~rejected).tolist():
        own = slice(int(components.job0[job]), int(components.job0[job + 1]))
        stage, size = components.stage[own], components.size[own]
        slots, is_single = demand[stage], bool(columns.job_one_per_node[job])
        key = b"".join(
            [slots.tobytes(), runs_on[stage].tobytes(), size.tobytes(), bytes([is_single])]
        )
        if key not in known:
            known[key] = fit_together(slots, runs_on[stage], size, machines, one_per_node=is_single)
        if known[key] < size.sum():
            _fail(
                f"{_job(workload, job)} is a gang of {size.sum()} tasks of unequal demands that "
                f"start together, but on the first machines with room in the empty cluster only "
                f"{known[key]} of them fit; make the cluster larger or drop the job",
                "gang too large",
            )


def _check_domains(
    workload: Workload, cluster: Cluster, components: Components | None, demand: I8, runs_on: I8,
    machines: Machines, rejected: Mask,
) -> None:  # fmt: skip
    """Refuse gangs that no empty domain of the level that they require has room for."""
    columns, topology = workload.columns, cluster.topology
    required, _ = asked_levels(columns, cluster)
    room: dict[bytes, int] = {}
    for job in np.flatnonzero((required >= 0) & ~rejected).tolist():
        stages = slice(*columns.job_stage0[job : job + 2].tolist())
        slots = demand[stages].max(axis=0)[None, :]
        size = columns.job_min_tasks[job : job + 1].astype(np.int64)
        codes = np.bitwise_and.reduce(runs_on[stages])[None]
        if components is not None and components.is_heterogeneous[job]:
            own = slice(*components.job0[job : job + 2].tolist())
            size = components.size[own]
            slots, codes = demand[components.stage[own]], runs_on[components.stage[own]]
        is_single, level = bool(columns.job_one_per_node[job]), int(required[job])
        parts = slots, codes, size, np.array([level, is_single])
        key = b"|".join(part.tobytes() for part in parts)
        if key not in room:
            room[key] = most_in_a_domain(
                topology.domain[level], *parts[:3], machines, one_per_node=is_single
            )
        if room[key] < size.sum():
            name = topology.levels[level]
            _fail(
                f"{_job(workload, job)} requires that its {size.sum()} slots are in one {name}, "
                f"and the {name} with the most room holds {room[key]} of them when it is empty; "
                f"make each {name} larger (cluster.topology), let it require a wider level, or "
                "prefer one (topology_preferred)",
                "gang larger than a domain",
            )


def _check_queue_names(workload: Workload, cluster: Cluster) -> None:
    if not cluster.queue_share:
        return
    for code, name in enumerate(names(workload.jobs, "queue")):
        if name not in cluster.queue_share:
            job = int(np.argmax(values(workload.jobs, "queue") == code))
            known = cluster.queue_share
            _fail(
                f"{_job(workload, job)} is in queue {name!r}, for which the cluster states no "
                f"share; {did_you_mean(name, known)}it has shares for {', '.join(known)}",
                "unknown queue",
            )


def _check_quotas(
    workload: Workload, cluster: Cluster, demand: I8, needs: I8, quantum: F8,
    resources: tuple[str, ...], capacity: I8, runs_on: I8,
) -> None:  # fmt: skip
    """Refuse what exceeds all that its queue may use, of the flavor of which it may use most."""
    queue_names = names(workload.jobs, "queue")
    flavors = flavors_of(
        cluster.quotas, resources, cluster.classes, cluster.machine_class, capacity
    )
    total = capacity.sum(axis=0)
    tree = quota_tree(cluster.quotas, queue_names, resources, total, quantum, flavors)
    potential = np.array([tree.potential(q) for q in range(len(queue_names))])
    if not has_flavors(cluster.quotas):
        _check_queues(workload, demand, needs, quantum, resources, potential, _BY_QUOTA)
        return
    potential[:, flavors.by_flavor[flavors.resource]] = np.minimum(potential, flavors.total)[
        :, flavors.by_flavor[flavors.resource]
    ]
    largest = np.zeros((len(queue_names), len(resources)), np.int64)
    for column in flavors.column:
        largest = np.maximum(largest, potential[:, column])
    _check_queues(workload, demand, needs, quantum, resources, largest, _BY_QUOTA)
    queue = values(workload.jobs, "queue")
    first = job_stage0(workload)[:-1]
    classes = np.bitwise_or.reduceat(runs_on, first)
    fits = np.zeros(workload.n_jobs, bool)
    for s, column in enumerate(flavors.column):
        bits = sum(1 << c for c in np.flatnonzero(flavors.class_set == s).tolist())
        fits |= (needs <= potential[queue][:, column]).all(axis=1) & (classes & bits != 0)
    if not fits.all():
        job = int(np.argmin(fits))
        _fail(
            f"{_job(workload, job)} starts together, so on machines of one flavor, and its queue "
            f"{queue_names[queue[job]]!r} may use enough for it of none on whose machines it may "
            f"run; {_BY_QUOTA[1]}",
            "gang too large",
        )


def _check_queues(
    workload: Workload,
    demand: I8,
    needs: I8,
    quantum: F8,
    resources: tuple[str, ...],
    share: I8,
    by: tuple[str, str],
) -> None:
    """Refuse what exceeds `share`, (Q, R) quanta; `by` says what that is, and the way out."""
    queue = values(workload.jobs, "queue")
    queue_names = names(workload.jobs, "queue")
    queue_of_stage = queue[values(workload.stages, "job")]
    for r, name in enumerate(resources):
        over = demand[:, r] > share[queue_of_stage, r]
        if over.any():
            stage = int(np.argmax(over))
            _fail(
                f"{_stage(workload, stage)} demands {_amount(demand[stage, r], quantum[r])} {name} "
                f"per task, but its queue {queue_names[queue_of_stage[stage]]!r} {by[0]} "
                f"{_amount(share[queue_of_stage[stage], r], quantum[r])}; {by[1]}",
                "demand too large",
            )
    for r, name in enumerate(resources):
        limit = share[queue, r]
        over = needs[:, r] > limit  # of gangs; others were looked at stage by stage
        if over.any():
            job = int(np.argmax(over))
            _fail(
                f"{_job(workload, job)} is a gang of {workload.columns.job_min_tasks[job]} tasks "
                f"that hold {_amount(needs[job, r], quantum[r])} {name} together, but its queue "
                f"{queue_names[queue[job]]!r} {by[0]} {_amount(limit[job], quantum[r])}; {by[1]}",
                "gang too large",
            )


def _amount(n_quanta: np.int64, quantum: np.float64) -> str:
    return f"{float(n_quanta * quantum):.10g}"


def _job(workload: Workload, row: int) -> str:
    return f"job {workload.jobs['job_id'][row].as_py()!r} (row {row})"


def _stage(workload: Workload, row: int) -> str:
    job = int(values(workload.stages, "job")[row])
    name = workload.stages["name"][row].as_py()
    return f"{_job(workload, job)}, stage {name!r} (row {row}),"


def _runs_on(workload: Workload, stage: int) -> str:
    columns = workload.columns
    return columns.runs_on[int(columns.stage_runs_on[stage])]


def _fail(text: str, rule: str) -> NoReturn:
    raise InputError(text, rule=rule)
