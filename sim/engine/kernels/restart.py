"""Tasks that start again: an attempt fails, a machine is lost, the output of a task is lost.

Before it succeeds a task may fail a number of times that is drawn beforehand, each time after so
many seconds. An attempt may fail because it finds the output of a parent's task lost: then that
one runs again, and the reader waits for it. Nothing else does: other readers have read already.
"""

from sim.base.jit import inlined, part
from sim.engine.kernels.features import MOVING, SERVICE
from sim.engine.kernels.lifecycle import FIRST_K, look_again, turn_of
from sim.engine.kernels.resources import give
from sim.engine.kernels.service import accrue
from sim.engine.kernels.state import N_SLOT_FREE, SEEN
from sim.engine.kernels.stretch import forget_end, leave_machine
from sim.engine.kernels.taskheap import turn_push
from sim.engine.kernels.waiting import rank_changed, stage_ready


@part
def take_down(st, slot):
    """Let the task in `slot` be as if it had never started, but for the service that it had.

    It is not yet ready again: see `ready_again`.
    """
    g = st.state_slot_stage[slot]
    j = st.w_stage_job[g]
    st.state_slot_free[st.state_i[N_SLOT_FREE]] = slot
    st.state_i[N_SLOT_FREE] += 1
    leave_machine(st, slot)
    forget_end(st, slot)
    if SERVICE or MOVING:
        accrue(st, j)
    st.state_job_running[j] -= 1
    st.state_job_started[j] -= 1
    if st.state_slot_flag[slot] & FIRST_K:
        st.state_job_first[j] -= 1
    st.state_stage_next[g] -= 1
    give(st, j, g, st.state_slot_machine[slot])
    look_again(st, j)


@part
def ready_again(st, g, task):
    """Let `task` of stage `g`, which was taken down or is done, wait for room."""
    turn_push(st, g, turn_of(st, st.w_stage_task0[g], task - st.w_stage_task0[g]))
    if st.state_stage_waiting[g] == 1:
        stage_ready(st, g)


@inlined
def attempt_fails(st, slot):
    """Tell whether what ends in `slot` is an attempt that fails."""
    task = st.state_slot_task[slot]
    return st.w_attempt0[task] + st.state_task_failed[task] < st.w_attempt0[task + 1]


@inlined
def fail_attempt(st, slot):
    """End the attempt in `slot`: its task starts again, after what it found lost is made again."""
    task = st.state_slot_task[slot]
    g = st.state_slot_stage[slot]
    lost = st.w_attempt_lost[st.w_attempt0[task] + st.state_task_failed[task]]
    st.state_task_failed[task] += 1
    take_down(st, slot)
    if lost < 0:
        ready_again(st, g, task)
        return
    st.state_task_reader_next[task] = st.state_task_reader[lost]
    st.state_task_reader[lost] = task
    if not st.state_task_again[lost]:
        _make_again(st, lost, _stage_of(st, st.w_stage_job[g], lost))


@inlined
def made_again(st, g, task):
    """If `task` of stage `g`, which ended, had to run again: let those that wait for it go on."""
    if not st.state_task_again[task]:
        return
    st.state_task_again[task] = 0
    reader = st.state_task_reader[task]
    st.state_task_reader[task] = -1
    while reader >= 0:
        after = st.state_task_reader_next[reader]
        ready_again(st, _stage_of(st, st.w_stage_job[g], reader), reader)
        reader = after


@inlined
def _make_again(st, task, g):
    """Let `task` of stage `g`, which is done, be not done."""
    j = st.w_stage_job[g]
    duration = st.w_task_duration[task]
    st.state_task_again[task] = 1
    st.state_stage_left[g] += 1
    st.state_job_left[j] += 1
    st.state_job_done[j] -= 1
    st.state_job_done_work[j] -= duration
    if st.state_i[SEEN]:
        st.state_stage_done_work[g] -= duration
        duration = st.p_stage_seen_s[g]
    st.state_job_remaining[j] += duration * st.p_stage_weight[g]
    st.state_stage_next[g] -= 1
    ready_again(st, g, task)
    if MOVING:
        rank_changed(st, j)


@part
def _stage_of(st, j, task):
    g = st.w_job_stage0[j]
    while st.w_stage_task0[g + 1] <= task:
        g += 1
    return g
