"""Inputs that one job makes for another, and the jobs that wait for them before they are submitted.

The latter are a binary heap by (due time, row).
"""

from sim.base.jit import inlined, part
from sim.engine.kernels.state import N_DUE, NEXT_JOB, NOW

BLIND, POLL = 1, 2


@part
def inputs_made(st, j):
    """Job `j` is done: what it makes is there for others."""
    for e in range(st.w_input0[j], st.w_input0[j + 1]):
        reader = st.w_input_reader[e]
        st.state_job_missing[reader] -= 1
        if st.w_job_mode[reader] != POLL or st.state_job_missing[reader] > 0:
            continue
        st.state_job_due[reader] = st.state_f[NOW] + st.w_job_poll_lag[reader]
        if reader < st.state_i[NEXT_JOB]:
            due_push(st, reader)


@part
def due_push(st, j):
    """Add job `j` to the binary heap by (due time, row)."""
    heap, i = st.state_due_heap, st.state_i[N_DUE]
    st.state_i[N_DUE] = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if _before(st, heap[up], j):
            break
        heap[i] = heap[up]
        i = up
    heap[i] = j


@inlined
def due_pop(st):
    """Remove the job that is due first."""
    heap, n = st.state_due_heap, st.state_i[N_DUE] - 1
    st.state_i[N_DUE] = n
    j = heap[n]
    i, child = 0, 1
    while child < n:
        if child + 1 < n and _before(st, heap[child + 1], heap[child]):
            child += 1
        if _before(st, j, heap[child]):
            break
        heap[i] = heap[child]
        i = child
        child = 2 * i + 1
    heap[i] = j


@inlined
def _before(st, a, b):
    due = st.state_job_due
    return due[a] < due[b] or (due[a] == due[b] and a < b)
