"""Pinned jobs: placed at given times on given machines, whatever the policy says.

So a run begins in the state that a log shows. A pinned job is placed once its time has come, it
waits, and its machines have room for it; partitions, caps, shares and windows are not asked. The
policy places nothing before the scheduler begins (BEGINS). At a *moment* the run stops before
anything is placed: the caller may let the policy place (TRIES), see what it starts, and take that
back (`sim.engine.trials`).

An elastic job has one place for each of its tasks with a machine, or its least width. Its width
stays until the policy may place jobs.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, late, part
from sim.engine.kernels.buckets import is_waiting_gang, regroup
from sim.engine.kernels.choosing.devices import n_by_devices
from sim.engine.kernels.components import first_component
from sim.engine.kernels.domains import is_searched
from sim.engine.kernels.elastic import is_elastic
from sim.engine.kernels.features import (
    CHOOSES,
    ELASTIC,
    FLAVORS,
    GANGS,
    REPLANS,
    RESERVES,
    STRICT,
)
from sim.engine.kernels.flavors import open_all
from sim.engine.kernels.held_slots import hold_slot
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.resources import demand_row
from sim.engine.kernels.rigid.gang import admit_found, begin_gang
from sim.engine.kernels.rigid.rigid import is_holding
from sim.engine.kernels.rigid.room import FIRST, PINNED, find_within
from sim.engine.kernels.state import (
    BARRED,
    BEGINS,
    CONSTRAINED,
    N_PINS_DUE,
    NEXT_MOMENT,
    NEXT_PIN,
    NOW,
    RESERVATIONS,
    TRIES,
)
from sim.engine.kernels.waiting import is_listed

UNLIMITED = 2**62

begin_reserved = late("sim.engine.kernels.rigid.reserve.begin_running", RESERVES)
start_planned = late("sim.engine.kernels.rigid.replan.start_pinned", REPLANS)


@inlined
def next_pin(st, time):
    """Return when the next pin is due, the scheduler begins or a moment is, at most `time`."""
    pin, moment = st.state_i[NEXT_PIN], st.state_i[NEXT_MOMENT]
    if pin < len(st.w_pin_s):
        time = min(time, st.w_pin_s[pin])
    if moment < len(st.w_moment_s):
        time = min(time, st.w_moment_s[moment])
    if st.state_f[NOW] < st.state_f[BEGINS]:
        time = min(time, st.state_f[BEGINS])
    return time


@inlined
def is_moment(st):
    """Tell whether it is a moment now, at which nothing has been tried yet."""
    moment = st.state_i[NEXT_MOMENT]
    return (
        not st.state_i[TRIES]
        and moment < len(st.w_moment_s)
        and st.w_moment_s[moment] <= st.state_f[NOW]
    )


@part
def has_begun(st):
    """Tell whether the policy may place jobs now."""
    return st.state_i[TRIES] > 0 or st.state_f[NOW] >= st.state_f[BEGINS]


@part
def place_pinned(st):
    """Place the pinned jobs that are due, wait, and fit on their machines, by time and row."""
    if st.state_i[TRIES]:
        return
    if FLAVORS:
        open_all(st)  # whatever quotas say
    due, pin = st.state_pin_due, st.state_i[NEXT_PIN]
    while pin < len(st.w_pin_s) and st.w_pin_s[pin] <= st.state_f[NOW]:
        due[st.state_i[N_PINS_DUE]] = st.w_pin_job[pin]
        st.state_i[N_PINS_DUE] += 1
        pin += 1
    st.state_i[NEXT_PIN] = pin
    n = 0
    for i in range(st.state_i[N_PINS_DUE]):
        j = due[i]
        if st.out_job_failed[j] or st.state_job_left[j] == 0 or is_holding(st, j):
            continue
        if _waits(st, j) and _fits(st, j):
            _place(st, j)
            continue
        due[n] = j
        n += 1
    st.state_i[N_PINS_DUE] = n


@inlined
def _waits(st, j):
    """Tell whether job `j` was submitted, is eligible, and may start by its limits."""
    return st.state_job_ready_head[j] >= 0 and st.state_job_wait_queue[j] >= 0


@inlined
def _n_slots(st, j):
    """Return the number of machines that job `j`, a gang or a single task, takes at once."""
    n = max(st.w_job_min_tasks[j], 1)
    if ELASTIC and is_elastic(st, j):
        g = st.w_job_stage0[j]
        first, end = st.w_stage_task0[g] + n, st.w_stage_task0[g + 1]
        while first < end and st.w_pin_machine[first] >= 0:
            first += 1
            n += 1
    return n


@inlined
def _is_searched(st, j):
    """Tell whether the slots of job `j` find room together: those of a gang of one width."""
    is_one_width = not (ELASTIC and is_elastic(st, j))
    return GANGS and is_waiting_gang(st, j) and is_one_width and is_searched(st, j)


@inlined
def _fits(st, j):
    """Tell whether job `j` fits on its machines, and list where each of its slots goes.

    They stand in ascending order, then -1 for slots on any of them: as many on each as fit.
    """
    first = st.w_stage_task0[st.w_job_stage0[j]]
    entry, end = first, first + _n_slots(st, j)
    if _is_searched(st, j):
        return _fits_components(st, j, first, end)
    n_free = 0  # slots that may be on any machine
    while end - n_free > first and st.w_pin_machine[end - n_free - 1] < 0:
        n_free += 1
    known, slot = end - n_free, first
    while entry < known:
        machine, n = st.w_pin_machine[entry], 0
        while entry < known and st.w_pin_machine[entry] == machine:
            entry += 1
            n += 1
        if GANGS and is_waiting_gang(st, j):
            room = _room(st, st.w_job_slot, j, machine)
            if st.w_job_one_per_node[j]:
                room = min(room, 1)
        else:
            room = _room(st, st.w_stage_demand, demand_row(st, st.state_job_ready_head[j]), machine)
        if st.state_mach_lost[machine] or room < n:
            return False
        more = min(room - n, n_free)
        n_free -= more
        for _ in range(n + more):
            st.state_pin_machine[slot] = machine
            slot += 1
    return n_free == 0


@part
def _fits_components(st, j, first, end):
    """Tell whether heterogeneous gang `j` fits on its machines, from entry `first` to `end`.

    With slots on any of them, as many on each as fit.
    """
    st.state_mach_limit[:] = 0
    for entry in range(first, end):
        machine = st.w_pin_machine[entry]
        if machine >= 0:
            st.state_mach_limit[machine] += 1 if st.w_pin_machine[end - 1] >= 0 else end - first
    st.state_i[BARRED] = 0
    return find_within(st, j, st.state_mach_free, PINNED, FIRST, True)


@part
def _room(st, demand, row, machine):
    """Return how many of the demand in `row` find room on `machine` now."""
    room = UNLIMITED
    for r in range(st.c_alignment_scale.shape[1]):
        if demand[row, r] > 0:
            room = min(room, max(st.state_mach_free[machine, r], 0) // demand[row, r])
    if CHOOSES and st.state_i[CONSTRAINED]:
        room = min(room, n_by_devices(st, demand, row, machine))
    return room


@inlined
def _place(st, j):
    """Place job `j` on its machines."""
    first, n = st.w_stage_task0[st.w_job_stage0[j]], _n_slots(st, j)
    if REPLANS:
        start_planned(st, j)
        return
    if RESERVES and st.state_i[RESERVATIONS] > 0:
        begin_reserved(st, j)
    if GANGS and is_waiting_gang(st, j):
        if _is_searched(st, j):
            admit_found(st, j)
        else:
            _hold_slots(st, j, first, n)
            begin_gang(st, j)
        if not STRICT and not is_listed(st):
            regroup(st, j)
    else:
        start_task(st, st.state_job_ready_head[j], st.state_pin_machine[first], False, 1)


@inlined
def _hold_slots(st, j, first, n):
    """Hold `n` slots of gang `j` on the machines from entry `first` on.

    The first is at the end; the places of an elastic job that follow are in their order.
    """
    is_unit = ELASTIC and is_elastic(st, j)
    for i in range(n):
        machine = st.state_pin_machine[first + i]
        entry = i - 1 if is_unit and i > 0 else n - 1 - i
        hold_slot(st, j, first_component(st, j), entry, machine)
    if is_unit:
        st.state_job_places[j] = n
