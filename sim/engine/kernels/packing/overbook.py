"""Overbooking: one more task for a full machine, beyond the capacity of a fungible resource.

The gain is the work that the task does while it would wait for room; the cost is the delay of the
task itself and of those that run there already (DAGPS, §5; the formula is in
`sim.engine.plan.queues`). An elastic job is one of them on the machine of its first place.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.buckets import is_listed_before
from sim.engine.kernels.components import component_of
from sim.engine.kernels.elastic import is_elastic, pace_of, width_of
from sim.engine.kernels.faults.rates import remaining_s
from sim.engine.kernels.features import ELASTIC, TIERS
from sim.engine.kernels.packing.fitting import drop_capped, find_rigid, first_tier
from sim.engine.kernels.packing.score import (
    eta,
    first_queue,
    is_eligible,
    owed_queue,
    task_worth,
)
from sim.engine.kernels.resources import demand_row
from sim.engine.kernels.speeds import run_s
from sim.engine.kernels.state import EXPECTED, N_REFUSED, N_RIGID
from sim.engine.kernels.turns import next_task
from sim.engine.kernels.worth import remaining_over_worth

SLACK = 1.0 - 1e-9
"""Factor of a bound, so that rounding can't take it beyond the truth."""


@part
def best_overbooking(st, machine):
    """Return the stage whose next task gains most on `machine`, -1 for none."""
    n = drop_capped(st, machine, find_rigid(st, machine, st.state_i[N_REFUSED]))
    if n == 0:
        return -1
    if TIERS:
        n = first_tier(st, n)
    first = first_queue(st, n)
    owed = owed_queue(st, first, st.state_bucket_root[st.state_bucket_position[st.state_match[0]]])
    n_residents = _load_residents(st, machine)
    if n_residents == 0:
        return -1
    _sum_residents(st, machine, n_residents)
    best, best_score = -1, 0.0
    for i in range(n):
        position = st.state_bucket_position[st.state_match[i]]
        if is_eligible(st, position, first, owed):
            best, best_score = _best_of(st, machine, position, n_residents, best, best_score)
    return best


@inlined
def _best_of(st, machine, position, n_residents, best, best_score):
    """Return the stage that gains most, of `best` and the bucket at `position`, and its score."""
    root = st.state_bucket_root[position]
    wait, weight = _wait_s(st, root, machine, n_residents), eta(st)
    max_delay, max_stretch = _min_delay_s(st, root, machine)
    stack, size = st.state_stage_stack, 1
    stack[0] = root
    while size > 0:
        size -= 1
        g = stack[size]
        for child in (st.state_stage_child[g], st.state_stage_sibling[g]):
            if child >= 0:
                stack[size] = child
                size += 1
        saved = wait * st.p_stage_weight[g]
        own = _duration_s(st, g, machine) * (max_stretch * SLACK - 1.0) * st.p_stage_weight[g]
        max_gain = saved - (max_delay + own)
        if max_gain <= 0:
            continue
        penalty = weight * remaining_over_worth(st, st.w_stage_job[g])
        if best >= 0 and task_worth(st, g, machine, max_gain) - penalty < best_score:
            continue
        gain = saved - _delay_s(st, g, machine, n_residents, saved)
        if gain <= 0:
            continue
        score = task_worth(st, g, machine, gain) - penalty
        if (
            best < 0
            or score > best_score
            or (score == best_score and is_listed_before(st, g, best))
        ):
            best, best_score = g, score
    return best, best_score


@inlined
def _load_residents(st, machine):
    """List the tasks on `machine`: remaining duration and end of each, and their order by end."""
    _set_rates(st, machine, -1)
    n = 0
    slot = st.state_mach_slot[machine]
    while slot >= 0:
        left = remaining_s(st, slot)
        end = left / _resident_rate(st, slot, machine)
        st.state_resident_slot[n] = slot
        st.state_resident_left[n] = left
        st.state_resident_end[n] = end
        k = n
        while k > 0 and st.state_resident_end[st.state_resident_order[k - 1]] > end:
            st.state_resident_order[k] = st.state_resident_order[k - 1]
            k -= 1
        st.state_resident_order[k] = n
        n += 1
        slot = st.state_slot_next[slot]
    return n


@inlined
def _sum_residents(st, machine, n_residents):
    """Sum for each fungible resource the room and the remaining work of the listed tasks."""
    for r in range(st.state_i[N_RIGID], st.state_mach_free.shape[1]):
        free, work, end_sum = st.state_mach_free[machine, r], 0.0, 0.0
        for i in range(n_residents):
            k = st.state_resident_order[i]
            slot = st.state_resident_slot[k]
            resident_stage = st.state_slot_stage[slot]
            demand = st.w_stage_demand[demand_row(st, resident_stage), r]
            if ELASTIC and is_elastic(st, st.w_stage_job[resident_stage]):
                demand = 0  # another machine may be the slowest; no job gets faster
            if demand > 0:
                work += st.state_resident_left[k] * st.p_stage_weight[resident_stage]
                end_sum += st.state_resident_end[k] * st.p_stage_weight[resident_stage]
                if not st.state_slot_flag[slot] & 2:  # a held slot stays held
                    free += demand
            st.state_resident_free[r, i] = free
        st.state_resident_work[r] = work
        st.state_resident_end_sum[r] = end_sum


