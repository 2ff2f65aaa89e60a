"""Machine choice: the machine with room that a task goes to, and its devices there.

`sim.engine.plan.choice` defines the scores. The least score is best; of equal ones the first
machine. A score is cached until something is acquired or released on its machine, for all stages of
one type.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.choosing.devices import (
    device_demand,
    first_with_room,
    occupy,
    release,
    takes_part,
)
from sim.engine.kernels.choosing.fragments import increase, min_increase
from sim.engine.kernels.speeds import speed_on
from sim.engine.kernels.state import (
    CACHES_SCORES,
    DEVICE_CHOICE,
    DEVICE_QUANTA,
    MACHINE_CHOICE,
    RECORD,
)

BEST_FIT, LEAST_DOT, PACKED, FRAGMENTATION, FASTEST = range(1, 6)
FIRST, TIGHTEST, LEAST_FRAGMENTATION = 0, 1, 2


@inlined
def score_of(st, g, machine):
    """Return the score of `machine` for a task of stage `g`."""
    if not st.state_i[CACHES_SCORES]:
        return score(st, st.state_mach_free, st.w_stage_demand, g, g, machine)
    kind, version = st.w_stage_kind[g], st.state_mach_version[machine]
    if st.state_score_version[kind, machine] != version:
        st.state_score[kind, machine] = score(
            st, st.state_mach_free, st.w_stage_demand, g, g, machine
        )
        st.state_score_version[kind, machine] = version
    return st.state_score[kind, machine]


@part
def acquire_devices(st, demand, row, machine):
    """Acquire devices on `machine` for the demand in `row`; return them as bits."""
    if device_demand(st, demand, row) == 0:
        return 0
    d = _device_for(st, demand, row, machine) if takes_part(st, demand, row) else -1
    return occupy(st, demand, row, machine, d)


@part
def acquire_task_devices(st, g, slot):
    """Acquire the devices of the task of stage `g` in `slot`."""
    bits = acquire_devices(st, st.w_stage_demand, g, st.state_slot_machine[slot])
    set_devices(st, slot, bits)


@part
def set_devices(st, slot, bits):
    """Note the devices that the task in `slot` uses, and record them."""
    st.state_slot_devices[slot] = bits
    if st.state_i[RECORD]:
        st.out_task_devices[st.state_slot_task[slot]] = bits


@part
def release_task_devices(st, slot):
    """Release the devices of the task in `slot`, which leaves its machine."""
    g, machine = st.state_slot_stage[slot], st.state_slot_machine[slot]
    release(st, st.w_stage_demand, g, machine, st.state_slot_devices[slot])


@part
def _device_for(st, demand, row, machine):
    """Return the device of `machine` of which the demand in `row` takes a part."""
    rule = st.state_i[DEVICE_CHOICE]
    if rule == LEAST_FRAGMENTATION:
        return min_increase(st, demand, row, machine)[1]
    return first_with_room(st, demand, row, machine, rule == TIGHTEST)


@part
def score(st, left, demand, row, g, machine):
    """Return the score of `machine`, which has room, for the demand in `row`: a task of stage `g`.

    Or for a slot, in which tasks of stage `g` run first. `left` is what is free of each machine,
    now or later; scores by devices are of the present.
    """
    rule = st.state_i[MACHINE_CHOICE]
    if rule == FRAGMENTATION:
        if st.state_i[DEVICE_CHOICE] == LEAST_FRAGMENTATION or not takes_part(st, demand, row):
            return min_increase(st, demand, row, machine)[0]
        return increase(st, demand, row, machine, _device_for(st, demand, row, machine))
    if rule == PACKED:
        return _packed(st, demand, row, machine)
    if rule == FASTEST:
        return -speed_on(st, g, machine)
    total = 0.0
    for r in range(st.c_alignment_scale.shape[1]):
        free, amount = left[machine, r], demand[row, r]
        if rule == BEST_FIT:
            total += (free - amount) * st.c_mach_scale[r]
        else:
            total += (free * st.c_mach_scale[r]) * (amount * st.c_mach_scale[r])
    return total


@inlined
def _packed(st, demand, row, machine):
    """Score by idle devices: 0 to 1 for a part of a device in use, from 2 on for idle ones.

    From 200 on for an idle machine. The less is free, and the fewer are idle, the better.
    """
    amount, per_device = device_demand(st, demand, row), st.state_i[DEVICE_QUANTA]
    if amount == 0:
        return 0.0
    if amount < per_device:
        free = st.state_device_free[_device_for(st, demand, row, machine)]
        if free < per_device:
            return free / per_device
    first, end = st.c_mach_device0[machine], st.c_mach_device0[machine + 1]
    idle = 0
    for d in range(first, end):
        if st.state_device_free[d] == per_device:
            idle += 1
    if idle == end - first:
        return 200.0 + idle
    return 2.0 + max(amount // per_device, 1)
