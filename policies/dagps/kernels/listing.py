"""List scheduling of one DAG on machines with overbooked fungible resources.

A loop beside the event loop, for speed: a schedule of 1,000 tasks takes 80 to 300 lists, and the
event loop, with its arrivals, queues and policy, takes 10 to 14 times as long for each (300 tasks:
30 to 50 times; 5,000: 4 to 15). An order of single tasks would there need a stage for each.

At each instant the first ready task of the list that fits some machine begins on the first such
machine, and so on until no task fits. Alternatively each machine in turn takes the task that fills
it best, as Tetris does: the one of greatest alignment, the sum over resources of free × demand as
fractions of the machine, with ties broken by the list. Unchecked resources may be overbooked, and
then slow down the tasks that use them. The same DAG alone gets the same times in the simulator, to
the bit. Speeds, ends and heaps are those of the event loop (`sim.engine.kernels.faults.rates`,
`sim.engine.kernels.heaps`). Only the queue of stages differs: a stage's position is that of its
first ready task in the list, which changes with every start. Like tasks of a stage that start
together on one machine also end together: they are one group, in the slot of its first task's row.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from sim.base.jit import inlined, jit, part
from sim.engine.kernels.faults.rates import (
    ENDED,
    begin_task,
    collect_ended,
    drop_stale,
    leave_machine,
    update_rates,
)
from sim.engine.kernels.resources import touch
from sim.engine.kernels.state import N_DIRTY, N_FIN, N_I, N_TOUCHED, NOW
from sim.workload.kernels.pairs import count_pairs, partner

N_OPEN = N_I
"""Register of the list's run alone: number of stages with a ready task."""


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
    run.state_i[N_FIN] = run.state_i[N_TOUCHED] = run.state_i[N_DIRTY] = run.state_i[N_OPEN] = 0
    for machine in range(len(run.state_mach_slot)):
        for r in range(len(run.state_checked)):
            run.state_mach_free[machine, r] = run.c_capacity[machine, r]
            run.state_mach_rate[machine, r] = 1.0
        run.state_mach_slot[machine] = -1
        run.state_mach_touched[machine] = 0
    for g in range(len(run.w_stage_task0) - 1):
        run.state_stage_left[g] = 0
    for i in range(len(run.state_task_at)):
        t = run.state_task_at[i]
        g = run.state_slot_stage[t]
        turn = run.w_stage_task0[g] + run.state_stage_left[g]
        run.state_stage_left[g] += 1
        run.state_place[turn] = i
        run.state_turn[t] = turn
        run.state_ready[i] = 0
        run.state_task_missing[i] = 0
        run.state_slot_entry[i] = ENDED
    for g in range(len(run.w_stage_task0) - 1):
        t0 = run.w_stage_task0[g]
        run.state_n_started[g] = 0
        run.state_stage_waiting[g] = 0
        run.state_stage_barriers[g] = 0
        for e in range(run.w_parent0[g], run.w_parent0[g + 1]):
            p = run.w_parent[e]
            if run.w_parent_kind[e] == 0:
                run.state_stage_barriers[g] += 1
                continue
            for k in range(count_pairs(run.w_stage_task0, p, g)):
                run.state_task_missing[t0 + k] += 1


@part
def _open(run, g):
    """Make ready the tasks of stage `g` without unfinished one-to-one parents."""
    for t in range(run.w_stage_task0[g], run.w_stage_task0[g + 1]):
        if run.state_task_missing[t] == 0:
            _make_ready(run, g, t)


@part
def _make_ready(run, g, t):
    turn = run.state_turn[t]
    run.state_ready[turn] = 1
    if run.state_stage_waiting[g] == 0:
        n = run.state_i[N_OPEN]
        run.state_open[n] = g
        run.state_open_at[g] = n
        run.state_i[N_OPEN] = n + 1
        run.state_refused[g] = 0
        run.state_first[g] = turn
    run.state_stage_waiting[g] += 1
    run.state_first[g] = min(run.state_first[g], turn)


@part
def _take_first(run, g):
    """Take the first ready task of stage `g`, which begins."""
    turn = run.state_first[g]
    run.state_ready[turn] = 0
    run.state_stage_waiting[g] -= 1
    if run.state_stage_waiting[g] > 0:
        turn += 1
        while not run.state_ready[turn]:
            turn += 1
        run.state_first[g] = turn
        return
    n = run.state_i[N_OPEN] - 1
    last, i = run.state_open[n], run.state_open_at[g]
    run.state_open[i] = last
    run.state_open_at[last] = i
    run.state_i[N_OPEN] = n


