"""Periodic planning: the passes of the main loop, and events that ask for one or for a plan.

The main loop polls each second. It passes over waiting jobs if an event has asked for that, or a
longer interval is over; a planning thread that polls plans again after any event.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.faults.work import SUSPEND
from sim.engine.kernels.rigid.replan_nodes import job_width
from sim.engine.kernels.rigid.replan_registers import (
    CLOCK,
    END_COMPLETING,
    FIRST_COMPLETING,
    IS_CHANGED,
    IS_IDLE,
    IS_REQUESTED,
    LAST_POLL,
    LAST_UPDATE,
    MAIN_DELAY,
    MAIN_INTERVAL,
    N_EXPECTED,
    N_SUBMITTED,
    NEXT_FULL,
    POLL_PHASE,
    REQUESTED,
    REQUEUE,
    WAKE,
)
from sim.engine.kernels.rigid.rigid import is_holding
from sim.engine.kernels.state import N_ARRIVED, N_HOLES, N_SCAN, NOW


@part
def is_waiting(st):
    """Tell whether any job waits."""
    return st.state_i[N_SCAN] > st.state_i[N_HOLES]


@part
def clock(st):
    """Return the scheduler's clock now, whole s."""
    return math.floor(st.p_replan_s[CLOCK] + st.state_f[NOW])


@part
def poll_s(st, poll):
    """Return the time of a poll of the main loop, s."""
    return st.p_replan_s[POLL_PHASE] + poll


@part
def next_pass(st):
    """Return the poll of the next pass of the main loop, if somebody waits then."""
    registers = st.state_replan
    if not registers[IS_REQUESTED]:
        return registers[NEXT_FULL]
    since = st.state_replan_s[REQUESTED]
    poll = max(math.ceil(since - st.p_replan_s[POLL_PHASE]), 0)
    if poll_s(st, poll) < since:
        poll += 1
    return min(max(poll, registers[LAST_POLL] + st.p_replan[MAIN_DELAY]), registers[NEXT_FULL])


@part
def end_pass(st, poll):
    """Note a pass at that poll; tell whether it is one over all jobs."""
    registers = st.state_replan
    is_full = poll == registers[NEXT_FULL]
    if is_full:
        registers[NEXT_FULL] += st.p_replan[MAIN_INTERVAL]
    registers[LAST_POLL] = poll
    registers[IS_REQUESTED] = 0
    return is_full


@inlined
def forget_passes(st):
    """Note the passes before now, in which nobody waited."""
    while poll_s(st, next_pass(st)) < st.state_f[NOW]:
        end_pass(st, next_pass(st))


@part
def note_events(st):
    """Note jobs that came or ended, and nodes that have completed a job."""
    registers = st.state_replan
    happened = requested = st.state_i[N_ARRIVED] > registers[N_SUBMITTED]
    registers[N_SUBMITTED] = st.state_i[N_ARRIVED]
    n = 0
    for i in range(registers[N_EXPECTED]):
        j = st.state_expected_jobs[i]
        if is_holding(st, j):
            st.state_expected_jobs[n] = j
            n += 1
            continue
        happened = True
        _leave_nodes(st, j)
        if st.state_job_left[j] == 0:
            _complete(st, j)
        else:  # it was stopped, and waits again
            requested = True
            if st.p_job_when_preempted[j] != SUSPEND:
                st.state_job_back[j] = st.state_f[NOW] + st.p_replan_s[REQUEUE]
    registers[N_EXPECTED] = n
    while registers[FIRST_COMPLETING] < registers[END_COMPLETING]:
        j = st.state_completing_jobs[registers[FIRST_COMPLETING]]
        if completed_s(st, j) > st.state_f[NOW]:
            break
        registers[FIRST_COMPLETING] += 1
        _count_completing(st, j, -1)
        happened = requested = True
    if requested and not registers[IS_REQUESTED]:
        registers[IS_REQUESTED] = 1
        st.state_replan_s[REQUESTED] = st.state_f[NOW]
    if happened:
        note_update(st)


@inlined
def _leave_nodes(st, j):
    """Let the slots of job `j`, which has ended or was stopped, be free."""
    first = st.w_stage_task0[st.w_job_stage0[j]]
    for entry in range(first, first + job_width(st, j)):
        st.state_node_busy[st.state_task_node[entry]] = 0


@inlined
def _complete(st, j):
    """List job `j`, which has ended, by the time at which its nodes have completed it."""
    jobs, first = st.state_completing_jobs, st.state_replan[FIRST_COMPLETING]
    k = st.state_replan[END_COMPLETING]
    while k > first and completed_s(st, jobs[k - 1]) > completed_s(st, j):
        jobs[k] = jobs[k - 1]
        k -= 1
    jobs[k] = j
    st.state_replan[END_COMPLETING] += 1
    _count_completing(st, j, 1)


@part
def completed_s(st, j):
    """Return the time at which its nodes have completed job `j`, which has ended, s."""
    return st.out_job_finish[j] + st.p_completing_s[j]


@part
def _count_completing(st, j, change):
    """Count job `j`, which has ended, at its nodes."""
    first = st.w_stage_task0[st.w_job_stage0[j]]
    for entry in range(first, first + job_width(st, j)):
        st.state_node_completing[st.state_task_node[entry]] += change


@part
def note_update(st):
    """Note a change of jobs or nodes; a planning thread that polls plans at its next poll."""
    st.state_replan[LAST_UPDATE] = clock(st)
    st.state_replan[IS_CHANGED] = 1
    if st.state_replan[IS_IDLE]:
        st.state_replan[IS_IDLE] = 0
        base = st.state_replan_s[WAKE]
        wait = max(math.ceil(st.state_f[NOW] - base), 0.0)
        st.state_replan_s[WAKE] = base + wait
