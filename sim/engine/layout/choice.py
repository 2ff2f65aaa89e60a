"""Classes, devices and machine choice, in the kernel's arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import F8, I4, I8, offsets
from sim.base.errors import PolicyError
from sim.cluster.allowed import allowed_codes, has_tiers, job_tiers, planned_codes
from sim.cluster.classes import capacity_in_quanta, quanta_per_device
from sim.cluster.components import Components
from sim.cluster.fits import has_constraints
from sim.engine.kernels import state as register
from sim.engine.plan import Fit, Plan
from sim.engine.plan.choice import Machine, Mix

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns

MAX_SCORES = 2**23
"""Largest number of cached scores, 16 bytes each."""


def check_choice(cluster: Cluster, plan: Plan) -> None:
    """Refuse a choice of machines by tasks where machines choose tasks."""
    if plan.fit == Fit.PACK and plan.choice.machine != Machine.FIRST and not cluster.unit:
        raise PolicyError(
            f"plan.choice.machine is {plan.choice.machine.name.lower()}, but with fit pack "
            "machines choose tasks; use fit strict or skip"
        )


def check_held_machines(cluster: Cluster, plan: Plan) -> None:
    """Refuse a plan that holds machines where that means nothing."""
    if plan.held_machines < 0:
        raise PolicyError(f"plan.held_machines must be 0 or more, not {plan.held_machines}")
    if plan.held_machines == 0 or cluster.unit:
        return
    if plan.fit != Fit.SKIP:
        raise PolicyError(
            f"plan.held_machines holds machines from tasks that pass others by, and with fit "
            f"{plan.fit.name.lower()} none does; set fit to skip, or held_machines to 0"
        )


def machine_quanta(cluster: Cluster, order: list[int], quantum: F8) -> I8:
    """Return the capacity of each machine in quanta, (M, R), in the kernel's order."""
    names = [cluster.resources[i] for i in order]
    device = names.index(cluster.devices) if cluster.devices else None
    return capacity_in_quanta(cluster.capacity.take(order, axis=1), quantum, device)


def set_registers(
    flags: I8,
    columns: Columns,
    cluster: Cluster,
    plan: Plan,
    resources: tuple[str, ...],
    quantum: F8,
) -> None:
    """Set the registers of classes, devices and choice."""
    flags[register.CONSTRAINED] = has_constraints(columns, cluster)
    flags[register.DEVICE], flags[register.DEVICE_QUANTA] = -1, 1
    if cluster.devices:
        flags[register.DEVICE] = resources.index(cluster.devices)
        flags[register.DEVICE_QUANTA] = quanta_per_device(quantum[flags[register.DEVICE]])
    if not cluster.unit:
        flags[register.MACHINE_CHOICE] = plan.choice.machine
        flags[register.DEVICE_CHOICE] = plan.choice.device


def lay_out_choice(
    columns: Columns,
    cluster: Cluster,
    plan: Plan,
    order: list[int],
    capacity: I8,
    flags: I8,
    n_kinds: int,
    components: Components | None,
) -> dict[str, NDArray[Any]]:
    """Return the fields; whether scores are cached depends on the number of kinds of stages."""
    rule = flags[register.MACHINE_CHOICE]
    if rule not in (Machine.FIRST, Machine.FASTEST) and n_kinds * len(capacity) <= MAX_SCORES:
        flags[register.CACHES_SCORES] = 1
    device, per_device = int(flags[register.DEVICE]), int(flags[register.DEVICE_QUANTA])
    n_devices = (
        capacity[:, device] // per_device if device >= 0 else np.zeros(len(capacity), np.int64)
    )
    mix = plan.choice.mix or Mix(np.zeros((0, len(order)), np.int64), _NO_TYPES, np.zeros(0))
    n_more = len(order) - mix.demand.shape[1]  # parts of machines, of which a mix knows nothing
    mix_demand = np.pad(mix.demand, ((0, 0), (0, n_more)))
    code = cluster.machine_class if len(cluster.machine_class) else np.zeros(len(capacity), int)
    allowed = allowed_classes(columns, cluster)
    job_allowed = classes_of_jobs(columns, allowed, components)
    planned = job_allowed if cluster.unit else planned_codes(columns, cluster, job_allowed)
    return {
        "w_stage_allowed": allowed,
        "w_job_allowed": job_allowed,
        "w_job_planned_on": planned,
        "c_mach_class": np.left_shift(1, code.astype(np.int64)),
        "c_mach_level": _levels(cluster, code),
        "c_mach_device0": offsets(n_devices),
        "p_mix_demand": np.ascontiguousarray(mix_demand[:, order]),
        "p_mix_allowed": mix.allowed.copy(),
        "p_mix_weight": mix.weight.copy(),
        "state_device_free": np.full(max(int(n_devices.sum()), 1), per_device, np.int64),
    }