@inlined
def _place(run):
    """Start tasks that fit, in the order of the list."""
    n_tasks = len(run.state_task_at)
    for i in range(run.state_i[N_OPEN]):
        run.state_hint[run.state_open[i]] = 0
    while True:
        first, best, second = -1, n_tasks, n_tasks
        for i in range(run.state_i[N_OPEN]):
            g = run.state_open[i]
            if run.state_refused[g] < 2:
                place = _first_place(run, g)
                if place < best:
                    first, second, best = g, best, place
                elif place < second:
                    second = place
        if first < 0:
            break
        while run.state_stage_waiting[first] > 0 and _first_place(run, first) < second:
            machine = _room(run, first)
            if machine < 0:
                run.state_refused[first] = 2
                break
            _start(run, first, machine, second, n_tasks)


@part
def _first_place(run, g):
    """Return the position in the list of the first ready task of stage `g`."""
    return run.state_place[run.state_first[g]]


@inlined
def _settle(run):
    """Record that every machine has refused the stages that still wait."""
    for i in range(run.state_i[N_OPEN]):
        run.state_refused[run.state_open[i]] = 1
    run.state_i[N_DIRTY] = 0


@inlined
def _fill(run):
    """Let each machine in turn take the tasks that fill it best."""
    any_new = False
    for i in range(run.state_i[N_OPEN]):
        any_new |= not run.state_refused[run.state_open[i]]
    i, n_freed = 0, run.state_i[N_DIRTY]
    for machine in range(len(run.state_mach_slot)):
        is_freed = i < n_freed and run.state_dirty[i] == machine
        i += is_freed
        while is_freed or any_new:
            g = _best_filling(run, machine, is_freed)
            if g < 0:
                break
            _start(run, g, machine, len(run.state_task_at), 1)


@inlined
def _best_filling(run, machine, is_freed):
    """Return the stage of greatest alignment with `machine`, -1 for none.

    A machine that has not been freed has refused all stages but new ones.
    """
    best, best_score, best_place = -1, 0.0, 0
    for i in range(run.state_i[N_OPEN]):
        g = run.state_open[i]
        if run.state_refused[g] and not is_freed:
            continue
        if not _fits(run, g, machine):
            continue
        score = 0.0
        for r in range(len(run.state_checked)):
            if run.state_checked[r]:
                has = float(max(run.c_capacity[machine, r], 1))
                free = run.state_mach_free[machine, r]
                score += free * (1.0 / (has * has)) * run.w_stage_demand[g, r]
        place = _first_place(run, g)
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
def _start(run, g, machine, before, n_max):
    """Start tasks of stage `g` on `machine`: the first, and those like it `before` a position.

    At most `n_max`, and as many as have room.
    """
    for r in range(len(run.state_checked)):
        if run.state_checked[r] and run.w_stage_demand[g, r] > 0:
            n_max = min(n_max, run.state_mach_free[machine, r] // run.w_stage_demand[g, r])
    n, first = 0, run.w_stage_task0[g] + run.state_n_started[g]
    slot, now = run.state_task_at[_first_place(run, g)], run.state_f[NOW]
    duration = run.w_task_duration[slot]
    while n < n_max and run.state_stage_waiting[g] > 0:
        place = _first_place(run, g)
        t = run.state_task_at[place]
        if place > before or run.w_task_duration[t] != duration:
            break
        _take_first(run, g)
        run.state_started[first + n] = t
        run.state_slot_machine[t] = machine
        run.out_begin[t] = now
        n += 1
    run.state_group0[slot] = first
    run.state_group_size[slot] = n
    run.state_n_started[g] += n
    begin_task(run, slot, now, duration)
    for r in range(len(run.state_checked)):
        run.state_mach_free[machine, r] -= n * run.w_stage_demand[g, r]
    touch(run, machine)


@inlined
def _end(run, slot):
    """End the group in `slot`: return its room, and make ready the tasks that waited for it."""
    g, machine = run.state_slot_stage[slot], run.state_slot_machine[slot]
    first, n = run.state_group0[slot], run.state_group_size[slot]
    for i in range(first, first + n):
        run.out_end[run.state_started[i]] = run.state_f[NOW]
    leave_machine(run, slot)
    for r in range(len(run.state_checked)):
        run.state_mach_free[machine, r] += n * run.w_stage_demand[g, r]
    touch(run, machine)
    _free(run, machine)
    run.state_stage_left[g] -= n
    for e in range(run.w_child0[g], run.w_child0[g + 1]):
        child = run.w_child[e]
        if run.w_child_kind[e] == 0:
            if run.state_stage_left[g] == 0:
                run.state_stage_barriers[child] -= 1
                if run.state_stage_barriers[child] == 0:
                    _open(run, child)
            continue
        for i in range(first, first + n):
            other = partner(run.w_stage_task0, g, run.state_started[i], child)
            if other < 0:
                continue
            run.state_task_missing[other] -= 1
            if run.state_task_missing[other] == 0 and run.state_stage_barriers[child] == 0:
                _make_ready(run, child, other)


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
