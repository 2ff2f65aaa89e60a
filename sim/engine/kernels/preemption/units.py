"""Units of tasks that stop together, those that a job may preempt, and their order."""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.faults.work import CANCEL, SUSPEND, ran_s, saved_s
from sim.engine.kernels.features import CHECKPOINTS, GANGS, QUOTAS
from sim.engine.kernels.jobs import HELD
from sim.engine.kernels.quotas import is_borrowing, lends_to
from sim.engine.kernels.state import N_HOLDERS, N_OVER, PREEMPTS_BY, VICTIMS

BY_LEVEL, BY_SHARE, BY_LEVEL_IN_QUEUE, BY_LIMIT, BY_QUOTA = 1, 2, 4, 8, 16
LOWEST_LEVEL, LAST_STARTED, LEAST_LOST, FEWEST_MACHINES = range(4)
UNLISTED = -2


@inlined
def list_units(st, g):
    """List the units that the job of stage `g` may preempt, with their slots; return how many."""
    j, n = st.w_stage_job[g], 0
    if st.state_i[PREEMPTS_BY] == BY_LIMIT and st.state_i[N_OVER] == 0:
        return 0
    for machine in range(len(st.state_mach_slot)):
        slot = st.state_mach_slot[machine]
        while slot >= 0:
            k = st.w_stage_job[st.state_slot_stage[slot]]
            if may_preempt(st, j, k) or may_evict(st, j, k):
                unit, leaves = slot, st.state_slot_leaves[slot]
                if st.state_slot_flag[slot] & HELD or st.p_job_when_preempted[k] == CANCEL:
                    unit, leaves = len(st.state_slot_task) + k, st.state_job_leaves[k]
                if leaves == math.inf and (unit == slot or may_preempt(st, j, k)):
                    n = _add_slot(st, n, unit, slot)
            slot = st.state_slot_next[slot]
    if GANGS:
        for i in range(st.state_i[N_HOLDERS]):
            k = st.state_holder[i]
            holds = st.state_job_idle_held[k] > 0 and st.state_job_leaves[k] == math.inf
            if holds and may_preempt(st, j, k):
                n = _add_slot(st, n, len(st.state_slot_task) + k, -1)
    if st.state_i[VICTIMS] == LEAST_LOST:
        for i in range(n):
            st.state_unit_rank[st.state_unit[i]] = _lost_us(st, st.state_unit[i])
    elif st.state_i[VICTIMS] == FEWEST_MACHINES:
        for i in range(n):
            st.state_unit_rank[st.state_unit[i]] = _n_machines(st, st.state_unit[i])
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
def may_preempt(st, j, k):
    """Tell whether job `j` may preempt job `k`, uses of queues aside."""
    if j == k:
        return False
    by = st.state_i[PREEMPTS_BY]
    if by & BY_SHARE and st.w_job_preempts[j] and st.state_job_queue[j] != st.state_job_queue[k]:
        return True
    if QUOTAS and by & BY_QUOTA and st.w_job_preempts[j]:
        org, other = st.w_job_org[j], st.w_job_org[k]
        if org != other and lends_to(st, org, other) and is_borrowing(st, other):
            return True
    return is_below(st, j, k)


@part
def may_evict(st, j, k):
    """Tell whether job `j`, below its run limit, may stop a task of job `k`, above its own."""
    if st.state_i[PREEMPTS_BY] != BY_LIMIT or not st.w_job_preempts[j] or j == k:
        return False
    if st.state_job_running[k] - st.state_job_evicted[k] <= st.p_job_run_limit[k]:
        return False
    is_below_limit = st.state_job_running[j] < st.p_job_run_limit[j]
    return is_below_limit and st.state_job_started[j] < st.p_job_start_gate[j]


@part
def is_below(st, j, k):
    """Tell whether job `j` may preempt job `k` by their levels."""
    if st.p_job_preempt_level[k] >= below(st, j):
        return False
    in_queue = st.state_job_queue[j] == st.state_job_queue[k]
    by = st.state_i[PREEMPTS_BY]
    return by & BY_LEVEL != 0 or (by & BY_LEVEL_IN_QUEUE != 0 and in_queue)


@part
def below(st, j):
    """Return the level below which job `j` preempts others: its own at most."""
    if not st.w_job_preempts[j]:
        return -math.inf
    return min(st.p_job_preempts_below[j], st.p_job_preempt_level[j])


@part
def job_of(st, unit):
    """Return the job of `unit`."""
    n_slots = len(st.state_slot_task)
    return unit - n_slots if unit >= n_slots else st.w_stage_job[st.state_slot_stage[unit]]


@part
def took_room_s(st, unit):
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
def _nth(st, unit):
    """Return when `unit` took its room in the order of all placements."""
    j = unit - len(st.state_slot_task)
    if GANGS and j >= 0 and st.state_job_idle_held[j] >= 0:
        return st.state_job_nth[j]
    latest, slot = -1, st.state_unit_first[unit]
    while slot >= 0:
        latest = max(latest, st.state_slot_nth[slot])
        slot = st.state_unit_next[slot]
    return latest


@inlined
def _lost_us(st, unit):
    """Return the work that is lost if `unit` stops now, whole microseconds of its tasks."""
    lost, slot = 0, st.state_unit_first[unit]
    while slot >= 0:
        lost += math.floor(1e6 * (ran_s(st, slot) - _kept_s(st, slot)))
        slot = st.state_unit_next[slot]
    return lost


@inlined
def _n_machines(st, unit):
    """Return on how many machines tasks of `unit`, which lists them by machine, run."""
    n, last, slot = 0, -1, st.state_unit_first[unit]
    while slot >= 0:
        n += st.state_slot_machine[slot] != last
        last = st.state_slot_machine[slot]
        slot = st.state_unit_next[slot]
    return n


@part
def _kept_s(st, slot):
    k = st.w_stage_job[st.state_slot_stage[slot]]
    if not CHECKPOINTS or st.p_job_when_preempted[k] == CANCEL:
        return 0.0
    suspends = st.p_job_when_preempted[k] == SUSPEND
    return saved_s(st, slot, 0.0 if suspends else st.w_job_checkpoint[k])


@part
def stops_before(st, a, b):
    """Tell whether unit `a` stops before unit `b`."""
    rule = st.state_i[VICTIMS]
    rank_a, rank_b, job_a, job_b = 0, 0, job_of(st, a), job_of(st, b)
    if rule in (LEAST_LOST, FEWEST_MACHINES):
        rank_a, rank_b = st.state_unit_rank[a], st.state_unit_rank[b]
    if rule == LEAST_LOST and rank_a != rank_b:
        return rank_a < rank_b
    level_a, level_b = st.p_job_preempt_level[job_a], st.p_job_preempt_level[job_b]
    if rule != LAST_STARTED and level_a != level_b:
        return level_a < level_b
    if rank_a != rank_b:
        return rank_a < rank_b
    if rule == FEWEST_MACHINES and job_a != job_b:
        return job_a < job_b
    return _nth(st, a) > _nth(st, b)
