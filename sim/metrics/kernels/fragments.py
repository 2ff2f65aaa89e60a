"""Replay of a run's device allocations: free devices, and those that the next task can't use."""

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
    """Replay starts (1), samples (0) and ends (-1) of tasks; record sums over machines.

    Parameters
    ----------
    events : (E, 4) int64
        Machine, stage, devices as bits, and sign, in order.
    demand : (G, R) int64
        Demand of a task of each stage, quanta.
    mix : (K, R+1) int64
        Demand of a task of each type, and the machine classes that it can run on.
    weight : (K,) float64
        Probability that the next task is of this type.
    machines : (M+1, 2) int64
        The bit of the class and the first device of each machine, and of a sentinel.
    device : int
        The resource that comes in devices.
    state_free : (M, R) int64
        Free resources, quanta; updated.
    state_devices : (D,) int64
        Free quanta of each device; initially all.
    out_sums : (L, 2) float64
        At each sample the free quanta of all devices, and the unusable part of them.
    """
    per = state_devices[0]
    free, unusable = 0, 0.0
    for d in range(len(state_devices)):
        free += state_devices[d]
    machine_unusable = np.zeros(len(state_free))
    for m in range(len(state_free)):
        machine_unusable[m] = _unusable(
            m, mix, weight, machines, device, per, state_free, state_devices
        )
        unusable += machine_unusable[m]
    sample = 0
    for i in range(len(events)):
        sign = events[i, SIGN]
        if sign == 0:
            out_sums[sample, 0], out_sums[sample, 1] = free, unusable
            sample += 1
            continue
        m, g, bits = events[i, MACHINE], events[i, STAGE], events[i, BITS]
        for r in range(demand.shape[1]):
            state_free[m, r] -= sign * demand[g, r]
        amount, d = min(demand[g, device], per), machines[m, 1]
        while bits > 0:
            if bits & 1:
                state_devices[d] -= sign * amount
                free -= sign * amount
            bits >>= 1
            d += 1
        unusable -= machine_unusable[m]
        machine_unusable[m] = _unusable(
            m, mix, weight, machines, device, per, state_free, state_devices
        )
        unusable += machine_unusable[m]


@jit
def _unusable(
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
        demand, usable = mix[k, device], 0
        fits = demand > 0 and (mix[k, n_resources] & machines[m, 0]) != 0
        for r in range(n_resources):
            fits = fits and mix[k, r] <= max(state_free[m, r], 0)
        if fits:
            n, amount = max(demand // per, 1), min(demand, per)
            for d in range(first, end):
                if state_devices[d] >= amount:
                    n -= 1
                    usable += state_devices[d]
            usable = usable if n <= 0 else 0
        total += weight[k] * (free - usable)
    return total
