"""Whether a machine that is full takes one more task, which would overbook a fungible resource.

It gains the work that the task does while it would wait for room, and loses what the task itself
and those that are there already are late with (DAGPS, §5; the formula is
`sim.engine.plan.queues`'s).
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import inlined, part
from sim.engine.kernels.lifecycle import next_task
from sim.engine.kernels.rates import left_of
from sim.engine.kernels.resources import demand_row
from sim.engine.kernels.scanlist import find_rigid
from sim.engine.kernels.score import eta, first_queue, is_served, may_start, owed_queue, worth_of
from sim.engine.kernels.state import N_RIGID, SEEN

LESS = 1.0 - 1e-9
"""What a bound is multiplied by, so that rounding can't take it beyond the truth."""


@part
def best_overbooking(st, machine):
    """Return the place of the stage by whose next task `machine` gains most, -1 for none."""
    n = find_rigid(st, machine)
    first = first_queue(st, n)
    if first < 0:
        return -1
    owed = owed_queue(st, first)
    n_here = _look_at(st, machine)
    if n_here == 0:
        return -1
    _sum_up(st, machine, n_here)
    weight = eta(st)
    best, best_score = -1, 0.0
    for i in range(n):
        at = st.state_scan_found[i]
        g = st.state_scan[at]
        if not is_served(st, st.state_scan_queue[at], first, owed):
            continue
        saved = _wait(st, g, machine, n_here) * st.p_stage_weight[g]
        most = saved - _least_late(st, g, machine)
        if most <= 0:
            continue
        less = weight * st.state_job_remaining[st.w_stage_job[g]]
        if best >= 0 and worth_of(st, g, machine, most) - less < best_score:
            continue
        if not may_start(st, g):
            continue
        gain = saved - _late(st, g, machine, n_here, saved)
        if gain <= 0:
            continue
        score = worth_of(st, g, machine, gain) - less
        if best < 0 or score > best_score or (score == best_score and at < best):
            best, best_score = at, score
    return best


@inlined
def _look_at(st, machine):
    """List the tasks on `machine`, what is left of each, when it ends, and their order by end."""
    _set_rates(st, machine, -1)
    n = 0
    slot = st.state_mach_slot[machine]
    while slot >= 0:
        left = left_of(st, slot)
        end = left / _rate(st, st.state_slot_stage[slot])
        st.state_here_slot[n] = slot
        st.state_here_left[n] = left
        st.state_here_end[n] = end
        at = n
        while at > 0 and st.state_here_end[st.state_here_order[at - 1]] > end:
            st.state_here_order[at] = st.state_here_order[at - 1]
            at -= 1
        st.state_here_order[at] = n
        n += 1
        slot = st.state_slot_next[slot]
    return n


@inlined
def _sum_up(st, machine, n_here):
    """Sum, for each fungible resource, what the listed tasks give back and have left."""
    for r in range(st.state_i[N_RIGID], st.state_mach_free.shape[1]):
        free, work, due = st.state_mach_free[machine, r], 0.0, 0.0
        for i in range(n_here):
            at = st.state_here_order[i]
            slot = st.state_here_slot[at]
            h = st.state_slot_stage[slot]
            demand = st.w_stage_demand[demand_row(st, h), r]
            if demand > 0:
                work += st.state_here_left[at] * st.p_stage_weight[h]
                due += st.state_here_end[at] * st.p_stage_weight[h]
                if not st.state_slot_flag[slot] & 2:  # a held slot stays held
                    free += demand
            st.state_here_free[r, i] = free
        st.state_here_work[r] = work
        st.state_here_due[r] = due


@part
def _wait(st, g, machine, n_here):
    """Return how long it takes until a task of stage `g` fits, if nothing else starts, s."""
    row = demand_row(st, g)
    wait = 0.0
    for r in range(st.state_i[N_RIGID], st.c_dot.shape[1]):
        demand = st.w_stage_demand[row, r]
        if demand == 0 or demand <= st.state_mach_free[machine, r]:
            continue
        i = 0
        while i < n_here - 1 and st.state_here_free[r, i] < demand:
            i += 1
        wait = max(wait, st.state_here_end[st.state_here_order[i]])
    return wait


@part
def _least_late(st, g, machine):
    """Bound from below what `_late` returns, by the resource that holds up most."""
    row = demand_row(st, g)
    most, longest = 0.0, 1.0
    for r in range(st.state_i[N_RIGID], st.state_mach_free.shape[1]):
        demand = st.w_stage_demand[row, r]
        if demand == 0:
            continue
        has = st.c_capacity[machine, r]
        demanded = has - st.state_mach_free[machine, r] + demand
        has = max(has, 1)
        if demanded > has:
            times = demanded / has
            longest = max(longest, times)
            late = st.state_here_work[r] * times * LESS - st.state_here_due[r] / LESS
            most = max(most, late)
    return most + _lasts(st, g, machine) * (longest * LESS - 1.0) * st.p_stage_weight[g]


@part
def _late(st, g, machine, n_here, saved):
    """Return the work that all on `machine` are late with if a task of stage `g` starts.

    Some number from `saved` on where it is that much.
    """
    _set_rates(st, machine, demand_row(st, g))
    lasts = _lasts(st, g, machine)
    late = (lasts / _rate(st, g) - lasts) * st.p_stage_weight[g]
    for i in range(n_here):
        if late >= saved:
            break
        h = st.state_slot_stage[st.state_here_slot[i]]
        end = st.state_here_left[i] / _rate(st, h)
        late += (end - st.state_here_end[i]) * st.p_stage_weight[h]
    return late


@part
def _lasts(st, g, machine):
    return (
        st.p_stage_expected_s[g]
        if st.state_i[SEEN]
        else st.w_task_duration[next_task(st, g, machine)]
    )


@part
def _set_rates(st, machine, row):
    """Set ``state_here_rate`` to the rates of `machine` with the demands of `row`, if any, too."""
    for r in range(st.state_i[N_RIGID], st.state_mach_free.shape[1]):
        has = st.c_capacity[machine, r]
        demanded = has - st.state_mach_free[machine, r]
        if row >= 0:
            demanded += st.w_stage_demand[row, r]
        has = max(has, 1)
        st.state_here_rate[r] = has / demanded if demanded > has else 1.0


@part
def _rate(st, g):
    row = demand_row(st, g)
    rate = 1.0
    for r in range(st.state_i[N_RIGID], st.state_mach_free.shape[1]):
        if st.w_stage_demand[row, r] > 0:
            rate = min(rate, st.state_here_rate[r])
    return rate
