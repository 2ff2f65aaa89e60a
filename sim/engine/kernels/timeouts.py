"""Jobs that are ended at their limit of run time.

What runs of a job stops, none of it starts again, and jobs that need its output fail as where an
input is missing. A job whose last task ends at the same instant is done.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.caps import count_submitted
from sim.engine.kernels.faults.restart import stop_task
from sim.engine.kernels.features import CAPS, GANGS, SERVICE
from sim.engine.kernels.held_slots import release_slots
from sim.engine.kernels.passing import note_running
from sim.engine.kernels.release import TIMED_OUT, fail_job
from sim.engine.kernels.service import drop_crossing
from sim.engine.kernels.state import FAILS, NOW, RECORD
from sim.engine.kernels.stop_records import TIMEOUT
from sim.engine.kernels.time_limits import drop_first, first_limit, follow_start, is_due
from sim.engine.kernels.waiting import stage_drained
from sim.engine.kernels.windows import next_over


@inlined
def time_out(st):
    """End the jobs whose limit of run time is over now, by row."""
    while first_limit(st) <= st.state_f[NOW]:
        j = st.state_limit_heap[0]
        ends = is_due(st, j)
        drop_first(st)
        if ends:
            end_job(st, j, TIMEOUT, TIMED_OUT)
        else:
            follow_start(st, j)


@inlined
def end_reservations(st):
    """End the jobs, by row, whose reservation is over now: those that run, and those that wait."""
    if next_over(st) > st.state_f[NOW]:
        return
    while next_over(st) <= st.state_f[NOW]:
        st.state_next_over[0] += 1
    for j in range(len(st.w_job_over_s)):
        is_over = st.w_job_over_s[j] <= st.state_f[NOW]
        if is_over and st.state_job_turn[j] >= 0 and st.state_job_left[j] > 0:
            end_job(st, j, TIMEOUT, TIMED_OUT)


@part
def end_job(st, j, reason, why):
    """End job `j`, which was submitted and is not done: it fails, as `why` says."""
    while st.state_job_ready_head[j] >= 0:
        g = st.state_job_ready_head[j]
        st.state_stage_waiting[g] = 0
        stage_drained(st, g)
    machine = 0
    while st.state_job_running[j] > 0:
        slot = st.state_mach_slot[machine]
        while slot >= 0:
            after = st.state_slot_next[slot]
            if st.w_stage_job[st.state_slot_stage[slot]] == j:
                stop_task(st, slot, reason)
                _forget_run(st, st.state_slot_task[slot])
            slot = after
        machine += 1
    if st.state_i[FAILS]:
        _forget_reruns(st, j)
    if GANGS and st.state_job_idle_held[j] > 0:
        release_slots(st, j)
    if SERVICE:
        drop_crossing(st, j)
    st.state_job_left[j] = 0
    if CAPS:
        note_running(st, j)
        count_submitted(st, j, -1)
    st.out_job_finish[j] = st.state_f[NOW]
    fail_job(st, j, why)


@part
def _forget_run(st, task):
    """Take back the record of `task`, which never completes; its attempt is one that stopped."""
    if st.state_i[RECORD]:
        st.out_task_start[task] = st.out_task_finish[task] = math.nan
        st.out_task_machine[task] = -1


@inlined
def _forget_reruns(st, j):
    """Take back the records of the tasks of job `j` whose output was lost and not made again."""
    first, end = st.w_job_stage0[j], st.w_job_stage0[j + 1]
    for task in range(st.w_stage_task0[first], st.w_stage_task0[end]):
        if st.state_task_rerun[task]:
            _forget_run(st, task)
