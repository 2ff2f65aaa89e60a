"""Holding the list of waiting stages against one machine, in vector loops over blocks of it."""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.state import BLOCK, N_RIGID, N_SCAN


@inlined
def find_fitting(st, machine):
    """List the places whose stages fit `machine`, with their scores; return how many."""
    n, found = st.state_i[N_SCAN], 0
    places, scores, room = st.state_scan_found, st.state_scan_score, st.state_scan_room
    n_resources = st.c_dot.shape[1]
    first = _scarcest(st, machine, n_resources)
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        if _hold(st, machine, first, n_resources, begin, end):
            for i in range(end - begin):
                places[found] = begin + i
                found += room[i] >= 0.0
    for i in range(found):
        scores[i] = score_at(st, machine, places[i])
    return found


@inlined
def find_rigid(st, machine):
    """List the places whose stages fit what of `machine` can't be overbooked; return how many."""
    n, found, n_rigid = st.state_i[N_SCAN], 0, st.state_i[N_RIGID]
    places, room = st.state_scan_found, st.state_scan_room
    if n_rigid == 0:
        for at in range(n):
            if st.state_scan[at] >= 0:
                places[found] = at
                found += 1
        return found
    first = _scarcest(st, machine, n_rigid)
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        if _hold(st, machine, first, n_rigid, begin, end):
            for i in range(end - begin):
                places[found] = begin + i
                found += room[i] >= 0.0
    return found


@inlined
def still_fitting(st, machine, n):
    """Of the first `n` listed, which fitted `machine`, keep those that still do, scored anew."""
    places, kept = st.state_scan_found, 0
    for i in range(n):
        at = places[i]
        if fits_at(st, machine, at):
            places[kept] = at
            st.state_scan_score[kept] = score_at(st, machine, at)
            kept += 1
    return kept


@part
def first_fitting(st, machine, low, high):
    """Return the first place of [low, high) whose stage fits `machine`, else `high`."""
    if st.state_mach_lost[machine]:
        return high
    room = st.state_scan_room
    n_resources = st.c_dot.shape[1]
    first = _scarcest(st, machine, n_resources)
    for begin in range(low, high, BLOCK):
        end = min(begin + BLOCK, high)
        if _hold(st, machine, first, n_resources, begin, end):
            for i in range(end - begin):
                if room[i] >= 0.0:
                    return begin + i
    return high


@part
def fits_at(st, machine, at):
    """Tell whether the stage at `at` fits `machine`; a hole does not."""
    for r in range(st.c_dot.shape[1]):
        demand = st.state_scan_demand[r, at]
        if demand > st.state_mach_free[machine, r] and demand > 0:
            return False
    return True


@part
def score_at(st, machine, at):
    """Return free · demand of the stage at `at` on `machine`, both over its capacity."""
    total = 0.0
    for r in range(st.c_dot.shape[1]):
        weight = st.state_mach_free[machine, r] * st.c_dot[machine, r]
        total += weight * st.state_scan_demand[r, at]
    return total


@part
def _hold(st, machine, first, n_resources, begin, end):
    """Set ``state_scan_room`` to the least that each of [begin, end) would leave of any resource.

    Of the first `n_resources`, that is, those of which at least one must be.

    Resource `first` comes first: where it lets none through, the others need no look.
    """
    room = st.state_scan_room
    free = float(max(st.state_mach_free[machine, first], 0))
    demand = st.state_scan_demand[first, begin:end]
    n = 0
    for i in range(len(demand)):
        left = free - demand[i]
        room[i] = left
        n += left >= 0.0
    for r in range(n_resources):
        if r != first and n > 0:
            n = _hold_one(st, machine, r, begin, end)
    return n


@inlined
def _hold_one(st, machine, r, begin, end):
    room = st.state_scan_room
    free = float(max(st.state_mach_free[machine, r], 0))
    demand = st.state_scan_demand[r, begin:end]
    n = 0
    for i in range(len(demand)):
        left = free - demand[i]
        least = room[i]
        least = left if left < least else least
        room[i] = least + 0.0  # not what stood there, or it is stored under a mask, which is slow
        n += least >= 0.0
    return n


@part
def _scarcest(st, machine, n_resources):
    """Return the resource, of the first `n_resources`, of which the least part is free."""
    best, least = 0, 2.0
    for r in range(n_resources):
        free = float(st.state_mach_free[machine, r])
        part_free = free * free * st.c_dot[machine, r]
        if part_free < least:
            best, least = r, part_free
    return best
