"""Record of a DAG, its machines and the state of a list's run, for the kernels in `listing`."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policies.dagps.kernels.dagrecord import layout_fields
from sim.base.arrays import I8, Mask
from sim.base.jit import JIT
from sim.base.record import record
from sim.engine.kernels.state import N_I, N_RIGID, NOW, READ_ONLY

FIELDS: tuple[tuple[str, str, int], ...] = (
    # as the event loop names them (`sim.engine.kernels.state`), the slot of a task being its row
    ("w_stage_task0", "i8", 1),  # [G+1]
    ("w_stage_demand", "i8", 2),  # [G, R]
    ("w_task_duration", "f8", 1),  # [T]
    ("c_capacity", "i8", 2),  # [M, R]
    ("c_speed_time", "f8", 1),  # full speed, from 0 on
    ("c_speed", "f8", 1),
    ("state_f", "f8", 1),  # NOW
    ("state_i", "i8", 1),
    ("state_stage_waiting", "i4", 1),  # [G]
    ("state_stage_left", "i4", 1),  # [G]
    ("state_stage_barriers", "i4", 1),  # [G]
    ("state_task_missing", "i4", 1),  # [T]
    ("state_mach_free", "i8", 2),  # [M, R] may be negative
    ("state_mach_rate", "f8", 2),  # [M, R]
    ("state_mach_slot", "i4", 1),  # [M]
    ("state_mach_touched", "i1", 1),  # [M]
    ("state_touched", "i4", 1),  # [M]
    ("state_dirty", "i4", 1),  # [M] ascending
    ("state_slot_task", "i4", 1),  # [T]
    ("state_slot_stage", "i4", 1),  # [T]
    ("state_slot_machine", "i4", 1),  # [T]
    ("state_slot_next", "i4", 1),  # [T]
    ("state_slot_prev", "i4", 1),  # [T]
    ("state_slot_rate", "f8", 1),  # [T]
    ("state_slot_left", "f8", 1),  # [T]
    ("state_slot_since", "f8", 1),  # [T]
    ("state_slot_end", "f8", 1),  # [T]
    ("state_slot_entry", "f8", 1),  # [T]
    ("state_ended", "i4", 1),  # [T]
    ("state_fin_time", "f8", 1),  # [2T+1]
    ("state_fin_slot", "i4", 1),  # [2T+1]
    # of the list's run alone
    ("w_parent0", "i8", 1),  # [G+1] edges of each stage
    ("w_parent", "i4", 1),  # [E]
    ("w_parent_kind", "i1", 1),  # [E] 0 barrier, 1 one-to-one
    ("w_child0", "i8", 1),
    ("w_child", "i4", 1),
    ("w_child_kind", "i1", 1),
    ("state_task_at", "i4", 1),  # [T] the list: set for every run
    ("state_place", "i4", 1),  # [T] positions in it of each stage's tasks, ascending
    ("state_turn", "i4", 1),  # [T] entry of each task there
    ("state_ready", "i1", 1),  # [T] 1 for an entry whose task is ready
    ("state_first", "i4", 1),  # [G] first such entry of each stage that has one
    ("state_open", "i4", 1),  # [G] the stages with a ready task
    ("state_open_at", "i4", 1),  # [G] entry of each there
    ("state_started", "i4", 1),  # [T] tasks of each stage by begin
    ("state_n_started", "i4", 1),  # [G] how many of them have started
    ("state_group0", "i4", 1),  # [T] first entry there of a group, by its slot
    ("state_group_size", "i4", 1),  # [T]
    ("state_checked", "i1", 1),  # [R] 1 for a resource that a task must fit
    ("state_refused", "i1", 1),  # [G] 1: by machines not freed since; 2: by all at this instant
    ("state_hint", "i4", 1),  # [G] no machine before it has room at this instant
    ("out_begin", "f8", 1),  # [T] s
    ("out_end", "f8", 1),  # [T]
)

_OF_STAGES = ("refused", "hint", "first", "n_started", "open", "open_at")

Listing = namedtuple("Listing", [name for name, _, _ in FIELDS])  # type: ignore[misc]
_pack = record("ListedDag", FIELDS, READ_ONLY) if JIT else None


def make(dag_arrays: dict[str, NDArray[Any]], capacity: I8, fungible: Mask) -> Any:
    """Pack the arrays of a DAG (`policies.dagps.dag.arrays_with_parents`) and its machines."""
    n_stages, n_tasks = len(dag_arrays["task0"]) - 1, len(dag_arrays["duration"])
    registers = np.zeros(N_I + 1, dtype=np.int64)
    # rigid resources are never overbooked, so those after the first fungible one may be scanned
    registers[N_RIGID] = np.argmax(fungible) if fungible.any() else len(fungible)
    inputs = {
        **dag_arrays,
        "stage_task0": dag_arrays["task0"],
        "stage_demand": dag_arrays["demand"],
        "task_duration": dag_arrays["duration"],
        "capacity": capacity,
        "speed_time": np.zeros(1),
        "speed": np.ones(1),
        "i": registers,
        "slot_task": np.arange(n_tasks),
        "slot_stage": dag_arrays["task_stage"],
    }
    field_names = (name.partition("_")[2] for name, _, _ in FIELDS)
    sizes: dict[str, int | tuple[int, ...]] = {
        **dict.fromkeys(field_names, n_tasks),
        **dict.fromkeys(("stage_waiting", "stage_left", "stage_barriers"), n_stages),
        **dict.fromkeys(_OF_STAGES, n_stages),
        **dict.fromkeys(("mach_slot", "mach_touched", "touched", "dirty"), len(capacity)),
        **dict.fromkeys(("mach_free", "mach_rate"), capacity.shape),
        **dict.fromkeys(("fin_time", "fin_slot"), 2 * n_tasks + 1),
        "f": NOW + 1,
        "checked": len(fungible),
    }
    fields = layout_fields(FIELDS, inputs, sizes, 0.0)
    return _pack(fields) if _pack else Listing(*fields)


def columns(run: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays of a record by name."""
    arrays = run.arrays if _pack else run
    return {name: array for (name, _, _), array in zip(FIELDS, arrays, strict=True)}
