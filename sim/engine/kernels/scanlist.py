"""The waiting stages in order, as one sorted list, for placements that look past the first.

Sorted by kernel queue, then rank, stage key and row; with a copy of each stage's demands beside
it, resource by resource, so that holding many of them against a machine is a few vector loops. A
stage that leaves leaves a hole, which keeps its place in the order and fits nothing; the next one
to enter nearby takes it.

A stage is *new* (``state_scan_new``) until it has been held against every machine. 0: it has been;
1: it has not; within a dispatch also 2: refused by a cap, and 3: refused by every machine. Those
that are 2 or 3 are brought to the front of ``state_scan_fresh``, N_REFUSED of them, as they meet
one: room and caps only get tighter within a dispatch.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.devices import may_run
from sim.engine.kernels.features import CHOOSES
from sim.engine.kernels.state import (
    BLOCK,
    N_HOLES,
    N_NEW,
    N_REFUSED,
    N_RIGID,
    N_SCAN,
    PICKY,
    SCAN_SHIFTS,
    UNIT,
)

BY_CAP, BY_ALL = 2, 3

FITS_NOTHING = 2.0**63
"""What a hole demands: more quanta than an int64 counts."""


@inlined
def scan_insert(st, queue, g):
    """Add stage `g`, which waits in `queue`, at its place; it is new to every machine."""
    n = st.state_i[N_SCAN]
    if n == len(st.state_scan) or 4 * st.state_i[N_HOLES] > n + 128:
        _close_holes(st)
    rank, key = st.state_job_rank[st.w_stage_job[g]], st.p_stage_key[g]
    low, high = 0, st.state_i[N_SCAN]
    while low < high:
        mid = (low + high) >> 1
        if _less(st, mid, queue, rank, key, g):
            low = mid + 1
        else:
            high = mid
    at = _open_place(st, low)
    st.state_scan[at] = g
    st.state_scan_at[g] = at
    st.state_scan_queue[at] = queue
    st.state_scan_rank[at] = rank
    st.state_scan_key[at] = key
    row = 0 if st.state_i[UNIT] else g
    for r in range(st.state_scan_demand.shape[0]):
        st.state_scan_demand[r, at] = st.w_stage_demand[row, r]
    st.state_i[SCAN_SHIFTS] += 1
    st.state_queue_waiting[queue] += 1
    mark_new(st, g)


@inlined
def scan_remove(st, g):
    """Take stage `g` out of the list."""
    at = st.state_scan_at[g]
    st.state_queue_waiting[st.state_scan_queue[at]] -= 1
    st.state_scan_at[g] = -1
    st.state_scan[at] = -1 - g
    for r in range(st.state_scan_demand.shape[0]):
        st.state_scan_demand[r, at] = FITS_NOTHING
    n, holes = st.state_i[N_SCAN], st.state_i[N_HOLES] + 1
    while n > 0 and st.state_scan[n - 1] < 0:
        n -= 1
        holes -= 1
    st.state_i[N_SCAN] = n
    st.state_i[N_HOLES] = holes


@part
def mark_new(st, g):
    """See to it that stage `g` is held against every machine."""
    if not st.state_scan_new[g]:
        st.state_scan_new[g] = 1
        st.state_scan_fresh[st.state_i[N_NEW]] = g
        st.state_i[N_NEW] += 1


@part
def refuse(st, g, why):
    """Note that stage `g` can't start any more in this dispatch: BY_CAP, or BY_ALL machines."""
    mark_new(st, g)
    st.state_scan_new[g] = why


@part
def put_aside(st, i):
    """Bring entry `i` of the fresh list among the refused ones at its front."""
    fresh, front = st.state_scan_fresh, st.state_i[N_REFUSED]
    g = fresh[i]
    fresh[i] = fresh[front]
    fresh[front] = g
    st.state_i[N_REFUSED] = front + 1


@inlined
def forget_new(st, i):
    """Take entry `i`, behind the refused ones, off the fresh list: its stage waits no more."""
    last = st.state_i[N_NEW] - 1
    st.state_scan_new[st.state_scan_fresh[i]] = 0
    st.state_scan_fresh[i] = st.state_scan_fresh[last]
    st.state_i[N_NEW] = last


@inlined
def scan_settled(st):
    """After a dispatch: nothing is new any more, but what a cap refused stays so."""
    n_new = 0
    for i in range(st.state_i[N_NEW]):
        g = st.state_scan_fresh[i]
        if st.state_scan_new[g] == BY_CAP and st.state_scan_at[g] >= 0:
            st.state_scan_new[g] = 1
            st.state_scan_fresh[n_new] = g
            n_new += 1
        else:
            st.state_scan_new[g] = 0
    st.state_i[N_NEW] = n_new
    st.state_i[N_REFUSED] = 0


@inlined
def queue_end(st, low, high):
    """Return the end of the stretch of the queue at place `low` within [low, high)."""
    queue = st.state_scan_queue[low]
    if st.state_scan_queue[high - 1] == queue:
        return high
    while low < high:
        mid = (low + high) >> 1
        if st.state_scan_queue[mid] == queue:
            low = mid + 1
        else:
            high = mid
    return low


@inlined
def _open_place(st, low):
    """Make room before what is at place `low`, up to the nearest hole; return the open place."""
    n = st.state_i[N_SCAN]
    left, right = low - 1, low
    while right < n and st.state_scan[right] >= 0:
        if left >= 0:
            if st.state_scan[left] < 0:
                for i in range(left, low - 1):
                    _move(st, i + 1, i)
                st.state_i[N_HOLES] -= 1
                return low - 1
            left -= 1
        right += 1
    if right < n:
        st.state_i[N_HOLES] -= 1
    else:
        st.state_i[N_SCAN] = n + 1
    for i in range(right, low, -1):
        _move(st, i - 1, i)
    return low


@inlined
def _close_holes(st):
    target = 0
    for i in range(st.state_i[N_SCAN]):
        if st.state_scan[i] >= 0:
            if target < i:
                _move(st, i, target)
            target += 1
    st.state_i[N_SCAN] = target
    st.state_i[N_HOLES] = 0


@inlined
def _less(st, i, queue, rank, key, g):
    if st.state_scan_queue[i] != queue:
        return st.state_scan_queue[i] < queue
    if st.state_scan_rank[i] != rank:
        return st.state_scan_rank[i] < rank
    if st.state_scan_key[i] != key:
        return st.state_scan_key[i] < key
    other = st.state_scan[i]
    return (other if other >= 0 else -1 - other) < g


@part
def _move(st, source, target):
    g = st.state_scan[source]
    st.state_scan[target] = g
    st.state_scan_at[g] = target
    st.state_scan_queue[target] = st.state_scan_queue[source]
    st.state_scan_rank[target] = st.state_scan_rank[source]
    st.state_scan_key[target] = st.state_scan_key[source]
    for r in range(st.state_scan_demand.shape[0]):
        st.state_scan_demand[r, target] = st.state_scan_demand[r, source]


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
    if CHOOSES and st.state_i[PICKY]:
        return still_fitting(st, machine, found)
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


@part
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
    return may_use(st, machine, at)


@part
def may_use(st, machine, at):
    """Tell whether the stage at `at`, room aside, may run on `machine` and finds devices there."""
    if CHOOSES and st.state_i[PICKY]:
        return may_run(st, st.state_scan[at], machine)
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
