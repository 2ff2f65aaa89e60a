"""Room on trial: which units have to stop so that a waiting gang, or task, can start."""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, late, part
from sim.engine.kernels.buckets import is_waiting_gang
from sim.engine.kernels.choosing.devices import release, take_again
from sim.engine.kernels.components import (
    component_of,
    end_component,
    first_component,
    idle_slots,
)
from sim.engine.kernels.domains import is_searched
from sim.engine.kernels.features import (
    CHOOSES,
    FLAVORS,
    GANGS,
    QUOTAS,
    REPLANS,
    RESERVES,
    RUNS_ON,
    SPREADS,
    WINDOWS,
)
from sim.engine.kernels.held_slots import slots_on
from sim.engine.kernels.jobs import HELD
from sim.engine.kernels.preemption.units import (
    BY_QUOTA,
    BY_SHARE,
    UNLISTED,
    is_below,
    job_of,
    may_evict,
    stops_before,
    took_room_s,
)
from sim.engine.kernels.quotas import column, column_on, may_reclaim
from sim.engine.kernels.resources import demand_row, fits, is_kept, move, within_cap
from sim.engine.kernels.rigid.room import FREED, find_slots
from sim.engine.kernels.selected import is_shut
from sim.engine.kernels.spread import is_beside_itself
from sim.engine.kernels.state import CONSTRAINED, NOW, PREEMPTS_BY, RESERVATIONS
from sim.engine.kernels.waiting import queue_use

closed_by_end = late("sim.engine.kernels.rigid.reserve.is_closed_to_start", RESERVES)
closed_in_plan = late("sim.engine.kernels.rigid.replan.is_closed_to_start", REPLANS)


@inlined
def release_enough(st, g, n_units):
    """Give back units until stage `g` can start, in ``state_victim``; return how many, 0 for none.

    None if it could start without, or not at all.
    """
    if n_units == 0:
        return 0
    total = 0
    for machine in range(len(st.state_mach_slot)):
        st.state_mach_room[machine] = room_on(st, g, machine)
        total += st.state_mach_room[machine]
    if can_start(st, g, total):
        return 0
    org_share, queue_share = _own_shares(st, g)
    n = 0
    for left in range(n_units, 0, -1):
        best = 0
        for i in range(1, left):
            if stops_before(st, st.state_unit[i], st.state_unit[best]):
                best = i
        unit = st.state_unit[best]
        st.state_unit[best] = st.state_unit[left - 1]
        st.state_unit[left - 1] = unit
        before = _share_before(st, g, unit)
        total += _give_back(st, g, unit)
        if not _has_right(st, g, unit, before, org_share, queue_share):
            total += _take_again(st, g, unit)
            continue
        st.state_victim[n] = unit
        st.state_job_evicted[job_of(st, unit)] += 1
        n += 1
        if can_start(st, g, total):
            return n
    for i in range(n - 1, -1, -1):
        _take_again(st, g, st.state_victim[i])
    return 0


@inlined
def spare(st, g, n):
    """Take back units that need not stop, then all; return how many of ``state_victim`` stop."""
    total = 0
    for machine in range(len(st.state_mach_slot)):
        total += st.state_mach_room[machine]
    for i in range(n - 1, -1, -1):
        unit = st.state_victim[i]
        change = _take_again(st, g, unit)
        if can_start(st, g, total + change):
            total += change
            st.state_victim[i] = UNLISTED
        else:
            _give_back(st, g, unit)
    n_left = 0
    for i in range(n):
        if st.state_victim[i] != UNLISTED:
            st.state_victim[n_left] = st.state_victim[i]
            n_left += 1
    for i in range(n_left):
        _take_again(st, g, st.state_victim[i])
    return n_left


@part
def room_on(st, g, machine):
    """Count the slots of the gang of stage `g`, or its tasks (one at most), with room there now."""
    j = st.w_stage_job[g]
    if (WINDOWS or RUNS_ON) and _is_closed(st, j, machine):
        return 0
    if GANGS and is_waiting_gang(st, j):
        if is_searched(st, j):
            return 1  # they are looked for together (`can_start`)
        return slots_on(st, j, first_component(st, j), machine)
    row = demand_row(st, g)
    if SPREADS and is_beside_itself(st, j, machine):
        return 0
    if is_kept(st, st.w_stage_demand, row, machine) or not fits(st, row, machine):
        return 0
    return 1


