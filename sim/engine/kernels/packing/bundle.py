"""Bundle packing: the set of tasks of greatest total score that fits a machine at once.

The candidates are the best stages, best first, with the number of their tasks that count; they
stand in the ``state_bundle_`` fields. A branch-and-bound search goes through the number of tasks of
each stage in turn, from all to none, and leaves a branch when even all that is left of it would not
beat the best total.
"""

# mypy: disable-error-code="no-untyped-def"

import math

from sim.base.jit import inlined, part
from sim.engine.kernels.buckets import is_by_remaining, is_listed_before
from sim.engine.kernels.choosing.devices import can_run
from sim.engine.kernels.features import BATCHES, CHOOSES, SPREADS
from sim.engine.kernels.packing.fitting import alignment, is_within_cap_on
from sim.engine.kernels.packing.repeats import repeats
from sim.engine.kernels.packing.score import (
    eta,
    first_queue,
    is_eligible,
    max_worth,
    owed_queue,
    start_and_charge,
    task_worth,
)
from sim.engine.kernels.resources import demand_row, takes_room
from sim.engine.kernels.spread import is_beside_itself
from sim.engine.kernels.state import ALIGNED, BUNDLE, CONSTRAINED, SUM_REMAINING, SUM_WORTH
from sim.engine.kernels.worth import remaining_over_worth

_UNBOUNDED = 2**60
"""More than any demand."""


@part
def choose_bundle(st, machine, n):
    """Choose the tasks that `machine` takes of the `n` fitting buckets; return how many candidates.

    -1 if a queue is owed of which nothing fits.
    """
    first = first_queue(st, n)
    g = st.state_bucket_root[st.state_bucket_position[st.state_match[0]]]
    k = _best_stages(st, machine, n, first, owed_queue(st, first, g))
    if k == 0:
        return -1
    for i in range(k):
        g = st.state_bundle_stage[i]
        st.state_bundle_remaining[i] = remaining_over_worth(st, st.w_stage_job[g])
    _search(st, machine, k)
    return k


@part
def start_bundle(st, machine, n, k):
    """Start the chosen tasks, until a run limit, a cap or an owed queue forbids the next.

    A bundle of one starts all tasks of its stage before another of the `n` fitting buckets is best.
    """
    if BATCHES and st.state_i[BUNDLE] == 1:
        g = st.state_bundle_stage[0]
        st.state_f[SUM_WORTH] += st.state_bundle_worth[0]
        st.state_f[SUM_REMAINING] += st.state_bundle_remaining[0]
        start_and_charge(st, g, machine, repeats(st, machine, n, g))
        return
    started = False
    for i in range(k):
        g = st.state_bundle_stage[i]
        for _ in range(st.state_bundle_best[i]):
            if started and not _is_still_allowed(st, g, machine):
                return
            started = True
            st.state_f[SUM_WORTH] += st.state_bundle_worth[i]
            st.state_f[SUM_REMAINING] += st.state_bundle_remaining[i]
            start_and_charge(st, g, machine, 1)


@inlined
def _best_stages(st, machine, n, first, owed):
    """List the best eligible stages of the `n` buckets, and the number of their tasks that count.

    As many as tasks make up a bundle, so only the last may count fewer of its tasks than fit.
    """
    max_tasks, k, n_tasks = st.state_i[BUNDLE], 0, 0
    for i in range(n):
        position = st.state_bucket_position[st.state_match[i]]
        if not is_eligible(st, position, first, owed):
            continue
        aligned = alignment(st, machine, position) if st.state_i[ALIGNED] else 1.0
        k, n_tasks = _take_best(st, machine, position, aligned, k, n_tasks)
    if k > 0:
        st.state_bundle_max_tasks[k - 1] -= max(0, n_tasks - max_tasks)
    return k


