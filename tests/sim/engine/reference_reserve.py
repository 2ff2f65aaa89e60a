"""Reservations of the naive simulator: recomputed from a list of claims at every instant.

A claim is (begin, end, job, places): a machine and a component for each task; a pool of slots is
one machine.
Begins and ends are (time, 0 or 1): of the present there are two, (now, 0) as it is and (now, 1)
without the jobs that should have ended by now. Nothing overlaps the instant at which reserved room
begins, so a claim of it ends after that, at the next float64 at the earliest. One of the present as
it is does not last until (now, 1) if it is expected to take no time.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from functools import partial

from sim.engine.plan import NO_LIMIT, Machine


def reserve(run, first: int = -1) -> bool:
    """Start the jobs that may start now; store the reservations.

    Or start job `first` alone, whatever is reserved for others; tell whether it did.
    """
    plan, now = run.plan, run.now
    expected = plan.jobs["expected_s"].tolist()
    hard = run.queues_are_hard

    def order(g):  # weighted queues, and quotas that lend, by what they use now
        return (run._tier_of(g), (), run._rank(g)) if hard else run._order(g)

    def width(j):
        return sum(run.size[g] for g in run.job_stages[j])

    def end_of(begin, j):
        end_s = begin[0] + run._next_lag(run._first_task(j)) + expected[j]
        if begin > (now, 0):
            end_s = max(end_s, math.nextafter(begin[0], math.inf))
        return (max(end_s, now), 1)

    def moments(claims, begin, j):
        return [begin] + [b for b, _, _, _ in claims if begin < b < end_of(begin, j)]

    def least_room(claims, begin, j, m):
        """Return the least room on machine m, of each resource, while j would run."""
        if m in (run.down if begin == (now, 0) else run.unforeseen):
            return None
        if run._is_closed(j, m, begin[0], end_of(begin, j)[0]) or not run._is_open_to_flavor(m):
            return None
        rooms = []
        for moment in moments(claims, begin, j):
            room = list(run.capacity[m])
            for first, end, other, taken in claims:
                for machine, k in taken if first <= moment < end else ():
                    if machine == m:
                        slot = run.components[other][k].slot
                        room = [have - amount for have, amount in zip(room, slot, strict=True)]
            rooms.append(room)
        return [min(column) for column in zip(*rooms, strict=True)]

    def slots(room, j, k, m, begin):
        """Return how many slots a machine has room for; of devices as they are, now."""
        n_most = 1 if run._is_single(j) else math.inf
        if room is None or not run._may_hold(j, k, m):
            return 0
        slot = run.components[j][k].slot
        free = [room[r] // slot[r] for r in run.deciding if slot[r] > 0]
        by_devices = run._slots_by_devices(slot, m) if begin == (now, 0) else math.inf
        return min(max(0, min(free, default=width(j))), by_devices, n_most)

    def needs(j):
        return run._total(j) if run.c.job_min_tasks[j] else run._slot(j)

    def within_cap(claims, begin, j):
        org = run.org[j]
        for moment in moments(claims, begin, j):
            holders = [i for first, end, i, _ in claims if first <= moment < end]
            use = [[0] * len(run.columns) for _ in run.org_weight]
            for first, end, i, taken in claims:
                for m, k in taken if first <= moment < end else ():
                    for r, amount in enumerate(run.components[i][k].slot):
                        use[run.org[i]][run.column_on[m][r]] += amount
            if not run._within_quota(org, needs(j), use):
                return False
            holders = [i for i in [*holders, j] if run.org[i] == org]
            for r in run.deciding:
                demand = sum(needs(i)[r] for i in holders)
                if needs(j)[r] > 0 and demand > run.cap[org][r]:
                    return False
        return True

    def score(room, j, k, m, rule):
        """Return by what machines are chosen: the room while j runs, and the first task alone."""
        component = run.components[j][k]
        if rule == Machine.FASTEST:
            return -run._speed(component.first, m)
        total = 0.0
        for r in run.deciding:
            if r == run.whole:
                continue
            scale, slot = 1.0 / max(max(row[r] for row in run.capacity), 1), component.slot[r]
            if rule == Machine.BEST_FIT:
                total += (room[r] - slot) * scale
            elif rule == Machine.LEAST_DOT:
                total += (room[r] * scale) * (slot * scale)
        return total

    def places(claims, begin, j):
        """Return the places that j would get, None if it does not fit."""

        def search(outside):
            chosen = places_by(claims, begin, j, plan.choice.machine, outside)
            if chosen is None and run._is_heterogeneous(j):
                chosen = places_by(claims, begin, j, Machine.FIRST, outside)
            return chosen

        def slots_on(m):
            room = least_room(claims, begin, j, m)
            return 0 if room is None else slots(room, j, 0, m, begin)

        tries = run._in_order(j, needs(j), is_allowed=False) if run.by_flavor else [None]
        for attempt in tries:
            chosen = run._within(attempt, lambda: run._in_domains(j, search, slots_on))
            if chosen and run._within(attempt, partial(within_cap, claims, begin, j)):
                return chosen
        return None

    def places_by(claims, begin, j, rule, outside):
        """Return the same by some rule: component by component, without some machines."""
        devices, chosen = copy.deepcopy(run.devices), []
        for k, component in enumerate(run.components[j]):
            claim = (begin, end_of(begin, j), j, chosen)
            rooms = [least_room([*claims, claim], begin, j, m) for m in range(len(run.capacity))]
            taken = {m for m, _ in chosen} if run._is_single(j) else set()
            taken |= outside
            usable = [m for m in range(len(rooms)) if rooms[m] is not None and m not in taken]
            scores = {m: score(rooms[m], j, k, m, rule) for m in usable}
            machines = sorted(usable, key=scores.get)
            size = component.size or width(j)
            own = [m for m in machines for _ in range(slots(rooms[m], j, k, m, begin))][:size]
            chosen = chosen + [(m, k) for m in own]
            if len(own) < size:
                chosen = None
                break
            for m in own if begin == (now, 0) and run._is_searched(j) else ():
                run._acquire_devices(component.slot, m)
        run.devices = devices
        return chosen

    def is_free(claims, begin, j, taken):
        """Tell whether job j finds room where it was reserved."""
        devices, listed, fits = copy.deepcopy(run.devices), [], True
        for (m, k), n in Counter(taken).items():
            claim = (begin, end_of(begin, j), j, listed)
            room = least_room([*claims, claim], begin, j, m)
            fits = fits and slots(room, j, k, m, begin) >= n
            listed = listed + [(m, k)] * n
            for _ in range(n if fits and begin == (now, 0) and run._is_searched(j) else 0):
                run._acquire_devices(run.components[j][k].slot, m)
        run.devices = devices
        return fits

    def start(j, taken):
        run.reserved.pop(j, None)
        run.machines_of[j] = taken
        run.run_start[j] = now + run._next_lag(run._first_task(j))
        if run._is_waiting_gang(j):
            run._admit(j, taken)
        else:
            run._start(next(g for g in run.job_stages[j] if run._ready(g)), taken[0][0])

    claims = []
    for j in range(run.n_jobs):
        if run._holds(j):
            end = run.run_start[j] + expected[j]
            claims.append(((now, 0), (max(end, now), 1), j, run.machines_of[j]))

    if first >= 0:
        machines = places(claims, (now, 0), first)
        if machines:
            start(first, machines)
        return bool(machines)
    jobs = [int(run.c.stage_job[g]) for g in sorted(run._waiting(), key=order)]
    jobs = [j for j in dict.fromkeys(jobs) if not run._holds(j)]
    reserves_all = plan.reservations == NO_LIMIT
    released = bool(run.freed)
    run.freed = set()
    by_place = not run.unit or run.world.cluster.queue_mode != "global" or run.windows
    if run.down and not by_place:
        return False
    for j in [j for j in jobs if run._rigid_over(j) == "passes"]:
        jobs.remove(j)
        run.reserved.pop(j, None)
    if not jobs:
        return False

    stored, running = {}, list(claims)
    for j in [j for j in jobs if j in run.reserved]:
        start_s, machines = run.reserved[j]
        begin = (start_s, 0 if start_s == now else 1)
        is_kept = start_s >= now and is_free(claims, begin, j, machines)
        attempt = run._with_machine(j, needs(j), machines[0][0])
        if not is_kept or not run._within(attempt, partial(within_cap, claims, begin, j)):
            stored, claims, run.reserved = {}, running, {}
            break
        stored[j] = (begin, end_of(begin, j), j, machines)
        claims.append(stored[j])

    n_reserved, rest, blocked = Counter(), [], set()
    for j in jobs:
        counted_in = run.org[j] if hard else 0
        if n_reserved[counted_in] == plan.reservations:
            rest.append(j)
            continue
        over = run._rigid_over(j)
        if over or run.org[j] in blocked:
            if over == "blocks":
                blocked.add(run.org[j])
            if j in stored:
                claims.remove(stored[j])
            run.reserved.pop(j, None)
            continue
        if j in stored and stored[j][0][0] > now and not released:
            continue
        if j in stored:
            claims.remove(stored[j])
        openings = [(time, 1) for time in run._openings()]
        begins = sorted([(now, 0), *(end for _, end, _, _ in claims), *openings])
        begin = next((moment for moment in begins if places(claims, moment, j)), None)
        if begin is None:  # machines are lost
            run.reserved.pop(j, None)
            continue
        machines = places(claims, begin, j)
        claims.append((begin, end_of(begin, j), j, machines))
        if begin == (now, 0):
            start(j, machines)
        else:
            n_reserved[counted_in] += run.asks_for[j] is None  # else nobody else may have its room
            if reserves_all:
                run.reserved[j] = (begin[0], machines)
    for j in sorted(rest, key=lambda j: (-run.tier[j], plan.jobs["fill_key"][j])):
        machines = None if run._rigid_over(j) else places(claims, (now, 0), j)
        if machines:
            claims.append(((now, 0), end_of((now, 0), j), j, machines))
            start(j, machines)
    return False
