"""Kernels of observations: the jobs in the system, their features, and those of their stages."""

from sim.base.jit import jit

ARRIVED, DONE, FAILED = 1, 8, 128
"""Values of `sim.engine.plan.Event`."""

LEFT, RUNNING, STARTED = range(3)
"""Rows of the counts of jobs."""
SUBMIT, N_TASKS, PRIORITY, DEADLINE, WORK, SHARE = range(6)
"""Columns of a job's constants."""


@jit
def follow(now, events, jobs, is_in, constants, numbers):
    """Add jobs that arrived to `jobs`, and remove those that ended.

    `events` are kinds and rows; `jobs` are rows by submission, of which the first ``numbers[0]``
    are in the system; `is_in` is 1 for those. ``numbers[1]`` counts jobs that ended or failed.
    """
    kind, row = events
    n = numbers[0]
    for e in range(len(kind)):
        j = row[e]
        if kind[e] == ARRIVED:
            jobs[n] = j
            is_in[j] = 1
            constants[j, SUBMIT] = now
            n += 1
        elif kind[e] == DONE or kind[e] == FAILED:
            numbers[1] += 1
            if is_in[j] == 1:
                is_in[j] = 0
                i = n - 1
                while jobs[i] != j:
                    i -= 1
                for k in range(i, n - 1):
                    jobs[k] = jobs[k + 1]
                n -= 1
    numbers[0] = n


@jit
def set_keys(keys, jobs, column, changed):
    """Set the keys of the first jobs, list in `changed` those that differ; return how many.

    -1 - i if key i is not from -1 to 1.
    """
    n = 0
    for i in range(min(len(keys), len(jobs))):
        key = float(keys[i])
        if key != column[jobs[i]]:
            if not -1.0 <= key <= 1.0:
                return -1 - i
            column[jobs[i]] = key
            changed[n] = jobs[i]
            n += 1
    return n


@jit
def free_shares(free, rooms, total, out):
    """Fill the free share of each resource, whose rooms are these columns of `free`."""
    for r in range(len(total)):
        room = 0
        for m in range(len(free)):
            room += free[m, rooms[r]]
        out[r] = room / total[r]


@jit
def observe_jobs(now, jobs, counts, done_work, constants, out):
    """Fill a row of `out` for each of `jobs`, as many as there is room for."""
    left, running, started = counts
    shown = min(len(jobs), len(out))
    for i in range(shown):
        j = jobs[i]
        out[i, 0] = now - constants[j, SUBMIT]
        out[i, 1] = constants[j, N_TASKS]
        out[i, 2] = left[j]
        out[i, 3] = running[j]
        out[i, 4] = started[j]
        out[i, 5] = done_work[j]
        out[i, 6] = constants[j, PRIORITY]
        out[i, 7] = constants[j, SUBMIT] + constants[j, DEADLINE] - now
        out[i, 8] = constants[j, SHARE]
        if out.shape[1] > 9:
            out[i, 9] = constants[j, WORK] - done_work[j]
    for i in range(shown, len(out)):
        out[i] = 0.0


@jit
def place_stages(jobs, job_stage0, stage_left, place, stages):
    """List the unfinished stages of `jobs`, as many as there is room for; return how many.

    `place` of each becomes its row in `stages`; the caller has set it to -1.
    """
    n = 0
    for i in range(len(jobs)):
        for g in range(job_stage0[jobs[i]], job_stage0[jobs[i] + 1]):
            if stage_left[g] > 0 and n < len(stages):
                stages[n] = g
                place[g] = n
                n += 1
    return n


@jit
def list_edges(stages, place, edge0, edge_child, edges):
    """List the edges between `stages`, as many as there is room for; return how many."""
    n = 0
    for i in range(len(stages)):
        for e in range(edge0[stages[i]], edge0[stages[i] + 1]):
            if n < len(edges) and place[edge_child[e]] >= 0:
                edges[n, 0] = i
                edges[n, 1] = place[edge_child[e]]
                n += 1
    return n


@jit
def find_ready(stages, place, edge0, edge_child, edge_kind, counts, ready):
    """Set `ready` of each stage that has a task to start, and whose inputs let one start."""
    n_tasks, left, started = counts
    for i in range(len(stages)):
        ready[i] = started[stages[i]] < n_tasks[stages[i]]
    for i in range(len(stages)):
        g = stages[i]
        for e in range(edge0[g], edge0[g + 1]):
            child = place[edge_child[e]]
            # a one-to-one child starts once a task of its parent has ended
            if child >= 0 and (edge_kind[e] == 0 or left[g] == n_tasks[g]):
                ready[child] = 0