@part
def _is_closed(st, j, machine):
    """Tell whether a window closes `machine` to job `j`, by its expected end if jobs have one."""
    if REPLANS:
        return closed_in_plan(st, j, machine)
    if RESERVES and st.state_i[RESERVATIONS] > 0:
        return closed_by_end(st, j, machine)
    return is_shut(st, j, machine)


@part
def can_start(st, g, total):
    """Tell whether stage `g` can start where so many of its slots find room.

    ``state_mach_room`` has those of each machine (`room_on`).
    """
    j = st.w_stage_job[g]
    if GANGS and is_waiting_gang(st, j):
        fits = total >= st.w_job_min_tasks[j]
        if is_searched(st, j):
            fits = find_slots(st, j, FREED)
        return fits and within_cap(st, j, st.w_job_total, j, 1)
    return total >= 1 and within_cap(st, j, st.w_stage_demand, demand_row(st, g), 1)


@part
def _has_right(st, g, unit, before, org_share, queue_share):
    """Tell whether the job of stage `g` may preempt `unit`, whose room is given back.

    By their shares not what starts now, nor where its stop does not lower the share of its queue,
    which was `before`: it could take the room back in turn. `_own_shares` are those of `g`.
    """
    j, k = st.w_stage_job[g], job_of(st, unit)
    if is_below(st, j, k) or may_evict(st, j, k):
        return True
    by = st.state_i[PREEMPTS_BY]
    if not by & (BY_SHARE | BY_QUOTA) or took_room_s(st, unit) == st.state_f[NOW]:
        return False
    if QUOTAS and by & BY_QUOTA:
        return before > 0.0 and _keeps_quota(st, g)
    theirs = _share_of(st, j, k)
    if theirs == before:
        return False
    return (org_share if st.w_job_org[j] != st.w_job_org[k] else queue_share) <= theirs


@inlined
def _own_shares(st, g):
    """Return use over weight of the organisation of stage `g`, and of its queue, if that starts.

    What it stops of its own counts, too: that may start again, and others take the room back.
    """
    if not st.state_i[PREEMPTS_BY] & BY_SHARE:
        return 0.0, 0.0
    org, queue = st.w_job_org[st.w_stage_job[g]], st.state_job_queue[st.w_stage_job[g]]
    org_share = _use_with(st, g, st.state_org_used, org) / st.c_org_weight[org]
    weight = st.p_queue_weight[queue % len(st.p_queue_weight)]
    return org_share, _use_with(st, g, st.state_queue_used, queue) / weight


@part
def _keeps_quota(st, g):
    """Tell whether the queue of stage `g` stays within its quota if that starts."""
    j = st.w_stage_job[g]
    if GANGS and is_waiting_gang(st, j):
        return may_reclaim(st, j, st.w_job_total, j, 1)
    return may_reclaim(st, j, st.w_stage_demand, demand_row(st, g), 1)


@part
def _share_before(st, g, unit):
    """Return the share of the queue of `unit` while it goes on, 0 where shares don't matter.

    By quotas 1 if it has borrowed what both take.
    """
    by = st.state_i[PREEMPTS_BY]
    if QUOTAS and by & BY_QUOTA:
        return 1.0 if _has_borrowed(st, g, unit) else 0.0
    if not by & BY_SHARE:
        return 0.0
    return _share_of(st, st.w_stage_job[g], job_of(st, unit))


@part
def _has_borrowed(st, g, unit):
    """Tell whether the queue of `unit` has borrowed a resource that both it and stage `g` take."""
    j, org = st.w_stage_job[g], st.w_job_org[job_of(st, unit)]
    is_gang = GANGS and is_waiting_gang(st, j)
    for r in range(st.c_alignment_scale.shape[1]):
        needed = st.w_job_slot[j, r] if is_gang else st.w_stage_demand[demand_row(st, g), r]
        k = column(st, r)
        is_over = st.state_node_taken[org, k] > st.c_node_nominal[org, k]
        if needed > 0 and is_over and _takes(st, unit, r, k):
            return True
    return False


