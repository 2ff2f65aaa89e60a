"""The kernel's state: one record of arrays, frozen in dtype, layout and mutability.

With the JIT the record is a pointer to a table of arrays (`sim.base.record.record`): that alone
travels between the helpers, where a namedtuple of arrays would copy ninety of them at every call.
Without the JIT a namedtuple of the same names serves. Every field is an array, so that both forms
can be written through.

"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.jit import JIT
from sim.base.record import record
from sim.engine.kernels.fields import FIELDS

NAMES = tuple(name for name, _, _, _ in FIELDS)
READ_ONLY = ("w_", "c_")

BLOCK = 64
"""How many places of the list of waiting stages are held against a machine at once."""

# registers of state_f
NOW, TIMER, WORTHS, LEFTS = range(4)
N_F = 4
# registers of p_pack
PACK_REMAINING, PACK_REMOTE, PACK_UNFAIRNESS = range(3)
# registers of state_i: counters
(
    NEXT_JOB,
    N_ARRIVED,
    N_DUE,
    NEXT_OUTAGE,
    JOBS_LEFT,
    N_FIN,
    N_SLOT_FREE,
    N_EVENTS,
    N_DIRTY,
    N_SERVICE,
    N_SCAN,
    N_HOLES,
    N_NEW,
    N_REFUSED,
    SCAN_SHIFTS,
    N_GANG,
    RELEASED,
    IDLE_TICKS,
    N_TOUCHED,
    AT_SPEED,
    # configuration
    SHARE,
    UNIT,
    EVENTS,
    RECORD,
    HARD,
    TASK_ORDER,
    PER_TASK,
    N_RIGID,
    BUNDLE,
    PRIORITY,
    PREFERS,
    SEEN,
    REMOTE,
    FAILS,
) = range(34)
N_I = 34
# What the configuration registers mean: SHARE is a `sim.engine.plan` code; UNIT a pool of slots;
# EVENTS the mask subscribed to; RECORD whether task columns are kept; HARD whether organisations
# have caps; TASK_ORDER whether p_task_order is given; PER_TASK whether there are one-to-one edges;
# N_RIGID how many resources can't be overbooked; BUNDLE the size of a bundle; PRIORITY, PREFERS and
# SEEN whether p_turn_priority, p_turn_prefers and p_stage_seen_s are given; REMOTE whether tasks
# take longer where their input is remote; FAILS whether attempts fail. What costs more than a look
# at a register is a feature (`sim.engine.kernels.features`). WORTHS and LEFTS are sums over the
# tasks placed (`sim.engine.plan.packing`).

State = namedtuple("State", NAMES)  # type: ignore[misc]  # the fields are listed once, above


def check(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError unless `arrays` are exactly the fields, each as it was frozen."""
    if tuple(arrays) != NAMES:
        raise ValueError(f"state fields differ: {set(arrays) ^ set(NAMES)}")
    for name, code, dims, _ in FIELDS:
        a, ndim = arrays[name], n_dims(dims)
        if a.dtype != np.dtype(code) or a.ndim != ndim or not a.flags.c_contiguous:
            raise ValueError(f"{name}: {a.dtype}[{a.ndim}], wanted C-contiguous {code}[{ndim}]")
        if a.flags.writeable == name.startswith(READ_ONLY):
            raise ValueError(f"{name} must be {'read-only' if a.flags.writeable else 'writable'}")


def n_dims(dims: str) -> int:
    """Return how many axes a field of `sim.engine.kernels.fields` has."""
    return dims.count(",") + 1


_TYPES = tuple((name, code, n_dims(dims)) for name, code, dims, _ in FIELDS)
_pack = record("KernelState", _TYPES, READ_ONLY) if JIT else None


def make(arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Bind `arrays` into the record that kernels take; nothing is copied."""
    check(arrays)
    return _pack(arrays.values()) if _pack else State(**arrays)
