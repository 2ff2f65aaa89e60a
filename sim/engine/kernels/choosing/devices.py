"""Classes and devices of machines: which of them a task or a held slot may use, and takes.

A device is a piece of a machine's room for resource DEVICE, DEVICE_QUANTA quanta each. A task takes
whole devices, or a part of one. What takes them is a row of a table of demands: a stage's, for each
of its tasks, or a gang's, for each of its slots.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.state import DEVICE, DEVICE_QUANTA

UNLIMITED = 2**62


@part
def can_run(st, g, machine):
    """Tell whether a task of stage `g` is allowed on `machine` and finds free devices there."""
    if not st.w_stage_allowed[g] & st.c_mach_class[machine]:
        return False
    return n_by_devices(st, st.w_stage_demand, g, machine) > 0


@part
def n_by_devices(st, demand, row, machine):
    """Count how many of the demand in `row` find free devices on `machine`, all together."""
    amount, per_device = device_demand(st, demand, row), st.state_i[DEVICE_QUANTA]
    if amount == 0:
        return UNLIMITED
    n = 0
    for d in range(st.c_mach_device0[machine], st.c_mach_device0[machine + 1]):
        n += st.state_device_free[d] // min(amount, per_device)
    return n if amount < per_device else n // (amount // per_device)


@part
def device_demand(st, demand, row):
    """Return the demand in `row` for devices, quanta."""
    return demand[row, st.state_i[DEVICE]] if st.state_i[DEVICE] >= 0 else 0


@part
def takes_part(st, demand, row):
    """Tell whether the demand in `row` is a part of a device."""
    return 0 < device_demand(st, demand, row) < st.state_i[DEVICE_QUANTA]


@part
def first_with_room(st, demand, row, machine, tightest):
    """Return the first device of `machine` with room for a part; `tightest`: that of least room."""
    amount, best = device_demand(st, demand, row), -1
    for d in range(st.c_mach_device0[machine], st.c_mach_device0[machine + 1]):
        free = st.state_device_free[d]
        if free >= amount and (best < 0 or (tightest and free < st.state_device_free[best])):
            best = d
    return best


@part
def occupy(st, demand, row, machine, d):
    """Acquire devices of `machine` for the demand in `row`: a part of device `d`, or whole ones.

    Returns them as bits.
    """
    amount, per_device = device_demand(st, demand, row), st.state_i[DEVICE_QUANTA]
    first = st.c_mach_device0[machine]
    if 0 < amount < per_device:
        st.state_device_free[d] -= amount
        return 1 << (d - first)
    bits, n = 0, amount // per_device
    for whole in range(first, st.c_mach_device0[machine + 1]):
        if n > 0 and st.state_device_free[whole] == per_device:
            n -= 1
            st.state_device_free[whole] = 0
            bits |= 1 << (whole - first)
    return bits


@part
def release(st, demand, row, machine, bits):
    """Release the devices `bits` of `machine` that the demand in `row` had."""
    _add(st, machine, bits, min(device_demand(st, demand, row), st.state_i[DEVICE_QUANTA]))


@part
def take_again(st, demand, row, machine, bits):
    """Undo `release`."""
    _add(st, machine, bits, -min(device_demand(st, demand, row), st.state_i[DEVICE_QUANTA]))


@part
def _add(st, machine, bits, amount):
    d = st.c_mach_device0[machine]
    while bits > 0:
        if bits & 1:
            st.state_device_free[d] += amount
        bits >>= 1
        d += 1
