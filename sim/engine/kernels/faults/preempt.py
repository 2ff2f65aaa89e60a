"""Preemption: running jobs are stopped for a waiting one that may take their room.

What stops as one is a *unit*: a gang with its slots, a job that would be cancelled, or else a
single task. Units are given back on trial, in the order of `sim.engine.plan.preemption.Victims`,
until the waiting job fits; then each is taken back, the last first, if it fits without. Those that
are left stop, and the job starts. So it starts wherever it may: on the machines, devices and shares
that are free then. Nothing changes where that does not suffice.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, late, part
from sim.engine.kernels.buckets import is_waiting_gang
from sim.engine.kernels.choosing.devices import release, take_again
from sim.engine.kernels.dispatch import machine_for
from sim.engine.kernels.faults.rates import ENDED
from sim.engine.kernels.faults.restart import (
    CANCELLED,
    PREEMPTED,
    list_to_stop,
    stop_and_requeue,
    stop_gangs,
)
from sim.engine.kernels.faults.work import CANCEL, SUSPEND, ran_s, saved_s
from sim.engine.kernels.features import CAPS, CHECKPOINTS, CHOOSES, GANGS, REPLANS, RESERVES
from sim.engine.kernels.heaps import before
from sim.engine.kernels.held_slots import slots_on
from sim.engine.kernels.jobs import HELD
from sim.engine.kernels.lifecycle import start_task
from sim.engine.kernels.passing import is_passed_over
from sim.engine.kernels.release import CANCELLED_JOB
from sim.engine.kernels.resources import demand_row, fits, is_kept, move, within_cap
from sim.engine.kernels.rigid.gang import admit_waiting
from sim.engine.kernels.rigid.rigid import is_holding
from sim.engine.kernels.state import (
    BARRED,
    CONSTRAINED,
    FIRST_LEAVING,
    HARD_CAPS,
    N_CLAIMANTS,
    N_LEAVING,
    NOW,
    PREEMPTS_BY,
    RESERVATIONS,
    VICTIMS,
)
from sim.engine.kernels.timeouts import end_job
from sim.engine.kernels.waiting import goes_before, is_listed, queue_use

start_reserved = late("sim.engine.kernels.rigid.reserve.start_first", RESERVES)
start_replanned = late("sim.engine.kernels.rigid.replan.start_first", REPLANS)

BY_LEVEL, BY_SHARE, BY_LEVEL_IN_QUEUE = 1, 2, 4
LOWEST_LEVEL, LAST_STARTED, LEAST_LOST = range(3)
UNLISTED = -2


@inlined
def preempt(st):
    """Preempt for the first waiting job, in order, for which that suffices; False for none."""
    st.state_i[BARRED] = 0
    n = _list_contenders(st)
    while n > 0:
        best = 0
        for i in range(1, n):
            if _goes_first(st, st.state_contender[i], st.state_contender[best]):
                best = i
        g = st.state_contender[best]
        n -= 1
        st.state_contender[best] = st.state_contender[n]
        if preempt_for(st, g):
            return True
    return False


@part
def preempt_for(st, g):
    """Stop jobs so that the gang of stage `g`, or its next task, can start; start it.

    Tell whether it did: nothing changes otherwise, or if it could start without. With a grace time
    it starts later, when they have stopped.
    """
    if st.state_job_claims[st.w_stage_job[g]] > st.state_f[NOW]:
        return False
    n_units = _list_units(st, g)
    n_victims = _release_enough(st, g, n_units)
    if n_victims > 0:
        n_victims = _spare(st, g, n_victims)
    for i in range(n_units):
        st.state_unit_first[st.state_unit[i]] = UNLISTED
    if n_victims == 0:
        return False
    if st.p_grace[0] > 0.0:
        _give_notice(st, st.w_stage_job[g], n_victims)
        return False
    for i in range(n_victims):
        _stop(st, st.state_victim[i])
    if GANGS:
        stop_gangs(st, PREEMPTED)
    return _start(st, g)


# ---- the waiting jobs


@inlined
def _list_contenders(st):
    """List the first stage of each waiting job that may preempt somebody; return their number."""
    n, lowest = 0, _lowest_level(st)
    if lowest == math.inf:
        return 0
    for j in range(len(st.state_contender)):
        is_ready = st.state_job_turn[j] >= 0 and st.state_job_left[j] > 0
        if not is_ready or st.state_job_wait_queue[j] < 0 or st.state_job_ready_head[j] < 0:
            continue
        if is_listed(st) and is_holding(st, j):
            continue
        if _below(st, j) > lowest or st.state_i[PREEMPTS_BY] & BY_SHARE:
            st.state_contender[n] = _first_ready(st, j)
            n += not (CAPS and is_passed_over(st, st.state_contender[n]))
    return n


@inlined
def _lowest_level(st):
    """Return the lowest level of a job that runs or holds slots, inf if none does."""
    lowest = math.inf
    for k in range(len(st.state_contender)):
        if is_holding(st, k):
            lowest = min(lowest, st.p_job_preempt_level[k])
    return lowest


@part
def _first_ready(st, j):
    """Return the first ready stage of job `j` in its order."""
    g = st.state_job_ready_head[j]
    other = st.state_stage_ready_next[g]
    while other >= 0:
        if before(st, other, g):
            g = other
        other = st.state_stage_ready_next[other]
    return g


@part
def _goes_first(st, a, b):
    """Tell whether waiting stage `a` comes before `b`; jobs with hard shares are merged by rank."""
    if is_listed(st) and st.state_i[HARD_CAPS]:
        return before(st, a, b)
    return goes_before(st, a, b)


# ---- what may stop


@inlined
def _list_units(st, g):
    """List the units that the job of stage `g` may preempt, with their slots; return how many."""
    j, n = st.w_stage_job[g], 0
    for machine in range(len(st.state_mach_slot)):
        slot = st.state_mach_slot[machine]
        while slot >= 0:
            k = st.w_stage_job[st.state_slot_stage[slot]]
            if _may_preempt(st, j, k):
                unit, leaves = slot, st.state_slot_leaves[slot]
                if st.state_slot_flag[slot] & HELD or st.p_job_when_preempted[k] == CANCEL:
                    unit, leaves = len(st.state_slot_task) + k, st.state_job_leaves[k]
                if leaves == math.inf:
                    n = _add_slot(st, n, unit, slot)
            slot = st.state_slot_next[slot]
    if GANGS:
        for k in range(len(st.w_job_min_tasks)):
            holds = st.state_job_idle_held[k] > 0 and st.state_job_leaves[k] == math.inf
            if holds and _may_preempt(st, j, k):
                n = _add_slot(st, n, len(st.state_slot_task) + k, -1)
    if st.state_i[VICTIMS] == LEAST_LOST:
        for i in range(n):
            st.state_unit_lost[st.state_unit[i]] = _lost_us(st, st.state_unit[i])
    return n


@part
def _add_slot(st, n, unit, slot):
    """Add `slot` (-1 for none) to `unit`, the `n`-th if it is new; return the number of units."""
    if st.state_unit_first[unit] == UNLISTED:
        st.state_unit_first[unit] = -1
        st.state_unit[n] = unit
        n += 1
    if slot >= 0:
        st.state_unit_next[slot] = st.state_unit_first[unit]
        st.state_unit_first[unit] = slot
    return n


@part
def _may_preempt(st, j, k):
    """Tell whether job `j` may preempt job `k`, uses of queues aside."""
    if j == k:
        return False
    by_share = st.state_i[PREEMPTS_BY] & BY_SHARE != 0 and st.w_job_preempts[j] != 0
    if by_share and st.state_job_queue[j] != st.state_job_queue[k]:
        return True
    return _is_below(st, j, k)


@part
def _is_below(st, j, k):
    if st.p_job_preempt_level[k] >= _below(st, j):
        return False
    in_queue = st.state_job_queue[j] == st.state_job_queue[k]
    by = st.state_i[PREEMPTS_BY]
    return by & BY_LEVEL != 0 or (by & BY_LEVEL_IN_QUEUE != 0 and in_queue)


@part
def _below(st, j):
    """Return the level below which job `j` preempts others: its own at most."""
    if not st.w_job_preempts[j]:
        return -math.inf
    return min(st.p_job_preempts_below[j], st.p_job_preempt_level[j])


@part
def _job_of(st, unit):
    n_slots = len(st.state_slot_task)
    return unit - n_slots if unit >= n_slots else st.w_stage_job[st.state_slot_stage[unit]]


@part
def _started_s(st, unit):
    """Return when `unit` took its room: a gang its slots, other tasks the last of them."""
    j = unit - len(st.state_slot_task)
    if GANGS and j >= 0 and st.state_job_idle_held[j] >= 0:
        return st.state_job_admitted[j]
    latest, slot = -math.inf, st.state_unit_first[unit]
    while slot >= 0:
        latest = max(latest, st.state_slot_placed[slot])
        slot = st.state_unit_next[slot]
    return latest


@part
def _first_task(st, unit):
    n_slots = len(st.state_slot_task)
    if unit < n_slots:
        return st.state_slot_task[unit]
    return st.w_stage_task0[st.w_job_stage0[unit - n_slots]]


@inlined
def _lost_us(st, unit):
    """Return the work that is lost if `unit` stops now, whole microseconds of its tasks."""
    lost, slot = 0, st.state_unit_first[unit]
    while slot >= 0:
        lost += math.floor(1e6 * (ran_s(st, slot) - _kept_s(st, slot)))
        slot = st.state_unit_next[slot]
    return lost


@part
def _kept_s(st, slot):
    k = st.w_stage_job[st.state_slot_stage[slot]]
    if not CHECKPOINTS or st.p_job_when_preempted[k] == CANCEL:
        return 0.0
    suspends = st.p_job_when_preempted[k] == SUSPEND
    return saved_s(st, slot, 0.0 if suspends else st.w_job_checkpoint[k])


@part
def _stops_before(st, a, b):
    """Tell whether unit `a` stops before unit `b`."""
    rule = st.state_i[VICTIMS]
    if rule == LEAST_LOST and st.state_unit_lost[a] != st.state_unit_lost[b]:
        return st.state_unit_lost[a] < st.state_unit_lost[b]
    level_a = st.p_job_preempt_level[_job_of(st, a)]
    level_b = st.p_job_preempt_level[_job_of(st, b)]
    start_a, start_b = _started_s(st, a), _started_s(st, b)
    if rule == LAST_STARTED and start_a != start_b:
        return start_a > start_b
    if level_a != level_b:
        return level_a < level_b
    if start_a != start_b:
        return start_a > start_b
    return _first_task(st, a) > _first_task(st, b)


# ---- room on trial


@inlined
def _release_enough(st, g, n_units):
    """Give back units until stage `g` can start, in ``state_victim``; return how many, 0 for none.

    None if it could start without, or not at all.
    """
    if n_units == 0:
        return 0
    total = 0
    for machine in range(len(st.state_mach_slot)):
        st.state_mach_room[machine] = _room_on(st, g, machine)
        total += st.state_mach_room[machine]
    if _can_start(st, g, total):
        return 0
    n = 0
    for left in range(n_units, 0, -1):
        best = 0
        for i in range(1, left):
            if _stops_before(st, st.state_unit[i], st.state_unit[best]):
                best = i
        unit = st.state_unit[best]
        st.state_unit[best] = st.state_unit[left - 1]
        st.state_unit[left - 1] = unit
        total += _give_back(st, g, unit)
        if not _has_right(st, g, unit):
            total += _take_again(st, g, unit)
            continue
        st.state_victim[n] = unit
        n += 1
        if _can_start(st, g, total):
            return n
    for i in range(n - 1, -1, -1):
        _take_again(st, g, st.state_victim[i])
    return 0


@inlined
def _spare(st, g, n):
    """Take back units that need not stop, then all; return how many of ``state_victim`` stop."""
    total = 0
    for machine in range(len(st.state_mach_slot)):
        total += st.state_mach_room[machine]
    for i in range(n - 1, -1, -1):
        unit = st.state_victim[i]
        change = _take_again(st, g, unit)
        if _can_start(st, g, total + change):
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
def _room_on(st, g, machine):
    """Count the slots of the gang of stage `g`, or its tasks (one at most), with room there now."""
    j = st.w_stage_job[g]
    if GANGS and is_waiting_gang(st, j):
        return slots_on(st, j, machine)
    row = demand_row(st, g)
    if is_kept(st, st.w_stage_demand, row, machine) or not fits(st, row, machine):
        return 0
    return 1


@part
def _can_start(st, g, total):
    """Tell whether stage `g` can start where so many of its slots find room."""
    j = st.w_stage_job[g]
    if GANGS and is_waiting_gang(st, j):
        n = st.w_job_min_tasks[j]
        return total >= n and within_cap(st, j, st.w_job_slot, j, n)
    return total >= 1 and within_cap(st, j, st.w_stage_demand, demand_row(st, g), 1)


@part
def _has_right(st, g, unit):
    """Tell whether the job of stage `g` may preempt `unit`, whose room is given back.

    By their shares not what starts now: it may be what stopped for that share.
    """
    j, k = st.w_stage_job[g], _job_of(st, unit)
    if _is_below(st, j, k):
        return True
    if _started_s(st, unit) == st.state_f[NOW]:
        return False
    org_j, org_k = st.w_job_org[j], st.w_job_org[k]
    if org_j != org_k:
        mine = _use_with(st, g, st.state_org_used, org_j) / st.c_org_weight[org_j]
        return mine <= queue_use(st, st.state_org_used, org_k) / st.c_org_weight[org_k]
    queue_j, queue_k = st.state_job_queue[j], st.state_job_queue[k]
    n, weight = len(st.p_queue_weight), st.p_queue_weight
    mine = _use_with(st, g, st.state_queue_used, queue_j) / weight[queue_j % n]
    return mine <= queue_use(st, st.state_queue_used, queue_k) / weight[queue_k % n]


@part
def _use_with(st, g, used, row):
    """Return the use in row `row` of `used` if stage `g` started, too."""
    j = st.w_stage_job[g]
    if GANGS and is_waiting_gang(st, j):
        _add(used, row, st.w_job_slot, j, st.w_job_min_tasks[j])
        use = queue_use(st, used, row)
        _add(used, row, st.w_job_slot, j, -st.w_job_min_tasks[j])
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
        base = st.w_job_held0[k]
        for i in range(base, base + st.state_job_idle_held[k]):
            machine = st.state_held_machine[i]
            bits = st.state_held_devices[i] if CHOOSES else 0
            change += _move_slot(st, g, k, machine, st.w_job_slot, k, bits, sign)
    slot = st.state_unit_first[unit]
    while slot >= 0:
        h, machine = st.state_slot_stage[slot], st.state_slot_machine[slot]
        k, bits = st.w_stage_job[h], st.state_slot_devices[slot] if CHOOSES else 0
        if GANGS and st.state_slot_flag[slot] & HELD:
            change += _move_slot(st, g, k, machine, st.w_job_slot, k, bits, sign)
        else:
            row = demand_row(st, h)
            change += _move_slot(st, g, k, machine, st.w_stage_demand, row, bits, sign)
        slot = st.state_unit_next[slot]
    return change


@part
def _move_slot(st, g, k, machine, demand, row, bits, sign):
    """Move the demand in `row` of job `k` on `machine`; return the change of `_room_on`."""
    if CHOOSES and st.state_i[CONSTRAINED]:
        if sign < 0:
            release(st, demand, row, machine, bits)
        else:
            take_again(st, demand, row, machine, bits)
    move(st, k, machine, demand, row, sign)
    old = st.state_mach_room[machine]
    st.state_mach_room[machine] = _room_on(st, g, machine)
    return st.state_mach_room[machine] - old


# ---- grace time


@inlined
def _give_notice(st, j, n_victims):
    """Let the first `n_victims` victims stop after the grace time, for job `j`."""
    time, n_slots = st.state_f[NOW] + st.p_grace[0], len(st.state_slot_task)
    st.state_job_claims[j] = time
    for i in range(n_victims):
        unit = st.state_victim[i]
        k = (st.state_i[FIRST_LEAVING] + st.state_i[N_LEAVING]) % len(st.state_leaving)
        st.state_leaving[k] = unit
        st.state_leaving_s[k] = time
        st.state_leaving_for[k] = j
        st.state_i[N_LEAVING] += 1
        if unit < n_slots:
            st.state_slot_leaves[unit] = time
        else:
            st.state_job_leaves[unit - n_slots] = time


@inlined
def next_leaving(st, before):
    """Return when the next unit stops whose grace time ends, at most `before`."""
    if st.state_i[N_LEAVING] == 0:
        return before
    return min(before, st.state_leaving_s[st.state_i[FIRST_LEAVING]])


@inlined
def stop_leaving(st):
    """Stop the units whose grace time is over, and list the jobs that they stop for."""
    while st.state_i[N_LEAVING] > 0:
        k = st.state_i[FIRST_LEAVING]
        time, unit, j = st.state_leaving_s[k], st.state_leaving[k], st.state_leaving_for[k]
        if time > st.state_f[NOW]:
            break
        st.state_i[FIRST_LEAVING] = (k + 1) % len(st.state_leaving)
        st.state_i[N_LEAVING] -= 1
        if _still_leaves(st, unit, time):
            _stop(st, unit)
        if st.state_job_claims[j] == time:
            st.state_job_claims[j] = -math.inf
            st.state_claimant[st.state_i[N_CLAIMANTS]] = j
            st.state_i[N_CLAIMANTS] += 1
    if GANGS:
        stop_gangs(st, PREEMPTED)


@part
def _still_leaves(st, unit, time):
    """Tell whether `unit` still runs that was to stop at `time`."""
    k = unit - len(st.state_slot_task)
    if k < 0:
        return st.state_slot_leaves[unit] == time and st.state_slot_end[unit] != ENDED
    if st.p_job_when_preempted[k] == CANCEL:
        return st.state_job_leaves[k] == time and st.state_job_left[k] > 0
    return GANGS and st.state_job_leaves[k] == time and st.state_job_idle_held[k] >= 0


@inlined
def start_claimants(st):
    """Start the jobs whose victims have stopped, before all others, where there is room."""
    st.state_i[BARRED] = 0
    for i in range(st.state_i[N_CLAIMANTS]):
        j = st.state_claimant[i]
        if st.state_job_left[j] == 0 or st.state_job_wait_queue[j] < 0:
            continue
        if st.state_job_ready_head[j] < 0 or (is_listed(st) and is_holding(st, j)):
            continue
        g = _first_ready(st, j)
        total = 0
        for machine in range(len(st.state_mach_slot)):
            total += _room_on(st, g, machine)
        if _can_start(st, g, total):
            _start(st, g)
    st.state_i[N_CLAIMANTS] = 0


# ---- stop and start


@inlined
def _stop(st, unit):
    n_slots = len(st.state_slot_task)
    if unit < n_slots:
        stop_and_requeue(st, unit, PREEMPTED)
    elif st.p_job_when_preempted[unit - n_slots] == CANCEL:
        end_job(st, unit - n_slots, CANCELLED, CANCELLED_JOB)
    elif GANGS:
        list_to_stop(st, unit - n_slots)


@part
def _start(st, g):
    """Start the gang of stage `g`, or its next task; False if it can't after all."""
    j = st.w_stage_job[g]
    if REPLANS:
        return start_replanned(st, j)
    if RESERVES and st.state_i[RESERVATIONS] > 0:
        return start_reserved(st, j)
    if GANGS and is_waiting_gang(st, j):
        admit_waiting(st, j)
        return True
    start_task(st, g, machine_for(st, g, demand_row(st, g), 0, False), False, 1)
    return True
