"""A DAG, its machines and the run of a list on them, as `listing` knows them."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections import namedtuple
from typing import Any

from numpy.typing import NDArray

from policies.dagps.kernels.dagrecord import laid_out
from sim.base.jit import JIT
from sim.base.record import record

N_ENDS, N_TOUCHED, N_FREED = range(3)
"""Registers: entries of the heap of ends, machines touched at this instant, machines freed."""

FIELDS: tuple[tuple[str, str, int], ...] = (
    ("w_task0", "i8", 1),  # [G+1] first task of each stage
    ("w_task_stage", "i4", 1),  # [T]
    ("w_duration", "f8", 1),  # [T] s, at full speed
    ("w_demand", "i8", 2),  # [G, R] quanta a task
    ("w_capacity", "i8", 2),  # [M, R]
    ("w_fungible", "i1", 1),  # [R] 1 for what may be overbooked
    ("w_parent0", "i8", 1),  # [G+1] edges of each stage
    ("w_parent", "i4", 1),  # [E]
    ("w_parent_kind", "i1", 1),  # [E] 0 barrier, 1 one-to-one
    ("w_child0", "i8", 1),
    ("w_child", "i4", 1),
    ("w_child_kind", "i1", 1),
    ("state_task_at", "i4", 1),  # [T] the list: given anew for every run
    ("state_place", "i4", 1),  # [T] the place of each task in it
    ("state_looks", "i1", 1),  # [R] 1 for what is looked at when it is decided what fits
    ("state_n", "i8", 1),  # [3] N_ENDS, N_TOUCHED, N_FREED
    ("state_unended", "i4", 1),  # [G] tasks that have not ended
    ("state_waits", "i4", 1),  # [G] barrier parents that have not ended
    ("state_missing", "i4", 1),  # [T] counterparts that have not ended
    ("state_ready", "i4", 1),  # [T] a heap a stage: places of its ready tasks
    ("state_n_ready", "i4", 1),  # [G]
    ("state_refused", "i1", 1),  # [G] 1: by machines not freed since; 2: by all at this instant
    ("state_hint", "i4", 1),  # [G] no machine before it has room at this instant
    ("state_free", "i8", 2),  # [M, R] may be negative
    ("state_rate", "f8", 2),  # [M, R] of who demands the resource
    ("state_head", "i4", 1),  # [M] a task that runs there, -1 for none
    ("state_next", "i4", 1),  # [T] the next one on its machine
    ("state_previous", "i4", 1),  # [T]
    ("state_touched", "i4", 1),  # [M] machines where something began or ended
    ("state_is_touched", "i1", 1),  # [M]
    ("state_freed", "i4", 1),  # [M] machines where something ended, ascending
    ("state_since", "f8", 1),  # [T] since when it goes at its rate, s
    ("state_left", "f8", 1),  # [T] what was left then, s at full speed
    ("state_speed", "f8", 1),  # [T] its rate
    ("state_when", "f8", 1),  # [H] heap of ends; what a task's end is not is stale
    ("state_who", "i4", 1),  # [H]
    ("out_begin", "f8", 1),  # [T] s
    ("out_end", "f8", 1),  # [T]
    ("out_machine", "i4", 1),  # [T]
)

Listing = namedtuple("Listing", [name for name, _, _ in FIELDS])  # type: ignore[misc]
_pack = record("ListedDag", FIELDS, ("w_",)) if JIT else None


def make(arrays: dict[str, NDArray[Any]]) -> Any:
    """Bind the arrays of a DAG, its machines' ``capacity`` and what is ``fungible``."""
    n_stages, n_tasks = len(arrays["task0"]) - 1, len(arrays["duration"])
    own = (name.partition("_")[2] for name, _, _ in FIELDS)
    sizes: dict[str, int | tuple[int, ...]] = {
        **dict.fromkeys(own, n_tasks),
        **dict.fromkeys(("unended", "waits", "n_ready", "refused", "hint"), n_stages),
        **dict.fromkeys(("head", "touched", "is_touched", "freed"), len(arrays["capacity"])),
        **dict.fromkeys(("free", "rate"), arrays["capacity"].shape),
        **dict.fromkeys(("when", "who"), 2 * n_tasks + 1),
        "n": 3,
        "looks": len(arrays["fungible"]),
    }
    fields = laid_out(FIELDS, arrays, sizes, 0.0)
    return _pack(fields) if _pack else Listing(*fields)


def columns(run: Any) -> dict[str, NDArray[Any]]:
    """Return the arrays of a record by name."""
    arrays = run.arrays if _pack else run
    return {name: array for (name, _, _), array in zip(FIELDS, arrays, strict=True)}
