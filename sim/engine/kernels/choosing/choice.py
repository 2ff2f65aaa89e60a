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
        return _score(st, g, machine)
    kind, version = st.w_stage_kind[g], st.state_mach_version[machine]
    if st.state_score_version[kind, machine] != version:
        st.state_score[kind, machine] = _score(st, g, machine)
        st.state_score_version[kind, machine] = version
    return st.state_score[kind, machine]


@part
def acquire_devices(st, g, machine, slot):
    """Acquire the devices on `machine` for the task of stage `g` in `slot`."""
    bits = 0
    if device_demand(st, g) > 0:
        bits = occupy(st, g, machine, _device_for(st, g, machine) if takes_part(st, g) else -1)
    st.state_slot_devices[slot] = bits
    if st.state_i[RECORD]:
        st.out_task_devices[st.state_slot_task[slot]] = bits


@part
def release_devices(st, slot):
    """Release the devices of the task in `slot`, which leaves its machine."""
    release(st, st.state_slot_stage[slot], st.state_slot_machine[slot], st.state_slot_devices[slot])


@part
def _device_for(st, g, machine):
    """Return the device of `machine` of which a task of stage `g` takes a part."""
    rule = st.state_i[DEVICE_CHOICE]
    if rule == LEAST_FRAGMENTATION:
        return min_increase(st, g, machine)[1]
    return first_with_room(st, g, machine, rule == TIGHTEST)


@part
def _score(st, g, machine):
    rule = st.state_i[MACHINE_CHOICE]
    if rule == FRAGMENTATION:
        if st.state_i[DEVICE_CHOICE] == LEAST_FRAGMENTATION or not takes_part(st, g):
            return min_increase(st, g, machine)[0]
        return increase(st, g, machine, _device_for(st, g, machine))
    if rule == PACKED:
        return _packed(st, g, machine)
    if rule == FASTEST:
        return -speed_on(st, g, machine)
    total = 0.0
    for r in range(st.c_alignment_scale.shape[1]):
        free, demand = st.state_mach_free[machine, r], st.w_stage_demand[g, r]
        if rule == BEST_FIT:
            total += (free - demand) * st.c_mach_scale[r]
        else:
            total += (free * st.c_mach_scale[r]) * (demand * st.c_mach_scale[r])
    return total


@inlined
def _packed(st, g, machine):
    """Score by idle devices: 0 to 1 for a part of a device in use, from 2 on for idle ones.

    From 200 on for an idle machine. The less is free, and the fewer are idle, the better.
    """
    demand, per_device = device_demand(st, g), st.state_i[DEVICE_QUANTA]
    if demand == 0:
        return 0.0
    if demand < per_device:
        free = st.state_device_free[_device_for(st, g, machine)]
        if free < per_device:
            return free / per_device
    first, end = st.c_mach_device0[machine], st.c_mach_device0[machine + 1]
    idle = 0
    for d in range(first, end):
        if st.state_device_free[d] == per_device:
            idle += 1
    if idle == end - first:
        return 200.0 + idle
    return 2.0 + max(demand // per_device, 1)
