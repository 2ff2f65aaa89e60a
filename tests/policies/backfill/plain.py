"""EASY and conservative backfilling as their papers describe them, in plain Python.

A job is (submit, run, estimate, width), in the order of submission. Both return when each starts.
"""

from __future__ import annotations

import math


def easy(jobs, slots, shortest_first=False):
    """Mu'alem and Feitelson (TPDS 2001): shadow time and extra nodes."""
    start, queue, running = [None] * len(jobs), [], []
    arrivals = list(range(len(jobs)))
    while arrivals or queue or running:
        now = min([jobs[j][0] for j in arrivals[:1]] + [start[j] + jobs[j][1] for j in running])
        running = [j for j in running if start[j] + jobs[j][1] > now]
        while arrivals and jobs[arrivals[0]][0] <= now:
            queue.append(arrivals.pop(0))
        free = slots - sum(jobs[j][3] for j in running)
        while queue and jobs[queue[0]][3] <= free:
            head = queue.pop(0)
            start[head] = now
            running.append(head)
            free -= jobs[head][3]
        if not queue:
            continue
        ends = sorted((max(start[j] + jobs[j][2], now), jobs[j][3]) for j in running)
        extra, shadow = free, now
        for i, (end, width) in enumerate(ends):
            extra, shadow = extra + width, end
            more = i + 1 < len(ends) and ends[i + 1][0] == end
            if extra >= jobs[queue[0]][3] and not more:
                break
        extra -= jobs[queue[0]][3]
        behind = queue[1:]
        if shortest_first:
            behind.sort(key=lambda j: jobs[j][2])
        for j in behind:
            _, _, estimate, width = jobs[j]
            ends_before = now + estimate <= shadow
            if width > free or not (ends_before or width <= extra):
                continue
            extra -= 0 if ends_before else width
            free -= width
            start[j] = now
            running.append(j)
            queue.remove(j)
    return start


def conservative(jobs, slots):
    """Conservative backfilling: a reservation a job, and compression; no job exceeds its estimate.

    `planned` has the start of each job that has come, `ends` when its slots come free: by its
    estimate as long as it has not ended, and after its start.
    """
    planned, ends, over = {}, {}, set()
    arrivals, now = list(range(len(jobs))), -math.inf

    def used(time):
        return sum(jobs[j][3] for j in planned if planned[j] <= time < ends[j])

    def assign(j):
        _, _, estimate, width = jobs[j]
        for begin in sorted({now, *(end for end in ends.values() if end > now)}):
            end = max(begin + estimate, math.nextafter(begin, math.inf))
            within = [begin, *(t for t in planned.values() if begin < t < end)]
            if all(used(t) + width <= slots for t in within):
                planned[j], ends[j] = begin, end
                return

    while arrivals or len(over) < len(jobs):
        times = [jobs[j][0] for j in arrivals[:1]]
        times += [t for t in planned.values() if t > now]
        times += [planned[j] + jobs[j][1] for j in planned if planned[j] <= now and j not in over]
        now = min(times)
        ended = [j for j in planned if planned[j] + jobs[j][1] <= now and j not in over]
        for j in ended:
            over.add(j)
            ends[j] = now
        if ended:
            for j in [j for j in sorted(planned) if planned[j] >= now and j not in over]:
                before = planned.pop(j), ends.pop(j)
                assign(j)
                assert planned[j] <= before[0]
        while arrivals and jobs[arrivals[0]][0] <= now:
            assign(arrivals.pop(0))
    return [planned[j] for j in range(len(jobs))]