@part
def _takes(st, unit, r, k):
    """Tell whether `unit` takes resource `r` of column `k`: its slots of a gang, or its tasks."""
    j, slot = unit - len(st.state_slot_task), st.state_unit_first[unit]
    is_gang = GANGS and j >= 0 and st.state_job_idle_held[j] >= 0
    if is_gang and not FLAVORS:
        return st.w_job_slot[j, r] > 0
    if is_gang and _holds_column(st, j, r, k):
        return True
    while slot >= 0:
        demand = st.w_stage_demand[demand_row(st, st.state_slot_stage[slot]), r]
        if is_gang:
            demand = st.w_job_slot[j, r]
        if demand > 0 and column_on(st, st.state_slot_machine[slot], r) == k:
            return True
        slot = st.state_unit_next[slot]
    return False


@part
def _holds_column(st, j, r, k):
    """Tell whether gang `j` takes resource `r` of column `k` by an idle slot."""
    for c in range(first_component(st, j), end_component(st, j)):
        for i in range(st.w_slot0[c], st.w_slot0[c] + idle_slots(st, j, c)):
            if st.w_job_slot[j, r] > 0 and column_on(st, st.state_held_machine[i], r) == k:
                return True
    return False


@part
def _share_of(st, j, k):
    """Return the use over weight of the queue of job `k`, where it is another than job `j`'s."""
    org, queue = st.w_job_org[k], st.state_job_queue[k]
    if st.w_job_org[j] != org:
        return queue_use(st, st.state_org_used, org) / st.c_org_weight[org]
    weight = st.p_queue_weight[queue % len(st.p_queue_weight)]
    return queue_use(st, st.state_queue_used, queue) / weight


@part
def _use_with(st, g, used, row):
    """Return the use in row `row` of `used` if stage `g` started, too."""
    j = st.w_stage_job[g]
    if GANGS and is_waiting_gang(st, j):
        _add(used, row, st.w_job_total, j, 1)
        use = queue_use(st, used, row)
        _add(used, row, st.w_job_total, j, -1)
        return use
    _add(used, row, st.w_stage_demand, demand_row(st, g), 1)
    use = queue_use(st, used, row)
    _add(used, row, st.w_stage_demand, demand_row(st, g), -1)
    return use


@part
def _add(used, row, demand, demand_row_, times):
    for r in range(used.shape[1]):
        used[row, r] += times * demand[demand_row_, r]


@part
def _give_back(st, g, unit):
    """Give back the room of `unit`; return by how many slots of stage `g` the room grows."""
    return _move_unit(st, g, unit, -1)


@part
def _take_again(st, g, unit):
    """Take the room of `unit` again; return by how many slots of stage `g` the room grows."""
    return _move_unit(st, g, unit, 1)


@part
def _move_unit(st, g, unit, sign):
    change, n_slots = 0, len(st.state_slot_task)
    if GANGS and unit >= n_slots:
        k = unit - n_slots
        for c in range(first_component(st, k), end_component(st, k)):
            base = st.w_slot0[c]
            for i in range(base, base + idle_slots(st, k, c)):
                machine = st.state_held_machine[i]
                bits = st.state_held_devices[i] if CHOOSES else 0
                change += _move_slot(st, g, k, machine, st.w_slot, c, bits, sign)
    slot = st.state_unit_first[unit]
    while slot >= 0:
        h, machine = st.state_slot_stage[slot], st.state_slot_machine[slot]
        k, bits = st.w_stage_job[h], st.state_slot_devices[slot] if CHOOSES else 0
        if GANGS and st.state_slot_flag[slot] & HELD:
            c = component_of(st, h)
            change += _move_slot(st, g, k, machine, st.w_slot, c, bits, sign)
        else:
            row = demand_row(st, h)
            change += _move_slot(st, g, k, machine, st.w_stage_demand, row, bits, sign)
        slot = st.state_unit_next[slot]
    return change


@part
def _move_slot(st, g, k, machine, demand, row, bits, sign):
    """Move the demand in `row` of job `k` on `machine`; return the change of `room_on`."""
    if CHOOSES and st.state_i[CONSTRAINED]:
        if sign < 0:
            release(st, demand, row, machine, bits)
        else:
            take_again(st, demand, row, machine, bits)
    move(st, k, machine, demand, row, sign)
    old = st.state_mach_room[machine]
    st.state_mach_room[machine] = room_on(st, g, machine)
    return st.state_mach_room[machine] - old
