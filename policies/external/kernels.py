"""Kernel of facts: those of an instant are written as columns into the body of a message."""

from sim.base.jit import jit

ARRIVED, STAGE_DONE, TIMER, FAULT, STAGE, EDGE, CHANGED = 1, 4, 32, 64, 1024, 1025, 1026
"""Values of `policies.external.protocol.Fact`."""

KIND, ROW, JOB, CHILD, N_TASKS, LEFT, RUNNING, STARTED, USER, QUEUE = range(10)
TIME, DONE_WORK, PRIORITY, DEADLINE, REQUESTED, WORK, DEMAND = range(7)
"""Columns of int32 and of float64, as in `policies.external.protocol.COLUMNS`."""


@jit
def write_facts(now, events, jobs, counts, heard, job_facts, stage_facts, topology, defaults, body):
    """Write the facts of an instant; return how many, or minus that if there is no room for them.

    `jobs` are those in the system, `heard` their numbers of tasks left and running of which the
    scheduler knows. Columns follow each other in the `body`: those of int32 in its first array,
    each of an even length, those of float64 in its second.
    """
    kind, row = events
    left, running, started, done_work = counts
    job_numbers, job_values = job_facts
    stage_n_tasks, stage_values = stage_facts
    job_stage0, stage_job, edge0, edge_child = topology
    n = len(kind)
    for e in range(len(kind)):
        if kind[e] == ARRIVED:
            first, last = job_stage0[row[e]], job_stage0[row[e] + 1]
            n += last - first + edge0[last] - edge0[first]
    for i in range(len(jobs)):
        j = jobs[i]
        n += left[j] != heard[0, j] or running[j] != heard[1, j]
    width = n + n % 2
    if len(defaults[0]) * width > len(body[0]) or len(defaults[1]) * n > len(body[1]):
        return -n
    ints = body[0][: len(defaults[0]) * width].reshape(len(defaults[0]), width)
    floats = body[1][: len(defaults[1]) * n].reshape(len(defaults[1]), n)
    for column in range(len(ints)):
        ints[column] = defaults[0][column]
    for column in range(len(floats)):
        floats[column] = defaults[1][column]
    floats[TIME] = now
    f = 0
    for e in range(len(kind)):
        j = row[e]
        ints[KIND, f], ints[ROW, f] = kind[e], j
        if kind[e] == STAGE_DONE:
            ints[JOB, f] = stage_job[j]
        elif kind[e] != FAULT and kind[e] != TIMER:
            ints[JOB, f] = j
        f += 1
        if kind[e] == ARRIVED:
            ints[N_TASKS, f - 1] = ints[LEFT, f - 1] = job_numbers[j, 0]
            ints[USER, f - 1], ints[QUEUE, f - 1] = job_numbers[j, 1], job_numbers[j, 2]
            for k in range(4):
                floats[PRIORITY + k, f - 1] = job_values[j, k]
            for g in range(job_stage0[j], job_stage0[j + 1]):
                ints[KIND, f], ints[ROW, f], ints[JOB, f] = STAGE, g, j
                ints[N_TASKS, f] = ints[LEFT, f] = stage_n_tasks[g]
                for k in range(stage_values.shape[1]):
                    floats[WORK + k, f] = stage_values[g, k]
                f += 1
            for g in range(job_stage0[j], job_stage0[j + 1]):
                for edge in range(edge0[g], edge0[g + 1]):
                    ints[KIND, f], ints[ROW, f], ints[JOB, f] = EDGE, g, j
                    ints[CHILD, f] = edge_child[edge]
                    f += 1
    for i in range(len(jobs)):
        j = jobs[i]
        if left[j] != heard[0, j] or running[j] != heard[1, j]:
            heard[0, j], heard[1, j] = left[j], running[j]
            ints[KIND, f], ints[ROW, f], ints[JOB, f] = CHANGED, j, j
            ints[LEFT, f], ints[RUNNING, f], ints[STARTED, f] = left[j], running[j], started[j]
            floats[DONE_WORK, f] = done_work[j]
            f += 1
    return n


@jit
def count_set(jobs, is_in):
    """Count the jobs of an answer without those of -1; -1 if another is not in the system."""
    n = 0
    for i in range(len(jobs)):
        if jobs[i] >= 0:
            if jobs[i] >= len(is_in) or is_in[jobs[i]] == 0:
                return -1
            n += 1
    return n
