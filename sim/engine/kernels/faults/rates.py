"""Rates of running tasks: slow periods, and overbooked machines.

In a slow period everything runs at a speed that changes at times known beforehand. On an overbooked
machine, tasks that demand an overbooked resource run slower. Its fungible resource r of capacity C,
of which its tasks hold D > C, lets each task that demands it run at C / D of its speed; a task goes
at the least of its resources' rates, and an elastic job at the least rate of its places. So the
real use of r stays within C. Rates are updated once an instant, after placement, on the machines
where something was acquired or released. A task that will end earlier than its entry in the heap of
ends says gets a new one; the old one is stale, and dropped when it comes up. One that will end
later keeps its entry, which is postponed when it comes up.
"""

from sim.base.jit import inlined, part
from sim.engine.kernels.heaps import fin_pop, fin_push
from sim.engine.kernels.resources import demand_row
from sim.engine.kernels.state import N_FIN, N_RIGID, N_TOUCHED, NOW, SPEED_INDEX


@inlined
def advance_speed(st):
    """Advance to the speed of the present instant."""
    i = st.state_i[SPEED_INDEX]
    while i + 1 < len(st.c_speed) and st.c_speed_time[i + 1] <= st.state_f[NOW]:
        i += 1
    st.state_i[SPEED_INDEX] = i


@part
def finish_time(st, begin, work):
    """Return the time at which `work` seconds at full speed, begun at `begin`, are done."""
    i, time = st.state_i[SPEED_INDEX], begin
    while i + 1 < len(st.c_speed) and st.c_speed_time[i + 1] <= begin:
        i += 1
    while i + 1 < len(st.c_speed):
        until = st.c_speed_time[i + 1]
        end = time + work / st.c_speed[i]
        if end <= until:
            return end
        work -= (until - time) * st.c_speed[i]
        time = until
        i += 1
    return time + max(work, 0.0) / st.c_speed[i]


@part
def done_since(st, since):
    """Return the seconds at full speed that fit between `since` and now."""
    i, now = st.state_i[SPEED_INDEX], st.state_f[NOW]
    done = 0.0
    while i > 0 and st.c_speed_time[i] > since:
        done += (now - st.c_speed_time[i]) * st.c_speed[i]
        now = st.c_speed_time[i]
        i -= 1
    return done + (now - since) * st.c_speed[i]


ENDED = -1.0


@part
def begin_task(st, slot, start, duration):
    """Let the task in `slot` start at `start`, now or later, at its machine's last rate.

    It takes `duration` seconds at full speed.
    """
    machine = st.state_slot_machine[slot]
    first = st.state_mach_slot[machine]
    st.state_slot_prev[slot] = -1
    st.state_slot_next[slot] = first
    if first >= 0:
        st.state_slot_prev[first] = slot
    st.state_mach_slot[machine] = slot
    st.state_slot_left[slot] = duration
    st.state_slot_since[slot] = start
    st.state_slot_rate[slot] = rate_on(st, st.state_slot_stage[slot], machine)
    expect_end(st, slot)


@part
def leave_machine(st, slot):
    """Take the task in `slot`, which ends, off the list of its machine."""
    after, before = st.state_slot_next[slot], st.state_slot_prev[slot]
    if before >= 0:
        st.state_slot_next[before] = after
    else:
        st.state_mach_slot[st.state_slot_machine[slot]] = after
    if after >= 0:
        st.state_slot_prev[after] = before


@inlined
def clear_end(st, slot):
    """Make all entries of `slot` in the heap of ends stale."""
    st.state_slot_end[slot] = ENDED
    st.state_slot_entry[slot] = ENDED


@part
def update_rates(st):
    """After a placement: set the rates of the machines that it touched, and of their tasks."""
    for i in range(st.state_i[N_TOUCHED]):
        machine = st.state_touched[i]
        st.state_mach_touched[machine] = 0
        if not rates_changed(st, machine):
            continue
        slot = st.state_mach_slot[machine]
        while slot >= 0:
            set_rate(st, slot, rate_on(st, st.state_slot_stage[slot], machine))
            slot = st.state_slot_next[slot]
    st.state_i[N_TOUCHED] = 0