@inlined
def _take_best(st, machine, position, aligned, k, n_tasks):
    """List the best stages of the bucket at `position` among `k` with `n_tasks`; return both.

    What is left of a heap is passed over where its first stage could not be among them: remaining
    work lowers the score of those below it as much or more.
    """
    max_tasks, eta_now = st.state_i[BUNDLE], eta(st)
    in_order = not is_by_remaining(st)
    max_value = max_worth(st, aligned)
    n_fit = _max_fitting(st, machine, st.state_bucket_root[position])
    stack, size = st.state_stage_stack, 1
    stack[0] = st.state_bucket_root[position]
    while size > 0:
        size -= 1
        g = stack[size]
        penalty = eta_now * remaining_over_worth(st, st.w_stage_job[g])
        if n_tasks >= max_tasks:
            bound = max_value - penalty
            is_below = bound < st.state_bundle_score[k - 1]
            if is_below or (in_order and not _beats(st, bound, g, k - 1)):
                continue
        for child in (st.state_stage_child[g], st.state_stage_sibling[g]):
            if child >= 0:
                stack[size] = child
                size += 1
        worth = task_worth(st, g, machine, aligned)
        score = worth - penalty
        if n_tasks >= max_tasks and not _beats(st, score, g, k - 1):
            continue
        n_more = min(n_fit, st.state_stage_waiting[g])
        k, n_tasks = _insert(st, g, score, worth, n_more, k, n_tasks)
    return k, n_tasks


@inlined
def _insert(st, g, score, worth, n_more, k, n_tasks):
    """Insert a stage with `n_more` tasks among the `k` candidates; return their new numbers."""
    max_tasks, max_counts = st.state_i[BUNDLE], st.state_bundle_max_tasks
    n_tasks += n_more
    while k > 0 and n_tasks - max_counts[k - 1] >= max_tasks and _beats(st, score, g, k - 1):
        k -= 1
        n_tasks -= max_counts[k]
    slot = k
    while slot > 0 and _beats(st, score, g, slot - 1):
        st.state_bundle_score[slot] = st.state_bundle_score[slot - 1]
        st.state_bundle_worth[slot] = st.state_bundle_worth[slot - 1]
        st.state_bundle_stage[slot] = st.state_bundle_stage[slot - 1]
        max_counts[slot] = max_counts[slot - 1]
        slot -= 1
    st.state_bundle_score[slot] = score
    st.state_bundle_worth[slot] = worth
    st.state_bundle_stage[slot] = g
    max_counts[slot] = n_more
    return k + 1, n_tasks


@part
def _beats(st, score, g, i):
    """Tell whether stage `g` of that score comes before the `i`-th candidate."""
    other = st.state_bundle_score[i]
    return score > other or (score == other and is_listed_before(st, g, st.state_bundle_stage[i]))


@inlined
def _max_fitting(st, machine, g):
    """Count the tasks of stage `g` that fit `machine`, at most a bundle."""
    row = demand_row(st, g)
    n_fit = st.state_i[BUNDLE]
    if SPREADS and st.w_job_one_per_node[st.w_stage_job[g]]:
        n_fit = 1
    for r in range(st.c_alignment_scale.shape[1]):
        free, demand = max(st.state_mach_free[machine, r], 0), st.w_stage_demand[row, r]
        while n_fit * demand > free:
            n_fit -= 1
    return n_fit


@part
def _search(st, machine, k):
    """Set ``state_bundle_best`` to the numbers of tasks of greatest total score that fit."""
    score, total, rest = (
        st.state_bundle_score,
        st.state_bundle_path_score,
        st.state_bundle_rest_score,
    )
    n = 0  # candidates with a positive score
    for i in range(k):
        st.state_bundle_best[i] = 0
        if score[i] > 0:
            n = i + 1
    st.state_bundle_best[0] = 1
    if _at_most_one_fits(st, machine, n):
        return
    rest[n] = 0.0
    for i in range(n - 1, -1, -1):
        rest[i] = rest[i + 1] + st.state_bundle_max_tasks[i] * score[i]
    for r in range(st.state_bundle_free.shape[1]):
        st.state_bundle_free[0, r] = max(st.state_mach_free[machine, r], 0)
        _set_density(st, r, n)
    total[0], best_total = 0.0, 0.0
    i, depth = 0, 0
    while True:
        while i < n and _can_beat(st, depth, i, best_total):
            n_taken = _fitting_tasks(st, depth, i)
            if n_taken > 0:
                _take(st, depth, i, n_taken)
                depth += 1
            i += 1
        if total[depth] > best_total:
            best_total = total[depth]
            _store_best(st, depth, n)
        if depth == 0:
            return
        depth -= 1
        i = st.state_bundle_path_stage[depth]
        if st.state_bundle_path_tasks[depth] > 1:
            _take(st, depth, i, st.state_bundle_path_tasks[depth] - 1)
            depth += 1
        i += 1


