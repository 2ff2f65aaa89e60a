"""Records of attempts that were stopped."""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.state import N_STOPS

(
    FAILED,
    INPUT_LOST,
    OUTPUT_LOST,
    MACHINE_LOST,
    EVICTED,
    GANG_STOPPED,
    TIMEOUT,
    PREEMPTED,
    CANCELLED,
    RESIZED,
) = range(10)
"""Reasons for which attempts are stopped (`sim.engine.stops.REASONS`)."""


@part
def record_stop(st, task, machine, start, stop, reason, kept_s):
    """Record an attempt, and how much of its time is kept, s."""
    n = st.state_i[N_STOPS]
    st.state_i[N_STOPS] = n + 1
    st.out_stop_task[n] = task
    st.out_stop_machine[n] = machine
    st.out_stop_start[n] = start
    st.out_stop_time[n] = stop
    st.out_stop_reason[n] = reason
    st.out_stop_kept[n] = kept_s
