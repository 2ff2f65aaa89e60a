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
from sim.engine.kernels.choosing.choice import BEST_FIT, FASTEST, LEAST_DOT
from sim.engine.kernels.choosing.devices import n_by_devices
from sim.engine.kernels.features import CHOOSES, QUOTAS, WINDOWS
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.quotas import within_quota
from sim.engine.kernels.rigid.gang import admit_gang_to
from sim.engine.kernels.rigid.rigid import claimed_until, expected_end, planned_end, width
from sim.engine.kernels.slot_counts import most_slots, most_slots_on
from sim.engine.kernels.speeds import speed_on
from sim.engine.kernels.state import CONSTRAINED, HARD_CAPS, MACHINE_CHOICE, N_AHEAD, NOW
from sim.engine.kernels.windows import UNFORESEEN, is_closed, next_opening

AS_IT_IS = -math.inf
AT_BEGIN, WITHIN, TOGETHER = range(3)
"""Rows of ``state_room``: of a place at some begin, and at a later time; of all machines."""


@inlined
def claim_running(st, n):
    """Make the lists of changes anew: the ends of the first `n` running jobs, which are sorted."""
    for place in range(len(st.state_place_first)):
        st.state_place_first[place] = -1
    st.state_i[N_AHEAD] = 0
    for i in range(n - 1, -1, -1):
        j = st.state_running_jobs[i]
        end = max(expected_end(st, j), st.state_f[NOW])
        first = _first_entry(st, j)
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
            if not _is_absent(st, machine, WINDOWS):
                st.state_free[r] += st.state_mach_free[machine, r]


@part
def may_start(st, j):
    """Tell whether the free room of all machines may hold job `j`; if False, it does not."""
    for r in range(len(st.state_free)):
        if st.w_job_slot[j, r] > 0 and width(st, j) * st.w_job_slot[j, r] > st.state_free[r]:
            return False
    return most_slots(st, j) >= width(st, j)


@part
def keep_claim(st, j, begin):
    """Claim the places that job `j` had reserved from `begin` on; False if they are not free."""
    end = planned_end(st, begin, j)
    first = _first_entry(st, j)
    for entry in range(first, first + st.state_claim_entries[j]):
        place = st.state_entry_place[entry]
        if _free_slots(st, j, place, begin, end) < st.state_entry_slots[entry]:
            return False
    if QUOTAS and _exceeds_quota(st, j, begin, end) < math.inf:
        return False
    _list_claim(st, j, begin)
    return True


@part
def drop_claim(st, j):
    """Give back what job `j` had reserved."""
    first = _first_entry(st, j)
    for entry in range(first, first + st.state_claim_entries[j]):
        _remove_change(st, st.state_entry_place[entry], 2 * entry)
        _remove_change(st, st.state_entry_place[entry], 2 * entry + 1)
    st.state_i[N_AHEAD] -= 1


@part
def claim_earliest(st, j):
    """Claim for job `j` the earliest room that is left; return its begin, infinity for none.

    If that is now, the claim is not listed: the job is to start at once (`start_claim`).
    """
    begin = _earliest_begin(st, j)
    if begin == math.inf:
        return begin
    _choose_places(st, j)
    if begin > AS_IT_IS:
        _list_claim(st, j, begin)
    return begin


@part
def claim_now(st, j):
    """Claim room for job `j` as it is now, for a start at once; False if there is none."""
    if not may_start(st, j) or _most_beside(st, j) < width(st, j):
        return False
    if not _is_within_share(st, j, AS_IT_IS):
        return False
    if _count_slots(st, j, AS_IT_IS, _takes_first(st)) < width(st, j):
        return False
    _choose_places(st, j)
    return True


@part
def start_claim(st, j):
    """Start the tasks of job `j` on the machines that it has claimed."""
    first, n_machines = _first_entry(st, j), st.state_mach_free.shape[0]
    if is_waiting_gang(st, j):
        end = first
        while st.state_entry_place[end] < n_machines:
            end += 1
        admit_gang_to(st, j, first, end)
    else:
        start_task(st, st.state_job_ready_head[j], st.state_entry_place[first], False, 1)
    for r in range(len(st.state_free)):
        st.state_free[r] -= width(st, j) * st.w_job_slot[j, r]
    end_s = max(expected_end(st, j), st.state_f[NOW])
    for entry in range(first, first + st.state_claim_entries[j]):
        _insert_change(st, st.state_entry_place[entry], 2 * entry + 1, end_s)


