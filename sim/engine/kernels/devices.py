"""Machines of classes, and their devices: which a task may use, and takes.

A device is a piece of a machine's room for resource DEVICE, PER_DEVICE quanta of it. A task takes
whole devices, or a part of one.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.state import DEVICE, PER_DEVICE


@part
def may_run(st, g, machine):
    """Tell whether a task of stage `g` may run on `machine`, and finds devices there."""
    if not st.w_stage_allowed[g] & st.c_mach_class[machine]:
        return False
    wanted = wants(st, g)
    if wanted == 0:
        return True
    per = st.state_i[PER_DEVICE]
    n, least = max(wanted // per, 1), min(wanted, per)
    for d in range(st.c_mach_device0[machine], st.c_mach_device0[machine + 1]):
        if st.state_device_free[d] >= least:
            n -= 1
    return n <= 0


@part
def wants(st, g):
    """Return how much of devices a task of stage `g` takes, quanta."""
    return st.w_stage_demand[g, st.state_i[DEVICE]] if st.state_i[DEVICE] >= 0 else 0


@part
def wants_part(st, g):
    """Tell whether a task of stage `g` takes a part of a device."""
    return 0 < wants(st, g) < st.state_i[PER_DEVICE]


@part
def first_with_room(st, g, machine, tightest):
    """Return the first device of `machine` with room for a part; `tightest`: of least room."""
    wanted, best = wants(st, g), -1
    for d in range(st.c_mach_device0[machine], st.c_mach_device0[machine + 1]):
        free = st.state_device_free[d]
        if free >= wanted and (best < 0 or (tightest and free < st.state_device_free[best])):
            best = d
    return best


@part
def occupy(st, g, machine, d):
    """Take what a task of stage `g` takes on `machine`, a part of device `d`, or whole ones.

    Returns which, as bits.
    """
    wanted, per = wants(st, g), st.state_i[PER_DEVICE]
    first = st.c_mach_device0[machine]
    if 0 < wanted < per:
        st.state_device_free[d] -= wanted
        return 1 << (d - first)
    bits, n = 0, wanted // per
    for whole in range(first, st.c_mach_device0[machine + 1]):
        if n > 0 and st.state_device_free[whole] == per:
            n -= 1
            st.state_device_free[whole] = 0
            bits |= 1 << (whole - first)
    return bits


@part
def release(st, g, machine, bits):
    """Give back the devices `bits` of `machine` that a task of stage `g` had."""
    least = min(wants(st, g), st.state_i[PER_DEVICE])
    d = st.c_mach_device0[machine]
    while bits > 0:
        if bits & 1:
            st.state_device_free[d] += least
        bits >>= 1
        d += 1
