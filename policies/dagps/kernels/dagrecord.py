"""Record of a DAG for the kernels of DAGPS, and reachability between its tasks.

Edges are stored in both directions, so that the reversed DAG is the same record with two groups of
fields exchanged.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.jit import JIT, jit
from sim.base.record import record

FIELDS: tuple[tuple[str, str, int], ...] = (
    ("w_task0", "i8", 1),  # [G+1] first task of each stage
    ("w_task_stage", "i4", 1),  # [T]
    ("w_duration", "f8", 1),  # [T] s
    ("w_demand", "i8", 2),  # [G, R] quanta a task
    ("w_order", "i8", 1),  # [G] stages, parents first
    ("w_parent0", "i8", 1),  # [G+1] edges of each stage
    ("w_parent", "i4", 1),  # [E]
    ("w_parent_kind", "i1", 1),  # [E] 0 barrier, 1 one-to-one
    ("w_child0", "i8", 1),
    ("w_child", "i4", 1),
    ("w_child_kind", "i1", 1),
    ("w_task_at", "i4", 1),  # [T] the tasks in order: the first ready one goes next
    ("w_place", "i4", 1),  # [T] position of each task in that order
    ("w_places", "i4", 1),  # [T] the same positions, ascending within each stage
    # state of a placement
    ("state_missing", "i4", 1),  # [T] one-to-one parents still to be placed
    ("state_left", "i4", 1),  # [G] tasks still to be placed
    ("state_waits", "i4", 1),  # [G] barrier parents with tasks still to be placed
    ("state_release", "f8", 1),  # [G] end of its barrier parents
    ("state_heap", "i4", 1),  # [T] ready runs: positions of their first tasks, as a binary heap
    ("state_until", "i4", 1),  # [T] end of the run that begins at a position
    ("state_room", "f8", 2),  # [G, P] earliest time with room for a task, by machine
    ("state_fit", "f8", 2),  # [G, 2P] the same for a whole duration: a tree of minima
    ("state_fit_for", "f8", 2),  # [G, 2] the duration and release time that both hold for
)

Dag = namedtuple("Dag", [name for name, _, _ in FIELDS])  # type: ignore[misc]
_pack = record("PlacedDag", FIELDS, ("w_",)) if JIT else None


def make(arrays: dict[str, NDArray[Any]], n_machines: int) -> Any:
    """Pack the arrays of a DAG into the record that kernels take."""
    n_stages, n_tasks = len(arrays["order"]), len(arrays["duration"])
    width = 1
    while width < n_machines:
        width *= 2
    scratch: dict[str, int | tuple[int, ...]] = {
        **dict.fromkeys(("left", "waits", "release"), n_stages),
        **dict.fromkeys(("missing", "heap", "until"), n_tasks),
        "room": (n_stages, width),
        "fit": (n_stages, 2 * width),
        "fit_for": (n_stages, 2),
    }
    fields = layout_fields(FIELDS, arrays, scratch, np.inf)
    return _pack(fields) if _pack else Dag(*fields)


def layout_fields(
    fields: Sequence[tuple[str, str, int]],
    arrays: Mapping[str, NDArray[Any]],
    sizes: Mapping[str, int | tuple[int, ...]],
    begin: float,
) -> list[NDArray[Any]]:
    """Lay out a record: the input `arrays`, and scratch arrays of `sizes` with floats at `begin`.

    Inputs that describe the DAG and its machines are read-only.
    """
    columns: list[NDArray[Any]] = []
    for name, code, _ in fields:
        kind, _, key = name.partition("_")
        if key in arrays:
            array = np.array(arrays[key], dtype=code, order="C")
            array.setflags(write=kind == "state")
        else:
            array = np.full(sizes[key], begin if code == "f8" else 0, dtype=code)
        columns.append(array)
    return columns


@jit
def mark_descendants(dag, picked, out):
    """Mark the tasks that have an ancestor among `picked`."""
    out[:] = False
    n_stages = len(dag.w_order)
    any_below = np.zeros(n_stages, np.bool_)  # a task of the stage is picked or marked
    for i in range(n_stages):
        g = dag.w_order[i]
        t0, n = dag.w_task0[g], dag.w_task0[g + 1] - dag.w_task0[g]
        for e in range(dag.w_parent0[g], dag.w_parent0[g + 1]):
            p = dag.w_parent[e]
            if dag.w_parent_kind[e] == 0:
                if any_below[p]:
                    out[t0 : t0 + n] = True
                continue
            p0 = dag.w_task0[p]
            for k in range(min(n, dag.w_task0[p + 1] - p0)):
                out[t0 + k] |= out[p0 + k] | picked[p0 + k]
        for t in range(t0, t0 + n):
            if out[t] or picked[t]:
                any_below[g] = True
                break