@part
def _first_entry(st, j):
    """Return the first entry of the claim of job `j`: there is one a task, and two more."""
    return st.w_stage_task0[st.w_job_stage0[j]] + 2 * j


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
    _free_now(st, TOGETHER, together)
    while True:
        moves = True
        while moves:
            before = begin
            begin, change = _first_begin(st, j, TOGETHER, change, begin)
            if st.state_i[HARD_CAPS]:
                _free_now(st, AT_BEGIN, share)
                begin, _ = _first_begin(st, j, AT_BEGIN, st.state_place_first[share], begin)
            if QUOTAS:
                begin = _first_within_quota(st, j, begin)
            moves = st.state_i[HARD_CAPS] and begin > before
        if begin == math.inf:
            return begin
        if _is_within_share(st, j, begin) and (begin > AS_IT_IS or may_start(st, j)):
            if is_counted:
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
            _apply(st, row, change)
            change = st.state_change_next[change]
        lacks, later, time = _lacks_room(st, row, j), change, begin
        if not lacks and st.state_i[N_AHEAD] > 0:
            for r in range(len(st.state_free)):
                st.state_room[WITHIN, r] = st.state_room[row, r]
            while not lacks and later >= 0 and st.state_change_time[later] < end:
                _apply(st, WITHIN, later)
                time = st.state_change_time[later]
                lacks = not later & 1 and _lacks_room(st, WITHIN, j)
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
            taken[org, r] = st.state_org_used[org, r]
        while change >= 0 and st.state_change_time[change] <= time:
            for r in range(len(st.state_free)):
                room = st.state_entry_room[change >> 1, r]
                taken[org, r] += -room if change & 1 else room
            change = st.state_change_next[change]
    for node in range(len(st.c_node_parent)):
        above = st.c_node_parent[node]
        if above >= 0:
            for r in range(len(st.state_free)):
                taken[above, r] += max(taken[node, r] - st.c_node_local[node, r], 0)
    for r in range(len(st.state_free)):
        amount = width(st, j) * st.w_job_slot[j, r]
        if not within_quota(st, taken, st.w_job_org[j], r, amount):
            return False
    return True


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
    if st.state_i[HARD_CAPS] and _free_slots(st, j, share, begin, end) < width(st, j):
        return False
    return not (QUOTAS and _exceeds_quota(st, j, begin, end) < math.inf)


@part
def _count_slots(st, j, begin, until_enough):
    """Count the slots of job `j` that stay free from `begin` to its expected end.

    Sets the slots that stay free, and the least room, on all machines; with `until_enough` on the
    first machines, that have enough of them.
    """
    end, n_free, n_slots = planned_end(st, begin, j), 0, width(st, j)
    for machine in range(st.state_mach_free.shape[0]):
        n_free += _free_slots(st, j, machine, begin, end)
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
                for entry in range(_first_entry(st, st.state_entry_job[last]), last):
                    place = st.state_entry_place[entry]
                    if place >= st.state_mach_free.shape[0]:
                        continue
                    if not is_marked:
                        st.state_place_slots[place] = -1
                    elif st.state_place_slots[place] < 0:
                        n_free -= most_slots_on(st, j, place)
                        n_free += _free_slots(st, j, place, AS_IT_IS, end)
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
        n_free += _free_slots(st, j, st.state_recount[i], begin, end)
    return n_free, after, later


@part
def _leave_out(st, change, n_free, n):
    """Leave the machines of a change out of the count `n_free`; list them after `n` others."""
    last = change >> 1  # the entry of all machines
    for entry in range(_first_entry(st, st.state_entry_job[last]), last):
        place = st.state_entry_place[entry]
        if place < st.state_mach_free.shape[0] and st.state_place_slots[place] >= 0:
            n_free -= st.state_place_slots[place]
            st.state_place_slots[place] = -1
            st.state_recount[n] = place
            n += 1
    return n_free, n


@part
def _free_slots(st, j, place, begin, end):
    """Return how many slots of job `j`, at most all, stay free on a place from `begin` to `end`.

    Sets that number, and the least room that the place has meanwhile. Of devices the room of all of
    a machine counts; as it is now, that of each.
    """
    min_room, is_machine = st.state_place_room, place < st.state_mach_free.shape[0]
    if is_machine and not _may_hold(st, j, place, begin, end):
        st.state_place_slots[place] = 0
        return 0
    _free_now(st, AT_BEGIN, place)
    change = st.state_place_first[place]
    while change >= 0 and st.state_change_time[change] <= begin:
        _apply(st, AT_BEGIN, change)
        change = st.state_change_next[change]
    for r in range(len(st.state_free)):
        min_room[place, r] = st.state_room[AT_BEGIN, r]
    while change >= 0 and st.state_change_time[change] < end:
        _apply(st, AT_BEGIN, change)
        if not change & 1:
            for r in range(len(st.state_free)):
                min_room[place, r] = min(min_room[place, r], st.state_room[AT_BEGIN, r])
        change = st.state_change_next[change]
    n_slots = width(st, j)
    for r in range(len(st.state_free)):
        slot = st.w_job_slot[j, r]
        if slot > 0 and n_slots * slot > min_room[place, r]:
            n_slots = max(min_room[place, r], 0) // slot
    if CHOOSES and st.state_i[CONSTRAINED] and is_machine and begin == AS_IT_IS and n_slots > 0:
        n_slots = min(n_slots, n_by_devices(st, st.w_job_slot, j, place))
    st.state_place_slots[place] = n_slots
    return n_slots


