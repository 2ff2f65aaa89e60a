"""Classes and devices of machines: which of them a task may use, and takes.

A device is a piece of a machine's room for resource DEVICE, DEVICE_QUANTA quanta each. A task takes
whole devices, or a part of one.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.state import DEVICE, DEVICE_QUANTA


@part
def can_run(st, g, machine):
    """Tell whether a task of stage `g` is allowed on `machine` and finds free devices there."""
    if not st.w_stage_allowed[g] & st.c_mach_class[machine]:
        return False
    demand = device_demand(st, g)
    if demand == 0:
        return True
    per_device = st.state_i[DEVICE_QUANTA]
    n, min_free = max(demand // per_device, 1), min(demand, per_device)
    for d in range(st.c_mach_device0[machine], st.c_mach_device0[machine + 1]):
        if st.state_device_free[d] >= min_free:
            n -= 1
    return n <= 0


@part
def device_demand(st, g):
    """Return the demand of a task of stage `g` for devices, quanta."""
    return st.w_stage_demand[g, st.state_i[DEVICE]] if st.state_i[DEVICE] >= 0 else 0


@part
def takes_part(st, g):
    """Tell whether a task of stage `g` takes a part of a device."""
    return 0 < device_demand(st, g) < st.state_i[DEVICE_QUANTA]


@part
def first_with_room(st, g, machine, tightest):
    """Return the first device of `machine` with room for a part; `tightest`: that of least room."""
    demand, best = device_demand(st, g), -1
    for d in range(st.c_mach_device0[machine], st.c_mach_device0[machine + 1]):
        free = st.state_device_free[d]
        if free >= demand and (best < 0 or (tightest and free < st.state_device_free[best])):
            best = d
    return best


@part
def occupy(st, g, machine, d):
    """Acquire devices for a task of stage `g` on `machine`: a part of device `d`, or whole ones.

    Returns them as bits.
    """
    demand, per_device = device_demand(st, g), st.state_i[DEVICE_QUANTA]
    first = st.c_mach_device0[machine]
    if 0 < demand < per_device:
        st.state_device_free[d] -= demand
        return 1 << (d - first)
    bits, n = 0, demand // per_device
    for whole in range(first, st.c_mach_device0[machine + 1]):
        if n > 0 and st.state_device_free[whole] == per_device:
            n -= 1
            st.state_device_free[whole] = 0
            bits |= 1 << (whole - first)
    return bits


@part
def release(st, g, machine, bits):
    """Release the devices `bits` of `machine` that a task of stage `g` had."""
    amount = min(device_demand(st, g), st.state_i[DEVICE_QUANTA])
    d = st.c_mach_device0[machine]
    while bits > 0:
        if bits & 1:
            st.state_device_free[d] += amount
        bits >>= 1
        d += 1
