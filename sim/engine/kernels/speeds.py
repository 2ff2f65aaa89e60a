"""Speed by class of machines: a task's duration is divided by that of its machine.

In this order, so that bits are defined: the duration, or the time until a failing attempt ends,
divided by the speed; times the remote factor; then slow periods and the rates of overbooked
machines (`sim.engine.kernels.faults.rates`). An elastic job, whose places may be on machines of
several classes, goes at the least speed of these, as a part of its pace. The speed of a gang whose
slots are in several domains is divided by its factor (`sim.engine.kernels.domains`). That of a
place of an elastic job whose task has its input elsewhere is divided by the remote factor.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.features import CLASS_SPEEDS, ELASTIC, TOPOLOGY
from sim.engine.kernels.state import REMOTE


@part
def speed_on(st, g, machine):
    """Return the speed of the tasks of stage `g` on `machine`."""
    if CLASS_SPEEDS:
        speed = st.w_stage_speed[g, st.c_mach_kind[machine]]
        if TOPOLOGY:
            return speed / st.state_job_crossing[st.w_stage_job[g]]
        return speed
    return 1.0


@part
def run_s(st, g, machine, seconds):
    """Return how long a task of stage `g` runs on `machine` that lasts `seconds` at speed 1.

    One of an elastic job as long, at its pace.
    """
    if ELASTIC and st.w_job_width_min[st.w_stage_job[g]] > 0:
        return seconds
    if CLASS_SPEEDS:
        return seconds / speed_on(st, g, machine)
    return seconds


@part
def is_remote(st, g, task, machine):
    """Tell whether the input of `task` of stage `g` is on another machine."""
    if not st.state_i[REMOTE] or st.w_stage_home[g] < 0:
        return False
    home = (st.w_stage_home[g] + task - st.w_stage_task0[g]) % st.state_mach_free.shape[0]
    return home != machine


@part
def speed_of_place(st, g, i, machine):
    """Return the speed of the `i`-th place of the elastic job of stage `g`, on `machine`."""
    speed = speed_on(st, g, machine)
    if is_remote(st, g, st.w_stage_task0[g] + i, machine):
        return speed / st.w_stage_remote_factor[g]
    return speed
