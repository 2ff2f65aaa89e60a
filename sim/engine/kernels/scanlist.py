"""The waiting stages in order, as one sorted list, for placements that look past the first.

Sorted by kernel queue, then rank, stage key and row; with a copy of each stage's demand beside
it, resource by resource, so that a few vector loops try many of them on a machine. A stage that
leaves leaves a hole, which keeps its position in the order and fits nothing; the next one to enter
nearby takes it.

A stage is *new* (``state_scan_new``) until it has been tried on every machine. 0: it has been;
1: it has not; within a dispatch also 2: refused by a cap, and 3: refused by every machine. Those
that are 2 or 3 are moved to the front of ``state_scan_new_list``, N_REFUSED of them, as they are
met: room and caps only get tighter within a dispatch.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.devices import can_run
from sim.engine.kernels.features import CHOOSES
from sim.engine.kernels.state import (
    BLOCK,
    CONSTRAINED,
    N_HOLES,
    N_NEW,
    N_REFUSED,
    N_RIGID,
    N_SCAN,
    SCAN_SHIFTS,
    UNIT,
)

BY_CAP, BY_ALL = 2, 3

FITS_NOTHING = 2.0**63
"""Demand of a hole: more quanta than an int64 counts."""


@inlined
def scan_insert(st, queue, g):
    """Insert stage `g`, which waits in `queue`, at its position; it is new to every machine."""
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
    position = _open_place(st, low)
    st.state_scan[position] = g
    st.state_scan_position[g] = position
    st.state_scan_queue[position] = queue
    st.state_scan_rank[position] = rank
    st.state_scan_key[position] = key
    row = 0 if st.state_i[UNIT] else g
    for r in range(st.state_scan_demand.shape[0]):
        st.state_scan_demand[r, position] = st.w_stage_demand[row, r]
    st.state_i[SCAN_SHIFTS] += 1
    st.state_queue_waiting[queue] += 1
    mark_new(st, g)


@inlined
def scan_remove(st, g):
    """Remove stage `g` from the list."""
    position = st.state_scan_position[g]
    st.state_queue_waiting[st.state_scan_queue[position]] -= 1
    st.state_scan_position[g] = -1
    st.state_scan[position] = -1 - g
    for r in range(st.state_scan_demand.shape[0]):
        st.state_scan_demand[r, position] = FITS_NOTHING
    n, holes = st.state_i[N_SCAN], st.state_i[N_HOLES] + 1
    while n > 0 and st.state_scan[n - 1] < 0:
        n -= 1
        holes -= 1
    st.state_i[N_SCAN] = n
    st.state_i[N_HOLES] = holes


@part
def mark_new(st, g):
    """Let the next dispatch try stage `g` on every machine."""
    if not st.state_scan_new[g]:
        st.state_scan_new[g] = 1
        st.state_scan_new_list[st.state_i[N_NEW]] = g
        st.state_i[N_NEW] += 1


@part
def refuse(st, g, why):
    """Mark stage `g` as refused for the rest of this dispatch: BY_CAP, or BY_ALL machines."""
    mark_new(st, g)
    st.state_scan_new[g] = why


@part
def move_to_refused(st, i):
    """Move entry `i` of the list of new stages to the refused ones at its front."""
    new_list, n_refused = st.state_scan_new_list, st.state_i[N_REFUSED]
    g = new_list[i]
    new_list[i] = new_list[n_refused]
    new_list[n_refused] = g
    st.state_i[N_REFUSED] = n_refused + 1


@inlined
def drop_new(st, i):
    """Remove entry `i`, behind the refused ones, from the list of new stages: it waits no more."""
    last = st.state_i[N_NEW] - 1
    st.state_scan_new[st.state_scan_new_list[i]] = 0
    st.state_scan_new_list[i] = st.state_scan_new_list[last]
    st.state_i[N_NEW] = last


@inlined
def end_scan(st):
    """End a dispatch: no stage is new any more, except those refused by a cap."""
    n_new = 0
    for i in range(st.state_i[N_NEW]):
        g = st.state_scan_new_list[i]
        if st.state_scan_new[g] == BY_CAP and st.state_scan_position[g] >= 0:
            st.state_scan_new[g] = 1
            st.state_scan_new_list[n_new] = g
            n_new += 1
        else:
            st.state_scan_new[g] = 0
    st.state_i[N_NEW] = n_new
    st.state_i[N_REFUSED] = 0


@inlined
def queue_end(st, low, high):
    """Return the end of the range of the queue at position `low` within [low, high)."""
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
    """Open a position before `low`, up to the nearest hole; return it."""
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
    st.state_scan_position[g] = target
    st.state_scan_queue[target] = st.state_scan_queue[source]
    st.state_scan_rank[target] = st.state_scan_rank[source]
    st.state_scan_key[target] = st.state_scan_key[source]
    for r in range(st.state_scan_demand.shape[0]):
        st.state_scan_demand[r, target] = st.state_scan_demand[r, source]


@inlined
def find_fitting(st, machine):
    """List the positions of stages that fit `machine`, with their scores; return their number."""
    n, n_fitting = st.state_i[N_SCAN], 0
    positions, scores, room = st.state_scan_match, st.state_scan_score, st.state_scan_room
    n_resources = st.c_alignment_scale.shape[1]
    first = _scarcest(st, machine, n_resources)
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        if _compute_room(st, machine, first, n_resources, begin, end):
            for i in range(end - begin):
                positions[n_fitting] = begin + i
                n_fitting += room[i] >= 0.0
    if CHOOSES and st.state_i[CONSTRAINED]:
        return filter_fitting(st, machine, n_fitting)
    for i in range(n_fitting):
        scores[i] = score_at(st, machine, positions[i])
    return n_fitting


@inlined
def find_rigid(st, machine):
    """List the positions of stages that fit the rigid resources of `machine`; return how many."""
    n, n_fitting, n_rigid = st.state_i[N_SCAN], 0, st.state_i[N_RIGID]
    positions, room = st.state_scan_match, st.state_scan_room
    if n_rigid == 0:
        for position in range(n):
            if st.state_scan[position] >= 0:
                positions[n_fitting] = position
                n_fitting += 1
        return n_fitting
    first = _scarcest(st, machine, n_rigid)
    for begin in range(0, n, BLOCK):
        end = min(begin + BLOCK, n)
        if _compute_room(st, machine, first, n_rigid, begin, end):
            for i in range(end - begin):
                positions[n_fitting] = begin + i
                n_fitting += room[i] >= 0.0
    return n_fitting


@part
def filter_fitting(st, machine, n):
    """Keep those of the first `n` listed stages that still fit `machine`; score them again."""
    positions, n_kept = st.state_scan_match, 0
    for i in range(n):
        position = positions[i]
        if fits_at(st, machine, position):
            positions[n_kept] = position
            st.state_scan_score[n_kept] = score_at(st, machine, position)
            n_kept += 1
    return n_kept


@part
def first_fitting(st, machine, low, high):
    """Return the first position of [low, high) whose stage fits `machine`, else `high`."""
    if st.state_mach_lost[machine]:
        return high
    room = st.state_scan_room
    n_resources = st.c_alignment_scale.shape[1]
    first = _scarcest(st, machine, n_resources)
    for begin in range(low, high, BLOCK):
        end = min(begin + BLOCK, high)
        if _compute_room(st, machine, first, n_resources, begin, end):
            for i in range(end - begin):
                if room[i] >= 0.0:
                    return begin + i
    return high


@part
def fits_at(st, machine, position):
    """Tell whether the stage at `position` fits `machine`; a hole does not."""
    for r in range(st.c_alignment_scale.shape[1]):
        demand = st.state_scan_demand[r, position]
        if demand > st.state_mach_free[machine, r] and demand > 0:
            return False
    return can_use(st, machine, position)


@part
def can_use(st, machine, position):
    """Tell whether the stage at `position`, room aside, may run on `machine`, devices included."""
    if CHOOSES and st.state_i[CONSTRAINED]:
        return can_run(st, st.state_scan[position], machine)
    return True


@part
def score_at(st, machine, position):
    """Return free · demand of the stage at `position` on `machine`, both over its capacity."""
    total = 0.0
    for r in range(st.c_alignment_scale.shape[1]):
        weight = st.state_mach_free[machine, r] * st.c_alignment_scale[machine, r]
        total += weight * st.state_scan_demand[r, position]
    return total


@part
def _compute_room(st, machine, first, n_resources, begin, end):
    """Set ``state_scan_room`` to the least room of any resource that each of [begin, end) leaves.

    Of the first `n_resources` only; return the number of stages that fit.

    Resource `first` comes first: where it lets none through, the others are not tried.
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
            n = _subtract_demand(st, machine, r, begin, end)
    return n


@inlined
def _subtract_demand(st, machine, r, begin, end):
    room = st.state_scan_room
    free = float(max(st.state_mach_free[machine, r], 0))
    demand = st.state_scan_demand[r, begin:end]
    n = 0
    for i in range(len(demand)):
        left = free - demand[i]
        min_left = room[i]
        min_left = left if left < min_left else min_left
        room[i] = min_left + 0.0  # never the old value itself: a masked store is slow
        n += min_left >= 0.0
    return n


@part
def _scarcest(st, machine, n_resources):
    """Return the scarcest of the first `n_resources` on `machine`: the least part of it is free."""
    best, min_share = 0, 2.0
    for r in range(n_resources):
        free = float(st.state_mach_free[machine, r])
        share = free * free * st.c_alignment_scale[machine, r]
        if share < min_share:
            best, min_share = r, share
    return best
