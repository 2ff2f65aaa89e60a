"""Reservations of the naive simulator: recomputed from a list of claims at every instant.

A claim is (begin, end, width). Begins and ends are (time, 0 or 1): of the present there are two,
(now, 0) as it is and (now, 1) without the jobs that should have ended by now.
"""

from __future__ import annotations

from sim.engine.plan import NO_LIMIT


def reserve(run) -> None:
    """Start the jobs that may start now; store the reservations."""
    plan, now, total = run.plan, run.now, run.total[0]
    expected = plan.jobs["expected_s"].tolist()
    jobs = [int(run.c.stage_job[g]) for g in sorted(run._waiting(), key=run._rank)]
    jobs = [j for j in dict.fromkeys(jobs) if run.view["started"][j] == 0]
    reserves_all = plan.reservations == NO_LIMIT
    released = bool(run.freed)
    run.freed = set()
    if not jobs:
        return

    def width(j):
        return sum(run.size[g] for g in run.job_stages[j])

    def end_of(begin, j):
        start = begin[0] + run._next_lag(run._first_task(j))
        return (max(start + expected[j], now), 1)

    def claim(begin, j):
        return (begin, end_of(begin, j), width(j))

    def free(claims, moment):
        return total - sum(w for begin, end, w in claims if begin <= moment < end)

    def fits(claims, begin, j):
        moments = [begin] + [b for b, _, _ in claims if begin < b < end_of(begin, j)]
        return all(free(claims, moment) >= width(j) for moment in moments)

    def start(j):
        if run._is_waiting_gang(j):
            run._admit(j)
        else:
            run._start(next(g for g in run.job_stages[j] if run._ready(g)), 0, False)

    claims = []
    for j in range(run.n_jobs):
        if run.view["started"][j] and run.view["left"][j]:
            end = float(run.view["start"][j]) + expected[j]
            claims.append(((now, 0), (max(end, now), 1), width(j)))

    stored, running = {}, list(claims)
    for j in [j for j in jobs if j in run.reserved]:
        start_s = run.reserved[j]
        begin = (start_s, 0 if start_s == now else 1)
        if start_s < now or not fits(claims, begin, j):
            stored, claims = {}, running
            break
        stored[j] = begin
        claims.append(claim(begin, j))
    run.reserved = {j: begin[0] for j, begin in stored.items()}

    n_reserved = 0
    for i, j in enumerate(jobs):
        if n_reserved == plan.reservations:
            rest = sorted(jobs[i:], key=lambda j: plan.jobs["fill_key"][j])
            for other in rest:
                if fits(claims, (now, 0), other):
                    claims.append(claim((now, 0), other))
                    start(other)
            break
        if j in stored and stored[j][0] > now and not released:
            continue
        if j in stored:
            claims.remove(claim(stored[j], j))
        moments = sorted([(now, 0), *(end for _, end, _ in claims)])
        begin = next(moment for moment in moments if fits(claims, moment, j))
        claims.append(claim(begin, j))
        if begin == (now, 0):
            run.reserved.pop(j, None)
            start(j)
        else:
            n_reserved += 1
            if reserves_all:
                run.reserved[j] = begin[0]
