"""What of a machine's devices is of no use to the next task, of a mix of types.

`sim.engine.plan.choice` says what it is (Weng et al., ATC 2023, §4).
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.devices import occupy, release, wants, wants_part
from sim.engine.kernels.state import DEVICE, PER_DEVICE


@part
def fragmentation(st, machine):
    """Return how much of the free room of the devices of `machine` is of no use, quanta."""
    free = 0
    for d in range(st.c_mach_device0[machine], st.c_mach_device0[machine + 1]):
        free += st.state_device_free[d]
    total = 0.0
    if free > 0:
        for k in range(len(st.p_mix_weight)):
            total += st.p_mix_weight[k] * _of_no_use(st, k, machine, free)
    return total


@part
def _of_no_use(st, k, machine, free):
    """Return what of `free` is of no use to type `k` of the mix."""
    if not st.p_mix_allowed[k] & st.c_mach_class[machine]:
        return free
    wanted = st.p_mix_demand[k, st.state_i[DEVICE]]
    if wanted == 0:
        return free
    for r in range(st.p_mix_demand.shape[1]):
        if st.p_mix_demand[k, r] > max(st.state_mach_free[machine, r], 0):
            return free
    per = st.state_i[PER_DEVICE]
    n, least, of_use = max(wanted // per, 1), min(wanted, per), 0
    for d in range(st.c_mach_device0[machine], st.c_mach_device0[machine + 1]):
        if st.state_device_free[d] >= least:
            of_use += st.state_device_free[d]
            n -= 1
    return free - of_use if n <= 0 else free


@part
def least_increase(st, g, machine):
    """Return by how much a task of stage `g` makes it more, and of which device it takes a part."""
    before = fragmentation(st, machine)
    if not wants_part(st, g):
        return _with(st, g, machine, -1) - before, -1
    wanted, first = wants(st, g), st.c_mach_device0[machine]
    best, least = -1, 0.0
    for d in range(first, st.c_mach_device0[machine + 1]):
        if st.state_device_free[d] < wanted or _is_again(st, first, d):
            continue
        more = _with(st, g, machine, d) - before
        if best < 0 or more < least:
            best, least = d, more
    return least, best


@part
def increase(st, g, machine, d):
    """Return by how much a task of stage `g` makes it more, where it takes a part of device `d`."""
    before = fragmentation(st, machine)
    return _with(st, g, machine, d) - before


@inlined
def _is_again(st, first, d):
    """Tell whether a device from `first` on, before `d`, has the same room."""
    for other in range(first, d):  # noqa: SIM110  # kernels have no generators
        if st.state_device_free[other] == st.state_device_free[d]:
            return True
    return False


@part
def _with(st, g, machine, d):
    """Return what it would be with a task of stage `g`, which takes a part of device `d`."""
    for r in range(st.w_stage_demand.shape[1]):
        st.state_mach_free[machine, r] -= st.w_stage_demand[g, r]
    bits = occupy(st, g, machine, d)
    after = fragmentation(st, machine)
    release(st, g, machine, bits)
    for r in range(st.w_stage_demand.shape[1]):
        st.state_mach_free[machine, r] += st.w_stage_demand[g, r]
    return after
