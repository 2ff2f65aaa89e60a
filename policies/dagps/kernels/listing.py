"""Runs the tasks of one DAG in the order of a list, on machines whose fungible resources stretch.

At each instant, of the tasks whose parents have ended and that fit a machine, the first of the list
begins, on the first such machine; and so on until none fits. Or each machine in turn takes those
that fill it best, as Tetris does: of the greatest alignment, the sum over resources of free ×
demand, as fractions of the machine; the list decides between equals. Resources that are not looked
at may be overbooked, and then slow down who uses them, as in the simulator
(`sim.engine.kernels.stretch`): the same DAG alone gets the same times there, to the bit.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from policies.dagps.kernels.listrecord import N_ENDS, N_FREED, N_TOUCHED
from policies.dagps.kernels.placement import run_pop, run_push
from sim.base.jit import inlined, jit, part


@jit
def run_list(run, packs, limit):
    """Run all tasks, as listed or, if it `packs`, by what fills a machine best.

    Return when the last one ends, or inf as soon as that can't be before `limit`.
    """
    _begin(run)
    now = 0.0
    for g in range(len(run.w_task0) - 1):
        if run.state_waits[g] == 0:
            _open(run, g)
    while True:
        if packs:
            _fill(run, now)
        else:
            _place(run, now)
        _settle(run)
        _stretch(run, now)
        _drop_stale(run)
        if run.state_n[N_ENDS] == 0:
            return now
        now = max(now, run.state_when[0])
        if now >= limit:
            return np.inf
        while run.state_n[N_ENDS] > 0 and run.state_when[0] <= now:
            t = run.state_who[0]
            if run.out_end[t] == run.state_when[0] and run.state_speed[t] > 0.0:
                _end(run, t)
            _pop(run)


@inlined
def _begin(run):
    for i in range(len(run.state_n)):
        run.state_n[i] = 0
    for machine in range(len(run.state_head)):
        for r in range(len(run.w_fungible)):
            run.state_free[machine, r] = run.w_capacity[machine, r]
            run.state_rate[machine, r] = 1.0
        run.state_head[machine] = -1
        run.state_is_touched[machine] = 0
    for i in range(len(run.state_task_at)):
        run.state_place[run.state_task_at[i]] = i
        run.state_missing[i] = 0
        run.state_speed[i] = 0.0
    for g in range(len(run.w_task0) - 1):
        t0, t1 = run.w_task0[g], run.w_task0[g + 1]
        run.state_n_ready[g] = 0
        run.state_refused[g] = 0
        run.state_unended[g] = t1 - t0
        run.state_waits[g] = 0
        for e in range(run.w_parent0[g], run.w_parent0[g + 1]):
            p = run.w_parent[e]
            if run.w_parent_kind[e] == 0:
                run.state_waits[g] += 1
                continue
            for k in range(min(t1 - t0, run.w_task0[p + 1] - run.w_task0[p])):
                run.state_missing[t0 + k] += 1


@part
def _open(run, g):
    """Make ready the tasks of stage `g` that wait for no counterpart."""
    for t in range(run.w_task0[g], run.w_task0[g + 1]):
        if run.state_missing[t] == 0:
            _make_ready(run, g, t)


@part
def _make_ready(run, g, t):
    heap = run.state_ready[run.w_task0[g] : run.w_task0[g + 1]]
    run.state_n_ready[g] = run_push(heap, run.state_place[t], run.state_n_ready[g])


@inlined
def _place(run, now):
    """Begin what fits, the first of the list first."""
    n_stages = len(run.w_task0) - 1
    for g in range(n_stages):
        run.state_hint[g] = 0
    while True:
        first, second = n_stages, len(run.state_task_at)
        best = second
        for g in range(n_stages):
            if run.state_n_ready[g] > 0 and run.state_refused[g] < 2:
                place = run.state_ready[run.w_task0[g]]
                if place < best:
                    first, second, best = g, best, place
                elif place < second:
                    second = place
        if first == n_stages:
            break
        while run.state_n_ready[first] > 0 and run.state_ready[run.w_task0[first]] < second:
            machine = _room(run, first)
            if machine < 0:
                run.state_refused[first] = 2
                break
            _start(run, first, machine, now)


@inlined
def _settle(run):
    """Note that every machine has refused what still waits."""
    for g in range(len(run.state_refused)):
        run.state_refused[g] = 1 if run.state_n_ready[g] > 0 else 0
    run.state_n[N_FREED] = 0


@inlined
def _fill(run, now):
    """Let each machine in turn take what fills it best."""
    any_new = False
    for g in range(len(run.state_refused)):
        any_new |= run.state_n_ready[g] > 0 and not run.state_refused[g]
    i, n_freed = 0, run.state_n[N_FREED]
    for machine in range(len(run.state_head)):
        is_freed = i < n_freed and run.state_freed[i] == machine
        i += is_freed
        while is_freed or any_new:
            g = _best_filling(run, machine, is_freed)
            if g < 0:
                break
            _start(run, g, machine, now)


@inlined
def _best_filling(run, machine, is_freed):
    """Return the stage of greatest alignment with `machine`, -1 for none.

    A machine that has not been freed has refused all but what is new.
    """
    best, best_score, best_place = -1, 0.0, 0
    for g in range(len(run.state_refused)):
        if run.state_n_ready[g] == 0 or (run.state_refused[g] and not is_freed):
            continue
        if not _fits(run, g, machine):
            continue
        score = 0.0
        for r in range(len(run.state_looks)):
            if run.state_looks[r]:
                has = float(max(run.w_capacity[machine, r], 1))
                score += run.state_free[machine, r] * (1.0 / (has * has)) * run.w_demand[g, r]
        place = run.state_ready[run.w_task0[g]]
        if best < 0 or score > best_score or (score == best_score and place < best_place):
            best, best_score, best_place = g, score, place
    return best


@inlined
def _room(run, g):
    """Return the first machine with room for a task of stage `g`, -1 for none."""
    if run.state_refused[g]:  # only those freed since can have any
        for i in range(run.state_hint[g], run.state_n[N_FREED]):
            if _fits(run, g, run.state_freed[i]):
                run.state_hint[g] = i
                return run.state_freed[i]
        return -1
    for machine in range(run.state_hint[g], len(run.state_head)):
        if _fits(run, g, machine):
            run.state_hint[g] = machine
            return machine
    return -1


@part
def _fits(run, g, machine):
    for r in range(len(run.state_looks)):
        if run.state_looks[r] and run.w_demand[g, r] > run.state_free[machine, r]:
            return False
    return True


@part
def _start(run, g, machine, now):
    t0, t1 = run.w_task0[g], run.w_task0[g + 1]
    place, run.state_n_ready[g] = run_pop(run.state_ready[t0:t1], run.state_n_ready[g])
    t = run.state_task_at[place]
    run.out_begin[t] = now
    run.out_machine[t] = machine
    after = run.state_head[machine]
    run.state_previous[t] = -1
    run.state_next[t] = after
    if after >= 0:
        run.state_previous[after] = t
    run.state_head[machine] = t
    for r in range(len(run.state_looks)):
        run.state_free[machine, r] -= run.w_demand[g, r]
    run.state_left[t] = run.w_duration[t]
    run.state_speed[t] = _rate(run, g, machine)
    _expect(run, t, now)
    _touch(run, machine)


@part
def _touch(run, machine):
    if not run.state_is_touched[machine]:
        run.state_is_touched[machine] = 1
        run.state_touched[run.state_n[N_TOUCHED]] = machine
        run.state_n[N_TOUCHED] += 1


@part
def _rate(run, g, machine):
    rate = 1.0
    for r in range(len(run.w_fungible)):
        if run.w_fungible[r] and run.w_demand[g, r] > 0:
            rate = min(rate, run.state_rate[machine, r])
    return rate


@part
def _expect(run, t, now):
    """Put the end of task `t`, at its rate from now on, into the heap."""
    run.state_since[t] = now
    end = now + run.state_left[t] / run.state_speed[t]
    run.out_end[t] = end
    if run.state_n[N_ENDS] == len(run.state_when):
        _rebuild(run)
    else:
        _push(run, end, t)


@inlined
def _stretch(run, now):
    """Bring the machines that were touched, and their tasks, to their new rates."""
    for i in range(run.state_n[N_TOUCHED]):
        machine = run.state_touched[i]
        run.state_is_touched[machine] = 0
        if not _rates_changed(run, machine):
            continue
        t = run.state_head[machine]
        while t >= 0:
            rate = _rate(run, run.w_task_stage[t], machine)
            if rate != run.state_speed[t]:
                ran = run.state_speed[t] * (now - run.state_since[t])
                run.state_left[t] = max(0.0, run.state_left[t] - ran)
                run.state_speed[t] = rate
                _expect(run, t, now)
            t = run.state_next[t]
    run.state_n[N_TOUCHED] = 0


@inlined
def _rates_changed(run, machine):
    changed = False
    for r in range(len(run.w_fungible)):
        if not run.w_fungible[r]:
            continue
        has = run.w_capacity[machine, r]
        demanded = has - run.state_free[machine, r]
        has = max(has, 1)
        rate = has / demanded if demanded > has else 1.0
        if rate != run.state_rate[machine, r]:
            run.state_rate[machine, r] = rate
            changed = True
    return changed


@inlined
def _end(run, t):
    """Let task `t` end: give its room back, and make ready what waited for it alone."""
    g, machine = run.w_task_stage[t], run.out_machine[t]
    run.state_speed[t] = 0.0
    before, after = run.state_previous[t], run.state_next[t]
    if before >= 0:
        run.state_next[before] = after
    else:
        run.state_head[machine] = after
    if after >= 0:
        run.state_previous[after] = before
    for r in range(len(run.state_looks)):
        run.state_free[machine, r] += run.w_demand[g, r]
    _touch(run, machine)
    _free(run, machine)
    run.state_unended[g] -= 1
    for e in range(run.w_child0[g], run.w_child0[g + 1]):
        child = run.w_child[e]
        if run.w_child_kind[e] == 0:
            if run.state_unended[g] == 0:
                run.state_waits[child] -= 1
                if run.state_waits[child] == 0:
                    _open(run, child)
            continue
        other = run.w_task0[child] + t - run.w_task0[g]
        if other < run.w_task0[child + 1]:
            run.state_missing[other] -= 1
            if run.state_missing[other] == 0 and run.state_waits[child] == 0:
                _make_ready(run, child, other)


@inlined
def _free(run, machine):
    freed, i = run.state_freed, run.state_n[N_FREED]
    for k in range(i):
        if freed[k] == machine:
            return
    while i > 0 and freed[i - 1] > machine:
        freed[i] = freed[i - 1]
        i -= 1
    freed[i] = machine
    run.state_n[N_FREED] += 1


@part
def _push(run, when, t):
    i = run.state_n[N_ENDS]
    run.state_n[N_ENDS] = i + 1
    while i > 0:
        above = (i - 1) // 2
        if run.state_when[above] <= when:
            break
        run.state_when[i], run.state_who[i] = run.state_when[above], run.state_who[above]
        i = above
    run.state_when[i], run.state_who[i] = when, t


@part
def _pop(run):
    n = run.state_n[N_ENDS] - 1
    run.state_n[N_ENDS] = n
    when, t = run.state_when[n], run.state_who[n]
    i, child = 0, 1
    while child < n:
        if child + 1 < n and run.state_when[child + 1] < run.state_when[child]:
            child += 1
        if run.state_when[child] >= when:
            break
        run.state_when[i], run.state_who[i] = run.state_when[child], run.state_who[child]
        i, child = child, 2 * child + 1
    run.state_when[i], run.state_who[i] = when, t


@inlined
def _drop_stale(run):
    while run.state_n[N_ENDS] > 0:
        t = run.state_who[0]
        if run.out_end[t] == run.state_when[0] and run.state_speed[t] > 0.0:
            return
        _pop(run)


@part
def _rebuild(run):
    """Leave no stale entry in the heap of ends."""
    run.state_n[N_ENDS] = 0
    for machine in range(len(run.state_head)):
        t = run.state_head[machine]
        while t >= 0:
            _push(run, run.out_end[t], t)
            t = run.state_next[t]
