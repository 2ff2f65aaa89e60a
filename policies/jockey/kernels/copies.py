"""Runs of the copies of a job, each alone on tokens of its own (`policies.jockey.job_simulator`).

A loop beside the event loop, for speed: C(p, a) of a job of 8,496 tasks takes 3.5 times as long
there, and more than its budget (`benchmarks.jockey`): copies have no arrivals, queues or policy.

A task is ready once its one-to-one parents and all tasks of its barrier parents have ended, and, in
a stage with a lag, that long after the last barrier parent. All tasks that end at one instant free
their tokens first, then stages open; then the ready tasks of the lowest rows start. Running tasks
are a binary heap by (end, row), ready ones a set of bits by row, stages that will open a list by
time.
"""

# mypy: disable-error-code="no-untyped-def"

import math

import numpy as np

from sim.base.jit import inlined, jit, part
from sim.workload.kernels.pairs import partner

BITS = 62  # of a word, which so stays positive
ONE = np.uint64(1)  # positions are unsigned: numba checks a signed index for negative values


@jit
def run_copies(
    stages, edges, tasks, lag_s, duration_s, submit_s, n_tokens, out_start, out_finish, out_order
):
    """Run R copies of a job of S stages, E edges and T tasks with `n_tokens` tokens.

    Parameters
    ----------
    stages : (S+1, 2) int32
        First task and first edge of each stage.
    edges : (E, 2) int32
        Child and kind of each edge, by its parent.
    tasks : (T, 2) int32
        Stage of each task, and the number of parents, tasks or whole stages, that it waits for.
    lag_s : (S,) or (0,) float64
        Time from the end of its last barrier parent to the opening of each stage, s; none without
        lags.
    duration_s : (R, T) float64
        Durations of the tasks of each copy, s.
    submit_s : (R,) float64
        Submission of each copy, s.
    n_tokens : int
        At least 1.
    out_start, out_finish : (R, T) float64
        Set to starts and ends since the submission, s.
    out_order : (R, T) int32
        Set to the order of ends, by row where they are equal.
    """
    n_tasks, n_stages = len(tasks), len(stages) - 1
    missing, left = np.empty(n_tasks, np.int32), np.empty(n_stages, np.int32)
    barriers, opening = np.empty(n_stages, np.int32), np.empty(len(lag_s), np.int32)
    due = np.empty(len(lag_s))
    end, running = np.empty(n_tokens), np.empty(n_tokens, np.int32)
    ready = np.zeros(n_tasks // BITS + 1, np.int64)
    words = np.zeros(len(ready) // BITS + 1, np.int64)
    for copy in range(len(duration_s)):
        for g in range(n_stages):
            left[g] = stages[g + 1, 0] - stages[g, 0]
            barriers[g] = 0
        for e in range(len(edges)):
            barriers[edges[e, 0]] += edges[e, 1] == 0
        for t in range(n_tasks):
            missing[t] = tasks[t, 1]
            if missing[t] == 0:
                _add(ready, words, t)
        length, start, finish = duration_s[copy], out_start[copy], out_finish[copy]
        now = submit = submit_s[copy]
        n, n_ended, order = 0, 0, out_order[copy]
        n_opening = n_opened = 0
        while True:
            while n < n_tokens:
                t = _pop_first(ready, words)
                if t < 0:
                    break
                start[t] = max(now - submit, 0.0)
                _push(end, running, n, now + length[t], t)
                n += 1
            if n_opened < n_opening and (n == 0 or due[n_opened] < end[0]):
                now = due[n_opened]
                n_opened = _open(
                    stages, opening, due, n_opened, n_opening, now, missing, ready, words
                )
                continue
            if n == 0:
                break
            now = end[0]
            is_last = False  # of those that end now
            while not is_last:
                t = running[0]
                finish[t] = max(now - submit, 0.0)
                i = n_ended
                while i > 0 and order[i - 1] > t and finish[order[i - 1]] == finish[t]:
                    order[i] = order[i - 1]
                    i -= 1
                order[i] = t
                n_ended += 1
                n_opening = _release(
                    stages, edges, tasks, t, left, missing, ready, words,
                    lag_s, barriers, opening, due, n_opened, n_opening, now,
                )  # fmt: skip
                is_last = not ((n > 1 and end[1] == now) or (n > 2 and end[2] == now))
                if is_last and n_opened < n_opening:
                    n_opened = _open(
                        stages, opening, due, n_opened, n_opening, now, missing, ready, words
                    )
                t = _pop_first(ready, words) if is_last else -1
                if t >= 0:  # it takes the token
                    start[t] = max(now - submit, 0.0)
                    _sink(end, running, n, now + length[t], t)
                    continue
                n -= 1
                if n > 0:
                    _sink(end, running, n, end[n], running[n])


@inlined
def _release(
    stages, edges, tasks, t, left, missing, ready, words,
    lag_s, barriers, opening, due, n_opened, n_opening, now,
):  # fmt: skip
    """Make the tasks ready that waited for task `t` alone; return the number of postponed stages.

    A stage with a lag, whose last barrier parent ends now, is added to `opening` by the time at
    which it is `due`.
    """
    g = tasks[t, 0]
    left[g] -= 1
    for e in range(stages[g, 1], stages[g + 1, 1]):
        child, is_one_to_one = edges[e, 0], edges[e, 1]
        first, last = stages[child, 0], stages[child + 1, 0]
        if is_one_to_one:
            first = partner(stages[:, 0], g, t, child)
            last = first + (first >= 0)
        elif left[g] > 0:
            continue
        else:
            barriers[child] -= 1
            if barriers[child] == 0 and len(lag_s) > 0 and lag_s[child] > 0:
                i, opens = n_opening, now + lag_s[child]
                while i > n_opened and due[i - 1] > opens:
                    opening[i], due[i] = opening[i - 1], due[i - 1]
                    i -= 1
                opening[i], due[i] = child, opens
                n_opening += 1
                continue
        for c in range(first, last):
            missing[c] -= 1
            if missing[c] == 0:
                _add(ready, words, c)
    return n_opening


@part
def _open(stages, opening, due, n_opened, n_opening, now, missing, ready, words):
    """Open the stages that are due; return the number of stages that were postponed and are open.

    Their last barrier parent is one of those that their tasks wait for.
    """
    while n_opened < n_opening and due[n_opened] <= now:
        child = opening[n_opened]
        for c in range(stages[child, 0], stages[child + 1, 0]):
            missing[c] -= 1
            if missing[c] == 0:
                _add(ready, words, c)
        n_opened += 1
    return n_opened


@part
def _add(ready, words, t):
    """Add task `t` to the set: to a word of `ready`, and that word to `words`."""
    w, v = t // BITS, t // BITS // BITS
    ready[w] |= 1 << np.int64(t - w * BITS)
    words[v] |= 1 << np.int64(w - v * BITS)


@part
def _pop_first(ready, words):
    """Remove the lowest row from the set and return it; -1 if there is none."""
    for v in range(len(words)):
        if words[v] == 0:
            continue
        word = words[v] & -words[v]
        w = v * BITS + math.frexp(float(word))[1] - 1
        row = ready[w] & -ready[w]
        ready[w] ^= row
        if ready[w] == 0:
            words[v] ^= word
        return w * BITS + math.frexp(float(row))[1] - 1
    return -1


@inlined
def _push(end, running, n, time, t):
    """Add task `t`, which ends at `time`, to the heap of `n` tasks."""
    i = np.uint64(n)
    while i > 0:
        up = (i - ONE) >> ONE
        if end[up] < time or (end[up] == time and running[up] < t):
            break
        end[i], running[i] = end[up], running[up]
        i = up
    end[i], running[i] = time, t


@part
def _sink(end, running, n, time, t):
    """Put task `t`, which ends at `time`, at the root of the heap of `n` and let it sink."""
    i, child, last = np.uint64(0), ONE, np.uint64(n) - ONE
    while child <= last:
        if child < last:
            if end[child] == end[child + ONE]:
                child += np.uint64(running[child + ONE] < running[child])
            else:
                child += np.uint64(end[child + ONE] < end[child])  # no branch
        if time < end[child] or (time == end[child] and t < running[child]):
            break
        end[i], running[i] = end[child], running[child]
        i = child
        child = i + i + ONE
    end[i], running[i] = time, t
