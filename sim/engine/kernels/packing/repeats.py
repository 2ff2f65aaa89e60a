"""Repeats: like tasks that a packing machine takes one after the other, as one batch.

Each start leaves less room, so the scores are computed again for each task, with the rounding of
tasks that start singly. What a start costs beyond that is paid once.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, late, part
from sim.engine.kernels.batches import startable
from sim.engine.kernels.buckets import is_by_remaining
from sim.engine.kernels.features import SCORED
from sim.engine.kernels.packing.fitting import alignment, fits_at
from sim.engine.kernels.resources import demand_row
from sim.engine.kernels.state import ALIGNED, PENDING, PRIORITY, SUM_REMAINING, SUM_WORTH
from sim.engine.kernels.worth import remaining_over_worth

eta = late("sim.engine.kernels.packing.score.eta", SCORED)


@part
def repeats(st, machine, n, g):
    """Count the tasks of stage `g` that `machine` takes before another stage scores as much.

    `g` is the best stage of the `n` listed buckets. One where starts move what decides otherwise:
    the use of several queues, priorities of tasks, remaining work without the tasks that started.
    """
    if len(st.state_queue_root) > 1 or (SCORED and (st.state_i[PRIORITY] or st.state_i[PENDING])):
        return 1
    position = st.state_bucket_position[st.state_stage_bucket[g]]
    if st.state_bucket_root[position] != g:
        return 1
    limit = startable(st, g, machine)
    if limit == 1 or (n == 1 and not SCORED):
        return limit
    next_remaining = _next_remaining(st, g) if SCORED else math.inf
    count = 1
    _take(st, g, machine, 1)
    while count < limit and _stays_best(st, machine, n, position, next_remaining):
        _take(st, g, machine, 1)
        count += 1
    _take(st, g, machine, -count)
    return count


@inlined
def _take(st, g, machine, count):
    """Take the room of `count` tasks of stage `g`, for the scores of those after them."""
    row = demand_row(st, g)
    for r in range(st.c_alignment_scale.shape[1]):
        st.state_mach_free[machine, r] -= count * st.w_stage_demand[row, r]


@inlined
def _stays_best(st, machine, n, position, next_remaining):
    """Tell whether the first stage of the bucket at `position` scores more than any other.

    The score of its next task then counts among those that have started. `next_remaining` is the
    least remaining work of any other stage of its bucket that is not in order behind it anyway.
    """
    worth, eta_now, penalty = _worth(st, machine, position), 0.0, 0.0
    if SCORED:
        eta_now = eta(st)
        remaining = remaining_over_worth(st, st.w_stage_job[st.state_bucket_root[position]])
        penalty = eta_now * remaining
        if next_remaining < math.inf and worth - eta_now * next_remaining >= worth - penalty:
            return False
    score = worth - penalty
    for i in range(n):
        other = st.state_bucket_position[st.state_match[i]]
        if other == position:
            continue
        other_score = _worth(st, machine, other)
        if SCORED:
            other_job = st.w_stage_job[st.state_bucket_root[other]]
            other_score -= eta_now * remaining_over_worth(st, other_job)
        if other_score >= score and fits_at(st, machine, other):
            return False
    if SCORED:
        st.state_f[SUM_WORTH] += worth
        st.state_f[SUM_REMAINING] += remaining
    return True


@inlined
def _worth(st, machine, position):
    """Return the worth of a task of the bucket at `position` to `machine`."""
    if SCORED and not st.state_i[ALIGNED]:
        return 1.0
    return alignment(st, machine, position)


@inlined
def _next_remaining(st, g):
    """Return the least remaining work in the bucket of `g`, its first stage, beyond that of `g`.

    Infinity without any, or if the stages of a bucket are not in the order of remaining work: they
    all have equal scores then, and `g` is first in order.
    """
    min_left = math.inf
    if not is_by_remaining(st):
        return min_left
    remaining, stack, size = remaining_over_worth(st, st.w_stage_job[g]), st.state_stage_stack, 1
    stack[0] = g
    while size > 0:
        size -= 1
        stage = stack[size]
        for child in (st.state_stage_child[stage], st.state_stage_sibling[stage]):
            if child < 0:
                continue
            left = remaining_over_worth(st, st.w_stage_job[child])
            if left == remaining:  # behind `g` in order
                stack[size] = child
                size += 1
            else:
                min_left = min(min_left, left)
    return min_left