@inlined
def _at_most_one_fits(st, machine, n):
    """Tell whether no two tasks of the first `n` stages fit `machine`: then it takes the best."""
    for r in range(st.state_bundle_free.shape[1]):
        smallest, second = _UNBOUNDED, _UNBOUNDED
        for i in range(n):
            demand = st.w_stage_demand[demand_row(st, st.state_bundle_stage[i]), r]
            if st.state_bundle_max_tasks[i] > 1:
                second = min(second, demand)
            if demand < smallest:
                smallest, second = demand, min(smallest, second)
            elif demand < second:
                second = demand
        if smallest + second > max(st.state_mach_free[machine, r], 0):
            return True
    return n < 2 and st.state_bundle_max_tasks[0] < 2


@inlined
def _set_density(st, r, n):
    """Set the least demand for resource `r` of each candidate and those after it, and the density.

    The density is their best score per quantum, an upper bound; infinity where one demands none.
    """
    density, min_demand = 0.0, st.state_bundle_free[0, r]
    for i in range(n - 1, -1, -1):
        g = st.state_bundle_stage[i]
        demand = st.w_stage_demand[demand_row(st, g), r]
        density = max(density, st.state_bundle_score[i] / demand) if demand > 0 else math.inf
        min_demand = min(min_demand, demand)
        st.state_bundle_max_density[i, r] = density
        st.state_bundle_min_demand[i, r] = min_demand


@part
def _can_beat(st, depth, i, best_total):
    """Tell whether stages from `i` on may raise the total to `best_total`."""
    # the slack keeps branches that rounding alone puts below the best
    needed = best_total * (1 - 1e-9) - st.state_bundle_path_score[depth]
    if st.state_bundle_rest_score[i] * (1 + 1e-9) < needed:
        return False
    for r in range(st.state_bundle_free.shape[1]):
        room, density = st.state_bundle_free[depth, r], st.state_bundle_max_density[i, r]
        if room < st.state_bundle_min_demand[i, r]:
            return False
        if density < math.inf and density * room * (1 + 1e-9) < needed:
            return False
    return True


@part
def _fitting_tasks(st, depth, i):
    """Count the tasks of candidate `i` that fit the room left at that depth of the search."""
    row = demand_row(st, st.state_bundle_stage[i])
    n_fit = st.state_bundle_max_tasks[i]
    for r in range(st.state_bundle_free.shape[1]):
        demand, room = st.w_stage_demand[row, r], st.state_bundle_free[depth, r]
        while n_fit * demand > room:
            n_fit -= 1
    return n_fit


@part
def _take(st, depth, i, n_taken):
    """Take `n_taken` tasks of candidate `i` at that depth of the search."""
    row = demand_row(st, st.state_bundle_stage[i])
    st.state_bundle_path_stage[depth] = i
    st.state_bundle_path_tasks[depth] = n_taken
    for r in range(st.state_bundle_free.shape[1]):
        used = n_taken * st.w_stage_demand[row, r]
        st.state_bundle_free[depth + 1, r] = st.state_bundle_free[depth, r] - used
    total = st.state_bundle_path_score[depth]
    for _ in range(n_taken):
        total += st.state_bundle_score[i]
    st.state_bundle_path_score[depth + 1] = total


@inlined
def _store_best(st, depth, n):
    """Store the current path of the search as the best."""
    for i in range(n):
        st.state_bundle_best[i] = 0
    for d in range(depth):
        st.state_bundle_best[st.state_bundle_path_stage[d]] = st.state_bundle_path_tasks[d]


@inlined
def _is_still_allowed(st, g, machine):
    """Tell whether a task of stage `g` may start on `machine` after others of its bundle did."""
    if CHOOSES and st.state_i[CONSTRAINED] and not can_run(st, g, machine):
        return False
    if SPREADS and is_beside_itself(st, st.w_stage_job[g], machine):
        return False
    if st.state_stage_bucket[g] < 0:
        return False
    if not is_within_cap_on(st, machine, st.state_bucket_position[st.state_stage_bucket[g]]):
        return False
    queue = st.state_job_wait_queue[st.w_stage_job[g]]
    owed = owed_queue(st, queue, g)
    return owed < 0 or owed == queue or not takes_room(st, st.w_stage_demand, demand_row(st, g))
