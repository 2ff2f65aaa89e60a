"""The free regions of one machine in a resource-time space: where a task fits, and what it takes.

A search finds its place by looking at one time a chunk, passes over chunks without a place for the
demand and runs through those with room everywhere; a new region moves at most CHUNK others.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from policies.dagps.kernels.space import CHUNK
from sim.base.jit import part


@part
def earliest(space, machine, release, duration, demand, row):
    """Find when, from `release` on, `machine` has room for ``demand[row]`` for a `duration`.

    A duration of 0 needs the room at the instant at which it begins. Never is inf.
    """
    c = space.state_head[machine]
    after = space.state_next[c]
    while after >= 0 and space.state_time[after, 0] <= release:
        c, after = after, space.state_next[after]
    i = space.state_n[c] - 1
    while space.state_time[c, i] > release:
        i -= 1
    begin, end, open_since, room = release, release + duration, False, np.inf
    while True:
        if _holds(space.state_free[c], i, demand, row):
            if not open_since:
                begin = max(release, space.state_time[c, i])
                end = begin + duration
                open_since = True
                room = min(room, begin)
        else:
            open_since = False
        i += 1
        while i == space.state_n[c]:
            c, i = space.state_next[c], 0
            if c < 0:
                return begin if open_since else np.inf, room
            if open_since and space.state_time[c, 0] >= end:
                return begin, room
            if not _holds(space.state_most, c, demand, row):
                open_since = False
                i = space.state_n[c]
            elif open_since and _holds(space.state_least, c, demand, row):
                i = space.state_n[c]
        if open_since and space.state_time[c, i] >= end:
            return begin, room


@part
def hold(space, machine, begin, end, demand, row):
    """Take ``demand[row]`` of `machine` from `begin` to `end`; there must be room."""
    if end <= begin:
        return
    c = space.state_head[machine]
    after = space.state_next[c]
    while after >= 0 and space.state_time[after, 0] <= begin:
        c, after = after, space.state_next[after]
    i = space.state_n[c] - 1
    while space.state_time[c, i] > begin:
        i -= 1
    if space.state_time[c, i] < begin:
        c, i = _cut(space, c, i, begin)
    while c >= 0 and space.state_time[c, i] < end:
        after, k = c, i + 1
        if k == space.state_n[c]:
            after, k = space.state_next[c], 0
        if after < 0 or space.state_time[after, k] > end:
            _cut(space, c, i, end)
            if i >= space.state_n[c]:
                c, i = space.state_next[c], i - space.state_n[c]
        for r in range(demand.shape[1]):
            space.state_free[c, i, r] -= demand[row, r]
        i += 1
        if i == space.state_n[c]:
            _summarise(space, c)
            c, i = space.state_next[c], 0
    if c >= 0 and i > 0:
        _summarise(space, c)


@part
def _holds(free, i, demand, row):
    enough = True
    for r in range(demand.shape[1]):
        enough &= demand[row, r] <= free[i, r]
    return enough


@part
def _cut(space, c, i, time):
    """Cut region `i` of chunk `c` in two at `time`; return where the later one is."""
    n = space.state_n[c]
    if n == CHUNK:
        new = space.state_used[0]
        space.state_used[0] = new + 1
        space.state_next[new] = space.state_next[c]
        space.state_next[c] = new
        half = CHUNK // 2
        space.state_n[c] = half
        space.state_n[new] = CHUNK - half
        space.state_time[new, : CHUNK - half] = space.state_time[c, half:]
        space.state_free[new, : CHUNK - half] = space.state_free[c, half:]
        _summarise(space, c)
        _summarise(space, new)
        if i >= half:
            c, i = new, i - half
        n = space.state_n[c]
    for k in range(n, i + 1, -1):
        space.state_time[c, k] = space.state_time[c, k - 1]
        for r in range(space.state_free.shape[2]):
            space.state_free[c, k, r] = space.state_free[c, k - 1, r]
    space.state_time[c, i + 1] = time
    for r in range(space.state_free.shape[2]):
        space.state_free[c, i + 1, r] = space.state_free[c, i, r]
    space.state_n[c] = n + 1
    return c, i + 1


@part
def _summarise(space, c):
    for r in range(space.state_free.shape[2]):
        most = least = space.state_free[c, 0, r]
        for i in range(1, space.state_n[c]):
            most = max(most, space.state_free[c, i, r])
            least = min(least, space.state_free[c, i, r])
        space.state_most[c, r] = most
        space.state_least[c, r] = least