@part
def _wait_s(st, g, machine, n_residents):
    """Return the time until a task of stage `g` fits, if nothing else starts, s."""
    row = demand_row(st, g)
    wait = 0.0
    for r in range(st.state_i[N_RIGID], st.c_alignment_scale.shape[1]):
        demand = st.w_stage_demand[row, r]
        if demand == 0 or demand <= st.state_mach_free[machine, r]:
            continue
        i = 0
        while i < n_residents - 1 and st.state_resident_free[r, i] < demand:
            i += 1
        wait = max(wait, st.state_resident_end[st.state_resident_order[i]])
    return wait


@part
def _min_delay_s(st, g, machine):
    """Return by how much, at least, a task of stage `g` delays those on `machine`, and itself.

    Weighted seconds, by the resource that delays most, and a factor of its own duration.
    """
    row = demand_row(st, g)
    max_delay, max_stretch = 0.0, 1.0
    for r in range(st.state_i[N_RIGID], st.state_mach_free.shape[1]):
        demand = st.w_stage_demand[row, r]
        if demand == 0:
            continue
        capacity = st.c_capacity[machine, r]
        demanded = capacity - st.state_mach_free[machine, r] + demand
        capacity = max(capacity, 1)
        if demanded > capacity:
            stretch = demanded / capacity
            max_stretch = max(max_stretch, stretch)
            delay = (
                st.state_resident_work[r] * stretch * SLACK - st.state_resident_end_sum[r] / SLACK
            )
            max_delay = max(max_delay, delay)
    return max_delay, max_stretch


@part
def _delay_s(st, g, machine, n_residents, saved):
    """Return the weighted delay of all tasks on `machine` if a task of stage `g` starts, s.

    Some number from `saved` on where it is that much.
    """
    _set_rates(st, machine, demand_row(st, g))
    duration = _duration_s(st, g, machine)
    delay = (duration / _rate(st, g) - duration) * st.p_stage_weight[g]
    for i in range(n_residents):
        if delay >= saved:
            break
        resident_stage = st.state_slot_stage[st.state_resident_slot[i]]
        end = st.state_resident_left[i] / _resident_rate(st, st.state_resident_slot[i], machine)
        delay += (end - st.state_resident_end[i]) * st.p_stage_weight[resident_stage]
    return delay


@part
def _duration_s(st, g, machine):
    """Return the (expected, if the policy sets it) duration of the next task of stage `g`, s."""
    return (
        st.p_stage_expected_s[g]
        if st.state_i[EXPECTED]
        else run_s(st, g, machine, st.w_task_duration[next_task(st, g, machine)])
    )


@part
def _set_rates(st, machine, row):
    """Set ``state_resident_rate`` to the rates of `machine`, with the demand in `row` if any."""
    for r in range(st.state_i[N_RIGID], st.state_mach_free.shape[1]):
        capacity = st.c_capacity[machine, r]
        demanded = capacity - st.state_mach_free[machine, r]
        if row >= 0:
            demanded += st.w_stage_demand[row, r]
        capacity = max(capacity, 1)
        st.state_resident_rate[r] = capacity / demanded if demanded > capacity else 1.0


@part
def _rate(st, g):
    """Return the rate of a task of stage `g` at ``state_resident_rate``."""
    row = demand_row(st, g)
    rate = 1.0
    for r in range(st.state_i[N_RIGID], st.state_mach_free.shape[1]):
        if st.w_stage_demand[row, r] > 0:
            rate = min(rate, st.state_resident_rate[r])
    return rate


@part
def _resident_rate(st, slot, machine):
    """Return the rate of the task in `slot`, on `machine`, at ``state_resident_rate`` there.

    An elastic job goes at its pace, and at the least rate of its places.
    """
    g = st.state_slot_stage[slot]
    j, rate = st.w_stage_job[g], _rate(st, g)
    if not (ELASTIC and is_elastic(st, j)):
        return rate
    entry = st.w_slot0[component_of(st, g)]
    for i in range(entry, entry + width_of(st, j) - 1):
        if st.state_held_machine[i] != machine:
            rate = min(rate, _rate_beside(st, g, st.state_held_machine[i]))
    return rate * pace_of(st, j)


@part
def _rate_beside(st, g, machine):
    """Return the rate of a task of stage `g` on another `machine`, as that is now."""
    row, rate = demand_row(st, g), 1.0
    for r in range(st.state_i[N_RIGID], st.state_mach_free.shape[1]):
        capacity = st.c_capacity[machine, r]
        demanded = capacity - st.state_mach_free[machine, r]
        capacity = max(capacity, 1)
        if st.w_stage_demand[row, r] > 0 and demanded > capacity:
            rate = min(rate, capacity / demanded)
    return rate
