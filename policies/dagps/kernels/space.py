"""Resource-time space of a few machines: free amounts of each resource over time.

The time line of a machine is cut into regions of constant free amounts. Regions lie in time order
in a linked list of chunks of at most CHUNK regions. Every chunk stores the maximum and minimum free
amount of each resource over its regions (Grandl et al., *Do the hard stuff first*, §4.4, index
theirs by time and resource as well). The first region of a machine begins at -inf, the last ends at
inf. A search reads one time a chunk, skips chunks without room for the demand and passes through
those with room everywhere; a new region moves at most CHUNK others.

Time runs forward only: backward placement uses the mirrored space (`copy`).

Arrays are copied by loops: an assignment of slices takes half a second to compile.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.base.arrays import I8
from sim.base.jit import JIT, jit, part
from sim.base.record import record

CHUNK = 32
"""Maximum number of regions in a chunk."""

BEGIN, END = 0, 1
"""Registers of the span: earliest begin and latest end of the placed tasks; 0 when empty."""

FIELDS: tuple[tuple[str, str, int], ...] = (
    ("state_used", "i8", 1),  # [1] chunks in use
    ("state_head", "i8", 1),  # [M] first chunk of each machine
    ("state_next", "i8", 1),  # [C] the chunk after each, -1 for none
    ("state_n", "i8", 1),  # [C] regions in it
    ("state_max_free", "i8", 2),  # [C, R] maximum free amount over its regions
    ("state_min_free", "i8", 2),  # [C, R]
    ("state_time", "f8", 2),  # [C, CHUNK] begin of a region, s
    ("state_free", "i8", 3),  # [C, CHUNK, R] free amount in it, quanta
    ("state_span", "f8", 1),  # [2] BEGIN, END
    ("state_begin", "f8", 1),  # [T] of each task, s
    ("state_end", "f8", 1),  # [T]
    ("state_machine", "i4", 1),  # [T] -1 for a task that is not placed
    ("state_first", "f8", 1),  # [G] earliest begin of a stage's placed tasks, inf for none
    ("state_last", "f8", 1),  # [G] latest end, -inf for none
)

Space = namedtuple("Space", [name for name, _, _ in FIELDS])  # type: ignore[misc]
_pack = record("ResourceTimeSpace", FIELDS, ()) if JIT else None


def make(capacity: I8, n_tasks: int, n_stages: int) -> Any:
    """Make the empty space of some machines."""
    n_machines, n_resources = capacity.shape
    n_chunks = n_machines + n_tasks // (CHUNK // 4) + 1
    arrays = {
        "state_used": np.array([n_machines]),
        "state_head": np.arange(n_machines),
        "state_next": np.full(n_chunks, -1),
        "state_n": np.ones(n_chunks, np.int64),
        "state_max_free": np.zeros((n_chunks, n_resources), np.int64),
        "state_min_free": np.zeros((n_chunks, n_resources), np.int64),
        "state_time": np.full((n_chunks, CHUNK), -np.inf),
        "state_free": np.zeros((n_chunks, CHUNK, n_resources), np.int64),
        "state_span": np.zeros(2),
        "state_begin": np.zeros(n_tasks),
        "state_end": np.zeros(n_tasks),
        "state_machine": np.full(n_tasks, -1, np.int32),
        "state_first": np.full(n_stages, np.inf),
        "state_last": np.full(n_stages, -np.inf),
    }
    arrays["state_max_free"][:n_machines] = capacity
    arrays["state_min_free"][:n_machines] = capacity
    arrays["state_free"][:n_machines, 0] = capacity
    return _pack(arrays.values()) if _pack else Space(**arrays)


def columns(space: Any) -> dict[str, NDArray[Any]]:
    """Return the current arrays of a space by name."""
    arrays = space.arrays if _pack else space
    return {name: array for (name, _, _), array in zip(FIELDS, arrays, strict=True)}


@jit
def copy(source, out, mirrored):
    """Copy `source` to `out`, as it is or mirrored in time.

    Mirrored, time t becomes -t: a task from b to e runs from -e to -b. Negation is exact, so a
    search in the mirror gives the same bits as a search backward.
    """
    used = source.state_used[0]
    out.state_used[0] = used
    for c in range(used):
        n = source.state_n[c]
        out.state_n[c] = n
        for r in range(source.state_free.shape[2]):
            out.state_max_free[c, r] = source.state_max_free[c, r]
            out.state_min_free[c, r] = source.state_min_free[c, r]
        if not mirrored:
            out.state_next[c] = source.state_next[c]
        for i in range(n):
            k = n - 1 - i if mirrored else i
            for r in range(source.state_free.shape[2]):
                out.state_free[c, k, r] = source.state_free[c, i, r]
            if not mirrored:
                out.state_time[c, i] = source.state_time[c, i]
            elif i > 0:
                out.state_time[c, k + 1] = 0.0 - source.state_time[c, i]
    for m in range(len(source.state_head)):
        c = source.state_head[m]
        if not mirrored:
            out.state_head[m] = c
            continue
        before = -1
        while c >= 0:
            after = source.state_next[c]
            begin = 0.0 - source.state_time[after, 0] if after >= 0 else -np.inf
            out.state_time[c, 0] = begin
            out.state_next[c] = before
            before, c = c, after
        out.state_head[m] = before
    _copy_placed(source, out, mirrored)


@part
def _copy_placed(source, out, mirrored):
    span, out_span = source.state_span, out.state_span
    _copy_times(span[:1], span[1:], out_span[:1], out_span[1:], mirrored)
    _copy_times(source.state_begin, source.state_end, out.state_begin, out.state_end, mirrored)
    _copy_times(source.state_first, source.state_last, out.state_first, out.state_last, mirrored)
    for t in range(len(source.state_machine)):
        out.state_machine[t] = source.state_machine[t]


@part
def _copy_times(begin, end, out_begin, out_end, mirrored):
    for i in range(len(begin)):
        if mirrored:
            out_begin[i] = 0.0 - end[i]
            out_end[i] = 0.0 - begin[i]
        else:
            out_begin[i] = begin[i]
            out_end[i] = end[i]


@part
def earliest(space, machine, release, duration, demand, row):
    """Find the earliest time from `release` on with room for ``demand[row]`` for a `duration`.

    A duration of 0 needs the room at the instant at which it begins. Inf stands for never.
    """
    c, i = _region_at(space, machine, release)
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
            if not _holds(space.state_max_free, c, demand, row):
                open_since = False
                i = space.state_n[c]
            elif open_since and _holds(space.state_min_free, c, demand, row):
                i = space.state_n[c]
        if open_since and space.state_time[c, i] >= end:
            return begin, room


@part
def room_for(space, machine, begin, end, demand, row, n):
    """Count how many times, at most `n`, `machine` has ``demand[row]`` from `begin` to `end`."""
    c, i = _region_at(space, machine, begin)
    while c >= 0:
        for r in range(demand.shape[1]):
            if demand[row, r] > 0:
                n = min(n, space.state_free[c, i, r] // demand[row, r])
        i += 1
        if i == space.state_n[c]:
            c, i = space.state_next[c], 0
        if c < 0 or space.state_time[c, i] >= end:
            break
    return n


@part
def hold(space, machine, begin, end, demand, row, n):
    """Take `n` times ``demand[row]`` of `machine` from `begin` to `end`; there must be room."""
    if end <= begin:
        return
    c, i = _region_at(space, machine, begin)
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
            space.state_free[c, i, r] -= n * demand[row, r]
        i += 1
        if i == space.state_n[c]:
            _summarise(space, c)
            c, i = space.state_next[c], 0
    if c >= 0 and i > 0:
        _summarise(space, c)


@part
def _region_at(space, machine, time):
    """Return chunk and index of the region of `machine` that holds `time`."""
    c = space.state_head[machine]
    after = space.state_next[c]
    while after >= 0 and space.state_time[after, 0] <= time:
        c, after = after, space.state_next[after]
    i = space.state_n[c] - 1
    while space.state_time[c, i] > time:
        i -= 1
    return c, i


@part
def _holds(free, i, demand, row):
    enough = True
    for r in range(demand.shape[1]):
        enough &= demand[row, r] <= free[i, r]
    return enough


@part
def _cut(space, c, i, time):
    """Cut region `i` of chunk `c` in two at `time`; return chunk and index of the later half."""
    n = space.state_n[c]
    if n == CHUNK:
        new = space.state_used[0]
        space.state_used[0] = new + 1
        space.state_next[new] = space.state_next[c]
        space.state_next[c] = new
        half = CHUNK // 2
        space.state_n[c] = half
        space.state_n[new] = CHUNK - half
        for k in range(CHUNK - half):
            space.state_time[new, k] = space.state_time[c, half + k]
            for r in range(space.state_free.shape[2]):
                space.state_free[new, k, r] = space.state_free[c, half + k, r]
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
        max_free = min_free = space.state_free[c, 0, r]
        for i in range(1, space.state_n[c]):
            max_free = max(max_free, space.state_free[c, i, r])
            min_free = min(min_free, space.state_free[c, i, r])
        space.state_max_free[c, r] = max_free
        space.state_min_free[c, r] = min_free
