"""Conservation: after each instant of a checked run, what is held and what is free add up.

The use of each machine, job, queue and organisation is summed anew from the tasks that run and the
slots that gangs hold, and compared with the accounts that the event loop keeps. Runs are checked
with SIM_CHECKS=1; without it this is not compiled.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.caps import AMOUNT, MINUTES, SUBMITTED
from sim.engine.kernels.components import (
    component_of,
    end_component,
    first_component,
    idle_slots,
)
from sim.engine.kernels.elastic import is_elastic, width_of
from sim.engine.kernels.features import (
    BATCHES,
    CAPS,
    ELASTIC,
    FLAVORS,
    GANGS,
    PINS,
    POOL,
    QUOTAS,
    USAGE,
)
from sim.engine.kernels.jobs import HELD
from sim.engine.kernels.resources import demand_row
from sim.engine.kernels.state import (
    BROKEN,
    BROKEN_ROW,
    CHECKED_AT,
    EXCLUSIVES,
    FAILS,
    HARD_CAPS,
    N_RIGID,
    N_SLOT_FREE,
    NOW,
)

CONSERVED, TIME, MACHINE, OVERFULL, RUNNING, TASKS, JOB, QUEUE, ORGANISATION, CAP = range(10)
GROUP, NODE = 10, 11
"""Codes of broken accounts, in BROKEN; BROKEN_ROW: the machine, job, queue, organisation, group, or
node of the tree of quotas."""


@part
def is_broken(st):
    """Check the accounts at this instant; tell whether one is wrong, now or before."""
    if st.state_i[BROKEN] == CONSERVED:
        if not st.state_f[NOW] >= st.state_f[CHECKED_AT]:
            _break(st, TIME, 0)
        st.state_f[CHECKED_AT] = st.state_f[NOW]
        _sum_use(st)
        _check_machines(st)
        _check_jobs(st)
        if USAGE:
            _check_queues(st)
        if QUOTAS:
            _check_nodes(st)
        if CAPS:
            _check_groups(st)
    return st.state_i[BROKEN] != CONSERVED


@part
def _break(st, code, row):
    """Note a broken account, the first."""
    if st.state_i[BROKEN] == CONSERVED:
        st.state_i[BROKEN] = code
        st.state_i[BROKEN_ROW] = row


@part
def _sum_use(st):
    """Sum what each machine and each job holds, and the tasks of each job that run."""
    st.state_sum_machine[:] = 0
    st.state_sum_job[:] = 0
    st.state_sum_running[:] = 0
    st.state_sum_is_free[:] = 0
    for i in range(st.state_i[N_SLOT_FREE]):
        st.state_sum_is_free[st.state_slot_free[i]] = 1
    for slot in range(len(st.state_slot_task)):
        if st.state_sum_is_free[slot]:
            continue
        g, machine = st.state_slot_stage[slot], st.state_slot_machine[slot]
        j = st.w_stage_job[g]
        count = st.state_slot_count[slot] if BATCHES else 1
        is_unit = ELASTIC and is_elastic(st, j)
        st.state_sum_running[j] += width_of(st, j) if is_unit else count
        if GANGS and st.state_slot_flag[slot] & HELD:
            _hold(st, j, machine, st.w_slot, component_of(st, g), count)
        else:
            _hold(st, j, machine, st.w_stage_demand, demand_row(st, g), count)
    if GANGS:
        for j in range(len(st.state_job_idle_held)):
            if st.state_job_idle_held[j] < 0:
                continue
            for c in range(first_component(st, j), end_component(st, j)):
                for i in range(idle_slots(st, j, c)):
                    machine = st.state_held_machine[st.w_slot0[c] + i]
                    _hold(st, j, machine, st.w_slot, c, 1)


@part
def _hold(st, j, machine, demand, row, count):
    for r in range(demand.shape[1]):
        st.state_sum_machine[machine, r] += count * demand[row, r]
        st.state_sum_job[j, r] += count * demand[row, r]


@part
def _check_machines(st):
    """Check free + held = capacity, and that no machine gives more than it has of a rigid one."""
    for machine in range(st.state_mach_free.shape[0]):
        for r in range(st.state_mach_free.shape[1]):
            free = st.state_mach_free[machine, r]
            if free + st.state_sum_machine[machine, r] != st.c_capacity[machine, r]:
                _break(st, MACHINE, machine)
            if r < st.state_i[N_RIGID] and free < 0:
                _break(st, OVERFULL, machine)


@part
def _check_jobs(st):
    """Check the counts of each job's tasks: running, started, done and left ones."""
    for j in range(len(st.state_job_running)):
        if st.state_job_running[j] != st.state_sum_running[j]:
            _break(st, RUNNING, j)
        if st.out_job_failed[j]:
            continue
        left, first, end = 0, st.w_job_stage0[j], st.w_job_stage0[j + 1]
        for g in range(first, end):
            left += st.state_stage_left[g]
        n_tasks = st.w_stage_task0[end] - st.w_stage_task0[first]
        if left != st.state_job_left[j] or left + st.state_job_done[j] != n_tasks:
            _break(st, TASKS, j)
        # a task whose output is lost starts once more
        n_running = st.state_job_running[j]
        if ELASTIC and n_running > 0 and is_elastic(st, j):
            n_running = n_tasks
        n_started = n_running + st.state_job_done[j]
        if not st.state_i[FAILS] and st.state_job_started[j] != n_started:
            _break(st, TASKS, j)


