"""Slots of gangs: what each takes, and the shapes that they have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I8
from sim.engine.layout.choice import codes_of
from sim.engine.layout.columns import gang_slots

if TYPE_CHECKING:
    from sim.workload.columns import Columns


def slot_fields(
    columns: Columns, demand: I8, unit: bool, gangs: bool, n_fit: int, allowed: I8
) -> dict[str, NDArray[Any]]:
    """Return the slot of each job and its shape: the resources that decide what fits, and classes.

    `allowed` has the classes of each job, or one value for any.
    """
    slot = gang_slots(columns, demand, unit, gangs)
    classes = np.broadcast_to(allowed[: len(slot)], len(slot))
    shape, n_shapes = codes_of([*slot[:, :n_fit].T, classes])
    example = np.zeros(n_shapes, np.int64)
    example[shape] = np.arange(len(slot))
    return {
        "w_job_slot": slot,
        "w_job_shape": shape.astype(np.int32),
        "w_shape_slot": slot[example, :n_fit],
        "w_shape_allowed": classes[example],
        "state_shape_slots": np.full(n_shapes, -1),
        "state_shape_asked": np.zeros(n_shapes, np.int8),
        "state_counted": np.zeros(n_shapes, np.int32),
    }
