"""Places of elastic jobs: those with which one starts, and those taken and given back later.

A job starts in as many places as there are, up to the width that the policy wants, and no fewer
than its least. Later changes of that width are followed before anything is placed: first all jobs
shrink that are to, by the places taken last; then the others grow, in the order in which the policy
named them, each by as many places as there are. A job whose width changed stands still for its
`reconfigure_s`, and goes on at its new pace.

One that asks for a domain grows near its first place: within the narrowest domain that it asks for,
then in wider ones, up to the one that it requires, or anywhere.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.caps import count_beyond
from sim.engine.kernels.choosing.devices import release
from sim.engine.kernels.components import add_idle, first_component, idle_slots
from sim.engine.kernels.domains import look_into
from sim.engine.kernels.elastic import (
    begin_place,
    end_place,
    is_elastic,
    tasks_with,
    wanted_width,
    width_of,
)
from sim.engine.kernels.faults.unit_rates import go_on_later
from sim.engine.kernels.features import CHOOSES, DYNAMIC_ORDER, FLAVORS, SERVICE, TOPOLOGY
from sim.engine.kernels.flavors import open_with
from sim.engine.kernels.held_slots import hold_slot, slots_on
from sim.engine.kernels.jobs import RESIZE, emit, refresh_job
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.resources import release_held, within_cap
from sim.engine.kernels.rigid.room import (
    FIRST,
    LEAST_SCORE,
    PRESENT,
    look_where_it_starts,
    next_machine,
    slots_beside,
)
from sim.engine.kernels.service import accrue
from sim.engine.kernels.state import BARRED, CONSTRAINED, EXCLUSIVES, MACHINE_CHOICE, NOW
from sim.engine.kernels.stop_records import RESIZED


@part
def take_places(st, j):
    """Hold the places with which elastic job `j` starts; there is room for its least width."""
    c, low, target, n = first_component(st, j), st.w_job_width_min[j], wanted_width(st, j), 0
    is_near = TOPOLOGY and st.w_job_narrowest[j] >= 0
    if is_near:
        look_where_it_starts(st, j, PRESENT)
    for machine in range(st.state_mach_free.shape[0]):
        if not is_near or st.state_mach_within[machine]:
            n += slots_on(st, j, c, machine)
        if n >= target:
            break
    n = min(n, target)
    while n > low and not within_cap(st, j, st.w_slot, c, n):
        n -= 1
    st.state_job_places[j] = n
    _clear_spread(st, j)
    machine, k = -1, 0
    while k < n:
        machine = _next(st, j, c, machine)
        for _ in range(min(_room_on(st, j, c, machine), n - k)):
            hold_slot(st, j, c, n - 1 if k == 0 else k - 1, machine)
            k += 1
    if is_near:
        st.state_mach_within[:] = 1


@part
def start_unit(st, j):
    """Start elastic job `j` in the places that it has just taken."""
    c = first_component(st, j)
    follow = idle_slots(st, j, c) - 1
    add_idle(st, j, c, -1)
    g, machine = st.w_job_stage0[j], st.state_held_machine[st.w_slot0[c] + follow]
    start_task(st, g, machine, True, tasks_with(st, g))
    go_on_later(st, j, st.state_f[NOW])
    for i in range(follow):
        begin_place(st, j, i)


@inlined
def resize(st, changed, n_changed):
    """Follow the widths of the jobs that the policy `changed`, before anything is placed."""
    st.state_i[BARRED] = 0
    for i in range(n_changed):
        if _may_resize(st, changed[i]):
            _shrink(st, changed[i])
    for i in range(n_changed):
        if _may_resize(st, changed[i]):
            _grow(st, changed[i])


@part
def _may_resize(st, j):
    is_running = is_elastic(st, j) and st.state_job_running[j] > 0
    return is_running and st.w_job_reconfigure[j] < math.inf


@part
def _shrink(st, j):
    c, n_over = first_component(st, j), width_of(st, j) - wanted_width(st, j)
    for _ in range(n_over):
        i = idle_slots(st, j, c) - 1
        end_place(st, j, i, RESIZED, 1.0)
        add_idle(st, j, c, -1)
        entry = st.w_slot0[c] + i
        machine = st.state_held_machine[entry]
        if CHOOSES and st.state_i[CONSTRAINED]:
            release(st, st.w_slot, c, machine, st.state_held_devices[entry])
        release_held(st, j, c, machine)
        _count_beyond(st, j, c, machine, -1)
    if n_over > 0:
        _change_width(st, j)


@part
def _grow(st, j):
    before = width_of(st, j)
    n_left = wanted_width(st, j) - before
    _clear_spread(st, j)
    if FLAVORS and not open_with(st, j, st.state_slot_machine[st.state_job_unit[j]]):
        return
    if TOPOLOGY and st.w_job_narrowest[j] >= 0:
        n_left = _take_near(st, j, n_left)
        n_left = n_left if st.w_job_required[j] < 0 else 0
    _take_more(st, j, n_left)
    if width_of(st, j) > before:
        _change_width(st, j)


@part
def _take_near(st, j, n_left):
    """Take places in the domains of the first, from the narrowest on; return how many are left."""
    home, level = st.state_slot_machine[st.state_job_unit[j]], st.w_job_narrowest[j]
    st.state_mach_within[:] = 0
    while n_left > 0 and level >= max(st.w_job_required[j], 0):
        look_into(st, level, st.c_domain[level, home])
        n_left = _take_more(st, j, n_left)
        level -= 1
    st.state_mach_within[:] = 1
    return n_left


@part
def _take_more(st, j, n_left):
    """Take as many places as there are, up to `n_left`; return how many are left to look for."""
    c, machine = first_component(st, j), -1
    while n_left > 0:
        machine = _next(st, j, c, machine)
        if machine < 0:
            break
        for _ in range(min(_room_on(st, j, c, machine), n_left)):
            if not within_cap(st, j, st.w_slot, c, 1):
                return 0
            i = idle_slots(st, j, c)
            hold_slot(st, j, c, i, machine)
            _count_beyond(st, j, c, machine, 1)
            add_idle(st, j, c, 1)
            begin_place(st, j, i)
            n_left -= 1
    return n_left


@inlined
def _count_beyond(st, j, c, machine, sign):
    if st.state_i[EXCLUSIVES] and st.w_job_exclusive[j]:
        count_beyond(st, j, c, machine, sign)


@part
def _change_width(st, j):
    """Let elastic job `j`, whose places have changed, stand still, and go on at its new pace."""
    if SERVICE or DYNAMIC_ORDER:
        accrue(st, j)
    st.state_job_running[j] = width_of(st, j)
    go_on_later(st, j, st.state_f[NOW] + st.w_job_reconfigure[j])
    refresh_job(st, j)
    emit(st, RESIZE, j)


@part
def _clear_spread(st, j):
    if st.w_job_one_per_node[j]:
        st.state_mach_given[:] = 0


@part
def _next(st, j, c, machine):
    """Return the machine that gives places after `machine`, -1 if none has room."""
    rule = LEAST_SCORE if CHOOSES and st.state_i[MACHINE_CHOICE] > 0 else FIRST
    return next_machine(st, j, c, machine, st.state_mach_free, PRESENT, rule, True)


@part
def _room_on(st, j, c, machine):
    """Count the places that `machine` has for job `j`, which takes some of them."""
    n_slots = slots_beside(st, j, c, machine, st.state_mach_free, PRESENT, True)
    if st.w_job_one_per_node[j] and n_slots > 0:
        st.state_mach_given[machine] = 1
    return n_slots
