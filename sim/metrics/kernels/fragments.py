"""What of the free devices was of no use to the next task, over time."""

from __future__ import annotations

import numpy as np

from sim.base.arrays import F8, I8
from sim.base.jit import jit

MACHINE, STAGE, BITS, SIGN = range(4)


@jit
def replay(
    events: I8,
    demand: I8,
    mix: I8,
    weight: F8,
    machines: I8,
    device: int,
    state_free: I8,
    state_devices: I8,
    out_sums: F8,
) -> None:
    """Go through what started (1), was looked at (0) and ended (-1), and note sums over machines.

    Parameters
    ----------
    events : (E, 4) int64
        Machine, stage, devices as bits, and sign, in order.
    demand : (G, R) int64
        What a task of each stage holds, quanta.
    mix : (K, R+1) int64
        What a task of each type holds, and the classes that it may run on.
    weight : (K,) float64
        How likely the next task is of it.
    machines : (M+1, 2) int64
        The bit of the class, and the first device, of each machine, and of what comes after them.
    device : int
        The resource that comes in devices.
    state_free : (M, R) int64
        What is free, quanta; kept up to date.
    state_devices : (D,) int64
        What is free of each device; before anything starts all of them are.
    out_sums : (L, 2) float64
        At each look what was free of all devices, and what of that was of no use, quanta.
    """
    per = state_devices[0]
    free, of_no_use = 0, 0.0
    for d in range(len(state_devices)):
        free += state_devices[d]
    each = np.zeros(len(state_free))
    for m in range(len(state_free)):
        each[m] = _of_no_use(m, mix, weight, machines, device, per, state_free, state_devices)
        of_no_use += each[m]
    look = 0
    for i in range(len(events)):
        sign = events[i, SIGN]
        if sign == 0:
            out_sums[look, 0], out_sums[look, 1] = free, of_no_use
            look += 1
            continue
        m, g, bits = events[i, MACHINE], events[i, STAGE], events[i, BITS]
        for r in range(demand.shape[1]):
            state_free[m, r] -= sign * demand[g, r]
        least, d = min(demand[g, device], per), machines[m, 1]
        while bits > 0:
            if bits & 1:
                state_devices[d] -= sign * least
                free -= sign * least
            bits >>= 1
            d += 1
        of_no_use -= each[m]
        each[m] = _of_no_use(m, mix, weight, machines, device, per, state_free, state_devices)
        of_no_use += each[m]


@jit
def _of_no_use(
    m: int,
    mix: I8,
    weight: F8,
    machines: I8,
    device: int,
    per: int,
    state_free: I8,
    state_devices: I8,
) -> float:
    first, end = machines[m, 1], machines[m + 1, 1]
    free = 0
    for d in range(first, end):
        free += state_devices[d]
    total = 0.0
    if free == 0:
        return total
    n_resources = state_free.shape[1]
    for k in range(len(weight)):
        wanted, of_use = mix[k, device], 0
        runs = wanted > 0 and (mix[k, n_resources] & machines[m, 0]) != 0
        for r in range(n_resources):
            runs = runs and mix[k, r] <= max(state_free[m, r], 0)
        if runs:
            n, least = max(wanted // per, 1), min(wanted, per)
            for d in range(first, end):
                if state_devices[d] >= least:
                    n -= 1
                    of_use += state_devices[d]
            of_use = of_use if n <= 0 else 0
        total += weight[k] * (free - of_use)
    return total
