"""The kernel's state: one record of the arrays in `sim.engine.kernels.fields`, and its registers.

With the JIT the record is a pointer to a table of arrays (`sim.base.record.record`): that alone
travels between the helpers, where a namedtuple of arrays would copy ninety of them at every call.
Without the JIT a namedtuple of the same names serves. Every field is an array, so that both forms
can be written through, frozen in dtype, layout and mutability.
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
"""Buckets that are tried on a machine at once."""

# registers of state_f
NOW, TIMER, SUM_WORTH, SUM_REMAINING, MAX_PRIORITY, REFINE_AT, CHECKED_AT, CAP_TICK, BEGINS = range(
    9
)
# registers of p_pack
PACK_REMAINING, PACK_REMOTE, PACK_UNFAIRNESS, PACK_ORDER = range(4)
# registers of p_learn
LEARN_GUESS, LEARN_PRIOR, LEARN_REFRESH = range(3)
# registers of state_i: counters
(
    NEXT_JOB,
    N_ARRIVED,
    N_DUE,
    N_LIMITED,
    NEXT_OUTAGE,
    NEXT_CHANGE,
    JOBS_LEFT,
    N_FIN,
    N_SLOT_FREE,
    N_EVENTS,
    N_DIRTY,
    N_SERVICE,
    N_SCAN,
    N_HOLES,
    N_BUCKETS,
    N_NEW,
    N_REFUSED,
    BUCKETS_MADE,
    N_REFILL,
    RELEASED,
    IDLE_TICKS,
    N_TOUCHED,
    SPEED_INDEX,
    N_PROFILE,
    N_RUNNING_JOBS,
    NEXT_OPENING,
    N_OPENING,
    N_BATCHES,
    N_TAKEN,
    FIRST_BATCH,
    N_LIVE,
    N_ENTERED,
    N_REFINED,
    IS_REFINED,
    N_URGENT,
    N_STOPS,
    N_STOPPING,
    N_OVER,
    N_TICKING,
    BARRED,
    N_ASIDE,
    BROKEN,
    BROKEN_ROW,
    FIRST_LEAVING,
    N_LEAVING,
    N_CLAIMANTS,
    N_PLACED,
    N_HOLDERS,
    N_COUNTED,
    IS_COUNTED,
    N_AHEAD,
    NEXT_PIN,
    N_PINS_DUE,
    NEXT_MOMENT,
    TRIES,
    OPEN_FLAVORS,
    FLAVOR,
    N_ROUNDS,
    # configuration
    SHARE,
    UNIT,
    EVENTS,
    DEFERRED,
    RECORD,
    STOPS,
    HARD_CAPS,
    TASK_ORDER,
    ONE_TO_ONE,
    N_RIGID,
    BUNDLE,
    PRIORITY,
    PREFERS,
    EXPECTED,
    REMOTE,
    FAILS,
    OVERBOOKING,
    REBASED,
    PENDING,
    ALIGNED,
    FIRST_ENDED,
    RESERVATIONS,
    HELD_MACHINES,
    CONSTRAINED,
    DEVICE,
    DEVICE_QUANTA,
    MACHINE_CHOICE,
    DEVICE_CHOICE,
    CACHES_SCORES,
    LAUNCH,
    BY_PLACE,
    LEARNING,
    ESTIMATES,
    REFINE_ALL,
    CANCELS,
    PREEMPTS_BY,
    VICTIMS,
    ISOLATED,
    BY_SHARE,
    EXCLUSIVES,
) = range(98)
N_I = 98
# Of N_BATCHES batches the records of N_TAKEN are with the caller, and those from FIRST_BATCH on may
# grow. N_LIMITED, N_LIVE, N_ENTERED, N_REFINED: lengths of lists; IS_REFINED: nothing has happened
# since all jobs were refined; N_URGENT: events that are not deferred; N_STOPPING: gangs that stop;
# N_OVER: jobs above their run limit; N_TICKING: running jobs with a limit that caps count; BARRED:
# pools of machines that the stage to be placed may not take; N_ASIDE: jobs that wait for others
# before they are submitted or eligible; BROKEN, BROKEN_ROW: a `sim.engine.kernels.conserve` code in
# a checked run, and where; FIRST_LEAVING, N_LEAVING: a ring of units that have a grace time;
# N_CLAIMANTS: jobs whose victims have stopped; N_PLACED: starts of tasks and gangs; N_HOLDERS:
# gangs that hold slots, in runs with preemption; N_COUNTED: shapes of slots that are counted;
# IS_COUNTED: since then nothing was released, and no gang begun (`sim.engine.kernels.slot_counts`);
# N_AHEAD: claims that begin later; NEXT_PIN, N_PINS_DUE: pinned jobs; NEXT_MOMENT, TRIES: a
# placement is tried, and will be taken back (`sim.engine.kernels.pins`); OPEN_FLAVORS, FLAVOR: of a
# search (`sim.engine.kernels.flavors`); N_ROUNDS: times that all stages could be tried.
# Configuration registers:
# EXCLUSIVES: gangs take whole machines.
# SHARE: a `sim.engine.plan` code. UNIT: a pool of slots. EVENTS, DEFERRED: masks. RECORD:
# task columns are recorded. STOPS: so are stopped attempts. HARD_CAPS: organisations have caps.
# TASK_ORDER: p_task_order is set.
# ONE_TO_ONE: there are one-to-one edges. N_RIGID: number of resources that can't be overbooked.
# BUNDLE: size of a bundle. PRIORITY, PREFERS, EXPECTED: p_turn_priority, p_turn_prefers,
# p_stage_expected_s are set. REMOTE: tasks take longer if their input is remote. FAILS: attempts
# fail. OVERBOOKING: machines are overbooked, in a variant that can.
# REBASED: p_turn_priority counts tasks of the unfinished rest of a job. PENDING:
# state_job_remaining is of the tasks that have not started. ALIGNED: alignment counts in scores.
# FIRST_ENDED: the first k tasks of a job are those to end. RESERVATIONS: number of jobs for which
# room is reserved. HELD_MACHINES: number of machines held for the first in order that does not
# fit. CONSTRAINED: tasks ask for classes of machines or take devices. DEVICE: the
# resource that comes in devices, -1 for none. DEVICE_QUANTA: quanta of one device. MACHINE_CHOICE,
# DEVICE_CHOICE: `sim.engine.plan.choice` codes. CACHES_SCORES: there is room for scores. LAUNCH: a
# `sim.engine.kernels.launch` code, 0 if tasks start where they are placed. BY_PLACE: reservations
# name machines, in a variant that can. LEARNING: durations are learnt. ESTIMATES:
# out_job_estimate is filled. REFINE_ALL: refined jobs are read anew, changed or not. CANCELS:
# jobs fail whose dependencies can never be met. PREEMPTS_BY, VICTIMS: codes of
# `sim.engine.plan.preemption`. ISOLATED: organisations have caps, and none uses
# what another leaves. BY_SHARE: the plan's `by_share`.
# A condition that costs more than a read of a register is a feature (`if GANGS:`). SUM_WORTH and
# SUM_REMAINING are sums over the tasks placed (`sim.engine.plan.queues`); MAX_PRIORITY is the
# largest number of p_turn_priority so far; REFINE_AT is the time of the next refinement, CHECKED_AT
# that of the last check of a checked run, CAP_TICK that of the next update of caps of minutes,
# BEGINS that from which on the policy places jobs.

State = namedtuple("State", NAMES)  # type: ignore[misc]  # the fields are listed once, above


def check(arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError unless `arrays` are exactly the fields, each frozen as the table says."""
    if tuple(arrays) != NAMES:
        raise ValueError(f"state fields differ: {set(arrays) ^ set(NAMES)}")
    for (name, code, ndim), dtype, is_written in zip(_TYPES, _DTYPES, _IS_WRITTEN, strict=True):
        a = arrays[name]
        flags = a.flags
        if a.dtype != dtype or a.ndim != ndim or not flags.c_contiguous:
            raise ValueError(f"{name}: {a.dtype}[{a.ndim}], expected C-contiguous {code}[{ndim}]")
        if flags.writeable != is_written:
            raise ValueError(f"{name} must be {'writable' if is_written else 'read-only'}")


def n_dims(dims: str) -> int:
    """Return the number of axes of a field."""
    return dims.count(",") + 1


_TYPES = tuple((name, code, n_dims(dims)) for name, code, dims, _ in FIELDS)
_DTYPES = tuple(np.dtype(code) for _, code, _ in _TYPES)
_IS_WRITTEN = tuple(not name.startswith(READ_ONLY) for name in NAMES)
_pack = record("KernelState", _TYPES, READ_ONLY) if JIT else None


def make(arrays: Mapping[str, NDArray[Any]], *, interpreted: bool = False) -> Any:
    """Bind `arrays` into the record that kernels take; nothing is copied.

    For `interpreted` variants it is one that plain Python reads.
    """
    check(arrays)
    return _pack(arrays.values()) if _pack and not interpreted else State(**arrays)
