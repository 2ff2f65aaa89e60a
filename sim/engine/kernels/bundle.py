"""The tasks that a machine takes at once: of the best, the set of greatest score that fits.

The best stages, with how many of their tasks count, stand in the ``state_pick_`` fields, best
first. The search goes through the numbers of tasks of each stage in turn, from all to none, and
leaves a branch when even all that is left of it would not beat what it has found.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.devices import may_run
from sim.engine.kernels.features import CHOOSES
from sim.engine.kernels.resources import demand_row
from sim.engine.kernels.score import (
    eta,
    first_queue,
    is_served,
    may_start,
    owed_queue,
    start_charged,
    worth_of,
)
from sim.engine.kernels.state import ALIGNED, BUNDLE, LEFTS, PICKY, WORTHS

_ANY = 2**60
"""More than any demand."""


@part
def pick_bundle(st, machine, n):
    """Pick what `machine` takes of the `n` found; return how many stages were looked at, or 0.

    -1 where it takes nothing because a queue is owed of which nothing fits.
    """
    first = first_queue(st, n)
    if first < 0:
        return 0
    k = _best_stages(st, machine, n, first, owed_queue(st, first))
    if k == 0:
        return -1
    _describe(st, k)
    _search(st, machine, k)
    return k


@part
def start_bundle(st, machine, k):
    """Start what was picked, until a run limit, a cap or what is owed stands against it."""
    started = False
    for i in range(k):
        g = st.state_pick_stage[i]
        for _ in range(st.state_pick_best[i]):
            if started and not _still_wanted(st, g, machine):
                return
            started = True
            st.state_f[WORTHS] += st.state_pick_worth[i]
            st.state_f[LEFTS] += st.state_pick_left[i]
            start_charged(st, g, machine)


@inlined
def _best_stages(st, machine, n, first, owed):
    """List the best of the `n` found that are served, and how many of their tasks are.

    As many as tasks make up a bundle, so that only the last may count less of them than fit.
    """
    most, weight, k, n_tasks = st.state_i[BUNDLE], eta(st), 0, 0
    best, scores, copies = st.state_pick_found, st.state_pick_score, st.state_pick_copies
    for i in range(n):
        at = st.state_scan_found[i]
        g = st.state_scan[at]
        if not is_served(st, st.state_scan_queue[at], first, owed):
            continue
        aligned = st.state_scan_score[i] if st.state_i[ALIGNED] else 1.0
        worth = worth_of(st, g, machine, aligned)
        score = worth - weight * st.state_job_remaining[st.w_stage_job[g]]
        if n_tasks >= most and not _beats(st, score, at, k - 1):
            continue
        if not may_start(st, g):
            continue
        st.state_scan_score[i] = worth
        fitting = _copies_that_fit(st, machine, g)
        n_tasks += fitting
        while k > 0 and n_tasks - copies[k - 1] >= most and _beats(st, score, at, k - 1):
            k -= 1
            n_tasks -= copies[k]
        to = k
        k += 1
        while to > 0 and _beats(st, score, at, to - 1):
            scores[to] = scores[to - 1]
            best[to] = best[to - 1]
            copies[to] = copies[to - 1]
            to -= 1
        scores[to] = score
        best[to] = i
        copies[to] = fitting
    if k > 0:
        copies[k - 1] -= max(0, n_tasks - most)
    return k


@inlined
def _beats(st, score, at, i):
    other = st.state_pick_score[i]
    return score > other or (score == other and at < st.state_scan_found[st.state_pick_found[i]])


@inlined
def _copies_that_fit(st, machine, g):
    """Count how many tasks of stage `g` fit `machine`, of at most a bundle."""
    row = demand_row(st, g)
    copies = min(st.state_i[BUNDLE], st.state_stage_waiting[g])
    for r in range(st.c_dot.shape[1]):
        free, demand = max(st.state_mach_free[machine, r], 0), st.w_stage_demand[row, r]
        while copies * demand > free:
            copies -= 1
    return copies


@inlined
def _describe(st, k):
    """Note what the `k` listed stages are, and what their tasks count in the running means."""
    for i in range(k):
        g = st.state_scan[st.state_scan_found[st.state_pick_found[i]]]
        st.state_pick_stage[i] = g
        st.state_pick_worth[i] = st.state_scan_score[st.state_pick_found[i]]
        st.state_pick_left[i] = st.state_job_remaining[st.w_stage_job[g]]


@part
def _search(st, machine, k):
    """Set ``state_pick_best`` to the numbers of tasks of greatest total score that fit."""
    score, total, rest = st.state_pick_score, st.state_pick_total, st.state_pick_rest
    n = 0  # of those with a positive score
    for i in range(k):
        st.state_pick_best[i] = 0
        if score[i] > 0:
            n = i + 1
    st.state_pick_best[0] = 1
    if _takes_one(st, machine, n):
        return
    rest[n] = 0.0
    for i in range(n - 1, -1, -1):
        rest[i] = rest[i + 1] + st.state_pick_copies[i] * score[i]
    for r in range(st.state_pick_room.shape[1]):
        st.state_pick_room[0, r] = max(st.state_mach_free[machine, r], 0)
        _value(st, r, n)
    total[0], most = 0.0, 0.0
    i, depth = 0, 0
    while n > 0:
        while i < n and _may_reach(st, depth, i, most):
            copies = _fitting_copies(st, depth, i)
            if copies > 0:
                _take(st, depth, i, copies)
                depth += 1
            i += 1
        if total[depth] > most:
            most = total[depth]
            _keep(st, depth, n)
        if depth == 0:
            return
        depth -= 1
        i = st.state_pick_at[depth]
        if st.state_pick_now[depth] > 1:
            _take(st, depth, i, st.state_pick_now[depth] - 1)
            depth += 1
        i += 1


@inlined
def _takes_one(st, machine, n):
    """Tell whether no two tasks of the first `n` stages fit `machine`: it takes the best then."""
    for r in range(st.state_pick_room.shape[1]):
        least, second = _ANY, _ANY
        for i in range(n):
            demand = st.w_stage_demand[demand_row(st, st.state_pick_stage[i]), r]
            if st.state_pick_copies[i] > 1:
                second = min(second, demand)
            if demand < least:
                least, second = demand, min(least, second)
            elif demand < second:
                second = demand
        if least + second > max(st.state_mach_free[machine, r], 0):
            return True
    return n < 2 and st.state_pick_copies[0] < 2


@inlined
def _value(st, r, n):
    """Note the least of resource `r` that each stage and those after it ask for, and its value.

    That is the most that a quantum brings; infinity where one of those stages asks for none.
    """
    per, least = 0.0, st.state_pick_room[0, r]
    for i in range(n - 1, -1, -1):
        g = st.state_pick_stage[i]
        demand = st.w_stage_demand[demand_row(st, g), r]
        per = max(per, st.state_pick_score[i] / demand) if demand > 0 else math.inf
        least = min(least, demand)
        st.state_pick_per[i, r] = per
        st.state_pick_least[i, r] = least


@part
def _may_reach(st, depth, i, most):
    """Tell whether stages from `i` on may bring the total up to `most`."""
    # the slack keeps what rounding alone puts below the best
    wanted = most * (1 - 1e-9) - st.state_pick_total[depth]
    if st.state_pick_rest[i] * (1 + 1e-9) < wanted:
        return False
    for r in range(st.state_pick_room.shape[1]):
        room, per = st.state_pick_room[depth, r], st.state_pick_per[i, r]
        if room < st.state_pick_least[i, r]:
            return False
        if per < math.inf and per * room * (1 + 1e-9) < wanted:
            return False
    return True


@part
def _fitting_copies(st, depth, i):
    row = demand_row(st, st.state_pick_stage[i])
    copies = st.state_pick_copies[i]
    for r in range(st.state_pick_room.shape[1]):
        demand, room = st.w_stage_demand[row, r], st.state_pick_room[depth, r]
        while copies * demand > room:
            copies -= 1
    return copies


@part
def _take(st, depth, i, copies):
    row = demand_row(st, st.state_pick_stage[i])
    st.state_pick_at[depth] = i
    st.state_pick_now[depth] = copies
    for r in range(st.state_pick_room.shape[1]):
        used = copies * st.w_stage_demand[row, r]
        st.state_pick_room[depth + 1, r] = st.state_pick_room[depth, r] - used
    total = st.state_pick_total[depth]
    for _ in range(copies):
        total += st.state_pick_score[i]
    st.state_pick_total[depth + 1] = total


@inlined
def _keep(st, depth, n):
    for i in range(n):
        st.state_pick_best[i] = 0
    for d in range(depth):
        st.state_pick_best[st.state_pick_at[d]] = st.state_pick_now[d]


@inlined
def _still_wanted(st, g, machine):
    """Tell whether a task of stage `g` may start on `machine` after others of its bundle have."""
    if CHOOSES and st.state_i[PICKY] and not may_run(st, g, machine):
        return False
    if st.state_scan_at[g] < 0 or not may_start(st, g):
        return False
    mine = st.state_job_where[st.w_stage_job[g]]
    owed = owed_queue(st, mine)
    return owed < 0 or owed == mine
