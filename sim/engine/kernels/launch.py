"""Lags: between the placement of a task, or a gang, and its start; before a stage opens.

Room is held during the lag, and the task counts as one that runs. A lag is drawn by Philox4x32-10
(Salmon et al., SC 2011) from the task and the number of its launches before: nothing else in the
run, such as the order of placements, changes it. The slots of a gang are launched together, once;
tasks that take one later start at once. Stages that lag open in the order of their times; those of
one time in the order in which their parents ended.
"""

# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np

from sim.base.jit import part
from sim.engine.kernels.state import LAUNCH, N_OPENING, NEXT_OPENING, NOW, RECORD

DRAWN, BETWEEN = 1, 2
"""Codes of LAUNCH: a lag is one of the values, or between the two."""

_WORD, _HALF, _REST = np.uint64(2**32 - 1), np.uint64(32), np.uint64(11)
_FIRST, _SECOND = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_FIRST_STEP, _SECOND_STEP = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)


@part
def postpone_opening(st, g):
    """Let stage `g`, whose last barrier parent ends now, open after its lag."""
    n = st.state_i[N_OPENING]
    due = st.state_f[NOW] + st.w_stage_lag[g]
    st.state_i[N_OPENING] = n + 1
    while n > st.state_i[NEXT_OPENING] and st.state_opening_due[n - 1] > due:
        st.state_opening[n] = st.state_opening[n - 1]
        st.state_opening_due[n] = st.state_opening_due[n - 1]
        n -= 1
    st.state_opening[n] = g
    st.state_opening_due[n] = due


@part
def launch(st, j, task, in_held_slot):
    """Launch `task` of job `j`, which is placed now; return when it starts."""
    now = st.state_f[NOW]
    start = max(now, st.state_job_launched[j]) if in_held_slot else now + draw_lag(st, task)
    if start < st.out_job_start[j]:
        st.out_job_start[j] = start
    if st.state_i[RECORD]:
        st.out_task_placed[task] = now
    return start


@part
def draw_lag(st, task):
    """Draw the lag of the next launch of `task`, s."""
    lag = next_lag(st, task)
    st.state_task_launches[task] += 1
    return lag


@part
def next_lag(st, task):
    """Return the lag that the next launch of `task` will draw, s."""
    values = st.c_launch_s
    uniform = _uniform(st, task, st.state_task_launches[task])
    if st.state_i[LAUNCH] == BETWEEN:
        return values[0] + (values[1] - values[0]) * uniform
    return values[int(uniform * len(values))]


@part
def _uniform(st, task, n):
    """Return launch `n` of `task` as a number from 0 to 1, which is excluded."""
    key, other_key = np.uint64(st.c_launch_key[0]), np.uint64(st.c_launch_key[1])
    a, b, c, d = np.uint64(task), np.uint64(n), np.uint64(0), np.uint64(0)
    for _ in range(10):
        first, second = _FIRST * a, _SECOND * c
        a, b = (second >> _HALF) ^ b ^ key, second & _WORD
        c, d = (first >> _HALF) ^ d ^ other_key, first & _WORD
        key, other_key = (key + _FIRST_STEP) & _WORD, (other_key + _SECOND_STEP) & _WORD
    return float(((a << _HALF) | b) >> _REST) * 2.0**-53


@part
def forget_start(st, j):
    """Set the start of job `j` anew: one of its tasks, of which none had started, was stopped."""
    first = math.nan
    for machine in range(len(st.state_mach_slot)):
        slot = st.state_mach_slot[machine]
        while slot >= 0:
            start = st.state_slot_start[slot]
            if st.w_stage_job[st.state_slot_stage[slot]] == j and not first <= start:
                first = start
            slot = st.state_slot_next[slot]
    st.out_job_start[j] = first