@part
def set_rate(st, slot, rate):
    """Let the task in `slot` go on at a rate from now on."""
    if rate != st.state_slot_rate[slot]:
        st.state_slot_left[slot] = remaining_s(st, slot)
        st.state_slot_rate[slot] = rate
        expect_end(st, slot)


@part
def drop_stale(st):
    """Drop stale entries until the first entry of the heap of ends, if any, is an end."""
    while st.state_i[N_FIN] > 0:
        if st.state_fin_time[0] == st.state_slot_end[st.state_fin_slot[0]]:
            return
        _pop(st)


@part
def collect_ended(st):
    """List the slots whose tasks end now, by task, in ``state_ended``; return how many."""
    now, n = st.state_f[NOW], 0
    ended, task = st.state_ended, st.state_slot_task
    while st.state_i[N_FIN] > 0 and st.state_fin_time[0] <= now:
        slot = _pop(st)
        if slot < 0:
            continue
        clear_end(st, slot)  # an equal entry may follow
        k = n
        while k > 0 and task[ended[k - 1]] > task[slot]:
            ended[k] = ended[k - 1]
            k -= 1
        ended[k] = slot
        n += 1
    return n


@inlined
def _pop(st):
    """Take the first entry off the heap; return its slot if its task ends then, -1 otherwise."""
    time = st.state_fin_time[0]
    slot = fin_pop(st)
    end = st.state_slot_end[slot]
    if end == time:
        return slot
    if st.state_slot_entry[slot] == time:  # postponed
        st.state_slot_entry[slot] = end
        fin_push(st, end, slot)
    return -1


@part
def rates_changed(st, machine):
    """Set the rates of the fungible resources of `machine`; tell whether one changed."""
    changed = False
    for r in range(st.state_i[N_RIGID], st.state_mach_free.shape[1]):
        capacity = st.c_capacity[machine, r]
        demanded = capacity - st.state_mach_free[machine, r]
        capacity = max(capacity, 1)
        rate = capacity / demanded if demanded > capacity else 1.0
        if rate != st.state_mach_rate[machine, r]:
            st.state_mach_rate[machine, r] = rate
            changed = True
    return changed


@part
def rate_on(st, g, machine):
    """Return the rate of a task of stage `g` on `machine`: the least of its resources' rates."""
    row = demand_row(st, g)
    rate = 1.0
    for r in range(st.state_i[N_RIGID], st.state_mach_free.shape[1]):
        if st.w_stage_demand[row, r] > 0:
            rate = min(rate, st.state_mach_rate[machine, r])
    return rate


@part
def remaining_s(st, slot):
    """Return the remaining duration of the task in `slot`, in seconds at full speed."""
    if st.state_slot_since[slot] > st.state_f[NOW]:
        return st.state_slot_left[slot]  # it launches
    ran = done_since(st, st.state_slot_since[slot])
    return max(0.0, st.state_slot_left[slot] - st.state_slot_rate[slot] * ran)


@part
def expect_end(st, slot):
    """Put the end of the task in `slot`, at its rate from now on, into the heap."""
    begin = max(st.state_f[NOW], st.state_slot_since[slot])
    st.state_slot_since[slot] = begin
    end = finish_time(st, begin, st.state_slot_left[slot] / st.state_slot_rate[slot])
    st.state_slot_end[slot] = end
    entry = st.state_slot_entry[slot]
    if entry != ENDED and entry <= end:
        return
    st.state_slot_entry[slot] = end
    if st.state_i[N_FIN] == len(st.state_fin_time):
        _rebuild(st)
    else:
        fin_push(st, end, slot)


@part
def _rebuild(st):
    """Rebuild the heap of ends without stale entries."""
    st.state_i[N_FIN] = 0
    for machine in range(len(st.state_mach_slot)):
        slot = st.state_mach_slot[machine]
        while slot >= 0:
            st.state_slot_entry[slot] = st.state_slot_end[slot]
            fin_push(st, st.state_slot_end[slot], slot)
            slot = st.state_slot_next[slot]
