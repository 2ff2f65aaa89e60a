"""The waiting stages in order, as one sorted list, for plans and reservations.

Sorted by kernel queue, then tier of partitions, rank, stage key and row. A stage that leaves leaves
a hole, which keeps its position in the order; the next one to enter nearby takes it.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.features import TIERS
from sim.engine.kernels.heaps import has_other_tier, is_of_higher_tier
from sim.engine.kernels.state import N_HOLES, N_SCAN


@inlined
def scan_insert(st, queue, g):
    """Insert stage `g`, which waits in `queue`, at its position."""
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


@inlined
def scan_remove(st, g):
    """Remove stage `g` from the list."""
    position = st.state_scan_position[g]
    st.state_scan_position[g] = -1
    st.state_scan[position] = -1 - g
    n, holes = st.state_i[N_SCAN], st.state_i[N_HOLES] + 1
    while n > 0 and st.state_scan[n - 1] < 0:
        n -= 1
        holes -= 1
    st.state_i[N_SCAN] = n
    st.state_i[N_HOLES] = holes


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
    other = stage_at(st, i)
    if TIERS and has_other_tier(st, other, g):
        return is_of_higher_tier(st, other, g)
    if st.state_scan_rank[i] != rank:
        return st.state_scan_rank[i] < rank
    if st.state_scan_key[i] != key:
        return st.state_scan_key[i] < key
    return other < g


@part
def stage_at(st, position):
    """Return the stage at a position of the list, or that which left a hole there."""
    g = st.state_scan[position]
    return g if g >= 0 else -1 - g


@part
def _move(st, source, target):
    g = st.state_scan[source]
    st.state_scan[target] = g
    st.state_scan_position[g] = target
    st.state_scan_queue[target] = st.state_scan_queue[source]
    st.state_scan_rank[target] = st.state_scan_rank[source]
    st.state_scan_key[target] = st.state_scan_key[source]
