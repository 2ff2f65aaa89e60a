"""Jobs beyond their caps: they keep their place in their queue, and others go past them.

Stages of a bucket have jobs in the same groups (`sim.engine.layout.caps`), so that where one of
them exceeds a cap all do; a job that begins to count as running moves to other buckets. Waiting
gangs, each of a size of its own, are looked at one by one.
"""

# mypy: disable-error-code="no-untyped-def"

from sim.base.jit import part
from sim.engine.kernels.buckets import is_waiting_gang, regroup
from sim.engine.kernels.caps import BLOCKS, PASSES, WITHIN, count_running, over_cap
from sim.engine.kernels.features import GANGS
from sim.engine.kernels.resources import demand_row
from sim.engine.kernels.waiting import goes_before, is_listed


@part
def over_to_start(st, g):
    """Tell whether the next task of stage `g`, or all slots of its gang, exceed a cap."""
    j = st.w_stage_job[g]
    if GANGS and is_waiting_gang(st, j):
        return over_cap(st, j, st.w_job_total, j, 1)
    return over_cap(st, j, st.w_stage_demand, demand_row(st, g), 1)


@part
def is_passed_over(st, g):
    """Tell whether stage `g` exceeds a cap beyond which others pass it."""
    return over_to_start(st, g) == PASSES


@part
def waits_for_cap(st, j):
    """Tell whether rigid job `j` exceeds a cap, or is behind one of its queue that blocks it."""
    over = over_to_start(st, st.state_job_ready_head[j])
    if over == BLOCKS:
        st.state_queue_blocked[st.w_job_org[j]] = 1
    return over != WITHIN or st.state_queue_blocked[st.w_job_org[j]] != 0


@part
def note_running(st, j):
    """Follow the first start, or the last stop, of tasks and slots of job `j`."""
    runs = st.state_job_left[j] > 0 and (
        st.state_job_started[j] > 0 or (GANGS and st.state_job_idle_held[j] >= 0)
    )
    if runs == (st.state_job_counted[j] > 0):
        return
    count_running(st, j, 1 if runs else -1)
    if not is_listed(st):
        regroup(st, j)


@part
def first_gang_within(st, root, best):
    """Return the first gang before stage `best` in the heap of `root` not passed over, or `best`.

    `best` is -1 for none.
    """
    stack, size = st.state_stage_stack, 1
    stack[0] = root
    while size > 0:
        size -= 1
        g = stack[size]
        if best >= 0 and not goes_before(st, g, best):
            continue  # nor do those below it
        if not is_passed_over(st, g):
            best = g
            continue
        for child in (st.state_stage_child[g], st.state_stage_sibling[g]):
            if child >= 0:
                stack[size] = child
                size += 1
    return best
