"""Device fragmentation: free room of a machine's devices that the next task of a mix can't use.

`sim.engine.plan.choice` defines it (Weng et al., ATC 2023, §4).
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.choosing.devices import device_demand, occupy, release, takes_part
from sim.engine.kernels.state import DEVICE, DEVICE_QUANTA


@part
def fragmentation(st, machine):
    """Return the expected unusable part of the free room of the devices of `machine`, quanta."""
    free = 0
    for d in range(st.c_mach_device0[machine], st.c_mach_device0[machine + 1]):
        free += st.state_device_free[d]
    total = 0.0
    if free > 0:
        for k in range(len(st.p_mix_weight)):
            total += st.p_mix_weight[k] * _unusable(st, k, machine, free)
    return total


@part
def _unusable(st, k, machine, free):
    """Return the part of `free` that a task of type `k` of the mix can't use."""
    if not st.p_mix_allowed[k] & st.c_mach_class[machine]:
        return free
    demand = st.p_mix_demand[k, st.state_i[DEVICE]]
    if demand == 0:
        return free
    for r in range(st.p_mix_demand.shape[1]):
        if st.p_mix_demand[k, r] > max(st.state_mach_free[machine, r], 0):
            return free
    per_device = st.state_i[DEVICE_QUANTA]
    n, min_free, usable = max(demand // per_device, 1), min(demand, per_device), 0
    for d in range(st.c_mach_device0[machine], st.c_mach_device0[machine + 1]):
        if st.state_device_free[d] >= min_free:
            usable += st.state_device_free[d]
            n -= 1
    return free - usable if n <= 0 else free


@part
def min_increase(st, demand, row, machine):
    """Return the least increase of fragmentation by the demand in `row`, and its device."""
    before = fragmentation(st, machine)
    if not takes_part(st, demand, row):
        return _after_start(st, demand, row, machine, -1) - before, -1
    amount, first = device_demand(st, demand, row), st.c_mach_device0[machine]
    best, best_increase = -1, 0.0
    for d in range(first, st.c_mach_device0[machine + 1]):
        if st.state_device_free[d] < amount or _is_duplicate(st, first, d):
            continue
        device_increase = _after_start(st, demand, row, machine, d) - before
        if best < 0 or device_increase < best_increase:
            best, best_increase = d, device_increase
    return best_increase, best


@part
def increase(st, demand, row, machine, d):
    """Return the increase of fragmentation by the demand in `row` with a part of device `d`."""
    before = fragmentation(st, machine)
    return _after_start(st, demand, row, machine, d) - before


@inlined
def _is_duplicate(st, first, d):
    """Tell whether a device from `first` on, before `d`, has the same room."""
    for other in range(first, d):  # noqa: SIM110  # kernels have no generators
        if st.state_device_free[other] == st.state_device_free[d]:
            return True
    return False


@part
def _after_start(st, demand, row, machine, d):
    """Return the fragmentation with the demand in `row`, which takes a part of device `d`."""
    for r in range(demand.shape[1]):
        st.state_mach_free[machine, r] -= demand[row, r]
    bits = occupy(st, demand, row, machine, d)
    after = fragmentation(st, machine)
    release(st, demand, row, machine, bits)
    for r in range(demand.shape[1]):
        st.state_mach_free[machine, r] += demand[row, r]
    return after