@part
def _check_queues(st):
    """Check the use of each job, queue and organisation, and the caps of organisations."""
    st.state_sum_queue[:] = 0
    st.state_sum_org[:] = 0
    for j in range(len(st.state_job_running)):
        for r in range(st.state_job_used.shape[1]):
            used = st.state_sum_job[j, r]
            if st.state_job_used[j, r] != used:
                _break(st, JOB, j)
            st.state_sum_queue[st.state_job_queue[j], r] += used
            st.state_sum_org[st.w_job_org[j], r] += used
    for q in range(st.state_queue_used.shape[0]):
        for r in range(st.state_queue_used.shape[1]):
            if st.state_queue_used[q, r] != st.state_sum_queue[q, r]:
                _break(st, QUEUE, q)
    if POOL:  # of one organisation, whose use nobody reads
        return
    for org in range(st.state_org_used.shape[0]):
        for r in range(st.state_org_used.shape[1]):
            if st.state_org_used[org, r] != st.state_sum_org[org, r]:
                _break(st, ORGANISATION, org)
            is_capped = st.state_i[HARD_CAPS] and r < st.state_i[N_RIGID] and not PINS
            if is_capped and st.state_org_used[org, r] > st.c_org_cap[org, r]:
                _break(st, CAP, org)


@part
def _check_nodes(st):
    """Check the use of each node of the tree of quotas, and that none exceeds its limit."""
    taken = st.state_sum_node
    taken[:] = 0
    for org in range(st.state_org_used.shape[0]):
        if FLAVORS:
            for r in range(st.state_org_used.shape[1]):
                if not _adds_up(st, org, r):
                    _break(st, NODE, org)
            taken[org] = st.state_node_taken[org]
        else:
            taken[org] = st.state_org_used[org]
    for node in range(len(st.c_node_parent)):
        above = st.c_node_parent[node]
        for k in range(taken.shape[1]):
            if above >= 0:
                taken[above, k] += max(taken[node, k] - st.c_node_local[node, k], 0)
            if taken[node, k] != st.state_node_taken[node, k]:
                _break(st, NODE, node)
            is_rigid = _resource_of(st, k) < st.state_i[N_RIGID]
            is_over = is_rigid and taken[node, k] > st.c_node_limit[node, k]
            if is_over and not PINS:
                _break(st, NODE, node)


@part
def _resource_of(st, k):
    """Return the resource of a column of the quotas."""
    if FLAVORS:
        for r in range(st.c_flavor_column.shape[1]):
            for flavor in range(st.c_flavor_column.shape[0]):
                if st.c_flavor_column[flavor, r] == k:
                    return r
    return k


@part
def _adds_up(st, org, r):
    """Tell whether the use of an organisation in the columns of a resource is all that it uses."""
    total = 0
    for k in range(st.state_node_taken.shape[1]):
        for flavor in range(st.c_flavor_column.shape[0]):
            if st.c_flavor_column[flavor, r] == k:
                total += st.state_node_taken[org, k]
                break
    return total == st.state_org_used[org, r]


@part
def _check_groups(st):
    """Check the counter of each group of jobs, and that none exceeds its cap."""
    used = st.state_sum_group
    used[:] = 0
    for j in range(len(st.state_job_running)):
        for i in range(st.w_job_group0[j], st.w_job_group0[j + 1]):
            n = st.w_job_group[i]
            counts = st.c_group_counts[n]
            if counts >= AMOUNT:
                amount = st.state_sum_job[j, st.c_group_resource[n]]
                used[n] += amount * st.state_job_limit_left[j] if counts == MINUTES else amount
                is_whole = st.state_i[EXCLUSIVES] and st.w_job_exclusive[j]
                if counts == AMOUNT and is_whole and st.state_job_counted[j]:
                    used[n] += st.state_job_whole[j, st.c_group_resource[n]]
            elif counts == SUBMITTED:
                used[n] += st.state_job_turn[j] >= 0 and st.state_job_left[j] > 0
            else:
                used[n] += st.state_job_counted[j] * st.w_job_group_amount[i]
    for n in range(len(used)):
        # pinned jobs may exceed caps, and exclusive ones by what their machines have beyond them
        is_over = used[n] > st.state_group_cap[n] and not PINS and not st.state_i[EXCLUSIVES]
        is_over = is_over and len(st.c_change_s) == 0  # below what runs, perhaps
        is_over = is_over and not st.w_job_group_spared.any()
        if used[n] != st.state_group_used[n] or is_over:
            _break(st, GROUP, n)
