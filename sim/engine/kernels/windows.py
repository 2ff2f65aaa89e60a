"""Windows, known beforehand, in which machines are closed to jobs: outages, drains, reservations.

A job may begin on a machine if no window of it is open then, and if it is expected to end before
the next outage begins. A drain lets it run on. A reservation is a window to all jobs but its own,
once it is announced, and a job that asks for one is closed out elsewhere. Windows of a machine
stand in ``c_window_from`` and so on, in the order of their begins.

Plans and reservations give the expected end. Elsewhere only a limit at which jobs are ended says
when a job will be over: it counts from the moment at which the job first took room, so that the end
never moves to an earlier time, and a machine stays closed to the job until a window ends.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import part
from sim.engine.kernels.features import ENFORCES
from sim.engine.kernels.state import NOW

UNFORESEEN = 3
"""Bits of ``state_mach_lost``: lost and drained machines that nothing is planned on."""


@part
def is_closed(st, j, machine, begin, end):
    """Tell whether a window closes `machine` to job `j`, from `begin` to its expected `end`."""
    own = st.w_job_reservation[j]
    is_open = own < 0
    for i in range(st.c_window0[machine], st.c_window0[machine + 1]):
        since, until, owner = st.c_window_from[i], st.c_window_until[i], st.c_window_owner[i]
        if begin >= until or st.c_window_known[i] > st.state_f[NOW]:
            continue
        if owner >= 0 and (st.w_job_may_use[j] >> owner) & 1:
            is_open = is_open or (owner == own and since <= begin and end <= until)
            continue
        if since <= begin or (st.c_window_ahead[i] and since < end):
            return True
    return not is_open


@part
def is_reserved(st, j, machine):
    """Tell whether reservations keep job `j` off `machine` now, whenever it would end."""
    now, own = st.state_f[NOW], st.w_job_reservation[j]
    is_open = own < 0
    for i in range(st.c_window0[machine], st.c_window0[machine + 1]):
        owner = st.c_window_owner[i]
        if owner < 0 or not st.c_window_from[i] <= now < st.c_window_until[i]:
            continue
        if not (st.w_job_may_use[j] >> owner) & 1:
            return True
        is_open = is_open or owner == own
    return not is_open


@part
def is_closed_now(st, j, machine):
    """Tell whether `machine` is closed to tasks and slots of job `j` that would start now."""
    begin = st.state_f[NOW]
    end = begin
    if ENFORCES and st.w_job_limit[j] < math.inf:
        first = st.state_job_first_s[j]
        end = (begin if math.isnan(first) else first) + st.w_job_limit[j]
    return is_closed(st, j, machine, begin, end)


@part
def note_first_room(st, j):
    """Note when job `j`, a task of which starts, first took room."""
    if math.isnan(st.state_job_first_s[j]):
        st.state_job_first_s[j] = st.state_f[NOW]


@part
def next_opening(st, time):
    """Return the first end of a window, or begin of a reservation, after `time`; inf for none."""
    first = next_end(st, time)
    for i in range(len(st.c_window_from)):
        if st.c_window_owner[i] >= 0 and time < st.c_window_from[i] < first:
            first = st.c_window_from[i]
    return first


@part
def next_end(st, time):
    """Return the first end of a window after `time`, infinity for none."""
    first = math.inf
    for i in range(len(st.c_window_until)):
        if time < st.c_window_until[i] < first:
            first = st.c_window_until[i]
    return first


@part
def next_begin(st, j, time):
    """Return the first begin of a window of the reservation of `j` after `time`; inf for none."""
    first = math.inf
    for i in range(len(st.c_window_from)):
        is_own = st.c_window_owner[i] == st.w_job_reservation[j]
        if is_own and time < st.c_window_from[i] < first:
            first = st.c_window_from[i]
    return first


@part
def next_over(st):
    """Return when the next reservation is over, infinity for none."""
    i = st.state_next_over[0]
    return st.c_over_s[i] if i < len(st.c_over_s) else math.inf
