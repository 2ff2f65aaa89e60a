"""Claims of rigid jobs on places: named machines, and the hard shares of their organisations.

A job that runs, or for which room is reserved, has a claim from its begin to its expected end. An
entry of the claim is a place and the job's slots there: the machines, then its organisation where
shares are hard, then all machines taken together. Each place has a sorted list of changes: change
``2 * entry`` is the begin of the claim, one more its end. A claim that begins now as it is, with
the jobs that should have ended by now, begins at AS_IT_IS. Others end after the instant at which
they begin (`sim.engine.kernels.rigid.reserve`).

A job fits from a time on if enough of its slots stay free until its expected end, each on one
machine. Of several machines it takes the first, or those that `sim.engine.plan.choice` scores
least, by the least room that they have meanwhile; each takes as many of its tasks as fit.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.buckets import is_waiting_gang
from sim.engine.kernels.components import first_component
from sim.engine.kernels.domains import is_searched
from sim.engine.kernels.features import FLAVORS, QUOTAS, WINDOWS
from sim.engine.kernels.flavors import NONE, look_at, open_all, open_rigid
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.quotas import column, column_on, within_quota
from sim.engine.kernels.rigid.gang import admit_gang_to
from sim.engine.kernels.rigid.place_components import (
    are_components_free,
    claim_components,
    claim_found,
)
from sim.engine.kernels.rigid.place_room import (
    AS_IT_IS,
    AT_BEGIN,
    TOGETHER,
    WITHIN,
    apply,
    close_claim,
    fill_entry,
    first_entry,
    free_now,
    free_slots,
    is_absent,
    lacks_room,
    next_machine,
    stays_free,
    takes_first,
)
from sim.engine.kernels.rigid.rigid import claimed_until, expected_end, planned_end, width
from sim.engine.kernels.slot_counts import most_slots, most_slots_on
from sim.engine.kernels.state import HARD_CAPS, N_AHEAD, NOW
from sim.engine.kernels.windows import next_opening


@inlined
def claim_running(st, n):
    """Make the lists of changes anew: the ends of the first `n` running jobs, which are sorted."""
    for place in range(len(st.state_place_first)):
        st.state_place_first[place] = -1
    st.state_i[N_AHEAD] = 0
    for i in range(n - 1, -1, -1):
        j = st.state_running_jobs[i]
        end = max(expected_end(st, j), st.state_f[NOW])
        first = first_entry(st, j)
        for entry in range(first, first + st.state_claim_entries[j]):
            place = st.state_entry_place[entry]
            st.state_change_time[2 * entry + 1] = end
            st.state_change_next[2 * entry + 1] = st.state_place_first[place]
            st.state_place_first[place] = 2 * entry + 1


@inlined
def count_free(st):
    """Add up the free room of all machines that are there, or known to be again."""
    for r in range(len(st.state_free)):
        st.state_free[r] = 0
        for machine in range(st.state_mach_free.shape[0]):
            if not is_absent(st, machine):
                st.state_free[r] += st.state_mach_free[machine, r]


@part
def may_start(st, j):
    """Tell whether the free room of all machines may hold job `j`; if False, it does not."""
    for r in range(len(st.state_free)):
        if 0 < st.w_job_total[j, r] > st.state_free[r]:
            return False
    return is_searched(st, j) or most_slots(st, j) >= width(st, j)


@part
def keep_claim(st, j, begin):
    """Claim the places that job `j` had reserved from `begin` on; False if they are not free."""
    end = planned_end(st, begin, j)
    first, c = first_entry(st, j), first_component(st, j)
    if FLAVORS:
        open_all(st)  # its machines are of one flavor, or it is pinned to them
    for entry in range(first, first + st.state_claim_entries[j]):
        place = st.state_entry_place[entry]
        if place >= st.state_mach_free.shape[0]:
            if not stays_free(st, j, place, begin, end):
                return False
        elif is_searched(st, j):
            continue
        elif free_slots(st, j, c, place, begin, end) < st.state_entry_slots[entry]:
            return False
    if is_searched(st, j) and not are_components_free(st, j, begin):
        return False
    if FLAVORS:
        look_at(st, st.state_entry_place[first])
    if QUOTAS and _exceeds_quota(st, j, begin, end) < math.inf:
        return False
    _list_claim(st, j, begin)
    return True


@part
def drop_claim(st, j):
    """Give back what job `j` had reserved."""
    first = first_entry(st, j)
    for entry in range(first, first + st.state_claim_entries[j]):
        _remove_change(st, st.state_entry_place[entry], 2 * entry)
        _remove_change(st, st.state_entry_place[entry], 2 * entry + 1)
    st.state_i[N_AHEAD] -= 1


@part
def claim_earliest(st, j):
    """Claim for job `j` the earliest room that is left; return its begin, infinity for none.

    If that is now, the claim is not listed: the job is to start at once (`start_claim`).
    """
    begin = _begin_in_flavors(st, j) if FLAVORS else _earliest_begin(st, j)
    if begin == math.inf:
        return begin
    if not is_searched(st, j):
        _choose_places(st, j)
    if begin > AS_IT_IS:
        _list_claim(st, j, begin)
    return begin


@part
def _begin_in_flavors(st, j):
    """Return the earliest begin of job `j` in any of its flavors, which is open then."""
    best, earliest = NONE, math.inf
    i = open_rigid(st, j, NONE)
    while i != NONE and earliest > AS_IT_IS:
        begin = _earliest_begin(st, j)
        if begin < earliest:
            best, earliest = i, begin
        i = open_rigid(st, j, i)
    if best == NONE:
        return math.inf
    i = open_rigid(st, j, NONE)
    while i != best:
        i = open_rigid(st, j, i)
    return _earliest_begin(st, j)


@part
def claim_now(st, j):
    """Claim room for job `j` as it is now, for a start at once; False if there is none.

    In the first of its flavors that has some.
    """
    if not FLAVORS:
        return _claim_open(st, j)
    i = open_rigid(st, j, NONE)
    while i != NONE:
        if _claim_open(st, j):
            return True
        i = open_rigid(st, j, i)
    return False


@part
def _claim_open(st, j):
    """Claim room for job `j` on the open machines, as it is now; False if there is none."""
    if not may_start(st, j):
        return False
    if not is_searched(st, j) and _most_beside(st, j) < width(st, j):
        return False
    if not _is_within_share(st, j, AS_IT_IS):
        return False
    if is_searched(st, j):
        return claim_components(st, j, AS_IT_IS)
    if _count_slots(st, j, AS_IT_IS, takes_first(st)) < width(st, j):
        return False
    _choose_places(st, j)
    return True


@part
def start_claim(st, j):
    """Start the tasks of job `j` on the machines that it has claimed."""
    first, n_machines = first_entry(st, j), st.state_mach_free.shape[0]
    if is_waiting_gang(st, j):
        end = first
        while st.state_entry_place[end] < n_machines:
            end += 1
        admit_gang_to(st, j, first, end)
    else:
        start_task(st, st.state_job_ready_head[j], st.state_entry_place[first], False, 1)
    for r in range(len(st.state_free)):
        st.state_free[r] -= st.w_job_total[j, r]
    end_s = max(expected_end(st, j), st.state_f[NOW])
    for entry in range(first, first + st.state_claim_entries[j]):
        _insert_change(st, st.state_entry_place[entry], 2 * entry + 1, end_s)


@inlined
def _earliest_begin(st, j):
    """Return the earliest begin from which on job `j` fits until its expected end.

    The present, or the end of a claim or window: between two of them room only gets less. Infinity
    if there is none, as machines are lost. Machines are looked at one by one only where all of them
    together, and its share, have room for it, and from the second time on only those on which a
    claim begins or ends between.
    """
    together = len(st.state_place_first) - 1
    share = st.state_mach_free.shape[0] + st.w_job_org[j]
    begin, n_free, is_counted = AS_IT_IS, 0, False
    change = after = later = st.state_place_first[together]
    free_now(st, TOGETHER, together)
    while True:
        moves = True
        while moves:
            before = begin
            begin, change = _first_begin(st, j, TOGETHER, change, begin)
            if st.state_i[HARD_CAPS]:
                free_now(st, AT_BEGIN, share)
                begin, _ = _first_begin(st, j, AT_BEGIN, st.state_place_first[share], begin)
            if QUOTAS:
                begin = _first_within_quota(st, j, begin)
            moves = st.state_i[HARD_CAPS] and begin > before
        if begin == math.inf:
            return begin
        if begin > AS_IT_IS or may_start(st, j):
            if is_searched(st, j):
                n_free = width(st, j) if claim_components(st, j, begin) else 0
            elif is_counted:
                n_free, after, later = _follow_slots(st, j, begin, n_free, after, later)
            else:
                n_free, after = _count_slots(st, j, begin, False), change
                later = _first_from(st, change, planned_end(st, begin, j))
                is_counted = begin > AS_IT_IS and not WINDOWS
            if n_free >= width(st, j):
                return begin
        end = _next_end(st, change, begin)
        if WINDOWS:
            end = min(end, next_opening(st, max(begin, st.state_f[NOW])))
        begin = end


@part
def _first_begin(st, j, row, change, begin):
    """Return the first begin, from `begin` on, from which on a place has room for all of job `j`.

    And the first change of the place after it. ``state_room[row]`` is its room before `change`, and
    follows. A time at which it lacks room lies in no window in which the job fits, so the search
    goes on behind it.
    """
    while True:
        end = planned_end(st, begin, j)
        while change >= 0 and st.state_change_time[change] <= begin:
            apply(st, row, change)
            change = st.state_change_next[change]
        lacks, later, time = lacks_room(st, row, j), change, begin
        if not lacks and st.state_i[N_AHEAD] > 0:
            for r in range(len(st.state_free)):
                st.state_room[WITHIN, r] = st.state_room[row, r]
            while not lacks and later >= 0 and st.state_change_time[later] < end:
                apply(st, WITHIN, later)
                time = st.state_change_time[later]
                lacks = not later & 1 and lacks_room(st, WITHIN, j)
                later = st.state_change_next[later]
        if not lacks:
            return begin, change
        begin = _next_end(st, later, time)
        if begin == math.inf:
            return begin, change


@part
def _first_within_quota(st, j, begin):
    """Return the first begin, from `begin` on, from which on job `j` keeps within all quotas."""
    while begin < math.inf:
        time = _exceeds_quota(st, j, begin, planned_end(st, begin, j))
        if time == math.inf:
            return begin
        begin = _next_end(st, st.state_place_first[len(st.state_place_first) - 1], time)
    return begin


@part
def _exceeds_quota(st, j, begin, end):
    """Return the first time from `begin` until `end` when job `j` exceeds a quota; inf: none."""
    if not _is_within_quota(st, j, begin):
        return begin
    change = st.state_place_first[len(st.state_place_first) - 1]
    while change >= 0 and st.state_change_time[change] < end:
        time = st.state_change_time[change]
        if time > begin and not change & 1 and not _is_within_quota(st, j, time):
            return time
        change = st.state_change_next[change]
    return math.inf


@part
def _is_within_quota(st, j, time):
    """Tell whether quotas allow job `j` beside the claims of that time."""
    taken, n_machines = st.state_node_planned, st.state_mach_free.shape[0]
    taken[:] = 0
    for org in range(len(st.c_org_weight)):
        change = st.state_place_first[n_machines + org]
        for r in range(len(st.state_free)):
            if not FLAVORS:
                taken[org, r] = st.state_org_used[org, r]
        if FLAVORS:
            taken[org] = st.state_node_taken[org]
        while change >= 0 and st.state_change_time[change] <= time:
            sign = -1 if change & 1 else 1
            if FLAVORS:
                _count_claim(st, taken[org], st.state_entry_job[change >> 1], sign)
            else:
                for r in range(len(st.state_free)):
                    taken[org, r] += sign * st.state_entry_room[change >> 1, r]
            change = st.state_change_next[change]
    for node in range(len(st.c_node_parent)):
        above = st.c_node_parent[node]
        if above >= 0:
            for k in range(taken.shape[1]):
                taken[above, k] += max(taken[node, k] - st.c_node_local[node, k], 0)
    for r in range(len(st.state_free)):
        if not within_quota(st, taken, st.w_job_org[j], column(st, r), st.w_job_total[j, r]):
            return False
    return True


@part
def _count_claim(st, taken, j, sign):
    """Count the claim of job `j`, by its machines, in the columns of the quotas."""
    entry = first_entry(st, j)
    while st.state_entry_place[entry] < st.state_mach_free.shape[0]:
        for r in range(len(st.state_free)):
            k = column_on(st, st.state_entry_place[entry], r)
            taken[k] += sign * st.state_entry_room[entry, r]
        entry += 1


@part
def _first_from(st, change, time):
    """Return the first change at `time` or later, from `change` on in the list of a place."""
    while change >= 0 and st.state_change_time[change] < time:
        change = st.state_change_next[change]
    return change


@part
def _next_end(st, change, time):
    """Return the time of the first end after `time`, from `change` on in the list of a place.

    Infinity if there is none.
    """
    while change >= 0 and (not change & 1 or st.state_change_time[change] <= time):
        change = st.state_change_next[change]
    return st.state_change_time[change] if change >= 0 else math.inf


@part
def _is_within_share(st, j, begin):
    """Tell whether its share and quotas have room for job `j` from `begin` to its expected end."""
    end, share = planned_end(st, begin, j), st.state_mach_free.shape[0] + st.w_job_org[j]
    if st.state_i[HARD_CAPS] and not stays_free(st, j, share, begin, end):
        return False
    return not (QUOTAS and _exceeds_quota(st, j, begin, end) < math.inf)


@part
def _count_slots(st, j, begin, until_enough):
    """Count the slots of job `j` that stay free from `begin` to its expected end.

    Sets the slots that stay free, and the least room, on all machines; with `until_enough` on the
    first machines, that have enough of them.
    """
    end, n_free, n_slots = planned_end(st, begin, j), 0, width(st, j)
    c = first_component(st, j)
    for machine in range(st.state_mach_free.shape[0]):
        n_free += free_slots(st, j, c, machine, begin, end)
        if until_enough and n_free >= n_slots:
            break
    return n_free


@inlined
def _most_beside(st, j):
    """Return how many slots of job `j` stay free at most if it starts now.

    Only the machines are looked at that are claimed from later on, each once.
    """
    end, first, n_free = planned_end(st, AS_IT_IS, j), st.state_place_first[-1], most_slots(st, j)
    if st.state_i[N_AHEAD] == 0:
        return n_free
    for is_marked in (False, True):
        change = first
        while change >= 0 and st.state_change_time[change] < end:
            last = change >> 1
            if not change & 1:
                for entry in range(first_entry(st, st.state_entry_job[last]), last):
                    place = st.state_entry_place[entry]
                    if place >= st.state_mach_free.shape[0]:
                        continue
                    if not is_marked:
                        st.state_place_slots[place] = -1
                    elif st.state_place_slots[place] < 0:
                        n_free -= most_slots_on(st, j, place)
                        n_free += free_slots(st, j, first_component(st, j), place, AS_IT_IS, end)
            change = st.state_change_next[change]
    return n_free


@inlined
def _follow_slots(st, j, begin, n_free, after, later):
    """Count the slots that stay free if job `j` begins at `begin`: `n_free` were it earlier.

    On the machines of the changes from `after` on up to `begin`, and from `later` on up to the end.
    Return the count, and the first changes, of all machines, after `begin` and from the end on.
    """
    end, n = planned_end(st, begin, j), 0
    while after >= 0 and st.state_change_time[after] <= begin:
        n_free, n = _leave_out(st, after, n_free, n)
        after = st.state_change_next[after]
    while later >= 0 and st.state_change_time[later] < end:
        n_free, n = _leave_out(st, later, n_free, n)
        later = st.state_change_next[later]
    for i in range(n):
        n_free += free_slots(st, j, first_component(st, j), st.state_recount[i], begin, end)
    return n_free, after, later


@part
def _leave_out(st, change, n_free, n):
    """Leave the machines of a change out of the count `n_free`; list them after `n` others."""
    last = change >> 1  # the entry of all machines
    for entry in range(first_entry(st, st.state_entry_job[last]), last):
        place = st.state_entry_place[entry]
        if place < st.state_mach_free.shape[0] and st.state_place_slots[place] >= 0:
            n_free -= st.state_place_slots[place]
            st.state_place_slots[place] = -1
            st.state_recount[n] = place
            n += 1
    return n_free, n


@part
def _choose_places(st, j):
    """Fill the entries of the claim of job `j`, whose free slots have been counted."""
    left, c = width(st, j), first_component(st, j)
    entry, machine = first_entry(st, j), -1
    while left > 0:
        machine = next_machine(st, c, machine, not takes_first(st))
        n_slots = min(st.state_place_slots[machine], left)
        st.state_place_slots[machine] = 0
        left -= n_slots
        fill_entry(st, j, c, entry, machine, n_slots)
        entry += 1
    close_claim(st, j, entry)


@part
def claim_pinned(st, j):
    """Fill the entries of the claim of pinned job `j`, which is to start where it fits."""
    if is_searched(st, j):
        claim_found(st, j)
        return
    slot, entry = st.w_stage_task0[st.w_job_stage0[j]], first_entry(st, j)
    end = slot + width(st, j)
    while slot < end:
        machine, n_slots = st.state_pin_machine[slot], 0
        while slot < end and st.state_pin_machine[slot] == machine:
            slot += 1
            n_slots += 1
        fill_entry(st, j, first_component(st, j), entry, machine, n_slots)
        entry += 1
    close_claim(st, j, entry)


@part
def _list_claim(st, j, begin):
    """Insert the changes of the claim of job `j`, whose entries are filled."""
    end = max(claimed_until(st, begin, j), st.state_f[NOW])
    first = first_entry(st, j)
    for entry in range(first, first + st.state_claim_entries[j]):
        _insert_change(st, st.state_entry_place[entry], 2 * entry, begin)
        _insert_change(st, st.state_entry_place[entry], 2 * entry + 1, end)
    st.state_i[N_AHEAD] += 1


@part
def _insert_change(st, place, change, time):
    """Insert a change into the list of its place: at one time ends come before begins."""
    previous, following = -1, st.state_place_first[place]
    while following >= 0 and (
        st.state_change_time[following] < time
        or (not change & 1 and st.state_change_time[following] == time)
    ):
        previous, following = following, st.state_change_next[following]
    st.state_change_time[change] = time
    st.state_change_next[change] = following
    if previous < 0:
        st.state_place_first[place] = change
    else:
        st.state_change_next[previous] = change


@part
def _remove_change(st, place, change):
    previous, other = -1, st.state_place_first[place]
    while other != change:
        previous, other = other, st.state_change_next[other]
    if previous < 0:
        st.state_place_first[place] = st.state_change_next[change]
    else:
        st.state_change_next[previous] = st.state_change_next[change]
