"""Lanes of a Gantt chart: bars that overlap go into different ones."""

from __future__ import annotations

import heapq

import numpy as np

from sim.base.arrays import F8, I4


def lanes(machine: I4, start: F8, finish: F8) -> tuple[I4, I4]:
    """Assign each bar the lowest lane of its machine that is free, in order of machine and start.

    Returns
    -------
    lane : (N,) int32
    lane_machine : (L,) int32
        Machine of each lane; the lanes of a machine follow each other.
    """
    lane = np.empty(len(start), np.int32)
    lane_machine: list[int] = []
    cuts = np.flatnonzero(np.diff(machine, prepend=-1, append=-1))
    for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        base, n = len(lane_machine), 0
        free: list[int] = []
        busy: list[tuple[float, int]] = []
        begins, ends = start[first:last].tolist(), finish[first:last].tolist()
        for row, (begin, end) in enumerate(zip(begins, ends, strict=True), first):
            while busy and busy[0][0] <= begin:
                heapq.heappush(free, heapq.heappop(busy)[1])
            if free:
                number = heapq.heappop(free)
            else:
                number, n = n, n + 1
            heapq.heappush(busy, (end, number))
            lane[row] = base + number
        lane_machine += [int(machine[first])] * n
    return lane, np.array(lane_machine, np.int32)