def classes_of_jobs(columns: Columns, allowed: I8, components: Components | None) -> I8:
    """Return the classes on which some slot of each job may be, as bits: (J,).

    Those on which all stages may run, or of a gang of several components those of any of them.
    """
    first = columns.job_stage0[:-1]
    classes: I8 = np.bitwise_and.reduceat(allowed, first)
    if components is not None:
        several = components.is_heterogeneous
        classes[several] = np.bitwise_or.reduceat(
            allowed[components.stage], components.job0[:-1][several]
        )
    return classes


def _levels(cluster: Cluster, code: I4 | I8) -> I4:
    """Return the rank of each machine's weight among all weights, (M,)."""
    weights = np.array(cluster.weights or [1] * (int(code.max(initial=0)) + 1))
    return np.unique(weights[code], return_inverse=True)[1].astype(np.int32)


def stage_kinds(columns: Columns, cluster: Cluster, demand: I8) -> tuple[I4, int]:
    """Return the kind of each stage, (G,), by demand, machines and tier; and their number."""
    if cluster.unit:
        return np.zeros(len(columns.stage_job), np.int32), 1
    splits = [*demand.T, allowed_classes(columns, cluster)]
    if has_tiers(cluster):
        splits.append(job_tiers(columns, cluster)[columns.stage_job].astype(np.int64))
    kind, n_kinds = codes_of(splits)
    return kind.astype(np.int32), n_kinds


def codes_of(columns: list[I8]) -> tuple[I8, int]:
    """Return a code of each row of some columns, the same for equal rows; and their number."""
    kind, n_kinds = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        code, n = _codes(column)
        kind, n_kinds = _codes(kind * n + code)
    return kind, n_kinds


def _codes(column: I8) -> tuple[I8, int]:
    """Return the rank of each value among all of them, and their number."""
    low = column.min(initial=0)
    span = int(column.max(initial=0) - low) + 1
    if span > 4 * len(column) + 1000:
        values, code = np.unique(column, return_inverse=True)
        return code, len(values)
    rank = np.zeros(span, np.int64)
    rank[column - low] = 1
    np.cumsum(rank, out=rank)
    return rank[column - low] - 1, int(rank[-1])


def allowed_classes(columns: Columns, cluster: Cluster) -> I8:
    """Return the classes of machines that each stage may run on, as bits: (G,)."""
    if cluster.unit:
        return np.full(len(columns.stage_job), -1)
    return allowed_codes(columns, cluster)


_NO_TYPES = np.zeros(0, np.int64)
ABSENT: dict[str, NDArray[Any]] = {
    "w_stage_allowed": np.zeros(1, np.int64),
    "w_job_allowed": np.zeros(1, np.int64),
    "w_job_planned_on": np.zeros(1, np.int64),
    "c_mach_class": np.zeros(1, np.int64),
    "c_mach_level": np.zeros(1, np.int32),
    "c_mach_device0": np.zeros(1, np.int64),
    "p_mix_demand": np.zeros((0, 1), np.int64),
    "p_mix_allowed": _NO_TYPES,
    "p_mix_weight": np.zeros(0),
    "state_device_free": np.zeros(1, np.int64),
}
"""Fields of a run without classes, devices and choice; their arrays are never written."""
