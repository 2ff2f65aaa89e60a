"""Buckets of waiting stages that fit a machine, and the alignment of their tasks with it.

The demands of BLOCK buckets at a time are held against the room of the machine, one resource after
the other; a few vector instructions test several buckets at once.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.buckets import gang_kind, refuse
from sim.engine.kernels.choosing.devices import can_run
from sim.engine.kernels.features import CAPS, CHOOSES, FLAVORS, GANGS, RUNS_ON, SPREADS, WINDOWS
from sim.engine.kernels.flavors import NONE, look_at, open_all, open_next
from sim.engine.kernels.resources import demand_row, within_cap
from sim.engine.kernels.selected import is_shut
from sim.engine.kernels.spread import is_beside_itself
from sim.engine.kernels.state import (
    BLOCK,
    CONSTRAINED,
    FLAVOR,
    HARD_CAPS,
    N_BUCKETS,
    N_DIRTY,
    N_NEW,
    N_REFUSED,
    N_RIGID,
)


@inlined
def find_fitting(st, machine, begin, end):
    """List the buckets at the positions [begin, end) that fit `machine`; return their number."""
    n_resources = st.c_alignment_scale.shape[1]
    _set_free(st, machine)
    n = _list_room(st, 0, _scarcest(st, machine, n_resources), n_resources, begin, end)
    if WINDOWS or RUNS_ON or SPREADS or (CHOOSES and st.state_i[CONSTRAINED]):
        return filter_fitting(st, machine, n)
    return n


@inlined
def find_candidates(st):
    """List the new buckets, and the others that may fit a freed machine; return their number.

    All that fit some freed machine are among them: those that fit the most room of each resource.
    """
    n = 0
    for position in range(st.state_i[N_REFUSED], st.state_i[N_NEW]):
        if not _is_gangs(st, position):
            st.state_match[n] = st.state_bucket_at[position]
            n += 1
    if _set_max_free(st):
        n_resources = len(st.state_room_free)
        first = _scarcest(st, st.state_dirty[0], n_resources)
        n = _list_room(st, n, first, n_resources, st.state_i[N_NEW], st.state_i[N_BUCKETS])
    return n


@inlined
def filter_candidates(st, n):
    """Keep those of the `n` listed candidates that are new or may still fit a freed machine."""
    if n <= 1 or st.state_i[N_DIRTY] > n:
        return n  # to go through the machines would cost more
    has_room, n_kept = _set_max_free(st), 0
    for i in range(n):
        bucket = st.state_match[i]
        position = st.state_bucket_position[bucket]
        if position >= st.state_i[N_NEW]:
            fits = has_room and position < st.state_i[N_BUCKETS]
            for r in range(len(st.state_room_free)):
                fits = fits and st.state_bucket_demand[r, position] <= st.state_room_free[r]
            if not fits:
                continue
        st.state_match[n_kept] = bucket
        n_kept += 1
    return n_kept


@part
def _set_max_free(st):
    """Set ``state_room_free`` to the most room on any freed machine; False if all are lost."""
    max_free, has_room = st.state_room_free, False
    max_free[:] = 0.0
    for i in range(st.state_i[N_DIRTY]):
        machine = st.state_dirty[i]
        if not st.state_mach_lost[machine]:
            has_room = True
            for r in range(len(max_free)):
                max_free[r] = max(max_free[r], float(st.state_mach_free[machine, r]))
    return has_room


@inlined
def find_rigid(st, machine, begin):
    """List the buckets from position `begin` on that fit the rigid resources of `machine`."""
    n, n_rigid, end = 0, st.state_i[N_RIGID], st.state_i[N_BUCKETS]
    if n_rigid > 0:
        _set_free(st, machine)
        n = _list_room(st, 0, _scarcest(st, machine, n_rigid), n_rigid, begin, end)
    else:
        for position in range(begin, end):
            if not _is_gangs(st, position):
                st.state_match[n] = st.state_bucket_at[position]
                n += 1
    if not (WINDOWS or RUNS_ON or SPREADS or (CHOOSES and st.state_i[CONSTRAINED])):
        return n
    n_allowed = 0
    for i in range(n):
        bucket = st.state_match[i]
        if _is_allowed(st, st.state_bucket_root[st.state_bucket_position[bucket]], machine):
            st.state_match[n_allowed] = bucket
            n_allowed += 1
    return n_allowed


@part
def _is_allowed(st, g, machine):
    """Tell whether `machine` is open to stage `g`, of a class for it, and has devices for it."""
    if (WINDOWS or RUNS_ON) and is_shut(st, st.w_stage_job[g], machine):
        return False
    if SPREADS and is_beside_itself(st, st.w_stage_job[g], machine):
        return False
    return not (CHOOSES and st.state_i[CONSTRAINED]) or can_run(st, g, machine)


@inlined
def set_min_demand(st):
    """Set ``state_min_demand`` to the least demand of any new bucket for each resource."""
    for r in range(len(st.state_min_demand)):
        st.state_min_demand[r] = 0
        for position in range(st.state_i[N_REFUSED], st.state_i[N_NEW]):
            demand = st.w_stage_demand[demand_row(st, st.state_bucket_root[position]), r]
            if position == st.state_i[N_REFUSED] or demand < st.state_min_demand[r]:
                st.state_min_demand[r] = demand


@inlined
def has_min_room(st, machine):
    """Tell whether `machine` has room for ``state_min_demand``; if not, no new bucket fits it."""
    for r in range(len(st.state_min_demand)):
        if st.state_min_demand[r] > max(st.state_mach_free[machine, r], 0):
            return False
    return True


@part
def _is_gangs(st, position):
    return GANGS and st.state_bucket_kind[position] == gang_kind(st)


@part
def filter_fitting(st, machine, n):
    """Keep those of the first `n` listed buckets that still fit `machine`; return their number."""
    buckets, n_kept = st.state_match, 0
    for i in range(n):
        position = st.state_bucket_position[buckets[i]]
        if position < st.state_i[N_BUCKETS] and fits_at(st, machine, position):
            buckets[n_kept] = buckets[i]
            n_kept += 1
    return n_kept


@part
def fits_at(st, machine, position):
    """Tell whether a task of the bucket at `position` fits `machine`."""
    for r in range(st.c_alignment_scale.shape[1]):
        demand = st.state_bucket_demand[r, position]
        if demand > st.state_mach_free[machine, r] and demand > 0:
            return False
    if WINDOWS or RUNS_ON or SPREADS or (CHOOSES and st.state_i[CONSTRAINED]):
        return _is_allowed(st, st.state_bucket_root[position], machine)
    return True


@part
def alignment(st, machine, position):
    """Return free · demand of the bucket at `position` on `machine`, both over its capacity."""
    total = 0.0
    for r in range(st.c_alignment_scale.shape[1]):
        weight = st.state_mach_free[machine, r] * st.c_alignment_scale[machine, r]
        total += weight * st.state_bucket_demand[r, position]
    return total


@part
def _list_room(st, n, first, n_resources, begin, end):
    """List, after `n` others, the buckets at [begin, end) that fit into ``state_room_free``.

    Of its first `n_resources` resources only. `first` is tried before the others: where it lets
    none through, they are not tried.
    """
    buckets, room = st.state_match, st.state_room_left
    for block in range(begin, end, BLOCK):
        block_end = min(block + BLOCK, end)
        if _compute_room(st, first, n_resources, block, block_end):
            for i in range(block_end - block):
                buckets[n] = st.state_bucket_at[block + i]
                n += room[i] >= 0.0
    return n


@part
def _set_free(st, machine):
    """Set ``state_room_free`` to the free room of `machine`."""
    for r in range(len(st.state_room_free)):
        st.state_room_free[r] = float(max(st.state_mach_free[machine, r], 0))


@part
def _compute_room(st, first, n_resources, begin, end):
    """Set ``state_room_left`` to the least room of any resource that each of [begin, end) leaves.

    Return the number of buckets that fit.
    """
    room = st.state_room_left
    free, demand = st.state_room_free[first], st.state_bucket_demand[first, begin:end]
    n = 0
    for i in range(len(demand)):
        left = free - demand[i]
        room[i] = left
        n += left >= 0.0
    for r in range(n_resources):
        if r != first and n > 0:
            n = _subtract_demand(st, r, begin, end)
    return n


@inlined
def _subtract_demand(st, r, begin, end):
    room = st.state_room_left
    free, demand = st.state_room_free[r], st.state_bucket_demand[r, begin:end]
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


@part
def first_tier(st, n):
    """List the buckets of the highest tier among the `n` before the others; return their number."""
    buckets, n_first, first = st.state_match, 0, 0
    for i in range(n):
        root = st.state_bucket_root[st.state_bucket_position[buckets[i]]]
        tier = st.w_job_tier[st.w_stage_job[root]]
        if tier < first:
            n_first = 0
        if n_first == 0 or tier == first:
            bucket = buckets[n_first]
            buckets[n_first] = buckets[i]
            buckets[i] = bucket
            n_first, first = n_first + 1, tier
    return n_first


@part
def drop_capped(st, machine, n):
    """Refuse those of the `n` listed buckets that a cap forbids; return how many are left.

    Those that the quota of the flavors of `machine` forbids may have that of another.
    """
    if not (CAPS or st.state_i[HARD_CAPS]):
        return n
    buckets, n_kept = st.state_match, 0
    for i in range(n):
        position = st.state_bucket_position[buckets[i]]
        if is_within_cap_on(st, machine, position):
            buckets[n_kept] = buckets[i]
            n_kept += 1
        elif not FLAVORS:
            refuse(st, position)
    return n_kept


@part
def is_within_cap_on(st, machine, position):
    """Tell whether one more task of the bucket at `position` keeps to the cap on `machine`."""
    if FLAVORS:
        look_at(st, machine)
    g = st.state_bucket_root[position]
    return within_cap(st, st.w_stage_job[g], st.w_stage_demand, demand_row(st, g), 1)


@part
def is_within_cap(st, position):
    """Tell whether one more task of the bucket at `position` keeps to the cap, of any flavor."""
    g = st.state_bucket_root[position]
    j, row = st.w_stage_job[g], demand_row(st, g)
    if FLAVORS:
        flavor, tries = st.state_i[FLAVOR], st.w_stage_tries[g]
        is_within = open_next(st, j, tries, st.w_stage_demand, row, NONE, True) != NONE
        open_all(st)
        st.state_i[FLAVOR] = flavor
        return is_within
    return within_cap(st, j, st.w_stage_demand, row, 1)
