"""List scheduling of one DAG on machines with overbooked fungible resources.

At each instant the first ready task of the list that fits some machine begins on the first such
machine, and so on until no task fits. Alternatively each machine in turn takes the task that fills
it best, as Tetris does: the one of greatest alignment, the sum over resources of free × demand as
fractions of the machine, with ties broken by the list. Unchecked resources may be overbooked, and
then slow down the tasks that use them. The same DAG alone gets the same times in the simulator, to
the bit. Speeds, ends and heaps are those of the event loop (`sim.engine.kernels.rates`,
`sim.engine.kernels.heaps`), where the slot of a task is its row. Only the queue of stages differs:
a stage's position is that of its first ready task in the list, which changes with every start.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from sim.base.jit import inlined, jit, part
from sim.engine.kernels.heaps import turn_pop, turn_push
from sim.engine.kernels.rates import (
    ENDED,
    begin_task,
    collect_ended,
    drop_stale,
    leave_machine,
    update_rates,
)
from sim.engine.kernels.resources import touch
from sim.engine.kernels.state import N_DIRTY, N_FIN, N_TOUCHED, NOW


@jit
def run_list(run, packs, limit):
    """Run all tasks in the order of the list or, with `packs`, by best fit to each machine.

    Return the end of the last task, or inf as soon as it can't be before `limit`.
    """
    _begin(run)
    for g in range(len(run.w_stage_task0) - 1):
        if run.state_stage_barriers[g] == 0:
            _open(run, g)
    while True:
        if packs:
            _fill(run)
        else:
            _place(run)
        _settle(run)
        update_rates(run)
        drop_stale(run)
        if run.state_i[N_FIN] == 0:
            return run.state_f[NOW]
        run.state_f[NOW] = run.state_fin_time[0]
        if run.state_f[NOW] >= limit:
            return np.inf
        for i in range(collect_ended(run)):
            _end(run, run.state_ended[i])


@inlined
def _begin(run):
    run.state_f[NOW] = 0.0
    run.state_i[N_FIN] = run.state_i[N_TOUCHED] = run.state_i[N_DIRTY] = 0
    for machine in range(len(run.state_mach_slot)):
        for r in range(len(run.state_checked)):
            run.state_mach_free[machine, r] = run.c_capacity[machine, r]
            run.state_mach_rate[machine, r] = 1.0
        run.state_mach_slot[machine] = -1
        run.state_mach_touched[machine] = 0
    for i in range(len(run.state_task_at)):
        run.state_place[run.state_task_at[i]] = i
        run.state_task_missing[i] = 0
        run.state_slot_entry[i] = ENDED
    for g in range(len(run.w_stage_task0) - 1):
        t0, t1 = run.w_stage_task0[g], run.w_stage_task0[g + 1]
        run.state_stage_waiting[g] = 0
        run.state_refused[g] = 0
        run.state_stage_left[g] = t1 - t0
        run.state_stage_barriers[g] = 0
        for e in range(run.w_parent0[g], run.w_parent0[g + 1]):
            p = run.w_parent[e]
            if run.w_parent_kind[e] == 0:
                run.state_stage_barriers[g] += 1
                continue
            for k in range(min(t1 - t0, run.w_stage_task0[p + 1] - run.w_stage_task0[p])):
                run.state_task_missing[t0 + k] += 1


@part
def _open(run, g):
    """Make ready the tasks of stage `g` without unfinished one-to-one parents."""
    for t in range(run.w_stage_task0[g], run.w_stage_task0[g + 1]):
        if run.state_task_missing[t] == 0:
            turn_push(run, g, run.state_place[t])


@inlined
def _place(run):
    """Start tasks that fit, in the order of the list."""
    n_stages = len(run.w_stage_task0) - 1
    for g in range(n_stages):
        run.state_hint[g] = 0
    while True:
        first, second = n_stages, len(run.state_task_at)
        best = second
        for g in range(n_stages):
            if run.state_stage_waiting[g] > 0 and run.state_refused[g] < 2:
                place = run.state_task_heap[run.w_stage_task0[g]]
                if place < best:
                    first, second, best = g, best, place
                elif place < second:
                    second = place
        if first == n_stages:
            break
        base = run.w_stage_task0[first]
        while run.state_stage_waiting[first] > 0 and run.state_task_heap[base] < second:
            machine = _room(run, first)
            if machine < 0:
                run.state_refused[first] = 2
                break
            _start(run, first, machine)


@inlined
def _settle(run):
    """Record that every machine has refused the stages that still wait."""
    for g in range(len(run.state_refused)):
        run.state_refused[g] = 1 if run.state_stage_waiting[g] > 0 else 0
    run.state_i[N_DIRTY] = 0


@inlined
def _fill(run):
    """Let each machine in turn take the tasks that fill it best."""
    any_new = False
    for g in range(len(run.state_refused)):
        any_new |= run.state_stage_waiting[g] > 0 and not run.state_refused[g]
    i, n_freed = 0, run.state_i[N_DIRTY]
    for machine in range(len(run.state_mach_slot)):
        is_freed = i < n_freed and run.state_dirty[i] == machine
        i += is_freed
        while is_freed or any_new:
            g = _best_filling(run, machine, is_freed)
            if g < 0:
                break
            _start(run, g, machine)


@inlined
def _best_filling(run, machine, is_freed):
    """Return the stage of greatest alignment with `machine`, -1 for none.

    A machine that has not been freed has refused all stages but new ones.
    """
    best, best_score, best_place = -1, 0.0, 0
    for g in range(len(run.state_refused)):
        if run.state_stage_waiting[g] == 0 or (run.state_refused[g] and not is_freed):
            continue
        if not _fits(run, g, machine):
            continue
        score = 0.0
        for r in range(len(run.state_checked)):
            if run.state_checked[r]:
                has = float(max(run.c_capacity[machine, r], 1))
                free = run.state_mach_free[machine, r]
                score += free * (1.0 / (has * has)) * run.w_stage_demand[g, r]
        place = run.state_task_heap[run.w_stage_task0[g]]
        if best < 0 or score > best_score or (score == best_score and place < best_place):
            best, best_score, best_place = g, score, place
    return best


@inlined
def _room(run, g):
    """Return the first machine with room for a task of stage `g`, -1 for none."""
    if run.state_refused[g]:  # only machines freed since then can have room
        for i in range(run.state_hint[g], run.state_i[N_DIRTY]):
            if _fits(run, g, run.state_dirty[i]):
                run.state_hint[g] = i
                return run.state_dirty[i]
        return -1
    for machine in range(run.state_hint[g], len(run.state_mach_slot)):
        if _fits(run, g, machine):
            run.state_hint[g] = machine
            return machine
    return -1


@part
def _fits(run, g, machine):
    for r in range(len(run.state_checked)):
        if run.state_checked[r] and run.w_stage_demand[g, r] > run.state_mach_free[machine, r]:
            return False
    return True


@part
def _start(run, g, machine):
    t = run.state_task_at[turn_pop(run, g)]
    run.out_begin[t] = run.state_f[NOW]
    run.state_slot_machine[t] = machine
    begin_task(run, t, run.state_f[NOW], run.w_task_duration[t])
    for r in range(len(run.state_checked)):
        run.state_mach_free[machine, r] -= run.w_stage_demand[g, r]
    touch(run, machine)


@inlined
def _end(run, t):
    """End task `t`: return its room, and make ready the tasks that waited for it alone."""
    g, machine = run.state_slot_stage[t], run.state_slot_machine[t]
    run.out_end[t] = run.state_f[NOW]
    leave_machine(run, t)
    for r in range(len(run.state_checked)):
        run.state_mach_free[machine, r] += run.w_stage_demand[g, r]
    touch(run, machine)
    _free(run, machine)
    run.state_stage_left[g] -= 1
    for e in range(run.w_child0[g], run.w_child0[g + 1]):
        child = run.w_child[e]
        if run.w_child_kind[e] == 0:
            if run.state_stage_left[g] == 0:
                run.state_stage_barriers[child] -= 1
                if run.state_stage_barriers[child] == 0:
                    _open(run, child)
            continue
        other = run.w_stage_task0[child] + t - run.w_stage_task0[g]
        if other < run.w_stage_task0[child + 1]:
            run.state_task_missing[other] -= 1
            if run.state_task_missing[other] == 0 and run.state_stage_barriers[child] == 0:
                turn_push(run, child, run.state_place[other])


@inlined
def _free(run, machine):
    freed, i = run.state_dirty, run.state_i[N_DIRTY]
    for k in range(i):
        if freed[k] == machine:
            return
    while i > 0 and freed[i - 1] > machine:
        freed[i] = freed[i - 1]
        i -= 1
    freed[i] = machine
    run.state_i[N_DIRTY] += 1
