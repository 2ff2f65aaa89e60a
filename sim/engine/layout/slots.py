"""Slots of gangs: what each takes, their components, and the shapes that they have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I8, offsets
from sim.cluster.components import Components, Machines, gang_components, needs_at_once
from sim.engine.layout.choice import allowed_classes, codes_of
from sim.engine.layout.columns import gang_slots
from sim.engine.layout.elastic import gang_sizes

if TYPE_CHECKING:
    from sim.cluster.cluster import Cluster
    from sim.workload.columns import Columns


def components_of(
    columns: Columns, cluster: Cluster, demand: I8, capacity: I8, device: int, device_quanta: int
) -> Components | None:
    """Return the components of the gangs of a run, None if all slots of each gang are equal."""
    if cluster.unit:
        return None
    code = cluster.machine_class if len(cluster.machine_class) else np.zeros(len(capacity), int)
    machines = Machines(capacity, code.astype(np.int64), device, device_quanta)
    return gang_components(columns, demand, allowed_classes(columns, cluster), machines)


def slot_fields(
    columns: Columns,
    demand: I8,
    unit: bool,
    gangs: bool,
    n_fit: int,
    allowed: I8,
    stage_allowed: I8,
    components: Components | None,
    has_components: bool,
) -> dict[str, NDArray[Any]]:
    """Return the slots of each job, their shape, and those of its components.

    A shape has the resources that decide what fits, and classes. `allowed` has the classes of each
    job, `stage_allowed` those of stages, or one value for any.
    """
    slot = gang_slots(columns, demand, unit, gangs)
    classes = np.broadcast_to(allowed[: len(slot)], len(slot))
    shape, n_shapes = codes_of([*slot[:, :n_fit].T, classes])
    example = np.zeros(n_shapes, np.int64)
    example[shape] = np.arange(len(slot))
    size = gang_sizes(columns)[: len(slot)]
    total = slot * np.maximum(columns.job_min_tasks[: len(slot)], 1).astype(np.int64)[:, None]
    if gangs and not unit:
        total = needs_at_once(columns, demand, components)
    fields: dict[str, NDArray[Any]] = {
        "w_job_slot": slot,
        "w_job_shape": shape.astype(np.int32),
        "w_shape_slot": slot[example, :n_fit],
        "w_shape_allowed": classes[example],
        "state_shape_slots": np.full(n_shapes, -1),
        "state_shape_asked": np.zeros(n_shapes, np.int8),
        "state_counted": np.zeros(n_shapes, np.int32),
    }
    first = columns.job_stage0[:-1][: len(slot)]
    job0, stage_component = np.zeros(1, np.int64), np.zeros(1, np.int64)
    if components is None and has_components:  # it shares a loop that has them
        components = Components(
            np.zeros(len(columns.job_stage0), np.int64),
            *(np.zeros(0, np.int64), np.zeros(0, np.int64)),
            np.full(len(columns.stage_job), -1, np.int64),
        )
    if components is not None:
        job0, stage_component, own = _all_components(columns, components)
        job, stage = own["job"], own["stage"]
        is_one = ~components.is_heterogeneous[job]
        slot = np.where(is_one[:, None], slot[job], demand[np.minimum(stage, len(demand) - 1)])
        classes = np.where(
            is_one, classes[job], np.resize(stage_allowed, len(columns.stage_job))[stage]
        )
        size, first = own["size"], stage
    return fields | {
        "w_job_total": total,
        "w_job_component0": job0,
        "w_stage_component": stage_component,
        "w_slot": slot,
        "w_slot_size": size,
        "w_slot_allowed": np.ascontiguousarray(classes),
        "w_slot0": offsets(size)[:-1],
        "w_slot_stage": np.ascontiguousarray(first),
        "state_component_idle": np.zeros(len(size) if len(job0) > 1 else 1, np.int32),
    }


def _all_components(columns: Columns, components: Components) -> tuple[I8, I8, dict[str, I8]]:
    """Return the first component of each job, that of each stage, and jobs, sizes and stages.

    A job of equal slots, or that is no gang, has one component.
    """
    counts = np.maximum(np.diff(components.job0), 1)
    job0 = offsets(counts)
    job = np.repeat(np.arange(len(counts)), counts)
    several = components.is_heterogeneous
    size = gang_sizes(columns)[job]
    stage = columns.job_stage0[:-1][job].copy()
    size[several[job]], stage[several[job]] = components.size, components.stage
    stage_component = job0[:-1][columns.stage_job].copy()
    is_own = components.stage_component >= 0
    shift = job0[:-1] - components.job0[:-1]
    stage_component[is_own] = (components.stage_component + shift[columns.stage_job])[is_own]
    return job0, stage_component, {"job": job, "size": size, "stage": stage}