@part
def _may_hold(st, j, machine, begin, end):
    """Tell whether `machine` is there and open to job `j`, and of a class for its slots."""
    if _is_absent(st, machine, WINDOWS and begin > AS_IT_IS):
        return False
    if WINDOWS and is_closed(st, j, machine, max(begin, st.state_f[NOW]), end):
        return False
    if CHOOSES and st.state_i[CONSTRAINED]:
        return st.w_job_allowed[j] & st.c_mach_class[machine] != 0
    return True


@part
def _is_absent(st, machine, is_planned):
    """Tell whether `machine` is lost or drained, for a plan only by what was not foreseen."""
    lost = st.state_mach_lost[machine]
    return lost & UNFORESEEN != 0 if is_planned else lost != 0


@part
def _free_now(st, row, place):
    """Set ``state_room[row]`` to that of a place now: of a machine, a share, or all machines."""
    n_machines = st.state_mach_free.shape[0]
    for r in range(len(st.state_free)):
        if place < n_machines:
            st.state_room[row, r] = st.state_mach_free[place, r]
        elif place < len(st.state_place_first) - 1:
            org = place - n_machines
            st.state_room[row, r] = st.c_org_cap[org, r] - st.state_org_used[org, r]
        else:
            st.state_room[row, r] = st.state_free[r]


@part
def _apply(st, row, change):
    """Add what a change frees, or take what it claims, in the room of its place."""
    entry = change >> 1
    for r in range(len(st.state_free)):
        if change & 1:
            st.state_room[row, r] += st.state_entry_room[entry, r]
        else:
            st.state_room[row, r] -= st.state_entry_room[entry, r]


@part
def _lacks_room(st, row, j):
    for r in range(len(st.state_free)):
        slot = st.w_job_slot[j, r]
        if slot > 0 and width(st, j) * slot > st.state_room[row, r]:
            return True
    return False


@part
def _choose_places(st, j):
    """Fill the entries of the claim of job `j`, whose free slots have been counted."""
    left = width(st, j)
    entry, machine = _first_entry(st, j), -1
    while left > 0:
        machine = _next_machine(st, j, machine)
        n_slots = min(st.state_place_slots[machine], left)
        st.state_place_slots[machine] = 0
        left -= n_slots
        _fill_entry(st, j, entry, machine, n_slots)
        entry += 1
    _close_claim(st, j, entry)


@part
def claim_pinned(st, j):
    """Fill the entries of the claim of pinned job `j`, which is to start where it fits."""
    slot, entry = st.w_stage_task0[st.w_job_stage0[j]], _first_entry(st, j)
    end = slot + width(st, j)
    while slot < end:
        machine, n_slots = st.state_pin_machine[slot], 0
        while slot < end and st.state_pin_machine[slot] == machine:
            slot += 1
            n_slots += 1
        _fill_entry(st, j, entry, machine, n_slots)
        entry += 1
    _close_claim(st, j, entry)


@part
def _close_claim(st, j, entry):
    """Fill the last entries of the claim of job `j`, from `entry` on: of its share, and of all."""
    n_machines, together = st.state_mach_free.shape[0], len(st.state_place_first) - 1
    if st.state_i[HARD_CAPS]:
        _fill_entry(st, j, entry, n_machines + st.w_job_org[j], width(st, j))
        entry += 1
    _fill_entry(st, j, entry, together, width(st, j))
    st.state_claim_entries[j] = entry + 1 - _first_entry(st, j)


@part
def _fill_entry(st, j, entry, place, n_slots):
    st.state_entry_job[entry] = j
    st.state_entry_place[entry] = place
    st.state_entry_slots[entry] = n_slots
    for r in range(len(st.state_free)):
        st.state_entry_room[entry, r] = n_slots * st.w_job_slot[j, r]


@part
def _takes_first(st):
    """Tell whether jobs take the first machines with free slots."""
    rule = st.state_i[MACHINE_CHOICE]
    return rule != BEST_FIT and rule != LEAST_DOT and rule != FASTEST


@inlined
def _next_machine(st, j, machine):
    """Return the machine that takes tasks of job `j` after `machine`, of those with free slots."""
    if _takes_first(st):
        machine += 1
        while st.state_place_slots[machine] == 0:
            machine += 1
        return machine
    best, best_score = -1, 0.0
    for other in range(st.state_mach_free.shape[0]):
        if st.state_place_slots[other] > 0:
            score = _score(st, j, other)
            if best < 0 or score < best_score:
                best, best_score = other, score
    return best


@inlined
def _score(st, j, machine):
    if st.state_i[MACHINE_CHOICE] == FASTEST:
        return -speed_on(st, st.w_job_stage0[j], machine)
    total = 0.0
    for r in range(len(st.state_free)):
        room, slot = st.state_place_room[machine, r], st.w_job_slot[j, r]
        if st.state_i[MACHINE_CHOICE] == BEST_FIT:
            total += (room - slot) * st.c_mach_scale[r]
        else:
            total += (room * st.c_mach_scale[r]) * (slot * st.c_mach_scale[r])
    return total


@part
def _list_claim(st, j, begin):
    """Insert the changes of the claim of job `j`, whose entries are filled."""
    end = max(claimed_until(st, begin, j), st.state_f[NOW])
    first = _first_entry(st, j)
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
